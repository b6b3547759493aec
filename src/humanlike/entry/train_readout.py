"""Train a linear readout on a frozen backbone: `python train.py task=readout`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.loggers import Logger

from humanlike.backbones.features import extract_features
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
from humanlike.readouts.linear_probe import LinearProbe, freeze
from humanlike.types import Sketches


def train_readout(
    backbone: Backbone,
    data: Sketches,
    out_dir: str | Path,
    *,
    layer: str | None = None,
    C: float = 1.0,
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
    """Train a `LinearProbe` on all folds but one, validate on that one, keep the best and the last state.

    Folds are those of `stratified_group_folds` by `image_id`. Written to `out_dir`, whole or not at all:
    `checkpoints/last.ckpt` after every epoch, `checkpoints/best.ckpt` (lowest `val_loss`), and `metrics.json`.

    Args:
        backbone: The frozen network.
        data: Items with concepts.
        out_dir: The run's folder.
        layer: Layer of the backbone; None: its default.
        C: Inverse strength of the penalty, as in scikit-learn.
        n_splits: Number of folds; 1/n_splits of the sources is validated on.
        val_fold: The fold to validate on.
        max_epochs: Passes over the training items, those before a resume included.
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
        `val_loss` and `val_accuracy` of the best state, `train_loss`, `epochs`, `resumed`, `num_train`,
        `num_val`, `checkpoint_best`, `checkpoint_last`, `seconds`, and the settings; the same as `metrics.json`.

    Raises:
        ValueError: For no epoch, a class with fewer sources than folds, or a checkpoint of other settings.
    """
    started = time.perf_counter()
    check_fold(val_fold, n_splits)
    check_at_least(1, max_epochs=max_epochs)
    freeze(backbone)  # before anything runs through it, or BatchNorm statistics would move
    layer = layer or backbone.default_layer
    features = extract_features(backbone, data, [layer], cache_dir=cache_dir)[layer] if precompute else None
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
    probe = LinearProbe(
        num_features=num_features(backbone, layer, datamodule),
        num_labels=len(data.labels),
        present_labels=datamodule.present_labels,
        C=C,
        backbone=None if precompute else backbone,
        layer=layer,
        optimizer=optimizer,
        backbone_hash=backbone.weights_hash,
    )
    trainer = head_trainer(out_dir, max_epochs, trainer_kwargs, loggers)
    with quiet_training():
        validated, facts = fit_by_batches(probe, trainer, datamodule, out_dir, resume)
    result = {
        "val_loss": validated["val_loss"],
        "val_accuracy": validated["val_accuracy"],
        **facts,
        **origin(backbone, data, layer, datamodule),
        "seconds": time.perf_counter() - started,
        "settings": {
            "C": C,
            "n_splits": n_splits,
            "val_fold": val_fold,
            "max_epochs": max_epochs,
            "batch_size": batch_size,
            "precompute": precompute,
            "seed": seed,
        },
    }
    if trainer.is_global_zero:
        write_json(Path(out_dir) / "metrics.json", result)
    return result
