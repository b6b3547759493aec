"""Optimise the strokes of sketches one by one, many in one program: `python train.py task=sketch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pytorch_lightning.loggers import Logger

from humanlike.backbones.layer_selection import select_layers
from humanlike.backbones.progress import Progress
from humanlike.elements.critic import Critic
from humanlike.elements.critic_run import run_critic
from humanlike.entry.train_sketch_targets import Targets, concept_targets, image_targets, initial_strokes, item_targets
from humanlike.files import sha256_value, write_json, write_text
from humanlike.generators.optimize import Optimization, Optimized, optimize_sketches
from humanlike.generators.optimize_objectives import ConceptObjective, Objective, PictureObjective
from humanlike.generators.trajectory import Trajectory, write_animated_svg
from humanlike.generators.trajectory_movie import can_write_mp4, movie_frames, write_gif, write_mp4
from humanlike.interfaces import Backbone
from humanlike.losses import SEALoss
from humanlike.losses_features import FeatureLoss
from humanlike.readouts.linear_probe import freeze
from humanlike.reports.optimised_sketches import write_sketch_page
from humanlike.reports.run_folder import write_table
from humanlike.types import Sketches

OWN_CRITIC = "judged_by_its_own_critic"
"""P, v and SEA are those of the network that the strokes were optimised for: no evidence that others see the same."""


def train_sketch(
    backbone: Backbone,
    data: Sketches,
    out_dir: str | Path,
    *,
    concepts: Sequence[str] | int | None = 8,
    images: str | Sequence[str] | None = None,
    items: int | None = None,
    repeats: int = 1,
    num_strokes: int = 16,
    optimization: Optimization | None = None,
    loss: SEALoss | None = None,
    concept_weight: float = 1.0,
    picture_weight: float = 1.0,
    layers: str | Sequence[str] | None = None,
    layer_weights: Sequence[float] | None = None,
    semantic_weight: float = 1.0,
    relative: bool = True,
    attention: bool = True,
    radius: float | None = None,
    layer: str | None = None,
    critic: str | Path | Callable[..., Critic] | None = None,
    together: int = 16,
    checkpoint_every: int = 50,
    movie_size: int = 128,
    cache_dir: str | Path | None = None,
    seed: int = 0,
    resume: bool = True,
    trainer_kwargs: Mapping[str, Any] | None = None,
    loggers: Sequence[Logger] = (),
) -> dict[str, Any]:
    """Optimise strokes to be recognised (from a class name alone), to look like a picture, or both.

    With neither `images` nor `items`, every sketch starts from scattered strokes and is optimised for its concept: SEA
    by a critic on the backbone. With pictures, strokes start on salient lines and are optimised for the distance of
    features; where concepts are given too, for both.

    Written to `out_dir`: `sketches/*.svg`, `sketches.parquet`, `trajectory.svg` and `.gif` (`.mp4` where
    imageio-ffmpeg is installed), `before_after.html`, `critic.safetensors` where one was fitted, `metrics.json`, and
    `checkpoints/`.

    Args:
        backbone: The frozen network.
        data: What a critic is fitted on, and where `items` come from.
        out_dir: The run's folder.
        concepts: Names, how many (evenly spread over what the critic knows), or None: all. With pictures: names, one a
            picture or one for all; a number or None means that nothing is to be recognised.
        images: Picture files or folders.
        items: How many items of the data set to take as pictures.
        repeats: Sketches a concept, from class names alone.
        num_strokes: K, the most strokes of a sketch.
        optimization: How; its seed is `seed`.
        loss: What a concept is optimised for; None: SEALoss with its defaults.
        concept_weight: Its weight.
        picture_weight: Weight of the distance from a picture.
        layers: Layers whose activations are compared, or patterns; None: the two at half and three quarters of depth.
        layer_weights: Their weights; 1 each by default.
        semantic_weight: Weight of the distance of embeddings.
        relative: See `FeatureLoss`.
        attention: Look for initial points by a transformer's attention; otherwise, and for other networks, by gradient.
        radius: How far the control points of initial strokes are from one another; None: 0.15, and 0.05 on pictures.
        layer: Layer of the embedding and of the critic; None: the backbone's default.
        critic: A file, or what makes the critic; see `run_critic`. None: `fit_critic`.
        together: Sketches in one program at a time; a result does not depend on it (but for rounding).
        checkpoint_every: Steps between checkpoints.
        movie_size: Pixels a side of a sketch in films; 0: no films.
        cache_dir: Folder of feature caches, for fitting a critic.
        seed: Global seed.
        resume: Go on from checkpoints.
        trainer_kwargs: The accelerator is taken from here.
        loggers: Lightning loggers; told the means over sketches of every step.

    Returns:
        Means over sketches (`loss`, `loss_start`, `P`, `v`, `sea`, `strokes`), `num_sketches`, `steps`, `resumed`,
        `given_up`, `bad_steps`, `seconds`, `seen_by` (the networks that the strokes were optimised for), flags and
        settings; the same as `metrics.json`.

    Raises:
        FileNotFoundError: A picture or critic is missing.
        ValueError: Settings or targets that do not fit, or a checkpoint of others.
    """
    started = time.perf_counter()
    folder, settings = Path(out_dir), replace(optimization or Optimization(), seed=seed)
    device = _device(trainer_kwargs or {})
    freeze(backbone)
    from_pictures = images is not None or items is not None
    named = () if concepts is None or isinstance(concepts, int) else tuple(concepts)
    judge = None
    if not from_pictures or named:
        judge = run_critic(critic, backbone, data, folder, layer=layer, cache_dir=cache_dir, seed=seed, resume=resume)
        judge.to(device)
    known = () if judge is None else judge.concepts
    if images is not None:
        targets = image_targets(images, named, known)
    elif items is not None:
        targets = item_targets(data, items, named)
    else:
        targets = concept_targets(known, concepts, repeats)
    network = None
    if from_pictures:
        compared = _layers(backbone, layers)
        network = FeatureLoss(backbone, compared, layer_weights, layer, semantic_weight, relative, "none")
    sea = loss or SEALoss(reduction="none")
    about = {
        "backbone": backbone.weights_hash,
        "critic": None if judge is None else _identity(judge),
        "network": None if network is None else [network.layers, network.weights, network.embedding, semantic_weight],
        "loss": repr(sea),
        "weights": [concept_weight, picture_weight, relative],
    }
    points = initial_strokes(targets, num_strokes, seed, settings.size, network, attention, radius)
    parts, resumed = [], False
    progress = Progress(-(-len(targets) // together) * settings.steps, f"{len(targets)} sketches", unit="steps")
    for start in range(0, len(targets), together):
        rows = slice(start, start + together)
        part = targets.part(rows)
        objectives = _objectives(part, judge, sea, concept_weight, network, picture_weight, settings.size)
        file = folder / "checkpoints" / f"sketches_{start:05d}.ckpt"
        if not resume:
            file.unlink(missing_ok=True)
        resumed = resumed or file.is_file()
        parts.append(
            optimize_sketches(
                points[rows].to(device),
                objectives,
                settings,
                checkpoint=file,
                every=checkpoint_every,
                identity=[about, part.names, part.concepts, _digests(part)],
                watch=_watch(loggers, start // together * settings.steps, progress),
            )
        )
    progress.close()
    for logger in loggers:
        logger.save()
    table = _table(targets, parts, num_strokes)
    result = {
        **_means(table),
        "num_sketches": len(targets),
        "steps": settings.steps,
        "resumed": resumed,
        "given_up": int(table["given_up"].sum()),
        "bad_steps": int(table["bad_steps"].sum()),
        "seconds": time.perf_counter() - started,
        "backbone": backbone.name,
        "weights_hash": backbone.weights_hash,
        "critic": None if judge is None else judge.name,
        "seen_by": list(dict.fromkeys([*([backbone.name] if network else []), *([judge.name] if judge else [])])),
        "flags": [OWN_CRITIC] if judge is not None else [],
        "settings": {**settings.record(), **about, "num_strokes": num_strokes},
    }
    _write(folder, targets, parts, table, result, movie_size)
    return result


def _identity(judge: Critic) -> str:
    """What fixes a critic: its data, settings and layer, not the time that its fit took."""
    facts = {name: value for name, value in judge.record.items() if name not in {"readout", "cpu_seconds"}}
    return sha256_value([facts, judge.labels, judge.layer])


def _layers(backbone: Backbone, layers: str | Sequence[str] | None) -> tuple[str, ...]:
    if layers is None:
        return select_layers(backbone.layers, "spread:5")[2:4] if len(backbone.layers) >= 5 else ()
    return select_layers(backbone.layers, layers) if len(layers) else ()


def _objectives(
    targets: Targets,
    judge: Critic | None,
    sea: SEALoss,
    concept_weight: float,
    network: FeatureLoss | None,
    picture_weight: float,
    size: int,
) -> list[Objective]:
    found: list[Objective] = []
    if network is not None and picture_weight > 0:
        found.append(PictureObjective(network, targets.canvases(size), picture_weight))
    if judge is not None and targets.concepts and concept_weight > 0:
        found.append(ConceptObjective(judge, targets.concepts, sea if judge.elements else None, concept_weight))
    return found


def _device(trainer_kwargs: Mapping[str, Any]) -> torch.device:
    """The one device that a run works on."""
    devices = trainer_kwargs.get("devices", 1)
    if devices not in (1, "1", "auto", None):
        raise ValueError(
            f"task=sketch runs on one device, got trainer.devices={devices}; start a job for each with -m seed=0,1"
        )
    accelerator = str(trainer_kwargs.get("accelerator", "cpu"))
    if accelerator == "cpu" or (accelerator == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ValueError(f"trainer.accelerator={accelerator}, but this machine has no CUDA device; use trainer=cpu")
    return torch.device("cuda")


def _digests(targets: Targets) -> list[str]:
    import hashlib

    return [hashlib.sha256(np.asarray(picture).tobytes()).hexdigest() for picture in targets.pictures]


def _watch(loggers: Sequence[Logger], offset: int, progress: Progress) -> Any:
    def tell(step: int, means: dict[str, float]) -> None:
        progress.advance(offset + step - progress.done)  # steps of an earlier start count as done
        for logger in loggers:
            logger.log_metrics(means, step=offset + step)

    return tell


def _table(targets: Targets, parts: Sequence[Optimized], num_strokes: int) -> pd.DataFrame:
    """One row a sketch."""
    last: dict[str, list[np.ndarray]] = {}
    for part in parts:
        for name, verdict in (("", part.last), ("_start", part.first)):
            for column, value_B in {"loss": verdict.loss_B, **verdict.parts}.items():
                last.setdefault(f"{column}{name}", []).append(value_B.double().cpu().numpy())
    columns = {name: np.concatenate(values) for name, values in last.items()}
    shown = torch.cat([part.parameters.drawn().mask_BK.sum(dim=1).cpu() for part in parts])
    return pd.DataFrame(
        {
            "sketch_id": targets.names,
            "concept": targets.concepts or (None,) * len(targets),
            "source": list(targets.sources),
            "strokes": shown.numpy(),
            "num_strokes": num_strokes,
            **{name: columns[name] for name in sorted(columns)},
            "bad_steps": torch.cat([part.bad_B for part in parts]).numpy(),
            "given_up": torch.cat([part.stopped_B for part in parts]).numpy(),
            "path": [f"sketches/{name}.svg" for name in targets.names],
        }
    )


def _means(table: pd.DataFrame) -> dict[str, float]:
    names = ("loss", "loss_start", "P", "P_start", "v", "v_start", "sea", "sea_start", "distance", "strokes")
    return {name: float(table[name].mean()) for name in names if name in table}


def _write(
    folder: Path,
    targets: Targets,
    parts: Sequence[Optimized],
    table: pd.DataFrame,
    result: Mapping[str, Any],
    movie_size: int,
) -> None:
    trajectory: Trajectory = parts[0].trajectory
    for part in parts[1:]:
        trajectory = trajectory.beside(part.trajectory)
    svgs = [text for part in parts for text in part.parameters.drawn().to_svg()]
    for path, text in zip(table["path"], svgs, strict=True):
        write_text(folder / path, text)
    write_table(folder / "sketches.parquet", table)
    write_animated_svg(folder / "trajectory.svg", trajectory, targets.names)
    if movie_size:
        frames = movie_frames(trajectory, targets.names, movie_size)
        write_gif(folder / "trajectory.gif", frames)
        if can_write_mp4():
            write_mp4(folder / "trajectory.mp4", frames)
    history = torch.cat([part.loss_TB for part in parts], dim=1).numpy()
    write_sketch_page(folder / "before_after.html", table, trajectory, targets.pictures, history, result)
    write_json(folder / "metrics.json", result)
