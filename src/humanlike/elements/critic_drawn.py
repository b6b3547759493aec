"""A critic that knows how drawings of a data set look with strokes missing: a small network trained on both.

A readout of a network that was trained on photographs does not say what leaving out a stroke does to a drawing: on the
demo's drawings the effects it sees correlate by 0.1 to 0.2 with those that judges see, who agree with one another by
0.7 to 0.8. This one is trained from scratch on the data set's own drawings and on copies from which strokes are
missing, with the elements that these still show. Its layers are others than the judge's (`SketchMixer`), and so are its
drawings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from humanlike.backbones.architectures.sketch_mixer import SketchMixer
from humanlike.backbones.network import NetworkBackbone
from humanlike.data.doodles import doodles
from humanlike.data.drawing import DEFAULT_WIDTH
from humanlike.data.joined import joined
from humanlike.data.render import Renderer
from humanlike.data.thinned import thinned
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.critic import Critic
from humanlike.elements.critic_file import critic_facts, load_critic, save_critic
from humanlike.elements.critic_scratch import accuracy_of, calibrated, critics_folder, scratch_backbone, scratch_critic
from humanlike.elements.critic_training import ScratchSettings, train_sketch_net
from humanlike.files import atomic_path, sha256_value
from humanlike.interfaces import Backbone
from humanlike.readouts.folds import stratified_group_folds
from humanlike.rng import address_seed
from humanlike.types import Sketches

STEPS = 1500
WIDTH = 64
VERSION = 1
PENS = (DEFAULT_WIDTH, 1.6 * DEFAULT_WIDTH)
"""Of the whole drawings, and of the copies with strokes missing."""
HELD_OUT = 12
"""One of so many parts of the sources is kept for the temperatures."""


def drawn_critic(
    backbone: Backbone | None,
    sketches: Sketches,
    layer: str | None = None,
    cache_dir: str | Path | None = None,
    seed: int = 0,
    *,
    drawings: Sketches | None = None,
    least: float = 0.3,
    steps: int = STEPS,
    width: int = WIDTH,
    name: str = "drawn_critic",
    make: Callable[[int, int], nn.Module] = SketchMixer,
    **settings: Any,
) -> Critic:
    """Train a critic on drawings, whole and with strokes missing; minutes of CPU time, the same for the same arguments.

    Args:
        backbone: Not needed; taken so that this can stand where `fit_critic` does.
        sketches: Drawings with annotated elements.
        layer: Not needed either.
        cache_dir: Folder where critics are kept under a hash of drawings and settings; None: train anew.
        seed: Of the training, of what is left out and of what is held out.
        drawings: What it learns from instead, with the same labels and elements. A critic should not have seen what a
            generator remembers: it finds all of that perfect, and cannot tell a good drawing from a bad one.
        least: Smallest share of strokes in the copies, see `thinned`.
        steps: Optimiser steps.
        width: Channels of the network.
        name: Name in results.
        make: Makes the network from the number of labels and `width`.
        settings: Further fields of `ScratchSettings`.

    Returns:
        A critic whose temperatures are set on held-out sources; `record["held_out"]` says how it does on them.

    Raises:
        ValueError: The data set has no strokes, no annotation or a concept with one source only, or `drawings` have
            other labels.
    """
    del backbone, layer
    if drawings is not None and drawings.labels != sketches.labels:
        raise ValueError(
            f"the critic's drawings ({len(drawings.labels)} concepts) show others than {sketches.name} "
            f"({len(sketches.labels)}); ask both for the same ones (task.critic.drawings.concepts)"
        )
    sketches = sketches if drawings is None else drawings
    training = ScratchSettings(steps=steps, width=width, seed=seed, **settings)
    parts = _parts(sketches, training.size, least, seed)
    facts = {"version": VERSION, "torch": torch.__version__, "settings": asdict(training), "network": make.__name__}
    shown = [parts[p].images.content_hash(i) for p in parts for i in range(len(parts[p]))]
    elements = annotated_elements(sketches)
    key = sha256_value([facts, shown, list(sketches.labels), {c: list(e) for c, e in elements.items()}])
    with critics_folder(cache_dir) as root:
        weights, file = root / f"{key}.weights.safetensors", root / f"{key}.critic.safetensors"
        rebuilt = partial(scratch_backbone, weights, len(sketches.labels), training, name, make, make.__name__)
        if weights.is_file() and file.is_file():
            return load_critic(file, rebuilt())
        started = time.process_time()
        network, heads = train_sketch_net(parts["network"], training, make, f"training of {name}")
        with atomic_path(weights) as temporary:
            save_file({k: v.contiguous() for k, v in network.state_dict().items()}, temporary)
        critic = calibrated(scratch_critic(rebuilt(), network, heads, parts["network"], name), parts["held out"])
        critic.record |= {
            "held_out": accuracy_of(critic, parts["held out"]),
            "settings": asdict(training),
            "sources": sorted({str(s) for s in sketches.table["image_id"]}),
            "cpu_seconds": time.process_time() - started,
        }
        save_critic(file, critic)
        return critic


def other_doodles(concepts: Sequence[str] | int | None = None, instances: int = 32, seed: int = 0) -> Sketches:
    """Doodles for a critic, with a seed of their own below the run's: neither the run's drawings nor the judge's.

    Args:
        concepts: As in `doodles`.
        instances: Exemplars a concept.
        seed: The run's seed.
    """
    return doodles(concepts, instances, judgments=0, seed=address_seed(seed, "drawn critic", "doodles") % 2**31)


def network_file(file: str | Path) -> Path:
    """Where the network of a critic that is saved in `file` lies: beside it.

    Example:
        >>> network_file("run/critic.safetensors").as_posix()
        'run/critic_network.safetensors'
    """
    path = Path(file).expanduser()
    return path.with_name(f"{path.stem}_network{path.suffix}")


def save_drawn_critic(file: str | Path, critic: Critic) -> None:
    """Write a critic and, beside it, its network."""
    backbone = critic.backbone
    if not isinstance(backbone, NetworkBackbone):
        raise TypeError(f"{critic.name} has no network of its own; save it with save_critic")
    state = backbone.network.state_dict()
    with atomic_path(network_file(file)) as temporary:
        save_file({k: v.cpu().contiguous() for k, v in state.items()}, temporary)
    save_critic(file, critic)


def saved_drawn_critic(
    file: str | Path,
    backbone: Backbone | None = None,
    make: Callable[[int, int], nn.Module] = SketchMixer,
    **others: Any,
) -> Critic:
    """What `save_drawn_critic` wrote, for who makes critics from `backbone` and `sketches`.

    Args:
        file: The critic; its network lies beside it.
        backbone: Not needed.
        make: As in `drawn_critic`.
        others: What a saved critic has no need of.

    Raises:
        FileNotFoundError: There is no such file, or no network beside it.
        ValueError: A file is damaged, or the network is of another critic.
    """
    del backbone, others
    beside = network_file(file)
    if not beside.is_file():
        raise FileNotFoundError(f"there is no network {beside} beside the critic {file}; a drawn critic needs both")
    facts = critic_facts(file)
    settings = ScratchSettings(**facts["record"]["settings"])
    name = facts["backbone_name"]
    return load_critic(file, scratch_backbone(beside, len(facts["labels"]), settings, name, make, make.__name__))


def _parts(sketches: Sketches, size: int, least: float, seed: int) -> dict[str, Sketches]:
    """What is trained on and what is held out, both whole and thinned, as pictures of `size` pixels."""
    whole, missing = _drawn(sketches, size, PENS[0]), thinned(_drawn(sketches, size, PENS[1]), least, seed)
    groups = sketches.table["image_id"].to_numpy()
    fewest = int(sketches.table.groupby("concept")["image_id"].nunique().min())
    if fewest < 2:
        raise ValueError(
            f"{sketches.name} has a concept with one source only; a critic trains on some and sets its temperatures on "
            "others, so give it two or more of each"
        )
    fold_N = stratified_group_folds(sketches.target_N, groups, min(HELD_OUT, fewest), seed)
    chosen = {"network": np.flatnonzero(fold_N != 0), "held out": np.flatnonzero(fold_N == 0)}
    return {
        part: joined([whole.select(rows), missing.select(rows)], f"{sketches.name}, whole and thinned, {part}")
        for part, rows in chosen.items()
    }


def _drawn(sketches: Sketches, size: int, pen: float) -> Sketches:
    images: Any = sketches.images
    if getattr(images, "renderer", None) is None:
        raise ValueError(f"{sketches.name} holds pictures without strokes; train on it with critic fit_critic instead")
    return replace(sketches, images=replace(images, renderer=Renderer(size=size, stroke_width=pen)))
