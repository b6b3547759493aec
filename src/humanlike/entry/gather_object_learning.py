"""`humanlike gather` for a sweep of object learning: its runs → leaderboard, tests and figures in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.gathered_folder import FoundRuns, shared_record, write_gathered

if TYPE_CHECKING:
    import pandas as pd

    from humanlike.benchmarks.object_learning_sweep import SweepResult, SweepSettings

SCHEMA = "humanlike.object_learning_sweep/1"
BENCHMARK, RECORD = "object_learning", "sweep.json"
LONG = ("models", "curves", "phases", "one_shot", "one_shot_kinds", "subtasks", "replicates")
"""Tables that every run has rows of its own in: rows of models, told apart by `MODEL`."""
MODEL = ["backbone", "layer", "rule"]
OF_BEST = ("subtask_curves", "participants", "individual_curves")
"""Tables of people, or of one model beside people: those of the run of the best model are kept."""
OF_ONE_RUN = ("layer_fixed_beforehand", "layers_passed_over")
"""What flags that say nothing about a sweep begin with."""
FREE = ("rules", "layers", "widest", "store")
"""Settings in which runs may differ: which models they hold, and what stays on disk."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: Where it is.
        record: Its score.json.
        tables: Name → table.
    """

    folder: Path
    record: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]

    @property
    def experiment(self) -> str:
        """Which experiment it is of."""
        return str(self.tables["models"]["experiment"].iloc[0])

    @property
    def convention(self) -> str:
        """Whose score the replicates are of."""
        return str((self.record["details"].get(BENCHMARK) or {}).get("convention", "paper"))


def gather_object_learning(found: FoundRuns, folder: Path, settings: SweepSettings) -> list[str]:
    """Analyse the runs of a sweep together and write the folder.

    Args:
        found: Finished runs.
        folder: Where to write.
        settings: See `humanlike.benchmarks.object_learning_sweep`.

    Returns:
        What is said on the console.
    """
    from humanlike.benchmarks.object_learning_sweep import analyse_sweep

    runs = read_runs(found)
    result = analyse_sweep(joined_tables(runs, settings.convention), settings)
    write_sweep(folder, runs, result, settings.convention)
    return _lines(result, settings.score)


def read_runs(found: FoundRuns) -> list[Run]:
    """The runs with their tables, high variation first.

    Raises:
        ValueError: When runs of one experiment are not of the same data, version and protocol.
    """
    runs = [_read(folder, record) for folder, record in found.items()]
    _check_alike(runs)
    return sorted(runs, key=lambda run: run.experiment)


def _read(folder: Path, record: Mapping[str, Any]) -> Run:
    import pandas as pd

    files = {name: folder / f"{name}.parquet" for name in (*LONG, *OF_BEST)}
    tables = {name: pd.read_parquet(file) for name, file in files.items() if file.is_file()}
    if "models" not in tables or tables["models"].empty:
        lacks = "has no rows" if "models" in tables else "is not there"
        raise ValueError(f"{files['models']} {lacks}; run the evaluation again")
    told = (record["details"].get(BENCHMARK) or {}).get("experiment")
    for name in ("models", "replicates"):
        if name in tables and "experiment" not in tables[name]:
            if told is None:
                raise ValueError(f"{files[name]} does not say of which experiment it is; run the evaluation again")
            tables[name] = tables[name].assign(experiment=told)
    return Run(folder, record, tables)


def _check_alike(runs: Sequence[Run]) -> None:
    """Runs of one experiment must have been compared with the same people in the same way."""
    first: dict[str, Run] = {}
    for run in runs:
        other = first.setdefault(run.experiment, run)
        for name, value in _identity(run.record).items():
            expected = _identity(other.record)[name]
            if value != expected:
                raise ValueError(
                    f"{other.folder} and {run.folder} differ in {name} ({expected!r} and {value!r}), so their scores "
                    "cannot stand in one table; gather them apart"
                )


def _identity(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dataset": record["dataset"],
        "benchmark version": record["benchmark_version"],
        "people and images": record["hashes"].get("data"),
        "protocol": _without(record["protocol"], FREE),
    }


def _without(value: Any, names: Sequence[str]) -> Any:
    """A nested record without the entries of these names."""
    if not isinstance(value, dict):
        return value
    return {key: _without(entry, names) for key, entry in value.items() if key not in names}


def joined_tables(runs: Sequence[Run], convention: str) -> dict[str, pd.DataFrame]:
    """The tables of all runs together; seeds become a column where runs have several.

    Args:
        runs: Finished runs.
        convention: Whose score finds the run of the best model; replicates of another one are left out.

    Raises:
        ValueError: When a model stands in two runs of one seed with different scores.
    """
    import pandas as pd

    score = f"msen_{convention}"

    seeds = {int(run.record["seeds"].get("seed", 0)) for run in runs}
    parts: dict[str, list[pd.DataFrame]] = {}
    seen: dict[tuple[str, ...], tuple[Run, float]] = {}
    for run in runs:
        new = pd.MultiIndex.from_tuples(_new_models(run, score, seen), names=MODEL)
        for name in (n for n in LONG if n in run.tables):
            table = run.tables[name]
            table = table[pd.MultiIndex.from_frame(table[MODEL]).isin(new)]
            if name == "replicates" and run.convention != convention:
                continue
            if name == "models" and len(seeds) > 1:
                table = table.assign(seed=int(run.record["seeds"].get("seed", 0)))
            parts.setdefault(name, []).append(table)
    tables = {name: pd.concat(found, ignore_index=True) for name, found in parts.items()}
    if "phases" not in tables:
        tables |= _overall_phases(tables["models"])
    by_score = sorted(runs, key=lambda run: float(run.tables["models"].get(score, pd.Series([float("inf")])).min()))
    by_score.sort(key=lambda run: run.experiment)  # high variation first
    for name in OF_BEST:
        holders = [run for run in by_score if name in run.tables]
        if holders:
            tables[name] = holders[0].tables[name]
    return tables


def _new_models(run: Run, score: str, seen: dict[tuple[str, ...], tuple[Run, float]]) -> list[tuple[str, ...]]:
    """The models that no run before has; those before enter `seen`. Runs of one network share the reference model."""
    models, seed, new = run.tables["models"], str(run.record["seeds"].get("seed", 0)), []
    values = models[score] if score in models else [float("nan")] * len(models)
    for key, value in zip(models[MODEL].astype(str).itertuples(index=False, name=None), values, strict=True):
        other, known = seen.setdefault((run.experiment, seed, *key), (run, float(value)))
        if other is run:
            new.append(key)
        elif known != float(value) and not (known != known and value != value):
            raise ValueError(
                f"{other.folder} and {run.folder} both hold {', '.join(key)} (seed {seed}), with scores of {known:.6g} "
                f"and {value:.6g}; they are not one model: give one of the networks another backbone.name"
            )
    return new


def _overall_phases(models: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Early and late accuracy over all subtasks, from the models' own columns, where runs kept no table of them."""
    import pandas as pd

    needed = [f"{phase}_accuracy{of}" for phase in ("early", "late") for of in ("", "_people")]
    if not set(needed) <= set(models.columns):
        return {}
    key = models[["backbone", "layer", "rule"]]
    parts = [
        key.assign(
            phase=phase, quartile="all", accuracy=models[f"{phase}_accuracy"],
            accuracy_people=models[f"{phase}_accuracy_people"],
        )
        for phase in ("early", "late")
    ]  # fmt: skip
    table = pd.concat(parts, ignore_index=True).dropna(subset=["accuracy", "accuracy_people"])
    return {"phases": table} if len(table) else {}


