"""Intraclass correlations against the table that Shrout and Fleiss published, and against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f_oneway

from humanlike.stats.intraclass import intraclass_correlations

SHROUT_FLEISS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
# Coefficients of the paper's Table 4, and the 95% intervals that the R package psych documents for the same table.
PUBLISHED = {
    "icc1": (0.17, -0.13, 0.72),
    "icc2": (0.29, 0.02, 0.76),
    "icc3": (0.71, 0.34, 0.95),
    "icc1k": (0.44, -0.88, 0.91),
    "icc2k": (0.62, 0.07, 0.93),
    "icc3k": (0.91, 0.68, 0.99),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_table(name):
    found = intraclass_correlations(SHROUT_FLEISS)[name]
    assert (found.value, found.low, found.high) == pytest.approx(PUBLISHED[name], abs=0.0055)


def test_mean_squares_are_those_of_an_analysis_of_variance():
    """One way by scipy; two ways by the residuals of least squares on dummies."""
    rng = np.random.default_rng(2)
    n, k = 12, 5
    rating_NK = rng.normal(size=(n, 1)) + rng.normal(size=(1, k)) + rng.normal(size=(n, k))
    found = intraclass_correlations(rating_NK)
    ratio = f_oneway(*rating_NK).statistic
    assert found["icc1"].value == pytest.approx((ratio - 1) / (ratio + k - 1))

    targets, judges = np.kron(np.eye(n), np.ones((k, 1))), np.kron(np.ones((n, 1)), np.eye(k))
    y = rating_NK.ravel()

    def left(*columns):
        design = np.hstack([np.ones((n * k, 1)), *columns])
        return ((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum()

    error = left(targets, judges) / ((n - 1) * (k - 1))
    between = (left(judges) - left(targets, judges)) / (n - 1)
    judge = (left(targets) - left(targets, judges)) / (k - 1)
    assert found["icc2k"].value == pytest.approx((between - error) / (between + (judge - error) / n))
    assert found["icc3k"].value == pytest.approx((between - error) / between)
    assert found["icc3k"].average
    assert found["icc3k"].model == 3


def test_a_shift_of_a_judge_lowers_absolute_agreement_alone():
    shifted = SHROUT_FLEISS + np.array([0, 0, 0, 5])
    before, after = intraclass_correlations(SHROUT_FLEISS), intraclass_correlations(shifted)
    assert after["icc3"].value == pytest.approx(before["icc3"].value)
    assert after["icc2"].value < before["icc2"].value


def test_the_interval_holds_what_it_says():
    """Judges and targets drawn anew: 95% intervals of ICC(2,k) hold the truth about 95 times in 100."""
    rng = np.random.default_rng(0)
    truth, held = 1 / (1 + (0.25 + 1) / 10), 0
    for _ in range(400):
        rating = rng.normal(size=(30, 1)) + rng.normal(0, 0.5, (1, 10)) + rng.normal(size=(30, 10))
        found = intraclass_correlations(rating)["icc2k"]
        held += found.low <= truth <= found.high
    assert 0.91 <= held / 400 <= 0.985


def test_perfect_and_empty_agreement():
    same = np.tile(np.arange(4.0)[:, None], (1, 3))
    assert all(c.value == pytest.approx(1) for c in intraclass_correlations(same).values())
    assert np.isnan(intraclass_correlations(np.ones((4, 3)))["icc2"].value)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="got shape \\(1, 3\\)"):
        intraclass_correlations(np.ones((1, 3)))
    table = SHROUT_FLEISS.astype(float)
    table[2, 1] = np.nan
    with pytest.raises(ValueError, match="judge 1 has no rating of target 2"):
        intraclass_correlations(table)
