"""`python evaluate.py` and `humanlike evaluate`: configuration → objects → score → run folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.launch import LOSSES, LossesError, launch

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.reports.event_log import EventLog
    from humanlike.types import Score, Sketches

# Settings that cannot move a score: where it is written, how it is shown, how a run behaves.
NOT_IDENTITY = frozenset({"paths", "logger", "resume", "tracebacks", "offline", "report", "max_failures", "objective"})
# Who computes features: each image is computed by one process, in the same way whoever that is.
NOT_IDENTITY_OF_PARTS = {"trainer": {"devices", "strategy", "num_nodes"}, "extraction": {"num_workers"}}


def main() -> None:
    """Run the command line."""
    launch("evaluate", evaluate)


def evaluate(config: DictConfig, folder: Path) -> None:
    """What the command line asks for: one evaluation, or several where the benchmark is made of parts."""
    if "parts" in config.benchmark:
        from humanlike.entry.all_benchmarks import run_all

        run_all(config, folder, evaluate_job)
    else:
        evaluate_job(config, folder)


def evaluate_job(config: DictConfig, folder: Path, *, brief: bool = False, **ready: Any) -> None:
    """One evaluation, written into `folder`; a finished one with the same configuration is not repeated.

    Args:
        config: Composed configuration of `evaluate`.
        folder: The run's folder.
        brief: Print one line in place of the tables of the scores.
        ready: Objects that replace configured ones, as in `score_from_config`.

    Raises:
        LossesError: When more images were lost than `max_failures`; everything is written before.
    """
    from rich.console import Console

    from humanlike.entry.environment import prepare
    from humanlike.reports.config_record import masked_config
    from humanlike.reports.tables import score_line, score_summary

    prepare(config)
    console = Console()
    plain = masked_config(config)
    score = _finished(folder, config_hash(plain)) if config.resume else None
    if score is not None:
        console.print(f"already finished, skipped: {folder}", highlight=False, soft_wrap=True)
    else:
        score = _score_and_write(config, folder, plain, ready)
        if score is None:
            return
        if brief:
            console.print(score_line(score), highlight=False, soft_wrap=True)
        else:
            console.print(score_summary(score))
            console.print(f"written to {folder}", highlight=False, soft_wrap=True)
    if (lost := _lost(score)) > config.max_failures:
        raise LossesError(f"{lost} image(s) could not be read, more than max_failures={config.max_failures}")


def _lost(score: Score) -> int:
    return int(score.result.counts.get("items_failed", 0))


def _finished(folder: Path, wanted: str) -> Score | None:
    """The finished run in `folder`; None where there is none, of these settings, that can be read whole."""
    from humanlike.reports.run_folder import is_finished, read_run

    if not is_finished(folder, wanted):
        return None
    try:
        return read_run(folder)
    except (FileNotFoundError, ValueError) as error:
        print(f"warning: the finished run cannot be read and is computed again: {error}", file=sys.stderr)
        return None


def config_hash(plain: Mapping[str, Any]) -> str:
    """Digest of the settings that decide a score.

    Left out are where it is written and how it is shown (`NOT_IDENTITY`), and how many processes share an evaluation's
    images (`trainer.devices`, `strategy` and `num_nodes`, `extraction.num_workers`), on which no score depends: a
    finished run asked for again with other devices is finished. A training depends on them, as its batches are of a
    process; there they stay.

    Example:
        >>> one, two = ({"seed": 0, "trainer": {"devices": n, "accelerator": "cpu"}} for n in (1, 2))
        >>> config_hash(one) == config_hash(two)
        True
        >>> config_hash({**one, "command": "train"}) == config_hash({**two, "command": "train"})
        False
    """
    from humanlike.files import sha256_value

    kept = {key: value for key, value in plain.items() if key not in NOT_IDENTITY}
    if plain.get("command") != "train":
        for part, names in NOT_IDENTITY_OF_PARTS.items():
            if isinstance(kept.get(part), Mapping):
                kept[part] = {name: value for name, value in kept[part].items() if name not in names}
    return sha256_value(kept)


def _score_and_write(
    config: DictConfig, folder: Path, plain: Mapping[str, Any], ready: Mapping[str, Any]
) -> Score | None:
    from humanlike.entry.environment import loggers
    from humanlike.entry.several_processes import event_log
    from humanlike.reports.tracking import begin, finish, score_scalars

    log = event_log(folder)
    log.write("started", config_hash=config_hash(plain), resume=bool(config.resume))
    tracked: list[Any] = []
    try:
        tracked += loggers(config, folder)
        begin(tracked, plain)
        score, data = score_from_config(config, log, **ready)
        if score is None:
            return None
        log.write("scores", values=score_scalars(score))
        write_score(score, data, folder, plain, tracked, with_report=bool(config.report))
        log.write("finished", digest=score.digest, seconds=round(score.seconds, 3))
    except BaseException as error:
        with suppress(OSError):  # on a full disk the first error is the one to show
            log.write("failed", error=f"{type(error).__name__}: {error}")
        finish(tracked, exit_code=1)
        raise
    finish(tracked, exit_code=LOSSES if _lost(score) > config.max_failures else 0)
    return score


def write_score(
    score: Score,
    data: Sketches,
    folder: Path,
    plain: Mapping[str, Any],
    tracked: list[Any] | None = None,
    *,
    with_report: bool = True,
) -> None:
    """Write a run's folder and tell the loggers.

    Args:
        score: The finished evaluation; its hashes name the configuration.
        data: The data set, for the example sketches of the report.
        folder: The run's folder.
        plain: The masked configuration.
        tracked: Lightning loggers.
        with_report: Whether figures and examples are drawn.
    """
    from humanlike.reports.figures import score_figures
    from humanlike.reports.gallery import gallery_examples
    from humanlike.reports.run_folder import write_run
    from humanlike.reports.tracking import log_score
    from humanlike.types import Sketches

    has_sketches = with_report and isinstance(data, Sketches)
    examples = gallery_examples(data, score.result.items) if has_sketches else ()
    figures = score_figures(score, examples) if with_report else {}
    bibtex = str(score.result.details.get("bibtex", ""))
    write_run(score, folder, plain, figures=figures, examples=examples, bibtex=bibtex)
    log_score(tracked or [], score, config=plain, figures=figures, examples=examples)


def score_from_config(
    config: DictConfig,
    log: EventLog | None = None,
    backbone: Any = None,
    data: Sketches | None = None,
    benchmark: Any = None,
) -> tuple[Score | None, Sketches]:
    """Build everything that `config` names and run the benchmark.

    Args:
        config: Composed configuration of `evaluate`.
        log: Event log, or None.
        backbone: A ready backbone that replaces the configured one.
        data: A ready data set that replaces the configured one.
        benchmark: A ready benchmark that replaces the configured one.

    Returns:
        The score (None in every process but the first) and the data set.
    """
    from humanlike.backbones.features import extract_features
    from humanlike.entry.environment import build_trainer
    from humanlike.entry.pipeline import run_benchmark
    from humanlike.entry.targets import build, check_values
    from humanlike.reports.config_record import masked_config
    from humanlike.types import Sketches

    check_values(extract_features, config.extraction, "extraction")
    data = build(config.dataset) if data is None else data
    if log is not None:
        items = len(data) if isinstance(data, Sketches) else len(data.images)
        log.write("data", name=data.name, items=items, dropped=dict(data.dropped))
    network = build(config.backbone) if backbone is None else backbone
    benchmark = build(config.benchmark) if benchmark is None else benchmark
    score = run_benchmark(
        network,
        data,
        benchmark,
        build(config.readout),
        layer=config.layer,
        trainer=build_trainer(config),
        cache_dir=Path(config.paths.cache) / "features",
        seed=config.seed,
        extraction=dict(config.extraction),
        further=_what_people_see_with(data, network, benchmark),
    )
    if score is not None:
        score = replace(score, hashes={**score.hashes, "config": config_hash(masked_config(config))})
    return score, data


def _what_people_see_with(data: Any, network: Any, benchmark: Any) -> dict[str, Any]:
    """The network that simulated people see with, where it is another one than the model's, if the benchmark asks."""
    import inspect

    from humanlike.data.object_learning import ObjectLearningData, SimulatedPeople
    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build

    people = data.people if isinstance(data, ObjectLearningData) else None
    if not isinstance(people, SimulatedPeople) or people.backbone == network.name:
        return {}
    if "people_backbone" not in inspect.signature(benchmark.run_backbone).parameters:
        return {}
    return {"people_backbone": build(compose("evaluate", [f"backbone={people.backbone}"]).backbone)}
