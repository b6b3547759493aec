"""`humanlike study`: many models and people on one data set → tables, tests and figures of the paper in one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.launch import LossesError, launch

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.benchmarks.seva import SevaBenchmark
    from humanlike.benchmarks.study.models import StudyModel
    from humanlike.benchmarks.study.study import StudyResult
    from humanlike.entry.study_models import Evaluated
    from humanlike.types import Sketches


def main() -> None:
    """Run the command line."""
    launch("study", study_job)


def study_job(config: DictConfig, folder: Path) -> None:
    """One study, written into `folder`; backbones that are finished there are not evaluated again.

    Raises:
        LossesError: When a backbone failed or lost more images than allowed; the study of the others is written.
    """
    from humanlike.entry.environment import prepare
    from humanlike.entry.study_models import chosen_backbones, evaluate_backbones, named_runs
    from humanlike.entry.targets import build

    prepare(config)
    backbones = chosen_backbones(config.backbones)
    runs = named_runs(config, backbones)
    benchmark, data = seva_benchmark(config), build(config.dataset)
    (folder / "study.json").unlink(missing_ok=True)
    evaluated = evaluate_backbones(config, folder / "models", data, benchmark, backbones)
    if int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) != 0:
        return  # further processes of a trainer help with features alone
    study_of(config, folder, data, benchmark, evaluated, runs)
    if evaluated.failed or evaluated.lossy:
        raise LossesError(_losses(evaluated, len(backbones)))


def seva_benchmark(config: DictConfig) -> SevaBenchmark:
    """The configured benchmark, which must be SEVA's: its protocol is the study's.

    Raises:
        ValueError: When it is another one.
    """
    from humanlike.benchmarks.seva import SevaBenchmark
    from humanlike.entry.targets import build

    benchmark = build(config.benchmark)
    if not isinstance(benchmark, SevaBenchmark):
        raise ValueError(f"a study is of benchmark=seva, not of {type(benchmark).__name__}")
    return benchmark


def study_of(
    config: DictConfig,
    folder: Path,
    data: Sketches,
    benchmark: SevaBenchmark,
    evaluated: Evaluated,
    runs: Mapping[str, Path],
) -> StudyResult:
    """Analyse all models together and write the study's folder."""
    from rich.console import Console

    from humanlike.benchmarks.study.study import Study, StudySettings
    from humanlike.entry.study_folder import write_record, write_tables
    from humanlike.reports.config_record import masked_config, write_config

    started, began = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    settings = StudySettings(
        protocol=benchmark.protocol,
        replicates=benchmark.replicates,
        resample=benchmark.resample,
        splits=benchmark.splits,
        seed=int(config.seed),
        on_unknown=benchmark.on_unknown,
        discrepancy=bool(config.discrepancy),
    )
    study = Study(data, settings)
    result = study.run(all_models(config, study.data, {**evaluated.folders, **runs}))
    plain = masked_config(config)
    write_config(folder / "config.yaml", plain)
    write_tables(folder, result.tables)
    record = study_record(result, study.data, settings, evaluated)
    record |= {"started": started, "seconds": time.perf_counter() - began, "config": plain}
    write_record(folder, record)
    console = Console()
    console.print(summary(result))
    console.print(f"written to {folder}", highlight=False, soft_wrap=True)
    return result


def all_models(config: DictConfig, data: Sketches, runs: Mapping[str, Path]) -> Iterator[StudyModel]:
    """The study's models: evaluated backbones, finished runs, published answers, simulated ones."""
    from humanlike.entry.study_models import models_of_runs, simulated_models

    return chain(models_of_runs(runs, data.labels), simulated_models(config, data))


def study_record(result: StudyResult, data: Sketches, settings: Any, evaluated: Evaluated) -> dict[str, Any]:
    """The content of `study.json` but for times and the configuration."""
    from humanlike.entry.pipeline import versions
    from humanlike.files import sha256_value
    from humanlike.reports.run_folder import digest

    return {
        "dataset": data.name,
        "source": data.source,
        "condition_unit": data.condition_unit,
        "simulated_people": bool(data.responses is not None and data.responses.simulated),
        "protocol": settings.protocol.record(),
        "replicates": settings.replicates,
        "splits": settings.splits,
        "seeds": {"seed": settings.seed},
        "models": result.tables["models"].to_dict(orient="records"),
        "models_failed": evaluated.failed,
        "counts": result.counts,
        "flags": result.flags,
        "details": result.details,
        "tables": {name: len(table) for name, table in result.tables.items()},
        "missing": result.missing,
        "cpu_seconds": result.seconds,
        "hashes": {
            "models": sha256_value(result.hashes),
            "tables": {name: sha256_value(table.to_dict(orient="list")) for name, table in _small(result).items()},
        },
        "versions": versions(),
        "digest": digest(result.top1, result.counts),
    }


def _small(result: StudyResult) -> dict[str, Any]:
    return {name: table for name, table in result.tables.items() if len(table) <= 5000}


def _losses(evaluated: Evaluated, asked: int) -> str:
    parts = [f"{name} failed: {why}" for name, why in evaluated.failed.items()]
    parts += [f"{name} lost more images than max_failures" for name in evaluated.lossy]
    return f"{len(parts)} of {asked} backbones had losses; the study is of the others. " + "; ".join(parts)


def summary(result: StudyResult) -> Any:
    """Console table: a row an observer, its means and its alignment."""
    from rich.table import Table

    table = Table(title="study" + (" (people are simulated)" if "simulated_participants" in result.flags else ""))
    metrics = ("accuracy", "entropy", "snp")
    for column in ("observer", *metrics, *(f"alignment {m}" for m in metrics)):
        table.add_column(column, justify="left" if column == "observer" else "right")
    means = result.tables["means"].pivot(index="observer", columns="metric", values="estimate")
    aligned = result.tables.get("alignment")
    known = None if aligned is None else aligned.pivot(index="observer", columns="metric", values="estimate")
    for name in result.tables["means"]["observer"].unique():
        own = [_text(means.loc[name, m]) for m in metrics]
        beside = ["" if known is None or name not in known.index else _text(known.loc[name, m]) for m in metrics]
        table.add_row(str(name), *own, *beside)
    return table


def _text(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"
