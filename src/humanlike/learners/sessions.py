"""Sessions of the two experiments, drawn: image orders, correct actions and coins for ties.

Randomness has an address. The key of a counter-based generator (Philox) comes from the seed, the experiment and the
subtask's name, and every session owns its own range of counters, so that any session can be drawn again alone, on any
number of workers, and is identical; neighbouring sessions are drawn in one call. Draw once and reuse for all models and
rules: comparisons are then paired.

Axes: S sessions, T trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanlike.rng import generator

TRIAL_ORDERS = ("permutation", "paper_text")
SUPPORT_TRIALS = 10
LATE_SUPPORT_TRIALS = (14, 19)  # the 15th and 20th trial show a support image again; the 10th is one of the first ten
ONE_SHOT_TRIALS = 20


@dataclass(frozen=True)
class SessionDraws:
    """What happens in sessions of one subtask, but for the learner.

    Attributes:
        order_ST: (S, T) int64 index of the shown image among the subtask's images (see the function that drew it).
        correct_action_ST: (S, T) int64 correct action, 0 or 1.
        coins_ST: (S, T) float64 in [0, 1) for ties.
        sessions_S: (S,) int64 addresses of the sessions.
    """

    order_ST: np.ndarray
    correct_action_ST: np.ndarray
    coins_ST: np.ndarray
    sessions_S: np.ndarray


def draw_high_variation(
    seed: int,
    subtask: str | int,
    sessions: int | Sequence[int] | np.ndarray = 500,
    *,
    num_images: tuple[int, int] = (100, 100),
    num_trials: int = 100,
    trial_order: str = "permutation",
) -> SessionDraws:
    """Sessions of the experiment with high view variation: every image is new, and a fair mapping object → action.

    Images 0 … n_A - 1 are those of the first object, n_A … n_A + n_B - 1 those of the second. The mapping and the coins
    are the same under both trial orders.

    Args:
        seed: Global seed.
        subtask: Name or number of the subtask; part of the address.
        sessions: Number of sessions (0, 1, …), or the addresses of those wanted.
        num_images: Images of the first and second object.
        num_trials: Trials of a session; part of the address.
        trial_order: "permutation": the first trials of a uniform permutation of all images. "paper_text": the object
            50:50, then one of its images without replacement.

    Raises:
        ValueError: On an unknown order, too few images, or bad addresses.

    References:
        Lee and DiCarlo, "Experiment 1"; the authors' code permutes.

    Example:
        >>> draws = draw_high_variation(0, "A,B", sessions=3, num_images=(4, 4), num_trials=5)
        >>> alone = draw_high_variation(0, "A,B", sessions=[2], num_images=(4, 4), num_trials=5)
        >>> bool((draws.order_ST[2] == alone.order_ST[0]).all()), draws.order_ST.shape
        (True, (3, 5))
    """
    if trial_order not in TRIAL_ORDERS:
        raise ValueError(f"trial_order must be one of {', '.join(TRIAL_ORDERS)}, got {trial_order!r}")
    n_A, n_B = num_images
    if min(n_A, n_B, num_trials) < 1:
        raise ValueError(f"both objects need images and a session trials, got {num_images} and {num_trials}")
    enough = n_A + n_B if trial_order == "permutation" else min(n_A, n_B)
    if enough < num_trials:
        needed = "in all" if trial_order == "permutation" else "of each object"
        raise ValueError(
            f"{num_trials} trials without repeated images under trial_order={trial_order} need as many images "
            f"{needed}, got {num_images}"
        )
    T = num_trials
    sessions_S, u_SK = _uniforms(seed, ("object_learning", "high_variation", subtask, T), sessions, 1 + 3 * T)
    coins_ST, image_u_ST, object_u_ST = (u_SK[:, 1 + k * T : 1 + (k + 1) * T] for k in range(3))
    if trial_order == "permutation":
        order_ST = _partial_permutation(image_u_ST, n_A + n_B)
    else:
        order_ST = _from_pools((object_u_ST >= 0.5).astype(np.int64), image_u_ST, (n_A, n_B), (0, n_A))
    return _draws(order_ST, order_ST >= n_A, u_SK[:, 0], coins_ST, sessions_S)


def draw_one_shot(
    seed: int,
    subtask: str | int,
    sessions: int | Sequence[int] | np.ndarray = 500,
    *,
    num_tests: tuple[int, int] = (60, 60),
) -> SessionDraws:
    """Sessions of the one-shot experiment: 10 support trials, then 10 trials with an object drawn 50:50 on each.

    Image 0 is the support image of the first object, 1 that of the second; 2 … are the test images of the first object,
    then those of the second. Support trials are a shuffle of five and five. Trials 15 and 20 show the drawn object's
    support image, the other late ones one of its test images without replacement.

    Args:
        seed: Global seed.
        subtask: Name or number of the subtask; part of the address.
        sessions: Number of sessions, or the addresses of those wanted.
        num_tests: Test images of the first and second object, at least 8 each.

    Raises:
        ValueError: On too few test images or bad addresses.

    References:
        Lee and DiCarlo, "Experiment 2".
    """
    late = ONE_SHOT_TRIALS - SUPPORT_TRIALS
    if min(num_tests) < late - len(LATE_SUPPORT_TRIALS):
        raise ValueError(f"each object needs at least 8 test images, as a session may show 8 of one, got {num_tests}")
    sessions_S, u_SK = _uniforms(
        seed, ("object_learning", "one_shot", subtask), sessions, 1 + ONE_SHOT_TRIALS * 2 + late
    )
    edges = np.cumsum([1, ONE_SHOT_TRIALS, SUPPORT_TRIALS, late])
    coins_ST, support_u, object_u, image_u = np.split(u_SK[:, : edges[-1] + late], edges, axis=1)[1:]
    late_object_ST = (object_u >= 0.5).astype(np.int64)
    object_ST = np.concatenate([_partial_permutation(support_u, SUPPORT_TRIALS) % 2, late_object_ST], 1)
    order_ST = object_ST.copy()
    tests = [t for t in range(SUPPORT_TRIALS, ONE_SHOT_TRIALS) if t not in LATE_SUPPORT_TRIALS]
    image_u = image_u[:, np.array(tests) - SUPPORT_TRIALS]
    order_ST[:, tests] = _from_pools(object_ST[:, tests], image_u, num_tests, (2, 2 + num_tests[0]))
    return _draws(order_ST, object_ST == 1, u_SK[:, 0], coins_ST, sessions_S)


def _draws(
    order_ST: np.ndarray, second_ST: np.ndarray, mapping_u_S: np.ndarray, coins_ST: np.ndarray, sessions_S: np.ndarray
) -> SessionDraws:
    action_of_first_S1 = (mapping_u_S >= 0.5).astype(np.int64)[:, None]
    correct_ST = np.where(second_ST, 1 - action_of_first_S1, action_of_first_S1)
    return SessionDraws(order_ST, correct_ST, np.ascontiguousarray(coins_ST), sessions_S)


def _uniforms(
    seed: int, address: tuple[str | int, ...], sessions: int | Sequence[int] | np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Addresses (S,) and (S, count) uniforms in [0, 1); row of session s from its own counters of the address's key."""
    sessions_S = np.arange(sessions) if isinstance(sessions, int | np.integer) else np.asarray(sessions)
    if sessions_S.ndim != 1 or sessions_S.dtype.kind not in "iu" or (len(sessions_S) and sessions_S.min() < 0):
        raise ValueError(f"sessions must be a number of sessions or a list of addresses 0, 1, …, got {sessions!r}")
    sessions_S = sessions_S.astype(np.int64)
    width = -(-count // 4) * 4  # one step of the counter gives four numbers
    breaks = np.flatnonzero(np.diff(sessions_S) != 1) + 1
    runs = [run for run in np.split(sessions_S, breaks) if len(run)]
    u_SK = np.empty((len(sessions_S), width))
    row = 0
    for run in runs:
        random = generator(seed, *address)
        random.bit_generator.advance(int(run[0]) * (width // 4))  # type: ignore[attr-defined]
        u_SK[row : row + len(run)] = random.random((len(run), width))
        row += len(run)
    return sessions_S, u_SK[:, :count]


def _partial_permutation(u_ST: np.ndarray, n: int) -> np.ndarray:
    """(S, T) first T of a uniform permutation of n things, by T steps of the Fisher-Yates shuffle in all sessions."""
    S, T = u_ST.shape
    left_NS = np.repeat(np.arange(n)[:, None], S, 1)
    order_TS, every = np.empty((T, S), dtype=np.int64), np.arange(S)
    for t in range(T):
        j_S = np.minimum(t + (u_ST[:, t] * (n - t)).astype(np.int64), n - 1)
        order_TS[t] = left_NS[j_S, every]
        left_NS[j_S, every] = left_NS[t]
    return np.ascontiguousarray(order_TS.T)


def _from_pools(
    object_ST: np.ndarray, u_ST: np.ndarray, pool_sizes: tuple[int, int], offsets: tuple[int, int]
) -> np.ndarray:
    """(S, T) images: on each trial one that is left of the drawn object's, whose images start at its offset."""
    S, T = u_ST.shape
    left_NS = np.full((2, max(pool_sizes), S), -1, dtype=np.int64)
    for k, (size, offset) in enumerate(zip(pool_sizes, offsets, strict=True)):
        left_NS[k, :size] = (offset + np.arange(size))[:, None]
    used_2S, every = np.zeros((2, S), dtype=np.int64), np.arange(S)
    sizes_2 = np.array(pool_sizes)
    order_ST = np.empty((S, T), dtype=np.int64)
    for t in range(T):
        k_S = object_ST[:, t]
        first_S, size_S = used_2S[k_S, every], sizes_2[k_S]
        j_S = np.minimum(first_S + (u_ST[:, t] * (size_S - first_S)).astype(np.int64), size_S - 1)
        order_ST[:, t] = left_NS[k_S, j_S, every]
        left_NS[k_S, j_S, every] = left_NS[k_S, first_S, every]
        used_2S[k_S, every] += 1
    return order_ST
