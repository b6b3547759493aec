"""Simulated sessions of the decision stage: all sessions of a subtask and all rules together.

The choices equal those of the direct simulation with weight vectors in float64, trial by trial (`direct`). Nothing is
drawn here: image orders, correct actions and coins come in (`sessions` draws them), so that models and rules can be
compared on the very same sessions.

Axes: S sessions, T trials, N images of the subtask, R rules, D features.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from humanlike.learners.checks import Sessions, checked_features, checked_gram, checked_sessions
from humanlike.learners.update_rules import (
    ExemplarRule,
    LinearRule,
    PrototypeRule,
    ReinforceRule,
    UpdateRule,
    resolve_rule,
)


def simulate_sessions(
    features_ND: np.ndarray,
    order_ST: np.ndarray,
    correct_action_ST: np.ndarray,
    coins_ST: np.ndarray,
    rule: str | UpdateRule,
    alpha: float = 1.0,
    num_choices: int = 2,
    *,
    rewards: tuple[float, float] = (1.0, -1.0),
    device: str | None = None,
) -> np.ndarray:
    """Choices of one rule in every session, (S, T) int64 in 0 … num_choices - 1.

    Args:
        features_ND: (N, D) features of norm ≤ 1 (see `calibrate`); squared norms within 1e-9 of 1 count as exactly 1.
        order_ST: (S, T) index of the image shown on every trial.
        correct_action_ST: (S, T) the action that is correct on every trial.
        coins_ST: (S, T) numbers in [0, 1) that break exact ties: of m tied actions number ⌊u·m⌋ is chosen.
        rule: A name ("square", "perceptron", "hinge", "mae", "exponential", "cross_entropy", "reinforce", "exemplar",
            "prototype") or an `UpdateRule`.
        alpha: Learning rate in [0, 1]; the exemplar and prototype rules have none.
        num_choices: Number of actions.
        rewards: Reward of a correct and of a wrong choice, in [-1, 1].
        device: None: compiled code on the CPU. Otherwise batched torch tensors on this device.

    Raises:
        ValueError: On bad features, indices out of range, shapes that differ, or an unknown rule.
        TypeError: When indices are not whole numbers.

    References:
        Lee and DiCarlo, "Baseline model family", Table 1.

    Example:
        >>> x_ND = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> order_ST, correct_ST = np.array([[0, 1, 0, 1]]), np.array([[0, 1, 0, 1]])
        >>> simulate_sessions(x_ND, order_ST, correct_ST, np.full((1, 4), 0.7), "square").tolist()
        [[1, 1, 0, 1]]
    """
    x_ND = checked_features(features_ND)
    choices_RST = simulate_gram(
        x_ND @ x_ND.T, order_ST, correct_action_ST, coins_ST, [rule], alpha, num_choices, rewards=rewards, device=device
    )
    return choices_RST[0].astype(np.int64)


def simulate_gram(
    gram_NN: np.ndarray,
    order_ST: np.ndarray,
    correct_action_ST: np.ndarray,
    coins_ST: np.ndarray,
    rules: Sequence[str | UpdateRule],
    alpha: float = 1.0,
    num_choices: int = 2,
    *,
    rewards: tuple[float, float] = (1.0, -1.0),
    device: str | None = None,
) -> np.ndarray:
    """Choices of several rules on the same sessions, (R, S, T) int8, from the inner products of the images alone.

    Args:
        gram_NN: (N, N) inner products of the images' calibrated features; diagonal values within 1e-9 of 1 are snapped.
        order_ST: See `simulate_sessions`, as the other arguments.
        correct_action_ST: (S, T).
        coins_ST: (S, T).
        rules: Names or rules.
        alpha: Learning rate.
        num_choices: Number of actions.
        rewards: Reward of a correct and of a wrong choice.
        device: None or a torch device.

    Raises:
        ValueError: As `simulate_sessions`.
        TypeError: As `simulate_sessions`.
    """
    K_NN = checked_gram(gram_NN)
    sessions = checked_sessions(order_ST, correct_action_ST, coins_ST, len(K_NN), num_choices, rewards, alpha)
    resolved = [resolve_rule(rule) for rule in rules]
    if not resolved:
        raise ValueError("rules is empty; name at least one update rule")
    if device is not None:
        from humanlike.learners.batched import simulate_batched

        return simulate_batched(K_NN, sessions, resolved, alpha, num_choices, rewards, device)
    return _simulate_compiled(K_NN, sessions, resolved, alpha, num_choices, rewards)


def _simulate_compiled(
    gram_NN: np.ndarray,
    sessions: Sessions,
    rules: Sequence[UpdateRule],
    alpha: float,
    num_choices: int,
    rewards: tuple[float, float],
) -> np.ndarray:
    """Rules that sum over inner products run together, an exemplar rule over its own similarities."""
    from humanlike.learners import kernels

    choices_RST = np.empty((len(rules), *sessions.order_ST.shape), dtype=np.int8)
    for matrix_NN, members in matrices(gram_NN, rules):
        trials = [_compiled_trial(rules[r]) for r in members]
        choices_RST[members] = kernels.simulate(matrix_NN, sessions, trials, num_choices, rewards, alpha)
    return choices_RST


def matrices(gram: Any, rules: Sequence[UpdateRule]) -> list[tuple[Any, list[int]]]:
    """The matrices that preferences are sums over, each with the places of its rules; an array or a tensor."""
    linear = [r for r, rule in enumerate(rules) if not isinstance(rule, ExemplarRule)]
    own = [
        (rule.similarity(squared_distances(gram)), [r])
        for r, rule in enumerate(rules)
        if isinstance(rule, ExemplarRule)
    ]
    return ([(gram, linear)] if linear else []) + own


def squared_distances(gram_NN: Any) -> Any:
    """max(K_ii + K_jj - 2 K_ij, 0), (N, N) squared distances of an array or a tensor of inner products."""
    diagonal_N = gram_NN.diagonal()
    return (diagonal_N[:, None] + diagonal_N[None, :] - 2 * gram_NN).clip(min=0)


@singledispatch
def _compiled_trial(rule: UpdateRule) -> Any:
    """The compiled trial of the rule's kind, with what is the rule's own (`kernels.Trial`)."""
    raise TypeError(
        f"there is no compiled simulation of a {type(rule).__name__}; use humanlike.learners.simulate_direct"
    )


@_compiled_trial.register
def _linear(rule: LinearRule) -> Any:
    from humanlike.learners import kernels, trials

    return kernels.Trial(trials.linear.address, trials.compiled_step(rule.step).address, float(rule.norm_cap))


@_compiled_trial.register
def _reinforce(rule: ReinforceRule) -> Any:
    from humanlike.learners import kernels, trials

    return kernels.Trial(trials.reinforce.address)


@_compiled_trial.register
def _exemplar(rule: ExemplarRule) -> Any:
    from humanlike.learners import kernels, trials

    return kernels.Trial(trials.exemplar.address, parameter=float(rule.gamma))


@_compiled_trial.register
def _prototype(rule: PrototypeRule) -> Any:
    from humanlike.learners import kernels, trials

    return kernels.Trial(trials.prototype.address)
