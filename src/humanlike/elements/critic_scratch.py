"""A judge that shares nothing with the training critic: a small network trained from scratch on other doodles.

Its drawings come from the doodle programs under a seed of its own and are drawn by resvg; labels and elements are read
by two linear heads of its own, which train with the network. How sure they are (a temperature each) is set on further
instances, and accuracy is measured on others again.
Shapes: N drawings, L labels, E the most elements of a concept, P (concept, element) pairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from humanlike.backbones.architectures.sketch_net import SketchNet
from humanlike.backbones.network import NetworkBackbone
from humanlike.data.doodles import doodles
from humanlike.data.joined import joined
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.critic import Critic
from humanlike.elements.critic_file import load_critic, save_critic
from humanlike.elements.critic_training import ScratchSettings, gray_pictures, train_sketch_net
from humanlike.elements.presence_head import PresenceHead
from humanlike.elements.presence_pairs import MISSING, ElementPairs
from humanlike.files import atomic_path, sha256_value
from humanlike.rng import address_seed
from humanlike.types import Sketches

ALL_CONCEPTS = 48
STEPS = 1920  # with all concepts; fewer with fewer
INSTANCES, MOST_INSTANCES = 32, 96  # with all concepts; more with fewer
PEN_WIDTHS = (0.0125, 0.025)
VERSION = 1


def doodle_judge(
    concepts: Sequence[str] | int | None = None,
    seed: int = 7919,
    cache_dir: str | Path | None = None,
    *,
    instances: int | None = None,
    calibration_instances: int = 8,
    held_out_instances: int = 8,
    steps: int | None = None,
    name: str = "doodle_judge",
    **settings: Any,
) -> Critic:
    """The offline judge: trained in a minute or two of CPU time, the same for the same seed and settings.

    Args:
        concepts: What it knows, as in `doodles`; fewer are learned faster and better.
        seed: Seed of its drawings and of its training; the demo's doodles have others.
        cache_dir: Folder where judges are kept under a hash of their drawings and settings; None: train anew.
        instances: Exemplars a concept that the network is trained on, half of them with each pen width; None: 32 for 48
            concepts, more for fewer, at most 96.
        calibration_instances: Exemplars a concept that the temperatures are set on.
        held_out_instances: Exemplars a concept that accuracy is measured on.
        steps: Optimiser steps; None: 1920 for 48 concepts, fewer for fewer (with the fourth root).
        name: Name in results.
        settings: Further fields of `ScratchSettings`.

    Returns:
        A critic; `record["held_out"]` has `top1`, `top1_by_condition`, `presence_accuracy`, `presence_base` (always the
        commoner answer), `items`, and `record["cpu_seconds"]` what training took.
    """
    first = doodles(concepts, instances=1, judgments=0, seed=seed)
    share = len(first.labels) / ALL_CONCEPTS
    steps = round(STEPS * share**0.25) if steps is None else steps
    instances = min(MOST_INSTANCES, round(INSTANCES / share)) if instances is None else instances
    training = ScratchSettings(steps=steps, seed=seed, **settings)
    counts = {"network": instances, "calibration": calibration_instances, "held_out": held_out_instances}
    key = _key(first, training, counts)
    with critics_folder(cache_dir) as root:
        weights, file = root / f"{key}.weights.safetensors", root / f"{key}.critic.safetensors"
        if weights.is_file() and file.is_file():
            return load_critic(file, scratch_backbone(weights, len(first.labels), training, name))
        started = time.process_time()
        parts = {part: _part(first.labels, part, n, seed, training.size) for part, n in counts.items()}
        network, elements = train_sketch_net(parts["network"], training, label=f"training of {name}")
        with atomic_path(weights) as temporary:
            save_file({k: v.contiguous() for k, v in network.state_dict().items()}, temporary)
        backbone = scratch_backbone(weights, len(first.labels), training, name)
        critic = calibrated(scratch_critic(backbone, network, elements, parts["network"], name), parts["calibration"])
        critic.record |= {
            "held_out": accuracy_of(critic, parts["held_out"]),
            "settings": asdict(training),
            "counts": counts,
            "cpu_seconds": time.process_time() - started,
        }
        save_critic(file, critic)
        return critic


def doodle_judge_of(sketches: Sketches, cache_dir: str | Path | None = None, **arguments: Any) -> Critic:
    """The offline judge of the concepts of a data set.

    Args:
        sketches: The data set; only its labels are looked at.
        cache_dir: See `doodle_judge`.
        arguments: The others of `doodle_judge`.
    """
    return doodle_judge(sketches.labels, cache_dir=cache_dir, **arguments)


def calibrated(critic: Critic, sketches: Sketches) -> Critic:
    """Divide the logits of labels and of elements by the temperatures that make these sketches likeliest.

    Args:
        critic: Changed in place, and returned.
        sketches: Annotated sketches that it was not trained on.
    """
    f_ND = _features(critic, sketches)
    position = {k: i for i, k in enumerate(critic.classes)}
    label_N = torch.tensor([position[int(k)] for k in sketches.target_N])
    with torch.no_grad():
        logp_NK = critic.log_proba_of(f_ND)
        heat = _temperature(lambda t: cross_entropy(logp_NK / t, label_N))
        critic.coef_KD.div_(heat)
        critic.intercept_K.div_(heat)
        critic.record["temperature"] = heat
        if critic.head is not None:
            logit_NE, mask_NE = critic.presence_logits_of(f_ND, sketches.table["concept"].tolist())
            target_NE = torch.from_numpy(critic.head.pairs.targets(sketches))
            known_NE = mask_NE & (target_NE != MISSING)
            logit_M, wanted_M = logit_NE[known_NE], (target_NE[known_NE] > 0).float()
            presence_heat = _temperature(lambda t: binary_cross_entropy_with_logits(logit_M / t, wanted_M))
            critic.head.weight_PD.div_(presence_heat)
            critic.head.bias_P.div_(presence_heat)
            critic.record["presence_temperature"] = presence_heat
    return critic


def _temperature(loss: Callable[[float], torch.Tensor]) -> float:
    """The temperature in [1/8, 8] with the least loss."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda x: float(loss(float(np.exp(x)))), bounds=(-np.log(8), np.log(8)), method="bounded")
    return float(np.exp(found.x))


