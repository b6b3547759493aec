"""Compiled simulation on the CPU: all sessions of a subtask, from the Gram matrix of its images alone.

Every update adds a multiple of a shown image's features to a weight vector, so features enter through their inner
products only. A session keeps a table F[action, image] of the current preferences of all images; an update of action a
by g times image i is F[a, :] += g K[i, :], a contiguous row. Dimensions of the features drop out.

Importing this module compiles the four kernels (about three seconds) or loads them from Numba's cache on disk; they
hold no formula of a linear rule, which comes in as a compiled function. Kernels run on one thread without the
interpreter's lock, so that a pool of threads can simulate several subtasks.

Axes: S sessions, T trials, N images, M actions. Rows of Gram matrices are padded (`padded`).
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from humanlike.learners import update_rules

STEP = numba.types.FunctionType(numba.float64(numba.float64, numba.float64))
_F2, _I2, _F = numba.float64[:, ::1], numba.int64[:, ::1], numba.float64
_SESSIONS = (_F2, _I2, _I2, _F2, _F, _F, numba.int64)  # gram, order, correct, coins, rewards, number of actions
_CHOICES = numba.int8[:, ::1]


@overload(update_rules.exp, strict=False)
def _compiled_exp(x: Any) -> Callable[[Any], Any]:
    """e^x inside compiled code."""
    return lambda x: math.exp(x)


def _compiled(*arguments: Any, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles, and caches on disk where some cache folder is writable."""

    def decorate(function: Callable[..., Any]) -> Any:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        signature = () if inline else (numba.void(*arguments),)
        njit: Any = numba.njit
        try:
            return njit(*signature, cache=True, **options)(function)
        except (RuntimeError, OSError):  # no folder to cache in: compile in every process
            return njit(*signature, **options)(function)

    return decorate


def padded(matrix_NN: np.ndarray) -> np.ndarray:
    """The matrix with zero columns up to a multiple of 16, so that loops over a row have no remainder."""
    return np.ascontiguousarray(np.pad(matrix_NN, ((0, 0), (0, -len(matrix_NN) % 16))))


@functools.lru_cache(maxsize=256)
def compiled_step(step: Callable[[Any, Any], Any]) -> Any:
    """A linear rule's step as a compiled function of two numbers.

    Raises:
        ValueError: When the step cannot be compiled.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", numba.NumbaWarning)
            return numba.cfunc("float64(float64, float64)")(step)
    except (numba.core.errors.NumbaError, TypeError, AttributeError) as error:
        raise ValueError(
            f"the step {getattr(step, '__name__', step)!r} of an update rule cannot be compiled; write it with "
            f"arithmetic, comparisons and humanlike.learners.update_rules.exp, or pass device='cpu': {error}"
        ) from error


@_compiled(inline=True)
def _choose(preference_MN: np.ndarray, i: int, coin: float) -> int:
    """Index of the largest preference in column i; among m exact ties number ⌊coin·m⌋."""
    M = preference_MN.shape[0]
    if M == 2 and preference_MN[0, i] != preference_MN[1, i]:
        return int(preference_MN[1, i] > preference_MN[0, i])
    best, action, ties = preference_MN[0, i], 0, 1
    for b in range(1, M):
        if preference_MN[b, i] > best:
            best, action, ties = preference_MN[b, i], b, 1
        elif preference_MN[b, i] == best:
            ties += 1
    left = min(int(coin * ties), ties - 1)
    while left > 0:
        action += 1
        left -= preference_MN[action, i] == best
    return action


@_compiled(inline=True)
def _add(table_N: np.ndarray, factor: float, row_N: np.ndarray) -> None:
    for j in range(table_N.shape[0]):
        table_N[j] += factor * row_N[j]


@_compiled(*_SESSIONS, _F, _F, STEP, _CHOICES)
def linear(
    gram_NN: np.ndarray,
    order_ST: np.ndarray,
    correct_ST: np.ndarray,
    coins_ST: np.ndarray,
    right: float,
    wrong: float,
    num_choices: int,
    alpha: float,
    cap: float,
    step: Any,
    choices_ST: np.ndarray,
) -> None:
    """Sessions of a rule that moves the chosen action's weights; fills `choices_ST`.

    The squared norm of all weights follows from ‖W + g x‖² = ‖W‖² + 2 g l_a + g² K_ii; above the cap the whole table
    is scaled back, as the weights would be.
    """
    F_MN = np.empty((num_choices, gram_NN.shape[1]))
    capped = cap < np.inf
    for s in range(order_ST.shape[0]):
        F_MN[:] = 0.0
        squared_norm = 0.0
        for t in range(order_ST.shape[1]):
            i = order_ST[s, t]
            if num_choices == 2 and F_MN[0, i] != F_MN[1, i]:
                # The common case without a branch on the choice, which would be mispredicted on half of the trials.
                a, own = int(F_MN[1, i] > F_MN[0, i]), max(F_MN[0, i], F_MN[1, i])
            else:
                a = _choose(F_MN, i, coins_ST[s, t])
                own = F_MN[a, i]
            choices_ST[s, t] = a
            g = alpha * step(right if a == correct_ST[s, t] else wrong, own)
            if g != 0.0:
                F_N, K_N = F_MN[a], gram_NN[i]
                for j in range(F_N.shape[0]):  # written out: faster than a call
                    F_N[j] += g * K_N[j]
                if capped:
                    squared_norm += 2.0 * g * own + g * g * gram_NN[i, i]
                    if squared_norm > cap * cap:
                        F_MN *= cap / np.sqrt(squared_norm)
                        squared_norm = cap * cap


@_compiled(*_SESSIONS, _F, _CHOICES)
def reinforce(
    gram_NN: np.ndarray,
    order_ST: np.ndarray,
    correct_ST: np.ndarray,
    coins_ST: np.ndarray,
    right: float,
    wrong: float,
    num_choices: int,
    alpha: float,
    choices_ST: np.ndarray,
) -> None:
    """Sessions of the policy gradient, which moves every action's weights; fills `choices_ST`."""
    F_MN = np.empty((num_choices, gram_NN.shape[1]))
    preference_M = np.empty(num_choices)
    for s in range(order_ST.shape[0]):
        F_MN[:] = 0.0
        for t in range(order_ST.shape[1]):
            i = order_ST[s, t]
            for b in range(num_choices):
                preference_M[b] = F_MN[b, i]
            a = _choose(F_MN, i, coins_ST[s, t])
            choices_ST[s, t] = a
            reward = right if a == correct_ST[s, t] else wrong
            largest, total = F_MN[a, i], 0.0
            for b in range(num_choices):
                preference_M[b] = 1.0 if b == a else math.exp(preference_M[b] - largest)
                total += preference_M[b]
            K_N = gram_NN[i]
            for b in range(num_choices):
                g, F_N = alpha * reward * ((1.0 if b == a else 0.0) - preference_M[b] / total), F_MN[b]
                for j in range(F_N.shape[0]):
                    F_N[j] += g * K_N[j]


