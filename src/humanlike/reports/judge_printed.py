"""Tables of judges of elements that pages print: raw beside corrected scores, and how often the judge errs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from humanlike.reports.wording import MISSING, condition_label, count_text, interval, number

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
}
"""Name → title and caption."""


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
