"""Learners as they are defined, with weight vectors or stored images, one session at a time.

Plain and readable rather than fast: the fast simulations must give the same choices. `DirectLearner` is also the
pattern for a learner of one's own (`humanlike.interfaces.Learner`), which `simulate_learner` runs in the same way.

Axes: S sessions, T trials, N images, M actions, D features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Protocol

import numpy as np

from humanlike.interfaces import Learner
from humanlike.learners.checks import checked_features, checked_orders, checked_sessions
from humanlike.learners.update_rules import (
    ExemplarRule,
    LinearRule,
    PrototypeRule,
    ReinforceRule,
    UpdateRule,
    inferred_action,
    resolve_rule,
)
from humanlike.rng import generator


def choose(preference_M: np.ndarray, coin: float) -> int:
    """Index of the largest preference; among m exact ties number ⌊coin·m⌋.

    Example:
        >>> choose(np.array([0.0, 1.0, 1.0]), coin=0.6)
        2
    """
    tied = np.flatnonzero(preference_M == preference_M.max())
    return int(tied[min(int(coin * len(tied)), len(tied) - 1)])


class Memory(Protocol):
    """What a rule has learned in a session so far."""

    def preferences(self, x_D: np.ndarray) -> np.ndarray:
        """(M,) preferences for an image."""

    def choose(self, preference_M: np.ndarray, coin: float) -> int:
        """The action taken."""

    def learn(self, x_D: np.ndarray, preference_M: np.ndarray, action: int, reward: float) -> None:
        """Take in the reward of an action."""


class WeightVectors:
    """Weight vectors (M, D) that start at zero, moved by a linear rule or by REINFORCE."""

    def __init__(self, rule: LinearRule | ReinforceRule, num_choices: int, num_features: int, alpha: float) -> None:
        self.rule, self.alpha = rule, alpha
        self.w_MD = np.zeros((num_choices, num_features))

    def preferences(self, x_D: np.ndarray) -> np.ndarray:
        """W x."""
        # One dot product a row: a matrix product may sum rows in different orders, and equal weights would not tie.
        return np.array([w_D @ x_D for w_D in self.w_MD])

    def choose(self, preference_M: np.ndarray, coin: float) -> int:
        """See `choose`."""
        return choose(preference_M, coin)

    def learn(self, x_D: np.ndarray, preference_M: np.ndarray, action: int, reward: float) -> None:
        """Move the weights of the chosen action, or of all; then keep their norm below the rule's cap."""
        if isinstance(self.rule, ReinforceRule):
            self.w_MD += self.alpha * np.outer(self.rule.steps(reward, preference_M, action), x_D)
            return
        self.w_MD[action] += self.alpha * float(self.rule.step(reward, float(preference_M[action]))) * x_D
        norm = float(np.linalg.norm(self.w_MD)) if np.isfinite(self.rule.norm_cap) else 0.0
        if norm > self.rule.norm_cap:
            self.w_MD *= self.rule.norm_cap / norm


class Exemplars:
    """Images stored under the actions that they were inferred to belong to."""

    def __init__(self, rule: ExemplarRule, num_choices: int) -> None:
        self.rule = rule
        self.stored: list[list[np.ndarray]] = [[] for _ in range(num_choices)]

    def preferences(self, x_D: np.ndarray) -> np.ndarray:
        """Summed similarity to the exemplars of each action."""
        return np.array([self._similarity(x_D, exemplars) for exemplars in self.stored])

    def _similarity(self, x_D: np.ndarray, exemplars: list[np.ndarray]) -> float:
        if not exemplars:
            return 0.0
        return float(self.rule.similarity(np.square(np.stack(exemplars) - x_D).sum(1)).sum())

    def choose(self, preference_M: np.ndarray, coin: float) -> int:
        """Argmax for infinite γ and while nothing is stored, else a draw with probabilities ∝ E^γ."""
        if np.isinf(self.rule.gamma) or preference_M.max() <= 0:
            return choose(preference_M, coin)
        weight_M = (preference_M / preference_M.max()) ** self.rule.gamma
        return min(int((coin >= np.cumsum(weight_M) / weight_M.sum()).sum()), len(weight_M) - 1)

    def learn(self, x_D: np.ndarray, preference_M: np.ndarray, action: int, reward: float) -> None:
        """Store the image under the action inferred to be correct, if there is one."""
        correct = inferred_action(action, reward, len(self.stored))
        if correct >= 0:
            self.stored[correct].append(x_D)


