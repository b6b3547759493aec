"""A model's sessions: drawn once for an experiment, simulated for every layer from its inner products.

Array legend: S subtasks, R rules, n sessions of a subtask, T trials, N images of a subtask.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from humanlike.benchmarks.object_learning_conventions import Simulation
from humanlike.data.object_learning import HIGH_VARIATION, ObjectLearningData
from humanlike.interfaces import Learner
from humanlike.learners import (
    SessionDraws,
    UpdateRule,
    draw_high_variation,
    draw_one_shot,
    simulate_gram,
    simulate_learner,
)
from humanlike.rng import address_seed

MOST_KEPT = 128
"""Subtasks whose draws a process keeps: the published experiment under both trial orders, about 1.2 MB each."""


@dataclass
class ModelSessions:
    """Sessions of one experiment, the same for all layers and rules, so that their comparisons are paired.

    Attributes:
        data: The experiment.
        sessions: n, sessions of each subtask.
        seed: Global seed.
        rules: Names of update rules, or rules.
        learners: Name → learner of the user's own, simulated session by session.
        alpha: Learning rate.
        device: None: compiled code on the CPU; otherwise batched tensors on this device.
    """

    data: ObjectLearningData
    sessions: int
    seed: int
    rules: Sequence[str | UpdateRule]
    learners: Mapping[str, Learner] = field(default_factory=dict)
    alpha: float = 1.0
    device: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The R names of rules and learners."""
        return (*(rule if isinstance(rule, str) else rule.name for rule in self.rules), *self.learners)

    def draws(self, subtask: int, trial_order: str) -> SessionDraws:
        """Orders, correct actions and coins of all sessions of a subtask, drawn once in a process."""
        return _kept_draws(*self._addresses[subtask], self.sessions, trial_order)

    def only(self, name: str) -> ModelSessions:
        """The same sessions with one of the rules or learners."""
        one = copy.copy(self)
        one.rules = [rule for rule, own in zip(self.rules, self.names, strict=False) if own == name]
        one.learners = {own: learner for own, learner in self.learners.items() if own == name}
        return one

    @functools.cached_property
    def _addresses(self) -> list[tuple[str, int, str, tuple[int, int], int]]:
        """What the sessions of every subtask are drawn from: the first arguments of `_draws`."""
        sides = [self.data.subtask_rows(s)[1] for s in range(len(self.data.subtasks))]
        return [
            (self.data.experiment, self.seed, name, (int((side_N == 0).sum()), int(side_N.sum())), self.data.num_trials)
            for name, side_N in zip(self.data.subtask_names, sides, strict=True)
        ]

    def simulate(self, grams: Sequence[np.ndarray], simulation: Simulation) -> list[np.ndarray]:
        """Whether every choice was correct.

        Args:
            grams: For every subtask the (N, N) inner products of its calibrated features.
            simulation: Which order of trials.

        Returns:
            S tables (R, n, T) bool.
        """
        return [
            self._correct(gram_NN, self.draws(subtask, simulation.trial_order)) for subtask, gram_NN in enumerate(grams)
        ]

    def one_session(self, subtask: int, session: int, gram_NN: np.ndarray, simulation: Simulation) -> np.ndarray:
        """(R, T) bool of one session, recomputed alone from its address; identical to its row of `simulate`."""
        return self._correct(gram_NN, _draws(*self._addresses[subtask], [session], simulation.trial_order))[:, 0]

    def _correct(self, gram_NN: np.ndarray, draws: SessionDraws) -> np.ndarray:
        parts = []
        if self.rules:
            choices_RST = simulate_gram(
                gram_NN,
                draws.order_ST,
                draws.correct_action_ST,
                draws.coins_ST,
                self.rules,
                alpha=self.alpha,
                device=self.device,
            )
            parts.append(choices_RST == draws.correct_action_ST)
        for name, learner in self.learners.items():
            seeds = [address_seed(self.seed, "learner", name, int(s)) % 2**31 for s in draws.sessions_S]
            own_ST = simulate_learner(learner, features_of(gram_NN), draws.order_ST, draws.correct_action_ST, seeds)
            parts.append((own_ST == draws.correct_action_ST)[None])
        return np.concatenate(parts)


def _draws(
    experiment: str,
    seed: int,
    name: str,
    num_images: tuple[int, int],
    num_trials: int,
    sessions: int | Sequence[int],
    trial_order: str,
) -> SessionDraws:
    if experiment == HIGH_VARIATION:
        return draw_high_variation(
            seed, name, sessions, num_images=num_images, num_trials=num_trials, trial_order=trial_order
        )
    return draw_one_shot(seed, name, sessions, num_tests=(num_images[0] - 1, num_images[1] - 1))


_kept_draws = functools.lru_cache(maxsize=MOST_KEPT)(_draws)


def has_enough_images(data: ObjectLearningData, trial_order: str) -> bool:
    """Whether sessions without repeated images can be drawn: by "paper_text" all trials may show one object.

    Args:
        data: The experiment; of pairs with too few images under a permutation there is none.
        trial_order: See `humanlike.benchmarks.object_learning_conventions.Simulation`.
    """
    if data.experiment != HIGH_VARIATION or trial_order == "permutation":
        return True
    number = data.images.table["category"].value_counts()
    return bool(number[sorted({name for pair in data.subtasks for name in pair})].min() >= data.num_trials)


def features_of(gram_NN: np.ndarray) -> np.ndarray:
    """(N, N) rows whose inner products are the given ones: the images' features, turned into as many axes as images.

    A learner that only adds, compares or takes inner products and distances of images cannot tell them from the
    layer's own features.

    Example:
        >>> x_ND = features_of(np.array([[1.0, 0.6], [0.6, 1.0]]))
        >>> np.round(x_ND @ x_ND.T, 12).tolist()
        [[1.0, 0.6], [0.6, 1.0]]
    """
    value_N, vector_NN = np.linalg.eigh(gram_NN)
    return vector_NN * np.sqrt(np.maximum(value_N, 0.0))
