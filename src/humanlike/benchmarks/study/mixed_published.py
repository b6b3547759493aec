"""The published coefficients and tests of Section 3 and of CLIPasso, to hold a study of the published data against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from humanlike.benchmarks.study.mixed_effects import MixedTables

PUBLISHED_TERMS = pd.DataFrame(
    [
        ("strokes_by_time", "num_strokes", "t", 0.29, 0.29 / 0.00495),
        ("models_by_time", "accuracy", "t_z", 0.0957, 20.25),
        ("models_by_time", "entropy", "t_z", -0.03, -30.19),
        ("models_by_time", "snp", "t_z", 0.025, 8.43),
        ("people_by_time", "accuracy", "t_z", 0.0608, 9.57),
        ("people_by_time", "entropy", "t_z", -0.14, -12.29),
        ("people_by_time", "snp", "t_z", 0.0541, 20.24),
        ("alignment", "accuracy", "model_metric", 0.077, 6.77),
        ("alignment", "entropy", "model_metric", 0.117, 28.52),
        ("alignment", "snp", "model_metric", 0.0666, 6.21),
    ],
    columns=["analysis", "metric", "term", "published", "published_statistic"],
)
"""Coefficients and their t; that of strokes is the published coefficient over its standard error."""

PUBLISHED_TESTS = pd.DataFrame(
    [
        ("models_by_time", "accuracy", 3455.3),
        ("models_by_time", "entropy", 89698.0),
        ("models_by_time", "snp", 318.46),
        ("alignment", "accuracy", 134.81),
        ("alignment", "entropy", 725.78),
        ("alignment", "snp", 5.05),
    ],
    columns=["analysis", "metric", "published_chi2"],
)
"""χ²(16) of the differences between 17 models."""


def with_published(tables: MixedTables) -> MixedTables:
    """The tables with `published` and `published_statistic` beside the terms and `published_chi2` beside the fits.

    References:
        Mukherjee et al. 2023 (SEVA), Section 3.
    """
    fits = tables.fits.merge(PUBLISHED_TESTS, on=["analysis", "metric"], how="left", validate="1:1")
    fits.insert(list(fits.columns).index("chi2") + 1, "published_chi2", fits.pop("published_chi2"))
    if not len(tables.terms):
        return replace(tables, fits=fits)
    terms = tables.terms.merge(PUBLISHED_TERMS, on=["analysis", "metric", "term"], how="left", validate="1:1")
    return replace(tables, fits=fits, terms=terms)


PUBLISHED_RECOGNISABILITY_R2 = 0.64
"""Adjusted R² of people_sketches ~ machine_sketches × condition (Figure 6 A)."""

PUBLISHED_DIVERGENCE = {"measure": "rank", "term": "condition", "published": -0.69, "published_statistic": -6.86}
"""Coefficient and t of divergence ~ condition; printed as of the distance, computed on its rank (Figure 6 B)."""


def machine_with_published(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of CLIPasso's sketches with `published_adjusted_r2` beside the fit, `published` beside the trend.

    References:
        Mukherjee et al. 2023 (SEVA), "Evaluating machine sketch production".
    """
    trend = tables["machine_trend"].merge(
        pd.DataFrame([PUBLISHED_DIVERGENCE]), on=["measure", "term"], how="left", validate="1:1"
    )
    fit = tables["machine_fit"].assign(published_adjusted_r2=PUBLISHED_RECOGNISABILITY_R2)
    return {**tables, "machine_fit": fit, "machine_trend": trend}
