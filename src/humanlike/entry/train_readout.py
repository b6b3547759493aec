"""Train a linear readout on a frozen backbone: `python train.py task=readout`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import Logger

from humanlike.backbones.features import extract_features
from humanlike.data.datamodule import SketchDataModule
from humanlike.files import write_json
from humanlike.interfaces import Backbone
from humanlike.readouts.checkpoint_io import AtomicCheckpointIO
from humanlike.readouts.folds import stratified_group_folds
from humanlike.readouts.linear_probe import LinearProbe, freeze
from humanlike.types import Features, Sketches


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
        ValueError: For a class with fewer sources than folds, or a checkpoint of other settings.
    """
    started = time.perf_counter()
    if not 0 <= val_fold < n_splits:
        raise ValueError(f"val_fold must be one of the folds 0 … {n_splits - 1}, got {val_fold}")
    freeze(backbone)  # before anything runs through it, or BatchNorm statistics would move
    folder = Path(out_dir) / "checkpoints"
    layer = layer or backbone.default_layer
    features = extract_features(backbone, data, [layer], cache_dir=cache_dir)[layer] if precompute else None
    datamodule = SketchDataModule(
        data,
        backbone.transform,
        _folds(data, features, n_splits, seed),
        val_fold,
        batch_size=batch_size,
        num_workers=num_workers,
        seed=seed,
        features=features,
    )
    probe = LinearProbe(
        num_features=_num_features(backbone, layer, datamodule),
        num_labels=len(data.labels),
        present_labels=datamodule.present_labels,
        C=C,
        backbone=None if precompute else backbone,
        layer=layer,
        optimizer=optimizer,
        backbone_hash=backbone.weights_hash,
    )
    # Two: `save_last` of one follows only the epochs that improve `val_loss`, and a resume would lose the rest.
    checkpoints = [
        ModelCheckpoint(dirpath=folder, filename="best", monitor="val_loss", enable_version_counter=False),
        ModelCheckpoint(dirpath=folder, filename="last", enable_version_counter=False),
    ]
    trainer = pl.Trainer(**{**(trainer_kwargs or {}), **_decided_here(out_dir, max_epochs, checkpoints, loggers)})
    last = folder / "last.ckpt"
    ckpt_path = last if resume and last.is_file() else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty")
        warnings.filterwarnings("ignore", message=".*does not have many workers")  # num_workers is the user's choice
        trainer.fit(probe, datamodule=datamodule, ckpt_path=ckpt_path, weights_only=True)
        train_loss = trainer.callback_metrics.get("train_loss")
        best = folder / "best.ckpt"
        (validated,) = trainer.validate(probe, datamodule=datamodule, ckpt_path=best, weights_only=True, verbose=False)
    result = {
        "val_loss": float(validated["val_loss"]),
        "val_accuracy": float(validated["val_accuracy"]),
        "train_loss": None if train_loss is None else float(train_loss),
        "epochs": int(trainer.current_epoch),
        "resumed": ckpt_path is not None,
        "num_train": len(datamodule.train_items),
        "num_val": len(datamodule.val_items),
        "checkpoint_best": str(best),
        "checkpoint_last": str(last),
        "seconds": time.perf_counter() - started,
        "dataset": data.name,
        "backbone": backbone.name,
        "layer": layer,
        "weights_hash": backbone.weights_hash,
        "flags": list(data.flags),
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


def _decided_here(
    out_dir: str | Path, max_epochs: int, checkpoints: Sequence[ModelCheckpoint], loggers: Sequence[Logger]
) -> dict[str, Any]:
    """Keywords of the Trainer that are not for the user to choose."""
    return {
        "default_root_dir": str(out_dir),
        "max_epochs": max_epochs,
        "callbacks": list(checkpoints),
        "plugins": [AtomicCheckpointIO()],
        "logger": list(loggers) or False,
        "use_distributed_sampler": False,  # the data module's own samplers visit every item once
        "num_sanity_val_steps": 0,
        "enable_model_summary": False,
        "log_every_n_steps": 1,
    }


def _folds(data: Sketches, features: Features | None, n_splits: int, seed: int) -> np.ndarray:
    """(N,) fold of every item; -1 for items without features."""
    fold_N = np.full(len(data), -1, dtype=np.int64)
    rows = np.arange(len(data)) if features is None else features.rows
    source_N = data.table["image_id"].to_numpy()
    fold_N[rows] = stratified_group_folds(data.table["concept"].to_numpy()[rows], source_N[rows], n_splits, seed)
    return fold_N


def _num_features(backbone: Backbone, layer: str, datamodule: SketchDataModule) -> int:
    x, _, _ = datamodule.train_items[0]
    return (
        x.shape[0]
        if datamodule.train_items.features is not None
        else backbone.features(x[None], [layer])[layer].shape[1]
    )
