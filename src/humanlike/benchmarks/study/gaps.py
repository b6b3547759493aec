"""How far models stay below people's consistency (Welch tests of Section 3), and whether metrics order models alike.

Legend: B replicates, S splits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from humanlike.stats import gap_to_consistency, hypothesis

WELCH_TESTS = ("per_model", "per_model_with_effect", "repeated_model")


def consistency_gaps(
    alignment: pd.DataFrame,
    replicates: Mapping[str, Mapping[str, np.ndarray]],
    splits: Mapping[str, np.ndarray],
    *,
    welch_test: str = "per_model_with_effect",
    level: float = 0.95,
) -> pd.DataFrame:
    """Welch's test of every model's bootstrap replicates against people's split-half values, by metric.

    The statistic grows with the square root of the numbers of replicates and splits, which are free choices; the
    estimate does not. `per_model_with_effect` gives the gap of the full sample with an interval; `per_model` the
    difference of the two distributions' means, which the test is of; `repeated_model` shows the last model's test in
    every row, as the published loop does.

    Args:
        alignment: `observer, metric, full_sample`, one row a model and metric (rows of people are left out).
        replicates: Metric → model → (B,) bootstrap replicates of its alignment.
        splits: Metric → (S,) people's split-half values.
        welch_test: The protocol's switch.
        level: Coverage of the intervals.

    Returns:
        One row a metric and model, in the order of `replicates`: `metric, observer, estimate` (people less model),
        `ci_low, ci_high` (NaN where the switch gives none), `statistic, df, p_value` (positive where people are more
        consistent than the model is aligned), `n` (usable replicates), `n_splits, tested` (the model whose test this
        is), `note`.

    Raises:
        ValueError: On another value of the switch, or a model that `alignment` lacks.
    """
    if welch_test not in WELCH_TESTS:
        raise ValueError(f"welch_test is {welch_test!r}; it can be one of {', '.join(WELCH_TESTS)}")
    value = alignment.set_index(["metric", "observer"])["full_sample"]
    rows: list[dict[str, Any]] = []
    for metric, by_model in replicates.items():
        if metric not in splits:
            continue
        last = list(by_model)[-1] if by_model else ""
        for observer in by_model:
            tested = last if welch_test == "repeated_model" else observer
            if (metric, tested) not in value.index:
                raise ValueError(f"the alignment table has no row of {tested!r} for {metric!r}")
            gap = _gap(float(value[metric, tested]), by_model[tested], splits[metric], welch_test, level)
            key = {"metric": metric, "observer": observer}
            rows.append({**key, **gap, "tested": tested, "note": _note(tested, observer)})
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = [
    *("metric", "observer", "estimate", "ci_low", "ci_high", "statistic", "df", "p_value"),
    *("n", "n_splits", "tested", "note"),
]


def _gap(
    alignment: float, replicates_B: np.ndarray, splits_S: np.ndarray, switch: str, level: float
) -> dict[str, float]:
    test = hypothesis.welch_test(splits_S, replicates_B)
    estimate, low, high = test.difference, np.nan, np.nan
    if switch == "per_model_with_effect":
        gap = gap_to_consistency(alignment, replicates_B, splits_S, level)
        estimate, low, high = gap.difference, gap.interval.low, gap.interval.high
    return {
        "estimate": estimate,
        "ci_low": low,
        "ci_high": high,
        "statistic": test.statistic,
        "df": test.df,
        "p_value": test.p_value,
        "n": test.n_second,
        "n_splits": test.n_first,
    }


def _note(tested: str, observer: str) -> str:
    return "" if tested == observer else f"the test of {tested} repeated, as in the published loop"


def order_agreement(alignment: pd.DataFrame, value: str = "estimate") -> pd.DataFrame:
    """Spearman's ρ between the orders of the models by the alignment of every pair of metrics (Figure 5D).

    Args:
        alignment: `observer, metric` and the column `value`, models only.
        value: Column that orders the models.

    Returns:
        As `spearman_table`: `first, second, rho, p_value, n`, metrics in the order of the table.
    """
    wide = alignment.pivot(index="observer", columns="metric", values=value)
    return hypothesis.spearman_table(wide[list(dict.fromkeys(alignment["metric"]))])
