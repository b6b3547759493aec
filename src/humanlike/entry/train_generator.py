"""Pre-train a generator on strokes and fine-tune it against SEA: `python train.py task=generator`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import Logger

from humanlike.backbones.arithmetic import reused_memory
from humanlike.elements.critic import Critic
from humanlike.elements.critic_run import run_critic
from humanlike.elements.critic_scratch import doodle_judge_of
from humanlike.entry.head_training import check_at_least, folds_of
from humanlike.entry.several_processes import guard
from humanlike.entry.step_progress import StepProgress
from humanlike.entry.train_generator_files import Watch, spread_over, write_page, write_sketches
from humanlike.files import write_json
from humanlike.generators.augment import Views
from humanlike.generators.datamodule import StrokeDataModule
from humanlike.generators.decoder import StrokeDecoder
from humanlike.generators.finetune import FineTuning, steps_loader
from humanlike.generators.finetune_monitor import GapMonitor
from humanlike.interfaces import Backbone
from humanlike.losses import SEALoss
from humanlike.readouts.checkpoint_io import AtomicCheckpointIO
from humanlike.readouts.linear_probe import freeze
from humanlike.reports.sketch_tracking import SketchTracking
from humanlike.types import Sketches


def train_generator(
    backbone: Backbone,
    data: Sketches,
    out_dir: str | Path,
    *,
    generator: Callable[..., Any] = StrokeDecoder,
    critic: str | Path | Callable[..., Critic] | None = None,
    judge: Callable[..., Critic] | None = None,
    concepts: Sequence[str] | int | None = 8,
    pretrain_steps: int = 1600,
    pretrain_batch_size: int = 32,
    val_every: int = 20,
    tolerance: float = 0.008,
    n_splits: int = 8,
    steps: int = 300,
    sketches: int = 8,
    per_concept: int = 2,
    size: int = 128,
    views: Views | None = None,
    loss: SEALoss | None = None,
    stay_weight: float = 0.05,
    diversity_weight: float = 0.5,
    softness: float = 0.18,
    tuned: Sequence[str] | None = None,
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
    gradient_clip: float = 1.0,
    gate_flips: int = 6,
    exemplar_share: float = 0.4,
    weigh_every: int = 100,
    judge_every: int = 100,
    judged_per_concept: int = 8,
    largest_gap: float = 0.3,
    patience: int = 2,
    judge_size: int = 224,
    layer: str | None = None,
    cache_dir: str | Path | None = None,
    seed: int = 0,
    resume: bool = True,
    trainer_kwargs: Mapping[str, Any] | None = None,
    loggers: Sequence[Logger] = (),
) -> dict[str, Any]:
    """Pre-train on the strokes of a data set, fine-tune against a frozen critic, and have a judge say what it is worth.

    Written to `out_dir`: `checkpoints/pretrain.ckpt`, `checkpoints/finetune.ckpt` (last states, to go on from),
    `critic.safetensors` (beside it its network, if it has one of its own), `sketches/before|after/*.svg`,
    `sketches.parquet` (a row a sketch and stage, as read), `before_after.html` and `metrics.json`.

    Args:
        backbone: The critic's network; frozen.
        data: Drawings with strokes and annotated elements: what is learned and what the critic is fitted on.
        out_dir: The run's folder.
        generator: Makes the generator from `concepts` and `seed`.
        critic: A file, or what makes the critic; see `run_critic`. None: `fit_critic`.
        judge: Makes the judge from the data set and `cache_dir`; None: `doodle_judge_of`.
        concepts: What to draw: names, how many (evenly spread over the labels), or None for all. Critic and judge know
            all labels of the data set.
        pretrain_steps: Optimiser steps of pre-training.
        pretrain_batch_size: Drawings a step and process.
        val_every: Epochs between validations and checkpoints of pre-training.
        tolerance: See `fit_curves`.
        n_splits: One of so many parts of the sources is validated on.
        steps: Optimiser steps of fine-tuning; 0: none.
        sketches: Sketches a step and process.
        per_concept: See `FineTuning`.
        size: Pixels a side of the canvas that the critic sees.
        views: See `FineTuning`.
        loss: None: `SEALoss()`.
        stay_weight: See `FineTuning`.
        diversity_weight: See `FineTuning`.
        softness: See `FineTuning`.
        tuned: See `FineTuning`.
        optimizer: See `FineTuning`.
        gradient_clip: Largest norm of a gradient; larger ones are scaled down.
        gate_flips: See `FineTuning`.
        exemplar_share: See `FineTuning`.
        weigh_every: See `FineTuning`.
        judge_every: Steps between readings by the judge and checkpoints.
        judged_per_concept: Sketches a concept that are read.
        largest_gap: Hack gap above which fine-tuning stops, see `GapMonitor`.
        patience: Readings in a row.
        judge_size: Pixels a side of what is judged.
        layer: Layer of the critic; None: the backbone's default.
        cache_dir: Folder of feature caches and judges.
        seed: Global seed.
        resume: Go on from the folder's checkpoints.
        trainer_kwargs: Keywords of the Lightning Trainer.
        loggers: Lightning loggers; told losses, readings, and the same sketches over time.

    Returns:
        `before` and `after` (means by critic and judge), `gain` of SEA and P by both, `hack_gap`, `stopped` (whether
        the gap ended training), `scores` (of `benchmark=generation`), `steps`, `resumed`,
        seconds of every part, and the settings; also `metrics.json`.

    Raises:
        ValueError: The data set has no strokes or elements, or settings do not fit.
    """
    watch = Watch()
    check_at_least(0, pretrain_steps=pretrain_steps, steps=steps)
    check_at_least(1, val_every=val_every, judge_every=judge_every)
    freeze(backbone)
    folder = Path(out_dir) / "checkpoints"
    chosen = spread_over(data.labels, concepts)
    model = generator(concepts=chosen, seed=seed)
    shared = {"trainer_kwargs": dict(trainer_kwargs or {}), "loggers": loggers, "out_dir": out_dir}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty")
        warnings.filterwarnings("ignore", message=".*does not have many workers")
        warnings.filterwarnings("ignore", message=".*val_dataloader.*")
        datamodule = StrokeDataModule(
            data,
            chosen,
            _folds(data, chosen, n_splits, seed),
            model.num_curves,
            tolerance,
            batch_size=pretrain_batch_size,
            seed=seed,
        )
        pretrained = _pretrain(model, datamodule, pretrain_steps, val_every, folder, resume, shared)
        if hasattr(model, "fit_codes"):
            model.fit_codes(datamodule.train_table())
        watch.lap("pretraining")
        trained_by = run_critic(
            critic, backbone, data, out_dir, layer=layer, cache_dir=cache_dir, seed=seed, resume=resume
        )
        watch.lap("critic")
        judged_by = (judge or doodle_judge_of)(data, cache_dir=cache_dir)
        watch.lap("judge")
        module = FineTuning(
            model,
            trained_by,
            loss,
            None,
            views,
            size,
            sketches,
            per_concept,
            stay_weight,
            diversity_weight,
            softness,
            tuned,
            optimizer or partial(torch.optim.AdamW, lr=3e-3, weight_decay=0.0),
            steps,
            gate_flips,
            exemplar_share,
            weigh_every,
            seed,
        )
        tracking = SketchTracking(loggers)
        monitor = GapMonitor(
            judged_by, judge_every, judged_per_concept, largest_gap, patience, judge_size, tracking.show
        )
        tuning = _finetune(module, monitor, steps, judge_every, gradient_clip, folder, resume, shared)
        watch.lap("finetuning")
    told = write_sketches(Path(out_dir), module, monitor, loggers) if tuning["first_process"] else {}
    watch.lap("sketches")
    scores = write_page(Path(out_dir), module, monitor, data, n_splits, seed) if tuning["first_process"] else {}
    watch.lap("page")
    result = {
        **told,
        "scores": scores,
        "stopped": monitor.stopped,
        "steps": tuning["steps"],
        "resumed": tuning["resumed"] or pretrained["resumed"],
        "readings": monitor.readings,
        "pretraining": pretrained["losses"],
        "concepts": list(chosen),
        "critic": trained_by.name,
        "judge": judged_by.name,
        "judge_record": judged_by.record.get("held_out"),
        "cpu_seconds": watch.cpu,
        "seconds": watch.wall,
        "dataset": data.name,
        "backbone": trained_by.backbone.name,
        "weights_hash": trained_by.backbone.weights_hash,
        "flags": list(data.flags),
        "settings": {
            "pretrain_steps": pretrain_steps,
            "steps": steps,
            "sketches": sketches,
            "size": size,
            "stay_weight": stay_weight,
            "diversity_weight": diversity_weight,
            "tuned": None if tuned is None else list(tuned),
            "gradient_clip": gradient_clip,
            "gate_flips": gate_flips,
            "exemplar_share": exemplar_share,
            "seed": seed,
        },
    }
    if tuning["first_process"]:
        write_json(Path(out_dir) / "metrics.json", result)
    return result


def _pretrain(
    model: Any,
    datamodule: StrokeDataModule,
    steps: int,
    val_every: int,
    folder: Path,
    resume: bool,
    shared: Mapping[str, Any],
) -> dict[str, Any]:
    """Train on strokes; the model is left in its last state."""
    checkpoint = ModelCheckpoint(
        dirpath=folder,
        filename="pretrain",
        every_n_epochs=val_every,
        save_on_train_epoch_end=True,
        enable_version_counter=False,
    )
    trainer = _trainer(
        shared,
        [checkpoint, StepProgress("pre-training of the generator")],
        max_steps=steps,
        check_val_every_n_epoch=val_every,
        gradient_clip_val=1.0,
        use_distributed_sampler=False,
    )
    last = folder / "pretrain.ckpt"
    ckpt_path = last if resume and last.is_file() else None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the matrices are small: threads would spend more on waiting than on work
    try:
        with reused_memory():
            trainer.fit(model, datamodule=datamodule, ckpt_path=ckpt_path, weights_only=True)
    finally:
        torch.set_num_threads(threads)
    trainer.save_checkpoint(last)
    losses = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith(("train_", "val_"))}
    return {"losses": losses, "resumed": ckpt_path is not None}


def _finetune(
    module: FineTuning,
    monitor: GapMonitor,
    steps: int,
    every: int,
    clip: float,
    folder: Path,
    resume: bool,
    shared: Mapping[str, Any],
) -> dict[str, Any]:
    """Train against the critic; the generator is left in its last state."""
    checkpoint = ModelCheckpoint(
        dirpath=folder, filename="finetune", every_n_train_steps=every, enable_version_counter=False
    )
    trainer = _trainer(
        shared,
        [monitor, checkpoint, StepProgress("fine-tuning of the generator")],
        max_steps=max(steps, 1),
        gradient_clip_val=clip,
        use_distributed_sampler=False,
    )
    last = folder / "finetune.ckpt"
    ckpt_path = last if resume and last.is_file() else None
    if ckpt_path is not None:
        kept = AtomicCheckpointIO().load_checkpoint(ckpt_path)
        monitor.load_state_dict(kept["callbacks"][monitor.state_key])
    if monitor.stopped:  # the judge ended this training: going on would train what it refused
        module.on_load_checkpoint(kept)
        module.load_state_dict(kept["state_dict"])
    elif steps:
        with reused_memory():
            trainer.fit(module, steps_loader(max(steps, 1)), ckpt_path=ckpt_path, weights_only=True)
        trainer.save_checkpoint(last)
    return {
        "steps": int(module.steps_done),
        "resumed": ckpt_path is not None,
        "first_process": trainer.is_global_zero,
    }


def _trainer(shared: Mapping[str, Any], callbacks: Sequence[pl.Callback], **decided: Any) -> pl.Trainer:
    keywords = {k: v for k, v in shared["trainer_kwargs"].items() if k != "max_epochs"}
    trainer = pl.Trainer(
        **{
            **keywords,
            **decided,
            "max_epochs": -1,
            "default_root_dir": str(shared["out_dir"]),
            "callbacks": list(callbacks),
            "plugins": [AtomicCheckpointIO()],
            "logger": list(shared["loggers"]) or False,
            "num_sanity_val_steps": 0,
            "enable_model_summary": False,
            "enable_progress_bar": False,
            "log_every_n_steps": 1,
        }
    )
    return guard(trainer, shared["out_dir"])


def _folds(data: Sketches, concepts: Sequence[str], n_splits: int, seed: int) -> np.ndarray:
    """(N,) fold of every drawing of the concepts, -1 for others."""
    return folds_of(data, np.flatnonzero(data.table["concept"].isin(list(concepts))), n_splits, seed)
