"""Compiled simulation on the CPU: all sessions of a subtask and all rules, from the Gram matrix of its images alone.

Every update adds a multiple of a shown image's features to a weight vector, so the sum that decides trial t is
Σ_{s<t} C[a, s] K[image t, image s] over the trials before it: dimensions of the features drop out. What makes it fast:

* Trials go in blocks of eight. The entries of K between a session's next eight images and all before are gathered once
  for all rules and multiplied from registers, eight trials side by side; half of a full table of preferences is never
  computed.
* Within a block `LANES` sessions advance together, one trial at a time, without a branch on their choices (`trials`);
  only the few products with coefficients of the same block are left to add.
* Sums run in the order of the trials and are never regrouped, so that equal weights tie exactly, and a session's
  choices do not depend on its neighbours.

Importing this module compiles a kernel and the kinds of trials (five seconds) or loads them from Numba's cache on disk;
steps of linear rules come in as compiled functions. Kernels run on one thread without the interpreter's lock, so that a
pool of threads can simulate several subtasks.

Axes: S sessions, T trials, N images, M actions, R rules, L = LANES sessions at a time, Q = R·M rows of coefficients,
rounded up to an even number. B = 8 trials of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from humanlike.learners.checks import Sessions
from humanlike.learners.compilation import OPTIONS, kernel
from humanlike.learners.lanes import (
    LANES,
    OCTET,
    aligned,
    call,
    gather_and_pull,
    pointer,
    pull_2,
    pull_4,
    transpose,
)

_F1, _I = numba.float64[::1], numba.int64


@dataclass(frozen=True)
class Trial:
    """How one rule takes its trials.

    Attributes:
        address: Of a compiled function of the module `trials`.
        step: Of the compiled step of a linear rule, else 0.
        parameter: The rule's own number: cap of the norm, γ.
    """

    address: int
    step: int = 0
    parameter: float = 0.0


def simulate(
    matrix_NN: np.ndarray,
    sessions: Sessions,
    rules: Sequence[Trial],
    num_choices: int,
    rewards: tuple[float, float],
    alpha: float,
) -> np.ndarray:
    """(R, S, T) int8 choices of rules that sum over the same matrix."""
    S, T = sessions.order_ST.shape
    R, N = len(rules), len(matrix_NN)
    if not R * S * T:
        return np.empty((R, S, T), dtype=np.int8)
    given: tuple[np.ndarray, ...] = (sessions.order_ST, sessions.correct_ST, sessions.coins_ST)
    if S < LANES:  # the kernel takes whole groups of sessions
        given = tuple(np.resize(array_ST, (LANES, T)) for array_ST in given)
    blocks, Q = -(-T // OCTET) * OCTET, R * num_choices + R * num_choices % 2
    words_RSW = np.empty((R, max(S, LANES), blocks // OCTET), dtype=np.int64)  # a byte a choice
    _run(
        *(np.ascontiguousarray(matrix_NN).reshape(-1), N, *given, num_choices),
        np.array([[rule.address, rule.step] for rule in rules], dtype=np.int64),
        np.array([[*rewards, alpha, rule.parameter] for rule in rules], dtype=np.float64),
        *(aligned(LANES * blocks, np.uint32), aligned(LANES * blocks, np.uint32)),
        *(aligned(LANES, np.int64), aligned(blocks * OCTET), aligned(LANES * Q * blocks)),
        *(aligned(Q * LANES * OCTET) for _ in range(3)),
        *(aligned(OCTET * OCTET * LANES), aligned(4 * LANES), aligned(R * (2 * num_choices + 1) * LANES)),
        *(aligned(LANES * blocks), aligned(R * LANES, np.int64), words_RSW),
    )
    return np.ascontiguousarray(words_RSW.view(np.int8)[:, :S, :T])


@numba.njit(**OPTIONS)
def _sums_before(
    K: Any,
    N: int,
    t0: int,
    blocks: int,
    Q: int,
    image: Any,
    past: Any,
    count: Any,
    entry: Any,
    C: Any,
    raw: Any,
    sums: Any,
    within: Any,
) -> None:
    """Sums over all trials before a block, for its eight trials: sums[b, q, lane]; and the entries of K within it."""
    step = LANES * OCTET
    for j in range(LANES):
        at, c0, s0 = j * blocks + t0, j * Q * blocks, j * OCTET
        first, n = j * blocks, count[j]
        gather_and_pull(K, N, image, at, past, first, n, entry, C, c0, blocks, raw, s0, step)
        q = 2
        while q < Q:
            c, to = c0 + q * blocks, s0 + q * step
            if q + 4 <= Q:
                pull_4(K, N, image, at, past, first, n, entry, C, c, blocks, raw, to, step)
                q += 4
            else:
                pull_2(K, N, image, at, past, first, n, entry, C, c, blocks, raw, to, step)
                q += 2
        _entries_within(K, N, image, at, pointer(within, j))
    for q in range(Q):
        for o in range(0, LANES, OCTET):
            transpose(raw, (q * LANES + o) * OCTET, OCTET, sums, q * LANES + o, Q * LANES)


@numba.njit(**OPTIONS)
def _remember(
    t0: int, width: int, blocks: int, Q: int, image: Any, past: Any, count: Any, coefficients: Any, C: Any
) -> None:
    """Keep a block's coefficients for later ones; of two rows those trials alone that moved one."""
    for j in range(LANES):
        n, kept, shown = count[j], pointer(past, j * blocks), pointer(image, j * blocks + t0)
        if Q == 2:
            first, second = pointer(coefficients, j), pointer(coefficients, LANES + j)
            into = pointer(C, 2 * j * blocks)
            for b in range(width):  # without a branch: what is zero is written over by the next
                g, h = first[2 * b * LANES], second[2 * b * LANES]
                into[n], into[blocks + n], kept[n] = g, h, shown[b]
                n += (g != 0.0) | (h != 0.0)
        else:
            for b in range(width):
                kept[n + b] = shown[b]
            n += width
        count[j] = n
    for q in range(Q if Q > 2 else 0):
        for o in range(0, LANES, OCTET):
            transpose(coefficients, q * LANES + o, Q * LANES, C, (o * Q + q) * blocks + t0, Q * blocks)


