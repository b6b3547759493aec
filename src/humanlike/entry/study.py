"""`humanlike study`: many models and people on one data set → tables, tests and figures of the paper in one folder."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.launch import LossesError, launch

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.benchmarks.study.study import StudyResult
    from humanlike.entry.study_models import Evaluated
    from humanlike.entry.study_plan import Plan


def main() -> None:
    """Run the command line."""
    launch("study", study_job)


def study_job(config: DictConfig, folder: Path) -> None:
    """One study, written into `folder`; backbones that are finished there are not evaluated again.

    Raises:
        LossesError: When a backbone failed or lost more images than allowed; the study of the others is written.
    """
    from humanlike.entry.environment import is_first_process, prepare
    from humanlike.entry.study_models import evaluate_backbones
    from humanlike.entry.study_plan import plan_of

    prepare(config)
    plan = plan_of(config)
    if is_first_process():
        (folder / "study.json").unlink(missing_ok=True)
    evaluated = evaluate_backbones(config, folder / "models", plan.data, plan.benchmark, plan.backbones)
    refits = _refitted(config, folder, plan, evaluated)
    if not is_first_process():
        return  # further processes of a trainer help with features alone
    study_of(config, folder, plan, evaluated, refits)
    if evaluated.failed or evaluated.lossy:
        raise LossesError(_losses(evaluated, len(plan.backbones)))


def _refitted(config: DictConfig, folder: Path, plan: Plan, evaluated: Evaluated) -> Evaluated | None:
    """The backbones read out with the other kind of folds, where that is asked for."""
    from humanlike.benchmarks.protocol import switch_values
    from humanlike.entry.study_models import evaluate_backbones, refit_config
    from humanlike.entry.study_plan import seva_benchmark

    if not (config.discrepancy and config.discrepancy_refit):
        return None
    [other] = [value for value in switch_values()["cv"] if value != plan.benchmark.protocol.cv]
    changed = refit_config(config, other)
    finished = {name: plan.backbones[name] for name in evaluated.folders}
    return evaluate_backbones(changed, folder / "models" / f"cv={other}", plan.data, seva_benchmark(changed), finished)


def study_of(
    config: DictConfig, folder: Path, plan: Plan, evaluated: Evaluated, refits: Evaluated | None = None
) -> StudyResult:
    """Analyse all models together and write the study's folder."""
    from rich.console import Console

    from humanlike.benchmarks.study.analyses import analyse
    from humanlike.benchmarks.study.study import Study, StudySettings
    from humanlike.entry.study_folder import study_record, write_study
    from humanlike.entry.study_models import models_of_runs
    from humanlike.reports.config_record import masked_config

    started, began, benchmark = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter(), plan.benchmark
    settings = StudySettings(
        protocol=benchmark.protocol,
        replicates=benchmark.replicates,
        resample=benchmark.resample,
        splits=benchmark.splits,
        seed=int(config.seed),
        on_unknown=benchmark.on_unknown,
        discrepancy=bool(config.discrepancy),
    )
    study = Study(plan.data, settings)
    labels = study.data.labels
    refitted = {} if refits is None else {m.name: m for m in models_of_runs(refits.folders, labels)}
    result = study.run(chain(models_of_runs({**evaluated.folders, **plan.runs}, labels), plan.others), refitted)
    result.missing |= plan.missing
    analyse(study, result, plan.analyses)
    record = study_record(result, study.data, settings, evaluated.failed) | {
        "bibtex": benchmark.bibtex,
        "started": started,
        "seconds": time.perf_counter() - began,
        "config": masked_config(config),
    }
    write_study(folder, record, result, study.data, plan.machine, with_report=bool(config.report))
    console = Console()
    console.print(summary(result))
    console.print(f"written to {folder}", highlight=False, soft_wrap=True)
    return result


def _losses(evaluated: Evaluated, asked: int) -> str:
    parts = [f"{name} failed: {why}" for name, why in evaluated.failed.items()]
    parts += [f"{name} lost more images than max_failures" for name in evaluated.lossy]
    return f"{len(parts)} of {asked} backbones had losses; the study is of the others. " + "; ".join(parts)


def summary(result: StudyResult) -> Any:
    """Console table: a row an observer, its means and its alignment."""
    from rich.box import SIMPLE
    from rich.table import Table

    simulated = " (people are simulated)" if "simulated_participants" in result.flags else ""
    table = Table(
        title=f"study{simulated}: means of cells, alignment R² with people",
        box=SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    heads = {"accuracy": "acc.", "entropy": "ent.", "snp": "SNP"}
    metrics = tuple(heads)
    table.add_column("observer", no_wrap=True)
    for column in ("accuracy", "entropy", "SNP", *(f"R² {head}" for head in heads.values())):
        table.add_column(column, justify="right", no_wrap=True)
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
