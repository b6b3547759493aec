"""Train a presence head on a frozen backbone: `python train.py task=presence`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger

from humanlike.backbones.features import extract_features
from humanlike.data.datamodule import SketchDataModule
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.grid import GridPool
from humanlike.elements.presence_file import save_presence_head
from humanlike.elements.presence_fit import fit_presence
from humanlike.elements.presence_head import LOGGED, PresenceHead
from humanlike.entry.head_training import (
    check_at_least,
    check_fold,
    fit_by_batches,
    folded_data,
    head_trainer,
    num_features,
    origin,
    quiet_training,
)
from humanlike.files import write_json
from humanlike.interfaces import Backbone
from humanlike.readouts.linear_probe import freeze
from humanlike.types import Features, Sketches


def train_presence(
    backbone: Backbone,
    data: Sketches,
    out_dir: str | Path,
    *,
    layer: str | None = None,
    side: int | None = None,
    C: float = 0.01,
    share: float = 1.0,
    solver: Literal["lbfgs", "sgd"] = "sgd",
    n_splits: int = 5,
    val_fold: int = 0,
    max_epochs: int = 30,
    batch_size: int = 64,
    num_workers: int = 0,
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
    precompute: bool = True,
    cache_dir: str | Path | None = None,
    seed: int = 0,
    resume: bool = True,
    trainer_kwargs: Mapping[str, Any] | None = None,
    loggers: Sequence[Logger] = (),
) -> dict[str, Any]:
    """Train a `PresenceHead` on the annotation of all folds but one, validate on that one, and save it.

    Folds are those of `stratified_group_folds` by `image_id`. Written to `out_dir`, whole or not at all:
    `presence_head.safetensors` (the best state), `checkpoints/last.ckpt` after every epoch, `checkpoints/best.ckpt`
    (lowest `val_loss`), and `metrics.json`.

    Args:
        backbone: The frozen network.
        data: Items with annotated elements.
        out_dir: The run's folder.
        layer: Layer of the backbone; None: its default.
        side: Cells a side of the grid that the layer's map is pooled to; None: no pooling.
        C: Inverse strength of the penalty.
        share: How much pairs with the same element name share.
        solver: "sgd": gradient descent on batches, with checkpoints; "lbfgs": straight to the optimum on features in
            memory, the same objective.
        n_splits: Number of folds; 1/n_splits of the sources is validated on.
        val_fold: The fold to validate on.
        max_epochs: Passes over the training items, those before a resume included ("sgd").
        batch_size: Items a batch and process.
        num_workers: Processes that load items.
        optimizer: Makes the optimiser from the head's parameters; None: AdamW, learning rate 1e-3, no weight decay.
        precompute: Compute the features once and train on them; otherwise images go through the backbone each epoch.
        cache_dir: Folder of feature caches, for `precompute`.
        seed: Global seed of folds and training order.
        resume: Go on from `checkpoints/last.ckpt` if there is one.
        trainer_kwargs: Keywords of the Lightning Trainer: accelerator, devices, strategy, precision, …
        loggers: Lightning loggers.

    Returns:
        `val_loss` and the other scores of the best state on the held-out items, `train_loss`, `epochs`, `resumed`,
        `num_train`, `num_val`, `head` (the file), `seconds`, and the settings; the same as `metrics.json`.

    Raises:
        ValueError: The data set has no annotation, a concept has fewer sources than folds, a checkpoint is of other
            settings, or `solver` is unknown.
    """
    started = time.perf_counter()
    check_fold(val_fold, n_splits)
    if solver not in ("lbfgs", "sgd"):
        raise ValueError(f"solver must be lbfgs or sgd, got {solver!r}")
    if solver == "sgd":
        check_at_least(1, max_epochs=max_epochs)
    freeze(backbone)  # before anything runs through it, or BatchNorm statistics would move
    layer = layer or backbone.default_layer
    elements = annotated_elements(data)
    features = None
    if precompute or solver == "lbfgs":
        features = extract_features(backbone, data, [layer], cache_dir=cache_dir)[layer]
    datamodule = folded_data(
        backbone,
        data,
        features,
        n_splits=n_splits,
        val_fold=val_fold,
        batch_size=batch_size,
        num_workers=num_workers,
        seed=seed,
    )
    pool = GridPool.of(backbone, layer, side)
    width = num_features(backbone, layer, datamodule) if pool is None else pool.num_features
    head = PresenceHead(width, elements, C, share, pool, backbone, layer, optimizer).attach(data)
    trainer = head_trainer(out_dir, max_epochs, trainer_kwargs, loggers)
    with quiet_training():
        if solver == "lbfgs":
            validated, facts = _fit_in_memory(head, trainer, datamodule, data, features)
        else:
            validated, facts = fit_by_batches(head, trainer, datamodule, out_dir, resume)
    head.trained_on = {
        "dataset": data.name,
        "items": len(datamodule.train_items),
        "sources": sorted({str(s) for s in data.table["image_id"].to_numpy()[datamodule.train_items.rows]}),
    }
    file = Path(out_dir) / "presence_head.safetensors"
    result = {
        **{name: validated[name] for name in ("val_loss", *(f"val_{score}" for score in LOGGED))},
        **facts,
        **origin(backbone, data, layer, datamodule),
        "num_pairs": len(head.pairs.pairs),
        "num_features": width,
        "head": str(file),
        "seconds": time.perf_counter() - started,
        "settings": {
            "side": side,
            "C": C,
            "share": share,
            "solver": solver,
            "n_splits": n_splits,
            "val_fold": val_fold,
            "max_epochs": max_epochs,
            "batch_size": batch_size,
            "precompute": precompute,
            "seed": seed,
        },
    }
    if trainer.is_global_zero:
        save_presence_head(file, head)
        write_json(Path(out_dir) / "metrics.json", result)
    return result


def _fit_in_memory(
    head: PresenceHead,
    trainer: pl.Trainer,
    datamodule: SketchDataModule,
    data: Sketches,
    features: Features | None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """Straight to the optimum; nothing to resume, because it takes seconds."""
    assert features is not None
    fit_presence(head, data, features, np.flatnonzero(np.isin(features.rows, datamodule.train_items.rows)))
    (validated,) = trainer.validate(head, datamodule=datamodule, verbose=False)
    return {name: float(value) for name, value in validated.items()}, {
        "train_loss": None,
        "epochs": 0,
        "resumed": False,
    }