@numba.njit(**OPTIONS)
def _take(given: Any, count: int, out: Any, step: int) -> None:
    for t in range(count):
        out[t * step] = given[t]


@numba.njit(**OPTIONS)
def _entries_within(K: Any, N: int, image: Any, first: int, out: Any) -> None:
    """Entries of K between the trials of a block and those up to them: out[b, k, lane] for k ≤ b."""
    shown = pointer(image, first)
    images = (
        np.int64(shown[0]),  # read once: the compiler cannot know that what is written below is something else
        np.int64(shown[1]),
        np.int64(shown[2]),
        np.int64(shown[3]),
        np.int64(shown[4]),
        np.int64(shown[5]),
        np.int64(shown[6]),
        np.int64(shown[7]),
    )
    for b in range(OCTET):
        row = pointer(K, images[b] * N)
        for k in range(b + 1):
            out[(b * OCTET + k) * LANES] = row[images[k]]


@numba.njit(**OPTIONS)
def _scale(
    r: int,
    M: int,
    b: int,
    t0: int,
    blocks: int,
    Q: int,
    memory: Any,
    factors: int,
    C: Any,
    coefficients: Any,
    sums: Any,
) -> None:
    """Multiply a rule's weights by factors: coefficients up to trial b of the block, and sums of its later trials."""
    for j in range(LANES):
        factor = memory[factors + j]
        if factor != 1.0:
            for a in range(M):
                q = r * M + a
                for t in range(t0):
                    C[(j * Q + q) * blocks + t] *= factor
                for k in range(b + 1):
                    coefficients[(k * Q + q) * LANES + j] *= factor
                for k in range(b + 1, OCTET):
                    sums[(k * Q + q) * LANES + j] *= factor


@kernel(
    numba.void(
        *(_F1, _I, numba.int64[:, ::1], numba.int64[:, ::1], numba.float64[:, ::1], _I),
        *(
            numba.int64[:, ::1],
            numba.float64[:, ::1],
            numba.uint32[::1],
            numba.uint32[::1],
            numba.int64[::1],
            *(_F1,) * 9,
            numba.int64[::1],
            numba.int64[:, :, ::1],
        ),
    )
)
def _run(
    K: Any,
    N: int,
    order_ST: Any,
    correct_ST: Any,
    coins_ST: Any,
    M: int,
    functions: Any,
    numbers: Any,
    image: Any,
    past: Any,
    count: Any,
    entry: Any,
    C: Any,
    raw: Any,
    sums: Any,
    coefficients: Any,
    within: Any,
    lanes: Any,
    memory: Any,
    correct: Any,
    word: Any,
    words_RSW: Any,
) -> None:
    """All sessions, `LANES` at a time; buffers are those of `simulate`."""
    (S, T), R = order_ST.shape, len(functions)
    blocks, L = len(image) // LANES, LANES
    Q, own = len(raw) // (L * OCTET), (2 * M + 1) * L
    coins = coins_ST.reshape(-1)
    number, orders, corrects = numbers.reshape(-1), order_ST.reshape(-1), correct_ST.reshape(-1)
    count_L = len(lanes) // 4  # L, but unknown to the compiler, which makes vectors of loops that it cannot unroll
    for group in range(0, S, L):
        s0 = min(group, S - L)  # the last group takes some sessions again
        for j in range(L):
            _take(pointer(orders, (s0 + j) * T), T, pointer(image, j * blocks), 1)
            _take(pointer(corrects, (s0 + j) * T), T, pointer(correct, j), L)
        memory[:] = 0.0
        count[:] = 0
        for t0 in range(0, T, OCTET):
            width = min(OCTET, T - t0)
            _sums_before(K, N, t0, blocks, Q, image, past, count, entry, C, raw, sums, within)
            for b in range(width):
                t, at = t0 + b, b * Q * L
                for r in range(R):
                    place = at + r * M * L
                    for k in range(b):
                        for a in range(M):
                            into = pointer(sums, place + a * L)
                            of = pointer(coefficients, (k * Q + r * M + a) * L)
                            by = pointer(within, (b * OCTET + k) * L)
                            for j in range(count_L):
                                into[j] += of[j] * by[j]
                    flag = call(
                        functions[r, 0],
                        (
                            pointer(sums, place),
                            pointer(coefficients, place),
                            pointer(correct, t * L),
                            pointer(within, b * (OCTET + 1) * L),
                            pointer(lanes, 0),
                            pointer(memory, r * own),
                            pointer(coins, s0 * T + t),
                            T,
                            pointer(number, r * 4),
                            functions[r, 1],
                            M,
                            count_L,
                        ),
                    )
                    chosen = pointer(word, r * L)
                    action = pointer(lanes, 0)
                    for j in range(count_L):
                        chosen[j] = (chosen[j] if b else 0) | int(action[j]) << (8 * b)
                    if flag != 0:
                        _scale(r, M, b, t0, blocks, Q, memory, r * own + 2 * M * L, C, coefficients, sums)
            for r in range(R):
                for j in range(L):
                    words_RSW[r, s0 + j, t0 // OCTET] = word[r * L + j]
            _remember(t0, width, blocks, Q, image, past, count, coefficients, C)