@_compiled(inline=True)
def _inferred(action: int, reward: float, num_choices: int) -> int:
    """See `update_rules.inferred_action`."""
    if reward > 0:
        return action
    return 1 - action if num_choices == 2 else -1


@_compiled(*_SESSIONS, _F, _CHOICES)
def exemplar(
    similarity_NN: np.ndarray,
    order_ST: np.ndarray,
    correct_ST: np.ndarray,
    coins_ST: np.ndarray,
    right: float,
    wrong: float,
    num_choices: int,
    gamma: float,
    choices_ST: np.ndarray,
) -> None:
    """Sessions of the exemplar rule: F[a, :] sums the similarities to what is stored under a; fills `choices_ST`."""
    F_MN = np.empty((num_choices, similarity_NN.shape[1]))
    preference_M = np.empty(num_choices)
    for s in range(order_ST.shape[0]):
        F_MN[:] = 0.0
        for t in range(order_ST.shape[1]):
            i, coin = order_ST[s, t], coins_ST[s, t]
            for b in range(num_choices):
                preference_M[b] = F_MN[b, i]
            largest = preference_M.max()
            if gamma == np.inf or largest <= 0.0:
                a = _choose(F_MN, i, coin)
            else:
                total = 0.0
                for b in range(num_choices):
                    total += (preference_M[b] / largest) ** gamma
                    preference_M[b] = total
                a = 0
                while a < num_choices - 1 and coin * total >= preference_M[a]:
                    a += 1
            choices_ST[s, t] = a
            b = _inferred(a, right if a == correct_ST[s, t] else wrong, num_choices)
            if b >= 0:
                _add(F_MN[b], 1.0, similarity_NN[i])


@_compiled(*_SESSIONS, _CHOICES)
def prototype(
    gram_NN: np.ndarray,
    order_ST: np.ndarray,
    correct_ST: np.ndarray,
    coins_ST: np.ndarray,
    right: float,
    wrong: float,
    num_choices: int,
    choices_ST: np.ndarray,
) -> None:
    """Sessions of the prototype rule; fills `choices_ST`.

    F[a, i] = s_a[i] = Σ_j K_ij over the n_a images of a, and q_a = ΣΣ K_jk, so that the mean's inner product with
    image i is s_a[i]/n_a and its squared norm q_a/n_a².
    """
    F_MN = np.empty((num_choices, gram_NN.shape[1]))
    preference_M1, count_M, q_M = np.empty((num_choices, 1)), np.empty(num_choices), np.empty(num_choices)
    for s in range(order_ST.shape[0]):
        F_MN[:] = 0.0
        count_M[:] = 0.0
        q_M[:] = 0.0
        for t in range(order_ST.shape[1]):
            i = order_ST[s, t]
            for b in range(num_choices):
                n = max(count_M[b], 1.0)
                preference_M1[b, 0] = F_MN[b, i] / n - q_M[b] / (2.0 * n * n)
            a = _choose(preference_M1, 0, coins_ST[s, t])
            choices_ST[s, t] = a
            b = _inferred(a, right if a == correct_ST[s, t] else wrong, num_choices)
            if b >= 0:
                q_M[b] += 2.0 * F_MN[b, i] + gram_NN[i, i]
                count_M[b] += 1.0
                _add(F_MN[b], 1.0, gram_NN[i])
