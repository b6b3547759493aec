"""Tables of SEA that the page of a run prints: the paper's table by condition, and concept by concept."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from humanlike.reports import judge_printed
from humanlike.reports.sea_wording import SHORT_TITLES, TITLES
from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import TableView, table_view
from humanlike.reports.wording import condition_label, with_error
from humanlike.types import Score

MEASURES = ("sea", "reward", "penalty", "visual_ratio", "recognition")
"""Rows of the paper's table, in its order."""
COUNTS = ("n_scored", "n_efficient", "n_overdrawn", "n_not_recognisable", "n_zero_v", "n_missing")

PRINTED: Mapping[str, tuple[str, str]] = {
    **judge_printed.PRINTED,
    "sea_conditions": (
        "SEA and what it is made of",
        "Mean ± standard deviation over sketches. Sketches are scored one by one and then averaged.",
    ),
    "sea_diagnoses": (
        "What is said of the sketches",
        "Efficient: Z > 0. Overdrawn: what is drawn costs more than not being recognised does; not recognisable: the "
        "other way round. v = 0: no element seen, which the formula rewards almost without bound.",
    ),
    "sea_concepts": (
        "Concept by concept",
        "Means over sketches, and the elements that were looked for.",
    ),
}
"""Name → title and caption."""


def sea_tables(score: Score) -> list[TableView]:
    """The further tables that the page of one run prints; none where it is neither of SEA nor of its judges."""
    if vqa := judge_printed.vqa_tables(score):
        return vqa
    conditions, concepts = score.result.conditions, score.result.tables.get("concepts")
    if not set(conditions.columns) >= {*MEASURES, *(f"{name}_sd" for name in MEASURES)}:
        return []
    unit = str(score.result.details.get("conditions_unit", ""))
    corrected = judge_printed.calibration_tables(score.result.tables, unit)
    tables = {"sea_conditions": _by_condition(conditions, unit), **corrected}
    if set(conditions.columns) >= set(COUNTS):
        counts = conditions[["condition", *COUNTS]].rename(columns=SHORT_TITLES)
        tables["sea_diagnoses"] = counts.assign(condition=[condition_label(c, unit) for c in conditions["condition"]])
    if concepts is not None and len(concepts):
        shown = [c for c in ("concept", *COUNTS[:1], *MEASURES, "elements", "elements_from") if c in concepts]
        tables["sea_concepts"] = concepts[shown].rename(columns={**TITLES, **SHORT_TITLES, "elements_from": "from"})
    return [table_view(name, *_words(name, table)) for name, table in tables.items()]


def _words(name: str, table: pd.DataFrame) -> tuple[str, pd.DataFrame, Observers, str]:
    title, caption = PRINTED[name]
    return title, table, Observers(), caption


def _by_condition(conditions: pd.DataFrame, unit: str) -> pd.DataFrame:
    """Mean ± s.d. as text, a row a quantity and a column a condition, as the paper prints it."""
    columns = {
        condition_label(float(row["condition"]), unit): [
            with_error(row[m], row[f"{m}_sd"], 2).replace(" ", "\u00a0")  # no entry is broken on a phone
            for m in MEASURES
        ]
        for row in conditions.to_dict("records")
    }
    return pd.DataFrame({"quantity": [SHORT_TITLES.get(m, TITLES[m]) for m in MEASURES], **columns})
