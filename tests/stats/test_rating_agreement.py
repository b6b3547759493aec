"""Correlations of mean ratings against scipy on the sample written out, and reliability against its formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from humanlike.stats.rating_agreement import (
    correlation_interval,
    correlations_under,
    mean_ratings,
    noise_corrected_correlation,
    quantile_bins,
    split_half_reliability,
    weighted_correlations,
)
from humanlike.stats.two_way_bootstrap import crossed_weights


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_weights_are_repetitions(seed, ties):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=12), rng.normal(size=12)
    if ties:
        x, y = np.round(x), np.round(y)
    count = rng.integers(0, 4, 12)
    long_x, long_y = np.repeat(x, count), np.repeat(y, count)
    found = weighted_correlations(x, y, count)
    if len(set(long_x)) < 2 or len(set(long_y)) < 2:
        assert all(np.isnan(v) for v in found.values())
        return
    assert found["pearson"] == pytest.approx(pearsonr(long_x, long_y).statistic, abs=1e-9)
    assert found["spearman"] == pytest.approx(spearmanr(long_x, long_y).statistic, abs=1e-9)
    assert found["kendall"] == pytest.approx(kendalltau(long_x, long_y).statistic, abs=1e-9)


def test_a_replicate_is_computed_from_the_drawn_people_and_sketches():
    rng = np.random.default_rng(5)
    score = rng.normal(size=15)
    rating_PS = np.where(rng.random((7, 15)) < 0.2, np.nan, score + rng.normal(size=(7, 15)))
    score[3] = np.nan
    weights = crossed_weights(7, 15, 8, seed=1)
    found = correlations_under(score, rating_PS, weights)
    for b in range(8):
        drawn = rating_PS[np.repeat(np.arange(7), weights.participants_BP[b])]
        kept = np.isfinite(drawn).any(axis=0) & np.isfinite(score)
        mean = np.array([np.nanmean(c) if k else 0 for c, k in zip(drawn.T, kept, strict=True)])
        times = np.where(kept, weights.items_BI[b], 0)
        assert found["spearman"][b] == pytest.approx(
            spearmanr(np.repeat(score, times), np.repeat(mean, times)).statistic
        )


def test_means_leave_missing_ratings_out():
    rating_PS = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    assert mean_ratings(rating_PS).tolist() == pytest.approx([2, 5, np.nan], nan_ok=True)
    assert mean_ratings(rating_PS, np.array([[3, 1]])).tolist() == [pytest.approx([1.5, 5, np.nan], nan_ok=True)]


def test_intervals_stay_inside_and_hold_the_truth():
    """Pairs of a known correlation: the interval holds it about 95 times in 100 and never leaves [-1, 1]."""
    rng = np.random.default_rng(8)
    truth, held = 0.9, 0
    for _ in range(150):
        x, e = rng.normal(size=(2, 40))
        y = truth * x + np.sqrt(1 - truth**2) * e
        draws = rng.integers(40, size=(200, 40))
        replicates = np.array([np.corrcoef(x[d], y[d])[0, 1] for d in draws])
        found = correlation_interval(np.corrcoef(x, y)[0, 1], replicates)
        assert -1 <= found.low < found.high <= 1
        held += found.low <= truth <= found.high
    assert 0.88 <= held / 150 <= 0.99


def test_spearman_brown_is_what_parallel_raters_have():
    """Ratings = truth + noise of the same size: reliability of the mean over K is K / (K + noise)."""
    rng = np.random.default_rng(3)
    rating_PS = rng.normal(size=400) + rng.normal(0, 2, (20, 400))
    found = split_half_reliability(rating_PS, 50, seed=0)
    assert found["spearman_brown"].mean() == pytest.approx(20 / (20 + 4), abs=0.02)
    assert found["correlation"].mean() == pytest.approx(10 / (10 + 4), abs=0.03)
    again = split_half_reliability(rating_PS, 50, seed=0)
    assert (again["correlation"] == found["correlation"]).all()
    assert noise_corrected_correlation(0.5, 20 / 24) == pytest.approx(0.5 / np.sqrt(20 / 24))
    assert np.isnan(noise_corrected_correlation(0.5, -0.1))


def test_bins_hold_equal_numbers():
    score = np.random.default_rng(0).normal(size=88)
    code, edges = quantile_bins(score, 4)
    assert np.bincount(code).tolist() == [22] * 4
    assert all(score[code == b].max() <= edges[b + 1] for b in range(4))
    with pytest.raises(ValueError, match="1 scored sketches cannot fill 4 bins"):
        quantile_bins(np.array([0.1, np.nan]), 4)
    with pytest.raises(ValueError, match="two or more participants"):
        split_half_reliability(np.ones((1, 4)), 3, 0)