def write_sweep(folder: Path, runs: Sequence[Run], result: SweepResult, convention: str) -> None:
    """Write tables, figures and report, and `sweep.json` last, whose presence says that all is there."""
    from humanlike.reports.object_learning_figures import sweep_figures
    from humanlike.reports.object_learning_html import render_sweep
    from humanlike.reports.wording import SIMULATED

    told = [f for run in runs for f in run.record["flags"] if not f.startswith(OF_ONE_RUN)]
    flags = list(dict.fromkeys(told + result.flags))
    simulated = SIMULATED in flags
    record = {
        "schema": SCHEMA,
        **shared_record({run.folder: run.record for run in runs}, result.tables),
        "convention": convention,
        "simulated_people": simulated,
        "counts": result.counts,
        "flags": flags,
        "missing": result.missing,
    }
    people = "simulated people" if simulated else "people"
    figures = sweep_figures(result.tables, convention=convention, people=people)
    write_gathered(folder, RECORD, record, result.tables, figures, render_sweep)


def _lines(result: SweepResult, score: str) -> list[str]:
    """What is said on the console: the three best models of each experiment, and what explains the spread."""
    lines = []
    board = result.tables["leaderboard"]
    for experiment, rows in board.groupby("experiment", sort=False):
        lines.append(f"{experiment}: {int((rows['place'] > 0).sum())} models")
        for row in rows.head(3).to_dict("records"):
            lines.append(f"  {row['place']}. {row[score]:.5f}  {row['backbone']}, {row['layer']}, {row['rule']}")
    anova = result.tables.get("anova")
    if anova is not None:
        for row in anova[anova["source"] != "total"].to_dict("records"):
            lines.append(f"{row['experiment']}: {row['source']} explains {100 * row['share']:.2f}% of the variance")
    lines += [f"no {name}: {why}" for name, why in result.missing.items()]
    return lines
