"""Fast simulations against weight vectors, trial by trial, and the laws that choices obey."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.learners import (
    PAPER_RULES,
    RULES,
    ExemplarRule,
    LinearRule,
    calibrate,
    draw_high_variation,
    draw_one_shot,
    simulate_direct,
    simulate_gram,
    simulate_sessions,
)
from humanlike.learners.direct import DirectLearner
from humanlike.learners.update_rules import EXPONENTIAL, exp

VARIANTS = {
    **RULES,
    "exponential, low cap": dataclasses.replace(EXPONENTIAL, norm_cap=0.7),
    "square, capped": LinearRule("square_capped", RULES["square"].step, norm_cap=0.5),
    "exemplar, gaussian": ExemplarRule(p=2),
    "exemplar, probabilistic": ExemplarRule(c=2.0, gamma=3.0),
    "own": LinearRule("own", lambda r, z: r * exp(-abs(z)) - 0.1 * z),
}


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("num_choices", [2, 3])
@pytest.mark.parametrize("name", VARIANTS)
def test_choices_equal_those_of_weight_vectors(features, sessions, name, num_choices, device):
    x_ND, given_ST = features(), sessions(num_choices=num_choices)
    for alpha, rewards in ((1.0, (1.0, -1.0)), (0.3, (0.8, -0.25))):
        options = {"rule": VARIANTS[name], "alpha": alpha, "num_choices": num_choices, "rewards": rewards}
        expected_ST = simulate_direct(x_ND, *given_ST, **options)
        choices_ST = simulate_sessions(x_ND, *given_ST, **options, device=device)
        assert choices_ST.dtype == np.int64
        np.testing.assert_array_equal(choices_ST, expected_ST)
        assert set(np.unique(choices_ST)) == set(range(num_choices))


def test_no_trial_differs_at_full_size(features):
    x_ND = features(images=200, dimensions=2048, separation=0.15)
    draws = draw_high_variation(0, "A,B", 200)
    given_ST = (draws.order_ST, draws.correct_action_ST, draws.coins_ST)
    choices_RST = simulate_gram(x_ND @ x_ND.T, *given_ST, PAPER_RULES)
    for rule, choices_ST in zip(PAPER_RULES, choices_RST, strict=True):
        assert int((choices_ST != simulate_direct(x_ND, *given_ST, rule)).sum()) == 0, rule.name
        assert 0.6 < (choices_ST == draws.correct_action_ST).mean() < 1


@pytest.mark.parametrize("cap", [0.5, 1.0, 2.0])
def test_the_cap_fires_and_changes_choices(features, sessions, cap):
    x_ND, given_ST = features(separation=0.2), sessions(count=60)
    capped = dataclasses.replace(EXPONENTIAL, norm_cap=cap)
    expected_ST = simulate_direct(x_ND, *given_ST, capped)
    learner, order_T, norms = DirectLearner(capped), given_ST[0][0], []
    learner.reset_with_coins(given_ST[2][0])
    for t, image in enumerate(order_T):
        action = learner.respond(x_ND[image])
        learner.give_feedback(1.0 if action == given_ST[1][0, t] else -1.0)
        norms.append(np.linalg.norm(learner._memory.w_MD))
    assert max(norms) == pytest.approx(cap, rel=1e-12)
    for device in (None, "cpu"):
        np.testing.assert_array_equal(simulate_sessions(x_ND, *given_ST, capped, device=device), expected_ST)
    if cap < 2:
        assert (expected_ST != simulate_sessions(x_ND, *given_ST, "exponential")).any()


@pytest.mark.parametrize("rule", RULES)
def test_support_images_of_norm_one_that_are_shown_again(rule):
    rng = np.random.default_rng(5)
    x_ND = rng.normal(size=(122, 48)) * 3
    x_ND[2:62] += x_ND[0]
    x_ND[62:] += x_ND[1]
    x_ND = calibrate(x_ND, rng.normal(size=(60, 48)))
    squared_N = np.einsum("nd,nd->n", x_ND, x_ND)
    assert np.abs(squared_N[:2] - 1).max() < 1e-12
    draws = draw_one_shot(0, rule, 150)
    given_ST = (draws.order_ST, draws.correct_action_ST, draws.coins_ST)
    expected_ST = simulate_direct(x_ND, *given_ST, rule)
    for device in (None, "cpu"):
        np.testing.assert_array_equal(simulate_sessions(x_ND, *given_ST, rule, device=device), expected_ST)


def test_on_the_boundary_hinge_updates_and_mae_does_not():
    # One image of norm 1 (but for the last bits) shown under action 0, then one at 60° whose correct action is 1.
    x_ND = np.array([[1.0 - 2e-10, 0.0], [0.5, np.sqrt(0.75)]])
    order_ST, correct_ST = np.array([[0, 0, 0, 1, 1, 1]]), np.array([[0, 0, 0, 1, 1, 1]])
    coins_ST = np.zeros((1, 6))
    hinge = simulate_sessions(x_ND, order_ST, correct_ST, coins_ST, "hinge")[0]
    # Two hinge updates leave l = 2, no third; then l_0 = 1, 0, -1 on the other image: two errors, then action 1.
    assert hinge.tolist() == [0, 0, 0, 0, 0, 1]
    # One MAE update leaves l = 1, no second; then l_0 = 0.5 and -0.5: one error.
    assert simulate_sessions(x_ND, order_ST, correct_ST, coins_ST, "mae")[0].tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("num_choices", [2, 3])
def test_coins_decide_on_features_that_are_zero(sessions, num_choices, device):
    order_ST, correct_ST, coins_ST = sessions(num_choices=num_choices)
    coins_ST[0, :2] = 0.0, np.nextafter(1, 0)
    for rule in PAPER_RULES:
        choices_ST = simulate_sessions(
            np.zeros((40, 4)), order_ST, correct_ST, coins_ST, rule, num_choices=num_choices, device=device
        )
        np.testing.assert_array_equal(choices_ST, np.minimum(coins_ST * num_choices, num_choices - 1).astype(int))


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), rule=st.sampled_from(sorted(VARIANTS)))
def test_names_of_images_do_not_matter(seed, rule):
    rng = np.random.default_rng(seed)
    x_ND = rng.normal(size=(20, 8))
    x_ND /= np.linalg.norm(x_ND, axis=1).max()
    order_ST, label_N = rng.integers(20, size=(8, 25)), rng.integers(2, size=20)
    coins_ST, names_N = rng.random((8, 25)), rng.permutation(20)
    choices_ST = simulate_sessions(x_ND, order_ST, label_N[order_ST], coins_ST, VARIANTS[rule])
    moved_ND = np.empty_like(x_ND)
    moved_ND[names_N] = x_ND
    moved_ST = simulate_sessions(moved_ND, names_N[order_ST], label_N[order_ST], coins_ST, VARIANTS[rule])
    np.testing.assert_array_equal(choices_ST, moved_ST)
    one = simulate_sessions(x_ND, order_ST[3:4], label_N[order_ST[3:4]], coins_ST[3:4], VARIANTS[rule])
    np.testing.assert_array_equal(one[0], choices_ST[3])


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), rule=st.sampled_from(sorted(VARIANTS)))
def test_actions_are_symmetric(seed, rule):
    rng = np.random.default_rng(seed)
    x_ND = rng.normal(size=(20, 8))
    x_ND /= np.linalg.norm(x_ND, axis=1).max()
    order_ST, label_N, coins_ST = rng.integers(20, size=(8, 25)), rng.integers(2, size=20), rng.random((8, 25))
    correct_ST = label_N[order_ST]
    choices_ST = simulate_sessions(x_ND, order_ST, correct_ST, coins_ST, VARIANTS[rule])
    swapped_ST = simulate_sessions(x_ND, order_ST, 1 - correct_ST, 1 - coins_ST, VARIANTS[rule])
    np.testing.assert_array_equal(choices_ST, 1 - swapped_ST)


def test_rules_run_together_as_they_run_alone(features, sessions):
    x_ND, given_ST = features(), sessions()
    rules = list(VARIANTS.values())
    for device in (None, "cpu"):
        together_RST = simulate_gram(x_ND @ x_ND.T, *given_ST, rules, device=device)
        assert together_RST.dtype == np.int8
        for rule, choices_ST in zip(rules, together_RST, strict=True):
            np.testing.assert_array_equal(choices_ST, simulate_sessions(x_ND, *given_ST, rule, device=device))


def test_learning_rate_zero_learns_nothing(features, sessions):
    choices_ST = simulate_sessions(features(), *sessions(), "square", alpha=0.0)
    np.testing.assert_array_equal(choices_ST, (sessions()[2] >= 0.5).astype(int))


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"features_ND": np.full((40, 3), np.nan)}, ValueError, "NaN or infinite values in 40 row"),
        ({"features_ND": np.eye(40) * 1.01}, ValueError, "image 0 has norm 1.01.*calibrate"),
        ({"features_ND": np.zeros(40)}, ValueError, r"filled \(images, features\) array, got shape \(40,\)"),
        ({"order_ST": np.full((20, 30), 40)}, ValueError, "image indices 0 … 39, got 40 in session 0, trial 0"),
        ({"order_ST": np.full((20, 30), -1)}, ValueError, "got -1"),
        ({"order_ST": np.zeros((20, 30))}, TypeError, "whole numbers"),
        ({"order_ST": [[0, 1], [0]]}, ValueError, "same number of trials"),
        ({"order_ST": np.zeros((20, 29), int)}, ValueError, r"one shape .* got \(20, 29\) and \(20, 30\)"),
        ({"correct_action_ST": np.full((20, 30), 2)}, ValueError, "action indices 0 … 1, got 2"),
        ({"coins_ST": np.ones((20, 30))}, ValueError, r"coins_ST must lie in \[0, 1\)"),
        ({"coins_ST": np.full((20, 30), np.nan)}, ValueError, r"coins_ST must lie in \[0, 1\)"),
        ({"coins_ST": np.zeros((20, 1))}, ValueError, "coins_ST must have the shape of order_ST"),
        ({"alpha": 1.5}, ValueError, r"alpha must lie in \[0, 1\], got 1.5"),
        ({"alpha": float("nan")}, ValueError, "alpha"),
        ({"num_choices": 1}, ValueError, "num_choices must lie in 2 … 127, got 1"),
        ({"rewards": (2.0, -1.0)}, ValueError, r"rewards must be two numbers in \[-1, 1\]"),
        ({"rule": "square?"}, ValueError, "unknown update rule"),
    ],
)
def test_bad_arguments(features, sessions, change, error, sentence):
    order_ST, correct_ST, coins_ST = sessions()
    arguments = {"features_ND": features(), "order_ST": order_ST, "correct_action_ST": correct_ST}
    arguments |= {"coins_ST": coins_ST, "rule": "square"} | change
    for simulate in (simulate_sessions, simulate_direct):
        with pytest.raises(error, match=sentence):
            simulate(**arguments)


@pytest.mark.parametrize(
    ("gram_NN", "sentence"),
    [
        (np.zeros((3, 4)), "square"),
        (np.full((40, 40), np.inf), "NaN or infinite"),
        (np.triu(np.ones((40, 40))), "symmetric"),
        (-np.eye(40), "negative diagonal value at 0"),
        (1.1 * np.eye(40), "norm 1.0488"),
    ],
)
def test_bad_gram_matrices(sessions, gram_NN, sentence):
    with pytest.raises(ValueError, match=sentence):
        simulate_gram(gram_NN, *sessions(), ["square"])


def test_a_step_that_cannot_be_compiled_says_so_and_runs_batched(features, sessions):
    class Difference:
        def __call__(self, reward, preference):
            return reward - preference

    own = LinearRule("object", Difference())
    with pytest.raises(ValueError, match=r"cannot be compiled[\s\S]*device='cpu'"):
        simulate_sessions(features(), *sessions(), own)
    batched_ST = simulate_sessions(features(), *sessions(), own, device="cpu")
    np.testing.assert_array_equal(batched_ST, simulate_sessions(features(), *sessions(), "square"))


def test_no_rules(sessions):
    with pytest.raises(ValueError, match="rules is empty"):
        simulate_gram(np.eye(40), *sessions(), [])


def test_importing_learners_loads_neither_numba_nor_a_batched_path():
    code = "import sys, humanlike.learners; print('numba' in sys.modules, 'humanlike.learners.batched' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.split() == ["False", "False"]
