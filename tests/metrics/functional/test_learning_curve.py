from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from humanlike.metrics.functional import (
    MSEN_CONVENTIONS,
    CurveSums,
    binomial_variance,
    fit_lapse_rate,
    msen,
)

S, T = 3, 5


def tables(seed, n_model=40, n_human=11):
    """k_model, n_model, k_human, n_human with learning curves that resemble each other."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.4, 1.0, size=(S, T))
    return rng.binomial(n_model, p), n_model, rng.binomial(n_human, np.clip(p - 0.05, 0, 1)), n_human


def exact_msen(k_model, n_model, k_human, n_human, gamma, subtract):
    """MSE_n in rational numbers, straight from its definition, at a given lapse rate."""
    total = Fraction(0)
    gamma = Fraction(gamma)
    for k, h in zip(np.ravel(k_model).tolist(), np.ravel(k_human).tolist(), strict=True):
        m, p = Fraction(k, n_model), Fraction(h, n_human)
        total += ((1 - gamma) * m + gamma / 2 - p) ** 2 - (1 - gamma) ** 2 * m * (1 - m) / (n_model - 1)
        total -= p * (1 - p) / (n_human - 1) if subtract else 0
    return total / np.size(k_model)


def test_variance_is_unbiased_and_matches_rational_numbers():
    n = 7
    k = torch.arange(n + 1)
    got = binomial_variance(k, n)
    exact = [float(Fraction(i, n) * Fraction(n - i, n) / (n - 1)) for i in range(n + 1)]
    np.testing.assert_allclose(got, exact, rtol=1e-15)
    # E[estimate] over all outcomes is the true variance p(1 - p)/n
    for p in (0.1, 0.5, 0.83):
        probability = [float(mpmath.binomial(n, i) * p**i * (1 - p) ** (n - i)) for i in range(n + 1)]
        assert np.dot(probability, got.numpy()) == pytest.approx(p * (1 - p) / n, abs=1e-15)


def test_one_n_for_all_trials_of_a_subtask():
    k = torch.tensor([[1, 2, 3], [4, 0, 9]])
    expected = torch.stack([binomial_variance(k[0], 4), binomial_variance(k[1], 9)])
    assert torch.equal(binomial_variance(k, torch.tensor([4, 9])), expected)
    assert torch.equal(binomial_variance(k.numpy(), np.array([4, 9])), expected)


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(["mse", "msen"]))
@settings(deadline=None, max_examples=30)
def test_msen_matches_its_definition_in_rational_numbers(seed, subtract, objective):
    counts = tables(seed)
    score = msen(*counts, lapse_objective=objective, subtract_human_noise=subtract)
    exact = exact_msen(*counts, score.lapse_rate.item(), subtract)
    assert score.value.item() == pytest.approx(float(exact), abs=1e-14)
    assert msen(*counts, fit_lapse=False, subtract_human_noise=subtract).value.item() == pytest.approx(
        float(exact_msen(*counts, 0, subtract)), abs=1e-14
    )


@given(st.integers(0, 10_000), st.sampled_from(["mse", "msen"]))
@settings(deadline=None, max_examples=30)
def test_lapse_rate_is_the_minimiser_that_scipy_finds(seed, objective):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    k_model, _, k_human, n_human = tables(seed, n_model=n)
    m, h = k_model / n, k_human / n_human
    var = m * (1 - m) / (n - 1) if objective == "msen" else 0 * m

    def loss(gamma):
        return np.mean(((1 - gamma) * m + gamma / 2 - h) ** 2 - (1 - gamma) ** 2 * var)

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    lowest = min(best.fun, loss(0.0), loss(1.0))
    got = fit_lapse_rate(torch.from_numpy(m), torch.from_numpy(h), objective, torch.from_numpy(np.asarray(var)))
    assert 0 <= got <= 1
    assert loss(got.item()) <= lowest + 1e-15
    assert msen(k_model, n, k_human, n_human, lapse_objective=objective).lapse_rate == pytest.approx(
        got.item(), abs=1e-13
    )


@pytest.mark.parametrize(
    ("model", "human", "variance", "expected"),
    [
        ([0.6, 0.5], [0.9, 0.5], [0.02, 0.02], 0.0),  # D = -.03 < 2Σab = .08
        ([0.6, 0.5], [0.1, 0.5], [0.02, 0.02], 1.0),  # D = -.03 > 2Σab = -.08
        ([0.5, 0.5], [0.9, 0.5], [0.0, 0.0], 0.0),  # nothing depends on the lapse rate
        ([0.9, 0.9], [0.1, 0.1], [0.0, 0.0], 1.0),
        ([0.6, 0.6], [0.9, 0.9], [0.0, 0.0], 0.0),
    ],
)
def test_lapse_rate_at_the_ends(model, human, variance, expected):
    got = fit_lapse_rate(
        *(torch.tensor(x, dtype=torch.float64) for x in (model, human)), "msen", torch.tensor(variance)
    )
    assert got == expected


def test_a_lapsing_copy_is_recovered_and_scores_zero():
    human = torch.tensor([0.5, 0.7, 0.82])
    model = 0.5 + (human - 0.5) / 0.9
    assert fit_lapse_rate(model, human).item() == pytest.approx(0.1, abs=1e-6)


def test_a_perfect_model_scores_the_floor_or_zero_on_average():
    rng = np.random.default_rng(0)
    p, n_model, n_human = rng.uniform(0.5, 1, size=(20, 30)), 60, 20
    kept, subtracted = [], []
    for _ in range(60):
        counts = rng.binomial(n_model, p), n_model, rng.binomial(n_human, p), n_human
        score = msen(*counts, fit_lapse=False)
        kept.append((score.value - score.noise_floor).item())
        subtracted.append(msen(*counts, fit_lapse=False, subtract_human_noise=True).value.item())
    np.testing.assert_allclose(kept, subtracted, atol=1e-15)
    assert abs(np.mean(kept)) < 4 * np.std(kept) / np.sqrt(60)


def test_random_guesser_against_real_people(shared_data):
    rows = (shared_data / "hobj_human" / "highvar_human_correct_counts.csv").read_text().splitlines()[1:]
    numbers = np.array([[int(v) for v in row.split(",")[-101:]] for row in rows])
    assert len(numbers) == 64
    n, k = numbers[:, 0], numbers[:, 1:]
    guesses = np.random.default_rng(0).binomial(500, 0.5, size=k.shape)
    for fit in (False, True):
        got = msen(guesses, 500, k, n, fit_lapse=fit, subtract_human_noise=True)
        assert got.value.item() == pytest.approx(0.1134, abs=0.0005)
    paper = msen(guesses, 500, k, n)
    assert paper.noise_floor.item() == pytest.approx(np.mean(k * (n[:, None] - k) / (n**2 * (n - 1))[:, None]))
    assert paper.root_noise_floor.item() == pytest.approx(paper.noise_floor.item() ** 0.5)
    assert paper.value.item() - paper.noise_floor.item() == pytest.approx(0.1134, abs=0.0005)


def test_sums_of_many_comparisons_score_like_one_by_one():
    counts = [tables(seed) for seed in range(4)]
    shares = [
        (torch.tensor(k / n).flatten(), torch.tensor(h / m).flatten(), binomial_variance(k, n), binomial_variance(h, m))
        for k, n, h, m in counts
    ]
    stacked = CurveSums.from_shares(*(torch.stack([s[i].flatten() for s in shares]) for i in range(4)))
    for name, switches in MSEN_CONVENTIONS.items():
        one_by_one = [
            msen(
                *c,
                lapse_objective=switches.lapse_objective,
                subtract_human_noise=switches.subtract_human_noise,
            ).value.item()
            for c in counts
        ]
        np.testing.assert_allclose(stacked.msen(switches).value, one_by_one, atol=1e-15, err_msg=name)


def test_root_of_a_negative_score_is_zero():
    k = torch.tensor([5, 8])
    score = msen(10 * k, 100, k, 10, subtract_human_noise=True)
    assert score.value < 0
    assert score.root_value == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([1, 2], 1, [1, 2], 5), "n_model must be at least 2.*cell \\(0,\\) has 1 of 1"),
        (([1, 6], 5, [1, 2], 5), "k_model must lie between 0 and n_model; cell \\(1,\\) has 6 of 5"),
        (([1, 2], 5, [1, -1], 5), "k_human must lie"),
        (([1, 0.5], 5, [1, 2], 5), "k_model must hold whole numbers"),
        (([1, float("nan")], 5, [1, 2], 5), "k_model must lie"),
        (([1, 2], 5, [1, 2, 3], 5), "pair their cells"),
        (([[1, 2, 1], [1, 2, 1]], [5, 5, 5], [[1, 2, 1], [1, 2, 1]], 5), "n_model must be a number"),
        (([], 5, [], 5), "pair their cells"),
    ],
)
def test_refusals_of_msen(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        msen(*(torch.tensor(a) for a in arguments))


def test_refusals_of_the_lapse_rate():
    half = torch.tensor([0.5])
    for arguments, sentence in (
        ((half, torch.tensor([1.5])), "human must hold shares"),
        ((torch.tensor([np.nan]), half), "model must hold shares"),
        ((half, torch.tensor([0.5, 0.5])), "pair their cells"),
        ((half, half, "rmse"), "one of"),
        ((half, half, "msen"), "needs model_variance"),
        ((half, half, "msen", torch.tensor([0.1, 0.1])), "model's shape"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fit_lapse_rate(*arguments)
