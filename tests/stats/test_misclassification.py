"""Rogan-Gladen against the equation that it solves, Wilson against scipy; intervals by simulated coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from humanlike.stats.misclassification import (
    Rate,
    adjusted_interval,
    delta_interval,
    effective_size,
    rogan_gladen,
    score_interval,
)

shares = st.floats(0.55, 1.0)


@settings(deadline=None, max_examples=30)
@given(st.floats(0, 1), shares, shares)
def test_the_true_rate_comes_back(true, se, sp):
    p = true * se + (1 - true) * (1 - sp)
    assert rogan_gladen(p, se, sp) == pytest.approx(true, abs=1e-12)


def test_the_delta_interval_is_the_propagated_error_of_three_binomials():
    p, se, sp = Rate(0.58, 500), Rate(0.8, 90), Rate(0.7, 60)
    low, high = delta_interval(p, se, sp)
    step, variance = 1e-6, 0.0
    for name in ("p", "se", "sp"):  # numerical derivatives, not the formula
        moved = {"p": p.value, "se": se.value, "sp": sp.value}
        up, down = ({**moved, name: moved[name] + d} for d in (step, -step))
        slope = (rogan_gladen(up["p"], up["se"], up["sp"]) - rogan_gladen(down["p"], down["se"], down["sp"])) / (
            2 * step
        )
        rate = {"p": p, "se": se, "sp": sp}[name]
        variance += slope**2 * rate.value * (1 - rate.value) / rate.n
    assert (high - low) / 2 == pytest.approx(1.959963985 * variance**0.5, rel=1e-6)
    assert (high + low) / 2 == pytest.approx(rogan_gladen(0.58, 0.8, 0.7))


@pytest.mark.parametrize(
    ("true", "se", "sp", "n", "n_se", "n_sp"),
    [
        (0.6, 1.0, 0.7, 600, 40, 30),
        (0.6, 0.8, 1.0, 600, 40, 30),
        (0.4, 0.8, 0.7, 300, 60, 60),
        (0.9, 0.95, 0.9, 200, 25, 15),
    ],
)
def test_the_adjusted_interval_covers_where_the_plain_one_may_not(true, se, sp, n, n_se, n_sp):
    rng = np.random.default_rng(1)
    covered = {"adjusted": 0, "delta": 0}
    rounds = 1500
    for _ in range(rounds):
        p = Rate(rng.binomial(n, true * se + (1 - true) * (1 - sp)) / n, n)
        found = (p, Rate(rng.binomial(n_se, se) / n_se, n_se), Rate(rng.binomial(n_sp, sp) / n_sp, n_sp))
        for name, interval in (("adjusted", adjusted_interval), ("delta", delta_interval)):
            low, high = interval(*found)
            covered[name] += low <= true <= high
    assert 0.93 <= covered["adjusted"] / rounds <= 0.995
    assert covered["adjusted"] >= covered["delta"] - 0.03 * rounds


def test_the_adjusted_interval_says_nothing_where_the_judge_does_not():
    assert adjusted_interval(Rate(0.5, 100), Rate(0.4, 20), Rate(0.5, 20)) == (0.0, 1.0)


@pytest.mark.parametrize(("k", "n"), [(0, 20), (7, 20), (20, 20), (1, 300)])
def test_the_score_interval_is_wilsons(k, n):
    expected = binomtest(k, n).proportion_ci(method="wilson")
    assert score_interval(Rate(k / n, n)) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_judgments_that_hang_together_count_less():
    rng = np.random.default_rng(2)
    p = rng.beta(2, 2, (4000, 50))  # 50 sketches of 8 judgments that share a rate
    hits = rng.binomial(8, p).sum(axis=1) / 400
    size = effective_size(0.5, float(hits.var()), 400)
    deff = 1 + 7 * (0.05 / 0.25)  # intraclass correlation var(p)/[p(1 - p)]
    assert size == pytest.approx(400 / deff, rel=0.1)
    assert effective_size(0.5, 1e-9, 400) == 400


def test_bad_rates_are_refused():
    with pytest.raises(ValueError, match=r"share in \[0, 1\] of more than 0 judgments, got 1.2 of 5"):
        Rate(1.2, 5)
    with pytest.raises(ValueError, match="more than 0"):
        Rate(0.5, 0)
    with pytest.raises(ValueError, match="level"):
        score_interval(Rate(0.5, 10), level=1.0)
