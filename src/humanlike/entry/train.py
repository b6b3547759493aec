"""`python train.py` and `humanlike train`: configuration → objects → a trained model in the run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.launch import launch

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.reports.event_log import EventLog


def main() -> None:
    """Run the command line."""
    launch("train", train_job)


def train_job(config: DictConfig, folder: Path) -> None:
    """Run the configured task in `folder`; with `resume=true` it goes on from the folder's last checkpoint."""
    from humanlike.entry.environment import prepare
    from humanlike.entry.several_processes import event_log
    from humanlike.reports.config_record import masked_config
    from humanlike.reports.tracking import finish

    prepare(config)
    plain = masked_config(config)
    log = event_log(folder)
    log.write("started", task=config.task.get("_target_"), resume=bool(config.resume))
    tracked: list[Any] = []
    try:
        _train_and_log(config, folder, plain, log, tracked)
    except BaseException as error:
        with suppress(OSError):  # on a full disk the first error is the one to show
            log.write("failed", error=f"{type(error).__name__}: {error}")
        finish(tracked, exit_code=1)
        raise
    finish(tracked, exit_code=0)


def _train_and_log(
    config: DictConfig, folder: Path, plain: Mapping[str, Any], log: EventLog, tracked: list[Any]
) -> None:
    """Run the task; `tracked` is filled with the loggers, so that the caller can end them whatever happens."""
    from rich.console import Console

    from humanlike.entry.environment import is_first_process, loggers
    from humanlike.entry.targets import build
    from humanlike.reports.dashboard_history import EventLogger, logged_rows
    from humanlike.reports.tracking import begin, log_result

    if is_first_process():
        rows = logged_rows(log.path) if config.resume else []
        tracked += [EventLogger(log), *loggers(config, folder)]
        begin(tracked, plain, rows)
    task = build(config.task)
    data = build(config.dataset)
    backbone = build(config.backbone)
    if people := people_lines(data):
        for logger in tracked:
            logger.log_metrics(people, step=0)
    trainer = {k: v for k, v in plain["trainer"].items() if k not in {"_target_", "max_epochs"}}
    result = task(
        backbone=backbone,
        data=data,
        out_dir=folder,
        cache_dir=Path(config.paths.cache) / "features",
        resume=bool(config.resume),
        seed=int(config.seed),
        trainer_kwargs=trainer,
        loggers=tracked,
    )
    log.write("finished", **result)
    log_result(tracked, result)
    Console().print({k: v for k, v in result.items() if isinstance(v, int | float | str)})


def people_lines(data: Any) -> dict[str, float]:
    """What people reach on the data set, as lines to compare a training with; empty where nobody was asked.

    Returns:
        `people/accuracy`: share of judgments whose first guess is the concept, of all judgments.
    """
    responses = getattr(data, "responses", None)
    if responses is None or len(responses.table) == 0:
        return {}
    concept = dict(zip(data.table["sketch_id"], data.table["concept"], strict=True))
    asked = responses.table[responses.table["sketch_id"].isin(concept)]
    right = asked["guess_1"] == asked["sketch_id"].map(concept)
    return {"people/accuracy": float(right.mean())} if len(asked) else {}
