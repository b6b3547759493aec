"""Draws of sessions: what they hold, how they are distributed, and that each can be drawn alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from humanlike.learners import draw_high_variation, draw_one_shot
from humanlike.learners.sessions import LATE_SUPPORT_TRIALS


@pytest.mark.parametrize("trial_order", ["permutation", "paper_text"])
def test_high_variation_sessions(trial_order):
    draws = draw_high_variation(0, "A,B", 2000, trial_order=trial_order)
    assert draws.order_ST.shape == draws.correct_action_ST.shape == draws.coins_ST.shape == (2000, 100)
    assert all(len(set(row)) == 100 for row in draws.order_ST.tolist())
    assert draws.order_ST.min() == 0
    assert draws.order_ST.max() == 199
    second_ST = draws.order_ST >= 100
    first_action_S = np.where(second_ST, 1 - draws.correct_action_ST, draws.correct_action_ST)
    assert (first_action_S == first_action_S[:, :1]).all()
    assert stats.binomtest(int(first_action_S[:, 0].sum()), 2000).pvalue > 1e-3
    # Images of the second object among 100 trials: hypergeometric by permutation, binomial by fair coins.
    spread = {"permutation": stats.hypergeom(200, 100, 100).std(), "paper_text": stats.binom(100, 0.5).std()}
    count_S = second_ST.sum(1)
    assert count_S.std() == pytest.approx(spread[trial_order], rel=0.07)
    assert count_S.mean() == pytest.approx(50, abs=5 * spread[trial_order] / 2000**0.5)


@pytest.mark.parametrize("trial_order", ["permutation", "paper_text"])
def test_every_image_is_as_likely_on_every_trial(trial_order):
    draws = draw_high_variation(1, 0, 30_000, num_images=(3, 3), num_trials=3, trial_order=trial_order)
    for t in range(3):
        assert stats.chisquare(np.bincount(draws.order_ST[:, t], minlength=6)).pvalue > 1e-4
    pairs = np.bincount(draws.order_ST[:, 0] * 6 + draws.order_ST[:, 1], minlength=36).reshape(6, 6)
    assert (pairs.diagonal() == 0).all()
    if trial_order == "permutation":
        assert stats.chisquare(pairs[~np.eye(6, dtype=bool)]).pvalue > 1e-4
    else:
        same = pairs[:3, :3].sum() + pairs[3:, 3:].sum()
        assert stats.binomtest(int(same), 30_000).pvalue > 1e-4


def test_coins_and_neighbouring_sessions_are_independent_and_uniform():
    coins_ST = draw_high_variation(2, "A,B", 3000).coins_ST
    assert stats.kstest(coins_ST.ravel(), "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(coins_ST[:-1].ravel(), coins_ST[1:].ravel())[0, 1]) < 5 / 300_000**0.5
    assert len(np.unique(coins_ST)) == coins_ST.size


def test_one_shot_sessions():
    draws = draw_one_shot(0, "A,B", 2000)
    assert draws.order_ST.shape == (2000, 20)
    support_ST = draws.order_ST[:, :10]
    np.testing.assert_array_equal(np.sort(support_ST, 1), np.tile([0] * 5 + [1] * 5, (2000, 1)))
    patterns = np.unique(support_ST @ (2 ** np.arange(10)), return_counts=True)[1]
    assert len(patterns) == 252  # 10 over 5
    assert stats.chisquare(patterns).pvalue > 1e-4
    late_ST = draws.order_ST[:, 10:]
    again = np.array(LATE_SUPPORT_TRIALS) - 10
    assert (late_ST[:, again] < 2).all()
    tests_ST = np.delete(late_ST, again, 1)
    assert tests_ST.min() == 2
    assert tests_ST.max() == 121
    assert all(len(set(row)) == 8 for row in tests_ST.tolist())
    assert stats.chisquare(np.bincount(tests_ST.ravel())[2:]).pvalue > 1e-4
    object_ST = np.where(draws.order_ST < 2, draws.order_ST, draws.order_ST >= 62)
    assert stats.binomtest(int(object_ST[:, 10:].sum()), 20_000).pvalue > 1e-4
    first_action_ST = np.where(object_ST == 1, 1 - draws.correct_action_ST, draws.correct_action_ST)
    assert (first_action_ST == first_action_ST[:, :1]).all()


@pytest.mark.parametrize("draw", [draw_high_variation, draw_one_shot])
def test_any_session_can_be_drawn_alone(draw):
    whole = draw(3, "A,B", 50)
    for addresses in ([17], [49, 3, 4, 5, 3], np.arange(20, 30)):
        some = draw(3, "A,B", addresses)
        for name in ("order_ST", "correct_action_ST", "coins_ST"):
            np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[addresses])
        np.testing.assert_array_equal(some.sessions_S, addresses)
    assert (draw(4, "A,B", 50).coins_ST != whole.coins_ST).all()
    assert (draw(3, "A,C", 50).coins_ST != whole.coins_ST).all()
    assert draw(3, "A,B", 0).order_ST.shape[0] == 0


def test_orders_of_trials_share_mapping_and_coins():
    one, other = (draw_high_variation(0, 1, 30, trial_order=order) for order in ("permutation", "paper_text"))
    np.testing.assert_array_equal(one.coins_ST, other.coins_ST)
    first = [np.where(d.order_ST >= 100, 1 - d.correct_action_ST, d.correct_action_ST)[:, 0] for d in (one, other)]
    np.testing.assert_array_equal(*first)


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda: draw_high_variation(0, 0, 5, trial_order="shuffle"), "must be one of permutation, paper_text"),
        (lambda: draw_high_variation(0, 0, 5, num_images=(40, 40)), "as many images in all"),
        (lambda: draw_high_variation(0, 0, 5, num_images=(99, 120), trial_order="paper_text"), "of each object"),
        (lambda: draw_high_variation(0, 0, 5, num_images=(0, 200)), "both objects need images"),
        (lambda: draw_high_variation(0, 0, [-1]), "addresses"),
        (lambda: draw_high_variation(0, 0, [0.5]), "addresses"),
        (lambda: draw_one_shot(0, 0, 5, num_tests=(7, 60)), "at least 8 test images"),
    ],
)
def test_bad_requests(draw, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw()
