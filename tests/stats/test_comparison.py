from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from humanlike.stats import difference
from humanlike.stats.comparison import benjamini_hochberg, compare_pairs, difference_p, holm

P_VALUES = arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1))


def made_up(models: int, replicates: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    estimate_M = rng.uniform(0.2, 0.8, models)
    shared_B = rng.normal(0, 0.03, replicates)
    return estimate_M, 0.9 * estimate_M[:, None] + shared_B + rng.normal(0, 0.02, (models, replicates))


def test_every_pair_is_the_interval_of_a_difference():
    estimate_M, replicates_MB = made_up(5, 300)
    replicates_MB[1, 7] = replicates_MB[3, 8] = np.nan
    estimate_M[4] = -0.1  # no positive ratio: moved without stretching
    pairs = compare_pairs(estimate_M, replicates_MB)
    assert len(pairs.a_Q) == 10
    for q, (a, b) in enumerate(zip(pairs.a_Q, pairs.b_Q, strict=True)):
        wanted = difference(estimate_M[a], replicates_MB[a], estimate_M[b], replicates_MB[b])
        assert pairs.low_Q[q] == pytest.approx(wanted.low, abs=1e-12)
        assert pairs.high_Q[q] == pytest.approx(wanted.high, abs=1e-12)
        assert pairs.n_Q[q] == 300 - wanted.n_degenerate
        assert pairs.difference_Q[q] == estimate_M[a] - estimate_M[b]
        z = pairs.difference_Q[q] / pairs.std_error_Q[q]
        assert pairs.p_Q[q] == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), rel=1e-9)


def test_means_are_moved_and_not_stretched():
    estimate_M, replicates_MB = made_up(3, 200)
    pairs = compare_pairs(estimate_M, replicates_MB, centring="basic", level=0.9)
    d_B = replicates_MB[0] - replicates_MB[1]
    low, high = np.quantile(d_B, [0.05, 0.95])
    whole = estimate_M[0] - estimate_M[1]
    assert pairs.low_Q[0] == pytest.approx(whole - (high - d_B.mean()), abs=1e-12)
    assert pairs.high_Q[0] == pytest.approx(whole + (d_B.mean() - low), abs=1e-12)
    assert pairs.std_error_Q[0] == pytest.approx(d_B.std(ddof=1), rel=1e-12)


def test_a_model_against_itself_is_no_difference_and_without_spread_there_is_no_test():
    estimate_M, replicates_MB = made_up(2, 50)
    pairs = compare_pairs(estimate_M[[0, 0]], replicates_MB[[0, 0]])
    assert (pairs.p_Q[0], pairs.low_Q[0], pairs.high_Q[0]) == (1.0, 0.0, 0.0)
    constant = compare_pairs(estimate_M, np.repeat(estimate_M[:, None], 50, axis=1))
    assert np.isnan(constant.p_Q[0])
    assert not constant.separable(2).any()


def test_a_model_without_a_value_is_compared_with_none():
    estimate_M, replicates_MB = made_up(4, 50)
    estimate_M[2], replicates_MB[2] = np.nan, np.nan
    pairs = compare_pairs(estimate_M, replicates_MB)
    touched = (pairs.a_Q == 2) | (pairs.b_Q == 2)
    assert np.isnan(pairs.p_Q[touched]).all()
    assert np.isnan(pairs.p_adjusted_Q[touched]).all()
    np.testing.assert_allclose(pairs.p_adjusted_Q[~touched], holm(pairs.p_Q[~touched]))


@settings(max_examples=30, deadline=None)
@given(p=P_VALUES)
def test_benjamini_hochberg_is_scipys(p):
    np.testing.assert_allclose(benjamini_hochberg(p), scipy.stats.false_discovery_control(p), rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(p=P_VALUES, level=st.floats(0.01, 0.3))
def test_holm_rejects_what_the_procedure_rejects(p, level):
    """Step by step: the smallest p against level/m, the next against level/(m - 1), until one fails."""
    adjusted = holm(p)
    rejected = set()
    for step, index in enumerate(np.argsort(p, kind="stable")):
        if p[index] * (len(p) - step) > level:
            break
        rejected.add(int(index))
    assert set(np.flatnonzero(adjusted <= level).tolist()) == rejected
    assert np.all(adjusted >= p)


def test_order_of_models_does_not_matter():
    estimate_M, replicates_MB = made_up(6, 100)
    whole = compare_pairs(estimate_M, replicates_MB).separable(6)
    back = compare_pairs(estimate_M[::-1], replicates_MB[::-1]).separable(6)
    np.testing.assert_array_equal(whole, back[::-1, ::-1])


def test_two_hundred_models_take_seconds_at_most():
    """19,900 pairs of 1,000 replicates: about half a second of CPU; a loop over pairs would take minutes."""
    estimate_M, replicates_MB = made_up(200, 1000)
    start = time.process_time()
    compare_pairs(estimate_M, replicates_MB)
    assert time.process_time() - start < 20


def test_sentences():
    estimate_M, replicates_MB = made_up(3, 10)
    with pytest.raises(ValueError, match="same models"):
        compare_pairs(estimate_M[:2], replicates_MB)
    with pytest.raises(ValueError, match="adjustment"):
        compare_pairs(estimate_M, replicates_MB, adjustment="bonferroni")
    with pytest.raises(ValueError, match="level"):
        compare_pairs(estimate_M, replicates_MB, level=95)
    assert np.isnan(difference_p(np.array([1.0]), np.array([0.0]))).all()
    assert len(compare_pairs(estimate_M[:1], replicates_MB[:1]).a_Q) == 0