class Prototypes:
    """Running means of the images of each action."""

    def __init__(self, num_choices: int, num_features: int) -> None:
        self.mean_MD = np.zeros((num_choices, num_features))
        self.count_M = np.zeros(num_choices, dtype=np.int64)

    def preferences(self, x_D: np.ndarray) -> np.ndarray:
        """l_a = x·μ_a - ½‖μ_a‖²."""
        return self.mean_MD @ x_D - 0.5 * np.square(self.mean_MD).sum(1)

    def choose(self, preference_M: np.ndarray, coin: float) -> int:
        """See `choose`."""
        return choose(preference_M, coin)

    def learn(self, x_D: np.ndarray, preference_M: np.ndarray, action: int, reward: float) -> None:
        """Move the mean of the action inferred to be correct, if there is one."""
        correct = inferred_action(action, reward, len(self.count_M))
        if correct >= 0:
            self.count_M[correct] += 1
            self.mean_MD[correct] += (x_D - self.mean_MD[correct]) / self.count_M[correct]


@singledispatch
def empty_memory(rule: UpdateRule, num_choices: int, num_features: int, alpha: float) -> Memory:
    """The memory of a rule before the first trial; register a function for a kind of rule of one's own."""
    raise TypeError(
        f"there is no direct simulation of a {type(rule).__name__}; register one with empty_memory.register"
    )


@empty_memory.register(LinearRule)
@empty_memory.register(ReinforceRule)
def _weights(rule: LinearRule | ReinforceRule, num_choices: int, num_features: int, alpha: float) -> Memory:
    return WeightVectors(rule, num_choices, num_features, alpha)


@empty_memory.register
def _exemplars(rule: ExemplarRule, num_choices: int, num_features: int, alpha: float) -> Memory:
    return Exemplars(rule, num_choices)


@empty_memory.register
def _prototypes(rule: PrototypeRule, num_choices: int, num_features: int, alpha: float) -> Memory:
    return Prototypes(num_choices, num_features)


