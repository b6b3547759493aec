"""Simulated people of an object learning experiment: a known learner on known features, with lapses.

A lapse replaces what a person reports by a fair coin; what is learned from the trial is unchanged. So the mean accuracy
of such people is exactly (1 - γ) p + γ/2 of the learner's p, the form of the lapse correction that models are given.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from humanlike.data.object_learning import (
    CATCH_POSITIONS,
    HIGH_VARIATION,
    ObjectLearningData,
    PeopleSessions,
    SimulatedPeople,
)
from humanlike.learners import SessionDraws, draw_high_variation, draw_one_shot, simulate_gram
from humanlike.rng import address_seed, generator


def simulate_people(data: ObjectLearningData, gram_of: Callable[[int], np.ndarray]) -> PeopleSessions:
    """The sessions that the recipe in `data.people` describes.

    Person k does session k of every subtask. Orders, mappings and coins come from the recipe's seed under an address of
    their own, so they are never those of a model's sessions.

    Args:
        data: An experiment whose `people` is a `SimulatedPeople`.
        gram_of: Subtask → (N, N) inner products of its images on the true encoding stage, calibrated, in the order of
            `data.subtask_rows`.

    Returns:
        The sessions, subtask by subtask, with `simulated=True`.

    Raises:
        TypeError: When there is no recipe.
        ValueError: When a Gram matrix does not fit its subtask.
    """
    truth = data.people
    if not isinstance(truth, SimulatedPeople):
        raise TypeError(f"{data.name}: people must be a SimulatedPeople to be simulated, got {type(truth).__name__}")
    correct, image = [], []
    for subtask in range(len(data.subtasks)):
        rows_N, side_N = data.subtask_rows(subtask)
        gram_NN = gram_of(subtask)
        if gram_NN.shape != (len(rows_N), len(rows_N)):
            raise ValueError(
                f"{data.name}: the Gram matrix of subtask {data.subtask_names[subtask]} has the shape {gram_NN.shape} "
                f"for {len(rows_N)} images"
            )
        draws = _draws(data, truth, subtask, side_N)
        correct.append(_correct(truth, draws, gram_NN, data.subtask_names[subtask]))
        image.append(rows_N[draws.order_ST])
    image_ST = np.concatenate(image)
    late_ST = np.zeros(image_ST.shape, bool)
    if data.experiment != HIGH_VARIATION:
        late_ST[:, list(CATCH_POSITIONS)] = True
    return PeopleSessions(
        correct_ST=np.concatenate(correct),
        subtask_S=np.repeat(np.arange(len(data.subtasks)), truth.sessions),
        participant_S=np.tile([f"simulated-{k:03d}" for k in range(truth.sessions)], len(data.subtasks)),
        image_ST=image_ST,
        condition_ST=data.condition_rows()[image_ST],
        catch_ST=late_ST,
        simulated=True,
    )


def _draws(data: ObjectLearningData, truth: SimulatedPeople, subtask: int, side_N: np.ndarray) -> SessionDraws:
    seed, name = address_seed(truth.seed, "simulated people"), data.subtask_names[subtask]
    first, second = (int((side_N == side).sum()) for side in (0, 1))
    if data.experiment == HIGH_VARIATION:
        return draw_high_variation(seed, name, truth.sessions, num_images=(first, second), num_trials=data.num_trials)
    return draw_one_shot(seed, name, truth.sessions, num_tests=(first - 1, second - 1))


def _correct(truth: SimulatedPeople, draws: SessionDraws, gram_NN: np.ndarray, name: str) -> np.ndarray:
    """(S, T) int8: the learner's correct choices, and fair coins where a person lapses."""
    choices_ST = simulate_gram(
        gram_NN, draws.order_ST, draws.correct_action_ST, draws.coins_ST, [truth.rule], alpha=truth.alpha
    )[0]
    learned_ST = choices_ST == draws.correct_action_ST
    random = generator(truth.seed, "simulated people", "lapses", name)
    u_S2T = random.random((len(learned_ST), 2, learned_ST.shape[1]))
    return np.where(u_S2T[:, 0] < truth.lapse, u_S2T[:, 1] < 0.5, learned_ST).astype(np.int8)
