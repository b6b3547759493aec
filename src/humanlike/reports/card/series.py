"""Means by condition and by layer of the models of a group, for the figures and tables of the card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from humanlike.reports.card.groups import Entry, Group
from humanlike.reports.wording import condition_metrics, is_missing

PEOPLE = "(people)"
"""In the place of a model's name; no backbone is called so."""
CONDITION_COLUMNS = ("group", "model", "metric", "condition", "value", "std_error", "seeds")
LAYER_COLUMNS = ("group", "model", "metric", "layer", "relative_depth", "value", "ci_low", "ci_high", "chosen")


def condition_rows(group: Group) -> pd.DataFrame:
    """Means by condition, people's rows under the model name `(people)`.

    Over seeds, the value is a mean and the standard error the largest. People's values are those of the first model
    that has them: the runs of a group have the same people.

    Args:
        group: Runs that can be compared.

    Returns:
        `CONDITION_COLUMNS`; empty where the runs have no means by condition.
    """
    rows = [row for entry in group.entries for row in _by_condition(group, entry, entry.label, "")]
    known = {row["metric"] for row in rows}
    for metric in sorted(known):
        for entry in group.entries:
            own = [r for r in _by_condition(group, entry, PEOPLE, "_people") if r["metric"] == metric]
            if own:
                rows += own
                break
    return pd.DataFrame(rows, columns=[*CONDITION_COLUMNS])


def _by_condition(group: Group, entry: Entry, model: str, side: str) -> Iterator[dict[str, Any]]:
    tables = [run.result.conditions for run in entry.runs if len(run.result.conditions)]
    tables = [t for t in tables if t["condition"].is_unique]  # several networks a condition have figures of their own
    if not tables:
        return
    for metric in condition_metrics(tables[0]):
        column = f"{metric}{side}"
        having = [t for t in tables if column in t]
        if not having:
            continue
        joined = pd.concat([t[["condition", column]].rename(columns={column: "value"}) for t in having])
        errors = pd.concat([t[["condition"]].assign(sem=t.get(f"{column}_sem", float("nan"))) for t in having])
        means = (
            joined.groupby("condition")["value"].mean() if len(having) > 1 else joined.set_index("condition")["value"]
        )
        largest = errors.groupby("condition")["sem"].max()
        for condition, value in means.items():
            if not is_missing(value):
                sem = largest.get(condition)
                yield {
                    "group": group.key, "model": model, "metric": metric, "condition": condition, "value": float(value),
                    "std_error": sem, "seeds": len(having),
                }  # fmt: skip


def layer_rows(group: Group) -> pd.DataFrame:
    """Scores of the layers of each model: of SEVA from the profile, of object learning from the table of models.

    Of object learning it is the squared error of the reference rule; of several seeds the first run's layers.

    Args:
        group: Runs that can be compared.

    Returns:
        `LAYER_COLUMNS`; empty where the runs have one layer only.
    """
    rows: list[dict[str, Any]] = []
    for entry in group.entries:
        own = [*_profile(entry), *_learners(entry)]
        if len({row["layer"] for row in own}) > 1:
            rows += [{"group": group.key, "model": entry.label, **row} for row in own]
    return pd.DataFrame(rows, columns=[*LAYER_COLUMNS])


def _profile(entry: Entry) -> Iterator[dict[str, Any]]:
    names = ("layer", "relative_depth", "metric", "value", "ci_low", "ci_high", "chosen")
    for row in entry.first.result.details.get("layers") or ():
        if not is_missing(row.get("value")):
            yield {name: row.get(name) for name in names}


def _learners(entry: Entry) -> Iterator[dict[str, Any]]:
    run = entry.first
    file = Path(str(run.run_dir)) / "models.parquet"
    reference = (run.result.details.get("object_learning") or {}).get("reference")
    if not reference or not file.is_file():
        return
    score = f"msen_{run.result.protocol.get('convention', 'paper')}"
    columns = ["layer", "relative_depth", score, f"{score}_ci_low", f"{score}_ci_high"]
    table = pd.read_parquet(file, columns=columns, filters=[("rule", "==", reference["rule"])])
    best = table[score].min()
    for layer, depth, value, low, high in table.itertuples(index=False):
        if not is_missing(value):
            yield {
                "metric": score, "layer": layer, "relative_depth": depth, "value": value, "ci_low": low,
                "ci_high": high, "chosen": value == best,
            }  # fmt: skip
