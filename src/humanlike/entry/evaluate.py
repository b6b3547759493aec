"""`python evaluate.py` and `humanlike evaluate`: configuration → objects → score → run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.launch import LossesError, launch

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.types import Score


def main() -> None:
    """Run the command line."""
    launch("evaluate", evaluate_job)


def evaluate_job(config: DictConfig, folder: Path) -> None:
    """One evaluation, written into `folder`; a finished one with the same configuration is not repeated.

    Raises:
        LossesError: When more images were lost than `max_failures`; everything is written before.
    """
    from rich.console import Console

    from humanlike.entry.environment import prepare
    from humanlike.reports.config_record import config_hash, masked
    from humanlike.reports.run_folder import is_finished
    from humanlike.reports.tables import console_report

    prepare(config)
    console = Console()
    plain = masked(config)
    identity = config_hash(_identity(plain))
    if config.resume and is_finished(folder, identity):
        console.print(f"already finished, skipped: {folder}", highlight=False)
        return
    score = _score_and_write(config, folder, plain, identity)
    if score is None:
        return
    console.print(console_report(score))
    console.print(f"written to {folder}", highlight=False)
    lost = int(score.result.counts.get("items_failed", 0))
    if lost > config.max_failures:
        raise LossesError(f"{lost} image(s) could not be read, more than max_failures={config.max_failures}")


def _identity(plain: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that decides the result: not where it is written, shown or how fast it runs."""
    return {k: v for k, v in plain.items() if k not in {"paths", "logger", "resume", "tracebacks", "offline", "report"}}


def _score_and_write(config: DictConfig, folder: Path, plain: dict[str, Any], identity: str) -> Score | None:
    from humanlike.entry.environment import loggers
    from humanlike.reports.event_log import EventLog
    from humanlike.reports.tracking import finish, log_score
    from humanlike.reports.writing import write_report

    log = EventLog(folder / "log.jsonl")
    log.write("started", config_hash=identity)
    tracked: list[Any] = []
    try:
        score, data = score_from_config(config, log)
        if score is None:
            return None
        tracked = loggers(config, folder, run_name(score))
        figures = write_report(score, data, folder, plain, identity, with_figures=bool(config.report))
        log_score(tracked, score, figures, plain)
        log.write("finished", digest=score.digest, seconds=score.seconds)
        finish(tracked, exit_code=0)
    except BaseException as error:
        log.write("failed", error=f"{type(error).__name__}: {error}")
        finish(tracked, exit_code=1)
        raise
    return score


def score_from_config(config: DictConfig, log: Any = None, backbone: Any = None) -> tuple[Score | None, Any]:
    """Build everything that `config` names and run the benchmark.

    Args:
        config: Composed configuration of `evaluate`.
        log: Event log, or None.
        backbone: A ready backbone that replaces the configured one.

    Returns:
        The score (None in every process but the first) and the data set.
    """
    from humanlike.entry.environment import build_trainer
    from humanlike.entry.pipeline import run_benchmark
    from humanlike.entry.targets import build

    data = build(config.dataset)
    if log is not None:
        log.write("data", name=data.name, items=len(data), dropped=dict(data.dropped))
    backbone = build(config.backbone) if backbone is None else backbone
    benchmark = build(config.benchmark)
    score = run_benchmark(
        backbone,
        data,
        benchmark,
        build(config.readout),
        layer=config.layer,
        trainer=build_trainer(config),
        cache_dir=Path(config.paths.cache) / "features",
        seed=config.seed,
        extraction=dict(config.extraction),
    )
    return score, data


def run_name(score: Score) -> str:
    """A name that says what the run is, for dashboards."""
    return f"{score.benchmark}-{score.dataset}-{score.backbone}-{score.layer}"
