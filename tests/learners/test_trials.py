"""Compiled trials: the exponential in extended precision, blocks and groups of every size against weight vectors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from humanlike.learners import PAPER_RULES, simulate_direct, simulate_gram
from humanlike.learners.update_rules import EXPONENTIAL


@pytest.fixture(scope="module")
def exponential():
    from humanlike.learners.trials import exponential

    return exponential


def test_the_exponential_is_within_one_unit_in_the_last_place(exponential):
    rng = np.random.default_rng(0)
    x_N = np.concatenate([rng.uniform(-708, 709, 20_000), rng.normal(size=20_000), 1e-9 * rng.normal(size=1000)])
    exact_N = np.exp(x_N.astype(np.longdouble))
    error_N = np.array([exponential(x) for x in x_N]) - exact_N
    assert np.abs(error_N / np.spacing(exact_N.astype(np.float64))).max() < 1


def test_the_exponential_at_its_ends(exponential):
    assert [exponential(x) for x in (0.0, -0.0, 710.0, 1e300, np.inf)] == [1, 1, np.inf, np.inf, np.inf]
    assert [exponential(x) for x in (-746.0, -1e300, -np.inf)] == [0, 0, 0]
    assert exponential(709.78) == pytest.approx(np.exp(709.78), rel=1e-15)
    for x in (-710.0, -740.0, -745.1):  # subnormal numbers, exact to their last place
        assert abs(exponential(x) - np.exp(x)) <= 5e-324
    assert np.isnan(exponential(np.nan))


@pytest.mark.parametrize("trials", [1, 7, 8, 9, 25])
@pytest.mark.parametrize("count", [1, 33])
def test_blocks_and_groups_of_every_size(features, sessions, count, trials):
    x_ND, given = features(), sessions(count=count, trials=trials)
    rules = [*PAPER_RULES, dataclasses.replace(EXPONENTIAL, norm_cap=0.6)]
    every_RST = simulate_gram(x_ND @ x_ND.T, *given, rules)
    assert every_RST.shape == (8, count, trials)
    for rule, choices_ST in zip(rules, every_RST, strict=True):
        np.testing.assert_array_equal(choices_ST, simulate_direct(x_ND, *given, rule))


@pytest.mark.parametrize("device", [None, "cpu"])
def test_no_sessions_and_no_trials(device):
    for shape in ((0, 5), (3, 0)):
        none = np.zeros(shape, dtype=int)
        assert simulate_gram(np.eye(4), none, none, none / 1.0, ["square", "exemplar"], device=device).shape == (
            2,
            *shape,
        )


def test_chunks_and_pieces_of_sessions_change_nothing(features, sessions, monkeypatch):
    from humanlike.learners import batched

    x_ND, given = features(), sessions(count=21, trials=23)
    expected_RST = simulate_gram(x_ND @ x_ND.T, *given, PAPER_RULES)
    for chunk, piece in ((2000, 1000), (8, 3), (1, 1)):
        monkeypatch.setattr(batched, "CPU_SESSIONS", chunk)
        monkeypatch.setattr(batched, "CPU_GATHER", piece)
        np.testing.assert_array_equal(simulate_gram(x_ND @ x_ND.T, *given, PAPER_RULES, device="cpu"), expected_RST)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_equal_weights_stay_tied_whatever_block_they_were_learned_in(device):
    # Image 0 is wrong under actions 0 and 1, many trials apart; afterwards both weigh the same, and image 1, opposite
    # to it, prefers both alike to action 2: the coin decides.
    x_ND = np.array([[0.6, 0.3, 0.1], [-0.6, -0.3, -0.1], [0.0, 0.0, 0.0]])
    for gap in (1, 5, 9, 14):
        order_T = np.array([0, *[2] * gap, 0, *[2] * gap, 1])
        coins_ST = np.zeros((2, len(order_T)))
        coins_ST[:, -1] = 0.4, 0.6
        order_ST = np.stack([order_T, order_T])
        correct_ST = np.full_like(order_ST, 2)
        for rule in ("perceptron", "hinge", "mae", "square", "exponential", "cross_entropy"):
            given = (order_ST, correct_ST, coins_ST, [rule], 0.3, 3)
            choices_ST = simulate_gram(x_ND @ x_ND.T, *given, rewards=(0.8, -0.25), device=device)[0]
            assert choices_ST[:, gap + 1].tolist() == [1, 1]
            assert choices_ST[:, -1].tolist() == [0, 1]


def test_what_is_kept_on_disk_belongs_to_the_text_of_all_modules():
    from humanlike.learners import compilation, kernels, trials

    for function in (kernels._run, trials.linear, trials.reinforce, trials.exemplar, trials.prototype):
        assert isinstance(function._cache, compilation._SourcesCache)
    text = (kernels.__file__, trials.__file__)
    assert all(path.rsplit("/", 1)[1][:-3] in compilation._MODULES for path in text)
