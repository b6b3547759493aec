"""Learners session by session: the protocol, and a learner of one's own beside ours."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.interfaces import Learner
from humanlike.learners import RULES, DirectLearner, simulate_learner
from humanlike.learners.direct import choose


class NearestExample:
    """A learner of one's own: repeat what was rewarded on the nearest image."""

    def reset(self, seed):
        self.rng, self.seen = np.random.default_rng(seed), []

    def respond(self, x_D):
        nearest = min(self.seen, key=lambda e: np.sum((e[0] - x_D) ** 2), default=None)
        self.last = (x_D, int(self.rng.integers(2)) if nearest is None else nearest[1])
        return self.last[1]

    def give_feedback(self, reward):
        x_D, action = self.last
        self.seen.append((x_D, action if reward > 0 else 1 - action))


def test_learners_fit_the_protocol():
    assert isinstance(DirectLearner("square"), Learner)
    assert isinstance(NearestExample(), Learner)


def test_a_learner_of_ones_own(features, sessions):
    order_ST, correct_ST, _ = sessions()
    choices_ST = simulate_learner(NearestExample(), features(), order_ST, correct_ST, range(20))
    assert choices_ST.shape == order_ST.shape
    for s in range(20):  # an image that was seen before is never wrong again
        for t in range(30):
            if order_ST[s, t] in order_ST[s, :t]:
                assert choices_ST[s, t] == correct_ST[s, t]
    alone_ST = simulate_learner(NearestExample(), features(), order_ST[7:8], correct_ST[7:8], [7])
    np.testing.assert_array_equal(alone_ST[0], choices_ST[7])


@pytest.mark.parametrize("rule", RULES)
def test_direct_learners_forget_and_repeat(features, sessions, rule):
    order_ST, correct_ST, _ = sessions(count=4)
    learner = DirectLearner(rule)
    first = simulate_learner(learner, features(), order_ST, correct_ST, [5, 5, 6, 7])
    np.testing.assert_array_equal(first, simulate_learner(learner, features(), order_ST, correct_ST, [5, 5, 6, 7]))


def test_weights_after_two_trials_by_hand():
    learner = DirectLearner("square", alpha=0.5)
    learner.reset_with_coins([0.9, 0.9])
    x = np.array([0.6, 0.0])
    assert learner.respond(x) == 1
    learner.give_feedback(1.0)
    np.testing.assert_allclose(learner._memory.w_MD, [[0, 0], [0.3, 0]])
    assert learner.respond(x) == 1
    learner.give_feedback(-1.0)
    np.testing.assert_allclose(learner._memory.w_MD, [[0, 0], [0.3 + 0.5 * (-1 - 0.18) * 0.6, 0]])


def test_prototypes_by_hand():
    learner = DirectLearner("prototype")
    learner.reset_with_coins([0.0] * 3)
    for x, reward in (([1.0, 0.0], 1.0), ([0.0, 1.0], 1.0), ([0.0, 0.5], -1.0)):
        learner.respond(np.array(x))
        learner.give_feedback(reward)
    # Choice 0 on an empty memory; [1, 0] has l_0 = -½ against 0 on [0, 1], so 1, rewarded; 1 on [0, .5], wrong.
    np.testing.assert_allclose(learner._memory.mean_MD, [[0.5, 0.25], [0.0, 1.0]])


def test_ties():
    assert [choose(np.array([1.0, 1.0, 0.0, 1.0]), u) for u in (0.0, 0.3, 0.34, 0.7, np.nextafter(1, 0))] == [
        0,
        0,
        1,
        3,
        3,
    ]


@pytest.mark.parametrize("answer", [2, -1, 0.5])
def test_actions_that_do_not_exist(features, sessions, answer):
    class Stubborn:
        def reset(self, seed): ...

        def respond(self, x_D):
            return answer

        def give_feedback(self, reward): ...

    order_ST, correct_ST, _ = sessions()
    with pytest.raises(ValueError, match="in session 0, trial 0; actions are 0 … 1"):
        simulate_learner(Stubborn(), features(), order_ST, correct_ST, range(20))
    with pytest.raises(ValueError, match="one seed a session: 20 sessions, 3 seeds"):
        simulate_learner(Stubborn(), features(), order_ST, correct_ST, range(3))


def test_feedback_out_of_turn_or_range():
    learner = DirectLearner("square")
    with pytest.raises(ValueError, match="call respond first"):
        learner.give_feedback(1.0)
    learner.respond(np.ones(2))
    with pytest.raises(ValueError, match=r"reward must lie in \[-1, 1\], got 2"):
        learner.give_feedback(2.0)