def accuracy_of(critic: Critic, sketches: Sketches, batch: int = 128) -> dict[str, Any]:
    """How well a critic does on annotated sketches.

    Returns:
        `top1`, `top1_by_condition`, `presence_accuracy` and `presence_base` over known pairs, `items`.
    """
    f_ND = _features(critic, sketches, batch)
    wanted_NE = torch.from_numpy(ElementPairs(critic.elements).targets(sketches))
    with torch.no_grad():
        right_N = np.asarray(critic.classes)[critic.log_proba_of(f_ND).argmax(1)] == sketches.target_N
        logit_NE, mask_NE = critic.presence_logits_of(f_ND, sketches.table["concept"].tolist())
    known_NE = mask_NE & (wanted_NE != MISSING)
    present_M = wanted_NE[known_NE] > 0
    rate = float(present_M.float().mean())
    condition_N = sketches.table["condition"].to_numpy()
    return {
        "top1": float(right_N.mean()),
        "top1_by_condition": {f"{c:g}": float(right_N[condition_N == c].mean()) for c in np.unique(condition_N)},
        "presence_accuracy": float(((logit_NE[known_NE] >= 0) == present_M).float().mean()),
        "presence_base": max(rate, 1 - rate),
        "items": len(sketches),
    }


def _features(critic: Critic, sketches: Sketches, batch: int = 128) -> torch.Tensor:
    """(N, D) what the critic's layer gives."""
    with torch.no_grad():
        parts = gray_pictures(sketches)[:, None].split(batch)
        return torch.cat([critic.features((x.float() / 255).expand(-1, 3, -1, -1)) for x in parts])


def scratch_critic(
    backbone: NetworkBackbone, network: Any, elements: nn.Linear, sketches: Sketches, name: str
) -> Critic:
    """What `train_sketch_net` gives as a critic: its two linear heads on the backbone that has its weights."""
    head = PresenceHead(network.num_features, annotated_elements(sketches), share=0.0, backbone=backbone)
    linear = network.classifier[1]
    assert isinstance(linear, nn.Linear)
    with torch.no_grad():
        head.weight_PD.copy_(elements.weight)
        head.bias_P.copy_(elements.bias)
        head.standardize.count.fill_(len(sketches))  # mean 0 and scale 1 from the start: features are read as they are
        head.known_pairs.fill_(int((torch.from_numpy(head.pairs.targets(sketches)) != MISSING).sum()))
    head.trained_on = {
        "dataset": sketches.name,
        "items": len(sketches),
        "sources": sorted({str(s) for s in sketches.table["image_id"]}),
    }
    classes = list(range(len(sketches.labels)))
    record = {"dataset": sketches.name, "items": len(sketches)}
    return Critic(backbone, sketches.labels, linear.weight, linear.bias, classes, head, name=name, record=record)


def _key(first: Sketches, training: ScratchSettings, counts: Mapping[str, int]) -> str:
    """Digest of all that decides a judge: settings, torch, and how one instance of every concept is drawn."""
    return sha256_value(
        {
            "version": VERSION,
            "torch": torch.__version__,
            "settings": asdict(training),
            "counts": dict(counts),
            "labels": list(first.labels),
            "elements": {c: list(e) for c, e in annotated_elements(first).items()},
            "drawings": [first.images.content_hash(i) for i in range(len(first))],
        }
    )


def _part(concepts: Sequence[str], part: str, instances: int, seed: int, size: int) -> Sketches:
    """Drawings of one part, with a seed of its own, a half of the instances with each pen width."""
    own = address_seed(seed, "doodle judge", part) % 2**31
    halves = [
        doodles(concepts, max(1, instances // len(PEN_WIDTHS)), judgments=0, seed=own + k, size=size, stroke_width=pen)
        for k, pen in enumerate(PEN_WIDTHS)
    ]
    return joined(halves, f"doodles for a judge, {part}, seed {seed}")


def scratch_backbone(
    weights: Path,
    num_classes: int,
    settings: ScratchSettings,
    name: str,
    make: Callable[[int, int], Any] = SketchNet,
    architecture: str = "sketch_net",
) -> NetworkBackbone:
    """The trained network: pictures as they are, read where its classifier reads."""
    return NetworkBackbone(
        partial(make, num_classes, settings.width),
        "pre_logits",
        {"size": settings.size, "crop_pct": 1.0, "mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)},
        weights,
        name=name,
        architecture=architecture,
        classifier="classifier",
        info={"title": make.__name__, "data": "doodles", "paradigm": "supervised, from scratch"},
    )


@contextmanager
def critics_folder(cache_dir: str | Path | None) -> Iterator[Path]:
    """Where trained critics lie below a cache; without one, a folder for the time being."""
    if cache_dir is None:
        with TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        root = Path(cache_dir).expanduser() / "critics"
        root.mkdir(parents=True, exist_ok=True)
        yield root
