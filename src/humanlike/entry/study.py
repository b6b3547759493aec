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
    from humanlike.benchmarks.study.analyses import Analysis
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
    refits = _refitted(config, folder, data, benchmark, {n: backbones[n] for n in evaluated.folders})
    if int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) != 0:
        return  # further processes of a trainer help with features alone
    study_of(config, folder, data, benchmark, evaluated, runs, refits)
    if evaluated.failed or evaluated.lossy:
        raise LossesError(_losses(evaluated, len(backbones)))


def _refitted(
    config: DictConfig, folder: Path, data: Sketches, benchmark: SevaBenchmark, backbones: Mapping[str, Any]
) -> Evaluated | None:
    """The backbones read out with the other kind of folds, where that is asked for."""
    from humanlike.benchmarks.protocol import switch_values
    from humanlike.entry.study_models import evaluate_backbones, refit_config

    if not (config.discrepancy and config.discrepancy_refit):
        return None
    [other] = [value for value in switch_values()["cv"] if value != benchmark.protocol.cv]
    changed = refit_config(config, other)
    return evaluate_backbones(changed, folder / "models" / f"cv={other}", data, seva_benchmark(changed), backbones)


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
    refits: Evaluated | None = None,
) -> StudyResult:
    """Analyse all models together and write the study's folder."""
    from rich.console import Console

    from humanlike.benchmarks.study.analyses import analyse
    from humanlike.benchmarks.study.study import Study, StudySettings
    from humanlike.entry.study_models import machine_sketches_of, models_of_runs
    from humanlike.reports.config_record import masked_config

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
    machine = machine_sketches_of(config)
    study = Study(data, settings)
    refitted = {} if refits is None else {m.name: m for m in models_of_runs(refits.folders, study.data.labels)}
    models = all_models(config, study.data, {**evaluated.folders, **runs})
    result = study.run(models, refitted)
    analyse(study, result, asked_analyses(config, machine, result))
    plain = masked_config(config)
    record = study_record(result, study.data, settings, evaluated)
    record |= {"bibtex": benchmark.bibtex, "started": started, "seconds": time.perf_counter() - began, "config": plain}
    write_study(folder, record, result, study.data, machine, with_report=bool(config.report))
    console = Console()
    console.print(summary(result))
    console.print(f"written to {folder}", highlight=False, soft_wrap=True)
    return result


def asked_analyses(config: DictConfig, machine: Sketches | None, result: StudyResult) -> dict[str, Analysis]:
    """The analyses that the configuration asks for; `missing` names the tables of the others.

    Raises:
        ValueError: On an analysis that does not exist.
    """
    from humanlike.benchmarks.study.analyses import ANALYSES, of_machine_sketches

    known = dict(ANALYSES)
    if machine is not None:
        known["machine_sketches"] = of_machine_sketches(machine)
    else:
        result.missing["machine_cells"] = "no machine sketches were given (machine_sketches, machine_root)"
    names = list(known) if config.analyses == "all" else [str(name) for name in config.analyses]
    for name in names:
        if name not in known:
            raise ValueError(f"analyses names {name!r}; it can be all, or a list of {', '.join(known)}")
    for name, (tables, _) in known.items():
        if name not in names:
            result.missing |= dict.fromkeys(tables, "not asked for (analyses)")
    return {name: known[name] for name in names}


def all_models(config: DictConfig, data: Sketches, runs: Mapping[str, Path]) -> Iterator[StudyModel]:
    """The study's models: evaluated backbones, finished runs, published answers, simulated ones."""
    from humanlike.entry.study_models import models_of_runs, published_models, simulated_models

    return chain(
        models_of_runs(runs, data.labels),
        published_models(config.machine_answers, data.labels),
        simulated_models(config, data),
    )


def write_study(
    folder: Path,
    record: Mapping[str, Any],
    result: StudyResult,
    data: Sketches,
    machine: Sketches | None,
    *,
    with_report: bool = True,
) -> None:
    """Write tables, figures and report, and `study.json` last.

    Args:
        folder: The study's folder.
        record: Content of `study.json`.
        result: What was found.
        data: The sketches, for the gallery.
        machine: A machine's sketches, or None.
        with_report: Whether figures and the report are made.
    """
    from humanlike.entry.study_folder import write_record, write_tables
    from humanlike.files import write_text
    from humanlike.reports.config_record import write_config
    from humanlike.reports.study_figures import study_figures
    from humanlike.reports.study_gallery import study_gallery
    from humanlike.reports.study_html import write_study_report
    from humanlike.reports.study_observers import PEOPLE

    write_config(folder / "config.yaml", record["config"])
    write_tables(folder, result.tables)
    if with_report:
        simulated = [PEOPLE] if record["simulated_people"] else []
        unit = "" if machine is None else machine.condition_unit
        figures = study_figures(result.tables, unit=data.condition_unit, machine_unit=unit, simulated=simulated)
        for name, svg in figures.items():
            write_text(folder / "figures" / f"{name}.svg", svg)
        gallery = study_gallery(data, machine, sketch_rows=result.tables["sketch_rows"])
        page = folder / "report.html"
        write_study_report(page, record, result.tables, figures, gallery=gallery, bibtex=str(record["bibtex"]))
    write_record(folder, record)


def study_record(result: StudyResult, data: Sketches, settings: Any, evaluated: Evaluated) -> dict[str, Any]:
    """The content of `study.json` but for times and the configuration."""
    from humanlike.entry.pipeline import versions
    from humanlike.files import sha256_value
    from humanlike.reports.run_folder import digest

    return {
        "benchmark": "seva",
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
    table.add_column("observer", no_wrap=True)
    for column in (*metrics, *(f"alignment {m}" for m in metrics)):
        table.add_column(column, justify="right")
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
