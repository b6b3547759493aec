"""A study's models as runs of the card: their alignment with the study's own ceilings and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from humanlike.reports.study_observers import PEOPLE
from humanlike.reports.wording import is_missing
from humanlike.types import BenchmarkResult, Score, ScoreValue


def study_scores(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Score]:
    """The models of a finished study; all were compared on the same resamples.

    Args:
        record: Content of study.json.
        tables: The study's tables.
        folder: Its folder.

    Returns:
        A score for each model: means, alignments with people's split half as the ceiling, and means by condition.
    """
    names = tables["models"]["observer"].astype(str).tolist()
    return [_score(name, record, tables, folder) for name in names]


def _score(name: str, record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], folder: Path) -> Score:
    fractions = _fractions(name, tables.get("noise_ceiling"))
    flags = [f for f in record["flags"] if ":" not in f or f.split(":")[1] == name or f.split(":")[1].isdigit()]
    result = BenchmarkResult(
        scores=dict(_values(name, tables)),
        cells=pd.DataFrame(),
        items=pd.DataFrame(),
        conditions=_conditions(name, tables["conditions"]),
        counts=dict(record["counts"]),
        flags=tuple(dict.fromkeys(":".join(p for p in flag.split(":") if p != name) for flag in flags)),
        protocol=record["protocol"],
        details={
            "study": record["digest"],
            "conditions_unit": record.get("condition_unit", ""),
            "fraction_of_ceiling": fractions,
            "rank_groups": _ranks(tables.get("rank_groups")),
            "dataset": {"source": record.get("source", "")},
            "bibtex": record.get("bibtex", ""),
        },
    )
    return Score(
        benchmark=record["benchmark"], benchmark_version=str(record.get("benchmark_version", "1")),
        dataset=record["dataset"], backbone=name, layer="", result=result, seeds=record["seeds"],
        hashes={"models": str(record["hashes"].get("models", ""))}, versions=record["versions"],
        started=str(record.get("started", "")), seconds=float(record.get("seconds", 0.0)),
        digest=f"{record['digest']}", run_dir=str(folder),
    )  # fmt: skip


def _values(name: str, tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, ScoreValue]]:
    ceilings = {row["metric"]: row for row in _of(PEOPLE, tables.get("alignment"))}
    for observer, side in ((name, ""), (PEOPLE, "_people")):
        for row in _of(observer, tables["means"]):
            yield f"{row['metric']}{side}", ScoreValue(*_numbers(row), n=_count(row.get("n")))
    for row in _of(name, tables.get("alignment")):
        value, low, high = _numbers(row)
        people = ceilings.get(row["metric"])
        ceiling, *around = (None, None, None) if people is None else _numbers(people)
        ends = (around[0], around[1]) if around[0] is not None and around[1] is not None else None
        yield f"alignment_{row['metric']}", ScoreValue(value, low, high, ceiling, ends, _count(row.get("n")), "R2")


def _of(observer: str, table: pd.DataFrame | None) -> list[dict]:
    return [] if table is None else table[table["observer"] == observer].to_dict("records")


def _numbers(row: Mapping[Any, Any]) -> tuple[float | None, float | None, float | None]:
    value, low, high = (None if is_missing(row.get(c)) else float(row[c]) for c in ("estimate", "ci_low", "ci_high"))
    return value, low, high


def _count(value: Any) -> int | None:
    return None if is_missing(value) else int(value)


def _conditions(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The study's long table of means as a run's wide one."""
    rows: dict[float, dict[str, float]] = {}
    for observer, side in ((name, ""), (PEOPLE, "_people")):
        for row in _of(observer, table):
            own = rows.setdefault(float(row["condition"]), {"condition": float(row["condition"])})
            own |= {f"{row['metric']}{side}": row["estimate"], f"{row['metric']}{side}_sem": row["std_error"]}
    return pd.DataFrame([rows[c] for c in sorted(rows)])


def _fractions(name: str, table: pd.DataFrame | None) -> dict[str, list[float]]:
    columns = ["fraction_of_ceiling", "fraction_low", "fraction_high"]
    return {f"alignment_{row['metric']}": [row[c] for c in columns] for row in _of(name, table)}


def _ranks(table: pd.DataFrame | None) -> dict[str, dict[str, dict]]:
    if table is None:
        return {}
    return {
        f"alignment_{metric}": {str(row["observer"]): row for row in rows.to_dict("records")}
        for metric, rows in table.groupby("metric")
    }
