"""What a simulation is given, checked: features or their Gram matrix, and the sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SNAP = 1e-9
NORM_SLACK = 1e-6  # float32 features that were scaled to norm 1 are longer by rounding


@dataclass(frozen=True)
class Sessions:
    """Checked sessions: (S, T) images and correct actions as int64, coins as float64, all C-contiguous."""

    order_ST: np.ndarray
    correct_ST: np.ndarray
    coins_ST: np.ndarray


def checked_features(features_ND: Any) -> np.ndarray:
    """(N, D) float64 features of norm ≤ 1; squared norms within 1e-9 of 1 are snapped to 1.

    Raises:
        ValueError: On other shapes, values that are not finite, or longer features.
    """
    x_ND = np.array(features_ND, dtype=np.float64)
    if x_ND.ndim != 2 or not x_ND.size:
        raise ValueError(f"features_ND must be a filled (images, features) array, got shape {x_ND.shape}")
    bad = np.flatnonzero(~np.isfinite(x_ND).all(1))
    if len(bad):
        raise ValueError(f"features_ND holds NaN or infinite values in {len(bad)} row(s), first in row {bad[0]}")
    squared_N = np.einsum("nd,nd->n", x_ND, x_ND)
    _refuse_long(squared_N, "features_ND")
    snapped = (np.abs(squared_N - 1) < SNAP) & (squared_N != 1)
    x_ND[snapped] /= np.sqrt(squared_N[snapped])[:, None]
    return x_ND


def checked_gram(gram_NN: Any) -> np.ndarray:
    """(N, N) float64 Gram matrix of features of norm ≤ 1, with K_ii snapped to exactly 1 where it is within 1e-9 of 1.

    Where a repeated image has norm 1, its preference after an update is 1 but for rounding, which would decide whether
    the hinge and MAE rules update; see `update_rules`.

    Raises:
        ValueError: When it is not square, symmetric and finite, or a diagonal value lies outside [0, 1].
    """
    K_NN = np.array(gram_NN, dtype=np.float64, order="C")
    if K_NN.ndim != 2 or K_NN.shape[0] != K_NN.shape[1] or not K_NN.size:
        raise ValueError(f"gram_NN must be a filled square matrix, got shape {K_NN.shape}")
    if not np.isfinite(K_NN).all():
        raise ValueError(f"gram_NN holds NaN or infinite values, first in row {np.argwhere(~np.isfinite(K_NN))[0, 0]}")
    if np.abs(K_NN - K_NN.T).max() > 1e-6:
        raise ValueError("gram_NN must be symmetric: gram_NN[i, j] is the inner product of images i and j")
    diagonal_N = K_NN.diagonal()
    if diagonal_N.min() < 0:
        raise ValueError(f"gram_NN has a negative diagonal value at {diagonal_N.argmin()}: {diagonal_N.min()}")
    _refuse_long(diagonal_N, "gram_NN")
    snapped = np.flatnonzero(np.abs(diagonal_N - 1) < SNAP)
    K_NN[snapped, snapped] = 1.0
    return K_NN


def _refuse_long(squared_N: np.ndarray, what: str) -> None:
    longest = int(squared_N.argmax())
    if squared_N[longest] > (1 + NORM_SLACK) ** 2:
        raise ValueError(
            f"{what}: image {longest} has norm {np.sqrt(squared_N[longest]):.6g}, and the update rules are stable for "
            "norms up to 1 only; centre and scale the features first (humanlike.learners.calibrate)"
        )


def checked_orders(
    order_ST: Any, correct_action_ST: Any, num_images: int, num_choices: int, rewards: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """(S, T) int64 images and correct actions.

    Raises:
        ValueError: On ragged or unequal shapes, indices out of range, fewer than 2 actions, or rewards outside [-1, 1].
        TypeError: When indices are not whole numbers.
    """
    if not 2 <= num_choices <= 127:
        raise ValueError(f"num_choices must lie in 2 … 127, got {num_choices}")
    if len(rewards) != 2 or not all(-1 <= r <= 1 for r in rewards):
        raise ValueError(f"rewards must be two numbers in [-1, 1], of a correct and of a wrong choice, got {rewards}")
    order_ST = _whole(order_ST, "order_ST", num_images, "image")
    correct_ST = _whole(correct_action_ST, "correct_action_ST", num_choices, "action")
    if order_ST.shape != correct_ST.shape:
        raise ValueError(
            "order_ST and correct_action_ST must have one shape (sessions, trials), "
            f"got {order_ST.shape} and {correct_ST.shape}"
        )
    return order_ST, correct_ST


def checked_sessions(
    order_ST: Any,
    correct_action_ST: Any,
    coins_ST: Any,
    num_images: int,
    num_choices: int,
    rewards: tuple[float, float],
    alpha: float,
) -> Sessions:
    """Sessions as `simulate_sessions` takes them.

    Raises:
        ValueError: As `checked_orders`; on coins outside [0, 1) or of another shape; on α outside [0, 1].
        TypeError: When indices are not whole numbers.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must lie in [0, 1], got {alpha}")
    order_ST, correct_ST = checked_orders(order_ST, correct_action_ST, num_images, num_choices, rewards)
    coins_ST = np.ascontiguousarray(_rectangular(coins_ST, "coins_ST"), dtype=np.float64)
    if coins_ST.shape != order_ST.shape:
        raise ValueError(f"coins_ST must have the shape of order_ST, {order_ST.shape}, got {coins_ST.shape}")
    if coins_ST.size and not (coins_ST.min() >= 0 and coins_ST.max() < 1):
        raise ValueError("coins_ST must lie in [0, 1)")
    return Sessions(order_ST, correct_ST, coins_ST)


def _rectangular(values: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: all sessions must have the same number of trials") from error
    if array.ndim != 2 or array.dtype == object:
        raise ValueError(f"{name} must be a (sessions, trials) array, got shape {array.shape} of {array.dtype}")
    return array


def _whole(values: Any, name: str, limit: int, what: str) -> np.ndarray:
    array = _rectangular(values, name)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers ({what} indices), got {array.dtype}")
    if array.size and (array.min() < 0 or array.max() >= limit):
        s, t = np.argwhere((array < 0) | (array >= limit))[0]
        raise ValueError(
            f"{name} must hold {what} indices 0 … {limit - 1}, got {array[s, t]} in session {s}, trial {t}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)
