"""What training any head on a frozen backbone has in common: folds, trainer, checkpoints, resumption."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import Logger

from humanlike.data.datamodule import SketchDataModule
from humanlike.entry.several_processes import guard
from humanlike.entry.step_progress import StepProgress
from humanlike.interfaces import Backbone
from humanlike.readouts.checkpoint_io import AtomicCheckpointIO
from humanlike.readouts.folds import SmallClassError, stratified_group_folds
from humanlike.types import Features, Sketches


def check_fold(val_fold: int, n_splits: int) -> None:
    """Raise ValueError unless `val_fold` is one of the folds."""
    if not 0 <= val_fold < n_splits:
        raise ValueError(f"val_fold must be one of the folds 0 … {n_splits - 1}, got {val_fold}")


def check_at_least(least: int, **given: int) -> None:
    """Raise ValueError, naming the setting, where one is less: Lightning takes some of these for "without end"."""
    for name, value in given.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


def folded_data(
    backbone: Backbone,
    data: Sketches,
    features: Features | None,
    *,
    n_splits: int,
    val_fold: int,
    batch_size: int,
    num_workers: int,
    seed: int,
) -> SketchDataModule:
    """Training items and those of the held-out fold, as images or as features; see `stratified_group_folds`."""
    return SketchDataModule(
        data,
        backbone.transform,
        folds_of(data, np.arange(len(data)) if features is None else features.rows, n_splits, seed),
        val_fold,
        batch_size=batch_size,
        num_workers=num_workers,
        seed=seed,
        features=features,
    )


def head_trainer(
    out_dir: str | Path, max_epochs: int, trainer_kwargs: Mapping[str, Any] | None, loggers: Sequence[Logger]
) -> pl.Trainer:
    """A trainer that keeps the last state and the one of lowest `val_loss` in `out_dir/checkpoints`."""
    folder = Path(out_dir) / "checkpoints"
    # Two: `save_last` of one follows only the epochs that improve `val_loss`, and a resume would lose the rest.
    checkpoints = [
        ModelCheckpoint(dirpath=folder, filename="best", monitor="val_loss", enable_version_counter=False),
        ModelCheckpoint(dirpath=folder, filename="last", enable_version_counter=False),
    ]
    decided = _decided_here(out_dir, max_epochs, [*checkpoints, StepProgress("training")], loggers)
    return guard(pl.Trainer(**{**(trainer_kwargs or {}), **decided}), out_dir)


@contextmanager
def quiet_training() -> Iterator[None]:
    """Without warnings on what was meant: a folder to resume from, and few workers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty")
        warnings.filterwarnings("ignore", message=".*does not have many workers")  # num_workers is the user's choice
        yield


def fit_by_batches(
    module: pl.LightningModule, trainer: pl.Trainer, datamodule: SketchDataModule, out_dir: str | Path, resume: bool
) -> tuple[dict[str, float], dict[str, Any]]:
    """Gradient descent, resumable; the module is left in its best state.

    Returns:
        What was logged on the held-out items in the best state, and facts: `train_loss, epochs, resumed,
        checkpoint_best, checkpoint_last`.
    """
    best, last = (Path(out_dir) / "checkpoints" / f"{name}.ckpt" for name in ("best", "last"))
    ckpt_path = last if resume and last.is_file() else None
    trainer.fit(module, datamodule=datamodule, ckpt_path=ckpt_path, weights_only=True)
    train_loss = trainer.callback_metrics.get("train_loss")
    (validated,) = trainer.validate(module, datamodule=datamodule, ckpt_path=best, weights_only=True, verbose=False)
    facts = {
        "train_loss": None if train_loss is None else float(train_loss),
        "epochs": int(trainer.current_epoch),
        "resumed": ckpt_path is not None,
        "checkpoint_best": str(best),
        "checkpoint_last": str(last),
    }
    return {name: float(value) for name, value in validated.items()}, facts


def origin(backbone: Backbone, data: Sketches, layer: str, datamodule: SketchDataModule) -> dict[str, Any]:
    """What a head was trained on, for `metrics.json`."""
    return {
        "num_train": len(datamodule.train_items),
        "num_val": len(datamodule.val_items),
        "dataset": data.name,
        "backbone": backbone.name,
        "layer": layer,
        "weights_hash": backbone.weights_hash,
        "flags": list(data.flags),
    }


def _decided_here(
    out_dir: str | Path, max_epochs: int, callbacks: Sequence[pl.Callback], loggers: Sequence[Logger]
) -> dict[str, Any]:
    """Keywords of the Trainer that are not for the user to choose."""
    return {
        "default_root_dir": str(out_dir),
        "max_epochs": max_epochs,
        "callbacks": list(callbacks),
        "plugins": [AtomicCheckpointIO()],
        "logger": list(loggers) or False,
        "use_distributed_sampler": False,  # the data module's own samplers visit every item once
        "num_sanity_val_steps": 0,
        "enable_model_summary": False,
        "log_every_n_steps": 1,
    }


def folds_of(data: Sketches, rows: np.ndarray, n_splits: int, seed: int) -> np.ndarray:
    """(N,) fold of every item, by concept and source; -1 for those that are not among `rows`.

    Raises:
        ValueError: A concept has fewer sources than there are folds.
    """
    table = data.table.iloc[rows]
    fold_N = np.full(len(data), -1, dtype=np.int64)
    concept_M, source_M = table["concept"].to_numpy(), table["image_id"].to_numpy()
    try:
        fold_N[rows] = stratified_group_folds(concept_M, source_M, n_splits, seed)
    except SmallClassError as error:
        raise error.worded(noun="sources", setting="task.n_splits") from None
    return fold_N


def num_features(backbone: Backbone, layer: str, datamodule: SketchDataModule) -> int:
    """D of the features that the items give."""
    x, _, _ = datamodule.train_items[0]
    return (
        x.shape[0]
        if datamodule.train_items.features is not None
        else backbone.features(x[None], [layer])[layer].shape[1]
    )
