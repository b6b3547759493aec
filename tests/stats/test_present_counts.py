"""Posteriors of counts against brute-force enumeration, simulation and scipy's optimiser."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from humanlike.stats.present_counts import ObservedCounts, count_likelihood, count_prior


@pytest.mark.parametrize(("se", "sp"), [(0.8, 0.7), (1.0, 0.6), (0.9, 1.0)])
def test_the_likelihood_is_that_of_enumerated_answers(se, sp):
    elements = 4
    expected = np.zeros((5, 5))
    for v in range(5):
        for said in itertools.product([0, 1], repeat=elements):
            chance = 1.0
            for e, yes in enumerate(said):
                rate = se if e < v else 1 - sp
                chance *= rate if yes else 1 - rate
            expected[v, sum(said)] += chance
    np.testing.assert_allclose(count_likelihood(elements, se, sp), expected, atol=1e-14)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.floats(0.02, 0.98), st.floats(0.0, 0.25))
def test_the_prior_has_the_moments_that_can_be_had(elements, mean, variance):
    prior = count_prior(elements, np.array([mean]), np.array([variance]))[0]
    x = np.arange(elements + 1) / elements
    assert prior.sum() == pytest.approx(1)
    assert prior @ x == pytest.approx(mean, abs=1e-6)
    place = (mean * elements) % 1
    least, most = place * (1 - place) / elements**2, mean * (1 - mean)
    span = most - least
    found = prior @ x**2 - (prior @ x) ** 2
    assert found == pytest.approx(np.clip(variance, least + 0.02 * span, most - 0.02 * span), abs=1e-6)


def test_the_prior_has_the_largest_entropy():
    x = np.arange(6) / 5
    constraints = [
        {"type": "eq", "fun": lambda p: p.sum() - 1},
        {"type": "eq", "fun": lambda p: p @ x - 0.4},
        {"type": "eq", "fun": lambda p: p @ x**2 - (0.05 + 0.16)},
    ]
    found = minimize(
        lambda p: (p * np.log(p)).sum(), np.full(6, 1 / 6), bounds=[(1e-9, 1)] * 6, constraints=constraints, tol=1e-12
    )
    np.testing.assert_allclose(count_prior(5, np.array([0.4]), np.array([0.05]))[0], found.x, atol=1e-5)


def counts(seed=0, n=3000):
    """Counts that are narrower than a binomial, of two conditions, with a covariate that goes with them."""
    rng = np.random.default_rng(seed)
    elements_N, group_N = rng.integers(3, 10, n), rng.integers(0, 2, n)
    covariate_N = rng.uniform(0, 1, n)
    rate_N = 0.25 + 0.2 * group_N + 0.35 * covariate_N
    fixed_N = np.round(elements_N * rate_N + rng.normal(0, 0.6, n)).astype(int)
    return elements_N, np.clip(fixed_N, 0, elements_N), group_N, covariate_N


@pytest.mark.parametrize(("se", "sp"), [(1.0, 0.7), (0.8, 1.0), (0.8, 0.7)])
def test_a_mean_of_a_curved_function_comes_back(se, sp):
    elements_N, true_N, group_N, covariate_N = counts()
    rng = np.random.default_rng(1)
    called_N = rng.binomial(true_N, se) + rng.binomial(elements_N - true_N, 1 - sp)
    x = np.arange(elements_N.max() + 1)

    def curved(v, c):
        return np.exp(-3 * v) * c  # depends on both, as SEA does

    value_NX = curved(np.minimum(x / elements_N[:, None], 1), covariate_N[:, None])
    posterior = ObservedCounts(elements_N, called_N, group_N, covariate_N).posterior(se, sp)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-12)
    assert (posterior * (x > elements_N[:, None])).sum() == 0
    truth, raw = curved(true_N / elements_N, covariate_N), curved(called_N / elements_N, covariate_N)
    found = (posterior * value_NX).sum(axis=1)
    for group in (0, 1):
        own = group_N == group
        assert abs(found[own].mean() - truth[own].mean()) < 0.006
        assert abs(raw[own].mean() - truth[own].mean()) > abs(found[own].mean() - truth[own].mean())


def test_moments_are_those_of_the_true_counts():
    elements_N, true_N, group_N, covariate_N = counts(n=40_000)
    rng = np.random.default_rng(2)
    called_N = rng.binomial(true_N, 0.85) + rng.binomial(elements_N - true_N, 0.2)
    mean_N, variance_N = ObservedCounts(elements_N, called_N, group_N, covariate_N).prior_moments(0.85, 0.8)
    v_N = true_N / elements_N
    for group in (0, 1):
        own = group_N == group
        slope, intercept = np.polyfit(covariate_N[own], v_N[own], 1)
        np.testing.assert_allclose(mean_N[own], intercept + slope * covariate_N[own], atol=0.02)
        residual = v_N[own] - (intercept + slope * covariate_N[own])
        assert variance_N[own][0] == pytest.approx(residual.var(), abs=0.002)


def test_a_perfect_judge_is_believed_and_an_empty_one_refused():
    elements_N, true_N, group_N, covariate_N = counts(n=200)
    observed = ObservedCounts(elements_N, true_N, group_N, covariate_N)
    assert (observed.posterior(1.0, 1.0).argmax(axis=1) == true_N).all()
    np.testing.assert_allclose(observed.posterior(1.0, 1.0).max(axis=1), 1.0, atol=1e-12)
    with pytest.raises(ValueError, match="leave nothing to be learnt"):
        observed.posterior(0.5, 0.5)
