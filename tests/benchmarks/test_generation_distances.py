"""Distances of sets of sketches: scipy, plain NumPy formulas and brute force as referees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import sqrtm
from scipy.spatial.distance import jensenshannon, pdist

from humanlike.benchmarks.generation_distances import (
    diversity,
    frechet_distance,
    kernel_distance,
    pareto_front,
    response_divergence,
)


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 6)), rng.normal(0.5, 1.5, size=(30, 6))


def test_frechet_distance_is_the_formula(features):
    a, b = features
    root = sqrtm(np.cov(a.T) @ np.cov(b.T)).real
    wanted = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(np.cov(a.T) + np.cov(b.T) - 2 * root)
    assert frechet_distance(a, b) == pytest.approx(wanted, rel=1e-6)
    assert frechet_distance(a, a) == pytest.approx(0, abs=1e-6)
    assert np.isnan(frechet_distance(a[:1], b))


def test_kernel_distance_is_the_unbiased_formula(features):
    a, b = features
    b = np.concatenate([b, b[:10] + 0.1])

    def kernel(x, y):
        return (x @ y.T / x.shape[1] + 1) ** 3

    n, m = len(a), len(b)
    within = sum((kernel(x, x).sum() - np.trace(kernel(x, x))) / (len(x) * (len(x) - 1)) for x in (a, b))
    wanted = within - 2 * kernel(a, b).mean()
    found = kernel_distance(a, b, subset_size=100, subsets=3)  # every subset is the whole set, since n = m
    assert n == m
    assert found.mean == pytest.approx(wanted, rel=1e-6)
    assert found.std == pytest.approx(0, abs=1e-9)
    assert kernel_distance(a, b, subset_size=10, seed=1) == kernel_distance(a, b, subset_size=10, seed=1)
    assert np.isnan(kernel_distance(a[:1], b).mean)


def test_diversity_is_the_mean_distance_within_concepts(features):
    a, _ = features
    concepts = ["lion"] * 10 + ["taxi"] * 29 + ["mouse"]
    assert diversity(a, concepts) == pytest.approx(np.mean([pdist(a[:10]).mean(), pdist(a[10:39]).mean()]))
    assert np.isnan(diversity(a[:2], ["lion", "taxi"]))
    assert diversity(np.zeros((4, 2)), ["lion"] * 4) == 0


def test_response_divergence_is_scipys():
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(5), 12), rng.dirichlet(np.ones(5) * 0.3, 9)
    mine, theirs = ["lion", "taxi"] * 6, ["lion", "mouse", "taxi"] * 3
    table = response_divergence(p, mine, q, theirs).set_index("concept")
    assert list(table.index) == ["lion", "taxi"]
    for concept, row in table.iterrows():
        own, other = (x[np.array(names) == concept] for x, names in ((p, mine), (q, theirs)))
        distance = jensenshannon(own.mean(0), other.mean(0))
        assert row["jsd"] == pytest.approx(distance, rel=1e-9)
        assert row["js_divergence"] == pytest.approx(distance**2, rel=1e-9)
        assert (row["n"], row["n_reference"]) == (len(own), len(other))


@settings(deadline=None, max_examples=30)
@given(arrays(np.int8, (9, 2), elements=st.integers(0, 4)))
def test_pareto_front_is_what_nobody_dominates(points):
    P, v = points[:, 0] / 4, points[:, 1] / 4
    dominated = [
        any(P[j] >= P[i] and v[j] <= v[i] and (P[j] > P[i] or v[j] < v[i]) for j in range(len(P)))
        for i in range(len(P))
    ]
    assert pareto_front(P, v).tolist() == [not d for d in dominated]
