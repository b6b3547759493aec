"""Agreement of orders against scipy, brute force over all orders, and hand-counted ceilings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from humanlike.stats.order_agreement import (
    order_accepted,
    order_chance,
    order_consistency,
    order_spearman,
    pair_concordance,
)

ORDERS = np.array(list(itertools.permutations((1, 2, 3))))
SCORES = np.tile([0.9, 0.2, -0.4], (6, 1))


def test_one_of_the_six_orders_is_accepted_and_random_orders_have_the_level_of_chance():
    assert order_accepted(ORDERS, SCORES).tolist() == [1, 0, 0, 0, 0, 0]
    assert order_accepted(ORDERS, SCORES).mean() == pytest.approx(order_chance(3))
    assert pair_concordance(ORDERS, SCORES).mean() == pytest.approx(0.5)
    assert order_spearman(ORDERS, SCORES).mean() == pytest.approx(0)
    assert order_chance(4) == 1 / 24


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10_000))
def test_correlations_are_those_of_scipy(m, seed):
    rng = np.random.default_rng(seed)
    rank_RM = np.array([rng.permutation(m) + 1 for _ in range(5)])
    score_RM = rng.normal(size=(5, m))
    for rank, score, concordance, rho in zip(
        rank_RM, score_RM, pair_concordance(rank_RM, score_RM), order_spearman(rank_RM, score_RM), strict=True
    ):
        assert 2 * concordance - 1 == pytest.approx(kendalltau(-rank, score).statistic, abs=1e-12)
        assert rho == pytest.approx(spearmanr(-rank, score).statistic, abs=1e-12)
    # a monotone change of the scores changes nothing, turning them round turns concordance round
    assert pair_concordance(rank_RM, np.exp(score_RM)).tolist() == pair_concordance(rank_RM, score_RM).tolist()
    assert pair_concordance(rank_RM, -score_RM) == pytest.approx(1 - pair_concordance(rank_RM, score_RM))


def test_tied_and_missing_scores_decide_nothing_that_they_cannot():
    rank_RM = np.array([[1, 2, 3]] * 3)
    score_RM = np.array([[0.5, 0.5, 0.1], [0.5, np.nan, 0.1], [0.5, 0.5, 0.5]])
    assert np.isnan(order_accepted(rank_RM, score_RM)).all()
    assert pair_concordance(rank_RM, score_RM)[:2].tolist() == [1, 1]
    assert np.isnan(pair_concordance(rank_RM, score_RM)[2])
    rho = order_spearman(rank_RM, score_RM)
    assert rho[0] == pytest.approx(spearmanr([3, 2, 1], score_RM[0]).statistic)
    assert np.isnan(rho[1:]).all()


def test_ceilings_counted_by_hand():
    # Item 0: A A B. The others of an A are {A, B}: 1/2; of the B {A, A}: 0. Item 1: one person: nothing to say.
    rank_RM = ORDERS[[0, 0, 3, 5]]
    found = order_consistency(rank_RM, np.array([0, 0, 0, 1]))
    assert found.left_out_R[:3].tolist() == [0.5, 0.5, 0]
    assert np.isnan(found.left_out_R[3])
    assert found.best_R.tolist() == [1, 1, 0, 1]
    assert found.pair_share_I[0] == pytest.approx(1 / 3)
    assert np.isnan(found.pair_share_I[1])
    assert found.pair_agreement == pytest.approx(1 / 3)


def test_no_fixed_order_reaches_more_than_the_upper_bound():
    rng = np.random.default_rng(3)
    rank_RM = ORDERS[rng.choice(6, 40, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])]
    item_R = np.repeat(np.arange(4), 10)
    best = order_consistency(rank_RM, item_R).best_R.mean()
    reachable = [
        np.mean([max((own == order).all(axis=1).mean() for order in ORDERS)])
        for own in (rank_RM[item_R == i] for i in range(4))
    ]
    assert best == pytest.approx(np.mean(reachable))
    assert order_consistency(rank_RM, item_R).left_out_R.mean() <= best


@pytest.mark.parametrize(
    ("ranks", "scores", "said"),
    [
        ([[1, 2, 2]], [[1.0, 2, 3]], "judgment 0 are \\[1, 2, 2\\]; each of 1 … 3"),
        ([[1, 2]], [[1.0, 2, 3]], "got shapes \\(1, 2\\) and \\(1, 3\\)"),
    ],
)
def test_what_is_no_order_is_refused(ranks, scores, said):
    with pytest.raises(ValueError, match=said):
        order_accepted(np.array(ranks), np.array(scores))
