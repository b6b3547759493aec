"""Tables of judges of elements that pages print: raw beside corrected scores, and how often the judge errs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from humanlike.benchmarks.element_vqa_published import published_table
from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import TableView, table_view
from humanlike.reports.wording import MISSING, condition_label, count_text, interval, number, short_title
from humanlike.types import Score

PRINTED: Mapping[str, tuple[str, str]] = {
    "sea_corrected": (
        "Raw, and freed of the judge's errors",
        "Means over sketches with 95% intervals: of v with the judge's rates known from few judgments (Lang and "
        "Reiczigel), of SEA from resampled sketches and rates. Raw v and SEA of two judges cannot be compared; "
        "corrected ones can, as far as their intervals say.",
    ),
    "sea_calibration": (
        "How often the judge errs",
        "Sensitivity: share of what is drawn that it calls present. Specificity: share of what is not drawn that it "
        "calls absent. 95% intervals; effective: independent judgments that would vary as much.",
    ),
    "vqa_published": (
        "Beside the published judges",
        "This run first, then nine vision-language models on CommonSketch. Other sketches with another rate of "
        "present elements make for other numbers: compare each F1 with that of always present on its own sketches.",
    ),
    "vqa_conditions": ("Condition by condition", "All pairs of a condition pooled."),
    "vqa_superordinates": ("Kinds of things", "All pairs of a superordinate category pooled."),
    "vqa_classes": ("Class by class", "All pairs of a class pooled."),
}
"""Name → title and caption."""
VQA = ("precision", "recall", "f1", "accuracy")
_SHOWN = ("n_items", "pairs", "present_rate", *VQA, "balanced_accuracy", "present_rate_bias", "always_present_f1")


def calibration_tables(tables: Mapping[str, pd.DataFrame], unit: str) -> dict[str, pd.DataFrame]:
    """Corrected beside raw, and the judge's rates, as texts; nothing where the judge was not calibrated.

    Args:
        tables: The tables of a run of SEA.
        unit: Unit of the conditions.
    """
    shown = {}
    if "corrected" in tables:
        shown["sea_corrected"] = pd.DataFrame([_corrected(r, unit) for r in tables["corrected"].to_dict("records")])
    if "calibration" in tables:
        shown["sea_calibration"] = pd.DataFrame([_rate(r) for r in tables["calibration"].to_dict("records")])
    return shown


def vqa_tables(score: Score) -> list[TableView]:
    """The tables that the page of a run of element VQA prints; none where it is not one."""
    if score.benchmark != "element_vqa":
        return []
    unit = str(score.result.details.get("conditions_unit", ""))
    conditions = score.result.conditions
    labels = [condition_label(c, unit) for c in conditions["condition"]]
    tables = {
        "vqa_published": beside_published(score),
        "vqa_conditions": conditions.assign(condition=labels)[["condition", *_SHOWN]],
    }
    for name in ("superordinates", "classes"):
        table = score.result.tables.get(name)
        if table is not None:
            tables[f"vqa_{name}"] = table[[c for c in ("concept", "superordinate", *_SHOWN) if c in table]]
    if len(conditions) < 2:
        del tables["vqa_conditions"]
    return [
        table_view(name, PRINTED[name][0], table.rename(columns=short_title), Observers(), PRINTED[name][1])
        for name, table in tables.items()
    ]


def beside_published(score: Score) -> pd.DataFrame:
    """This run, what always "present" reaches on its sketches, and the published judges."""
    facts, known = score.result.details["judge"], published_table()
    own = {"judge": f"this run: {facts['source']}", **{name: score.scores[name].value for name in VQA}}
    rate = facts["present_rate"]
    always = {"judge": "always present, on these sketches", "precision": rate, "recall": 1.0,
              "f1": facts["always_present_f1"], "accuracy": rate}  # fmt: skip
    table = pd.concat([pd.DataFrame([own, always]), known], ignore_index=True)
    return table.assign(sketches=[score.dataset] * 2 + ["CommonSketch"] * len(known))


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A number with its interval in brackets, or alone where it has none.

    Example:
        >>> with_interval(0.5, 0.4, 0.6), with_interval(0.5, None, None)
        ('0.500 (0.400 to 0.600)', '0.500')
    """
    between = interval(low, high)
    return number(value) if between == MISSING else f"{number(value)} ({between})"


def _corrected(row: Mapping[Any, Any], unit: str) -> dict[str, str]:
    def bounded(name: str) -> str:
        return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])

    return {
        "sketches": "all" if pd.isna(row["condition"]) else condition_label(row["condition"], unit),
        "v": number(row["visual_ratio"]),
        "v, corrected": bounded("visual_ratio_corrected"),
        "SEA": number(row["sea"]),
        "SEA, corrected": bounded("sea_corrected"),
    }


def _rate(row: Mapping[Any, Any]) -> dict[str, str]:
    effective = row["n_effective"]
    return {
        "rate": str(row["rate"]),
        "value": with_interval(row["value"], row["ci_low"], row["ci_high"]),
        "judgments": count_text(row["n"]),
        "effective": MISSING if pd.isna(effective) else count_text(round(effective)),
    }