class DirectLearner:
    """A decision stage as a `Learner`: it responds to features, hears rewards, and forgets at `reset`.

    Args:
        rule: Name of an update rule, or an `UpdateRule`.
        alpha: Learning rate in [0, 1].
        num_choices: Number of actions, ≥ 2.

    Example:
        >>> learner = DirectLearner("square")
        >>> learner.reset(seed=0)
        >>> first = learner.respond(np.array([1.0, 0.0]))
        >>> learner.give_feedback(1.0)
        >>> learner.respond(np.array([1.0, 0.0])) == first
        True
    """

    def __init__(self, rule: str | UpdateRule, alpha: float = 1.0, num_choices: int = 2) -> None:
        self.rule, self.alpha, self.num_choices = resolve_rule(rule), alpha, num_choices
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Forget everything; coins for ties come from the seed, one a trial."""
        coins = generator(seed, "learner", "coins")
        self._start(iter(coins.random, None))

    def reset_with_coins(self, coins_T: Sequence[float] | np.ndarray) -> None:
        """Forget everything; coins for ties are given, one a trial."""
        self._start(iter([float(coin) for coin in coins_T]))

    def _start(self, coins: Iterator[float]) -> None:
        self._coins = coins
        self._memory: Memory | None = None
        self._last: tuple[np.ndarray, np.ndarray, int] | None = None

    def respond(self, x_D: np.ndarray) -> int:
        """Choose an action for the image with features `x_D`."""
        x_D = np.asarray(x_D, dtype=np.float64)
        if self._memory is None:
            self._memory = empty_memory(self.rule, self.num_choices, len(x_D), self.alpha)
        preference_M = self._memory.preferences(x_D)
        action = self._memory.choose(preference_M, next(self._coins))
        self._last = (x_D, preference_M, action)
        return action

    def give_feedback(self, reward: float) -> None:
        """Hear the reward of the last choice, in [-1, 1].

        Raises:
            ValueError: When there was no choice, or the reward is out of range.
        """
        if self._last is None or self._memory is None:
            raise ValueError("give_feedback needs a choice to reward; call respond first")
        if not -1 <= reward <= 1:
            raise ValueError(f"a reward must lie in [-1, 1], got {reward}")
        self._memory.learn(*self._last, float(reward))
        self._last = None


def simulate_learner(
    learner: Learner,
    features_ND: np.ndarray,
    order_ST: np.ndarray,
    correct_action_ST: np.ndarray,
    seed_S: Sequence[int] | np.ndarray,
    *,
    num_choices: int = 2,
    rewards: tuple[float, float] = (1.0, -1.0),
) -> np.ndarray:
    """Choices (S, T) int64 of any learner, session by session.

    Args:
        learner: An object with `reset`, `respond` and `give_feedback`.
        features_ND: (N, D) features of the images, as the learner wants them (their norm is not checked).
        order_ST: (S, T) index of the image of every trial.
        correct_action_ST: (S, T) correct action of every trial, 0 … num_choices - 1.
        seed_S: (S,) seeds that `reset` is called with.
        num_choices: Number of actions.
        rewards: Reward of a correct and of a wrong choice, in [-1, 1].

    Raises:
        ValueError: On arguments that do not fit each other, and when the learner gives no valid action.
    """
    features_ND = np.asarray(features_ND)
    if features_ND.ndim != 2 or not np.isfinite(features_ND).all():
        raise ValueError(f"features_ND must be a finite (images, features) array, got shape {features_ND.shape}")
    order_ST, correct_ST = checked_orders(order_ST, correct_action_ST, len(features_ND), num_choices, rewards)
    if len(seed_S) != len(order_ST):
        raise ValueError(f"seed_S must hold one seed a session: {len(order_ST)} sessions, {len(seed_S)} seeds")
    choices_ST = np.empty_like(order_ST)
    for s, (order_T, correct_T) in enumerate(zip(order_ST, correct_ST, strict=True)):
        learner.reset(int(seed_S[s]))
        for t, (image, correct) in enumerate(zip(order_T, correct_T, strict=True)):
            action = learner.respond(features_ND[image])
            if int(action) != action or not 0 <= action < num_choices:
                raise ValueError(
                    f"the learner chose {action!r} in session {s}, trial {t}; actions are 0 … {num_choices - 1}"
                )
            learner.give_feedback(rewards[0] if action == correct else rewards[1])
            choices_ST[s, t] = action
    return choices_ST


def simulate_direct(
    features_ND: np.ndarray,
    order_ST: np.ndarray,
    correct_action_ST: np.ndarray,
    coins_ST: np.ndarray,
    rule: str | UpdateRule,
    alpha: float = 1.0,
    num_choices: int = 2,
    *,
    rewards: tuple[float, float] = (1.0, -1.0),
) -> np.ndarray:
    """Choices (S, T) int64 as `simulate_sessions` gives them, computed with weight vectors: the reference."""
    x_ND = checked_features(features_ND)
    sessions = checked_sessions(order_ST, correct_action_ST, coins_ST, len(x_ND), num_choices, rewards, alpha)
    learner = DirectLearner(rule, alpha, num_choices)
    choices_ST = np.empty_like(sessions.order_ST)
    for s, order_T in enumerate(sessions.order_ST):
        learner.reset_with_coins(sessions.coins_ST[s])
        for t, image in enumerate(order_T):
            choices_ST[s, t] = learner.respond(x_ND[image])
            learner.give_feedback(rewards[0] if choices_ST[s, t] == sessions.correct_ST[s, t] else rewards[1])
    return choices_ST
