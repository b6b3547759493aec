"""`python train.py` and `humanlike train`: configuration → objects → a trained model in the run's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from humanlike.entry.launch import launch

if TYPE_CHECKING:
    from omegaconf import DictConfig


def main() -> None:
    """Run the command line."""
    launch("train", train_job)


def train_job(config: DictConfig, folder: Path) -> None:
    """Run the configured task in `folder`; with `resume=true` it goes on from the folder's last checkpoint."""
    from rich.console import Console

    from humanlike.entry.environment import loggers, prepare
    from humanlike.entry.targets import build
    from humanlike.reports.config_record import masked_config
    from humanlike.reports.event_log import EventLog

    prepare(config)
    plain = masked_config(config)
    log = EventLog(folder / "log.jsonl")
    log.write("started", task=config.task.get("_target_"))
    task = build(config.task)
    data = build(config.dataset)
    backbone = build(config.backbone)
    trainer = {k: v for k, v in plain["trainer"].items() if k not in {"_target_", "max_epochs"}}
    result = task(
        backbone=backbone,
        data=data,
        out_dir=folder,
        cache_dir=Path(config.paths.cache) / "features",
        resume=bool(config.resume),
        seed=int(config.seed),
        trainer_kwargs=trainer,
        loggers=loggers(config, folder),
    )
    log.write("finished", **result)
    Console().print({k: v for k, v in result.items() if isinstance(v, int | float | str)})
