"""Resampling of learning sessions: how often each is drawn, and what the counts of correct choices then are.

Sessions are drawn with replacement within their subtask. Only how often a session is drawn matters, so the counts of
correct choices of all replicates are one matrix product of the draws with the sessions' choices (`packed_counts`).
Draws depend on the numbers of sessions alone: made once, they serve every model and rule, whose comparison is then
paired.

Legend: S subtasks, n sessions of a subtask, T trials, B replicates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from humanlike.compilation import compiled
from humanlike.rng import generator
from humanlike.stats.packed_counts import resampled_counts

WITHIN_SESSION_CORRELATION_IGNORED = "within_session_correlation_ignored"
"""Flag of whatever was computed from people's counts: which session was right on which trial is not known."""


@dataclass(frozen=True)
class SessionDraws:
    """How often every session is drawn, subtask by subtask.

    Attributes:
        times: Of each subtask (B, n) unsigned integers; rows sum to that subtask's `draws_S`.
        draws_S: (S,) int64 sessions drawn per replicate.
    """

    times: tuple[np.ndarray, ...]
    draws_S: np.ndarray

    @property
    def replicates(self) -> int:
        """B."""
        return len(self.times[0])


def draw_sessions(
    sessions_S: np.ndarray, replicates: int, seed: int, *address: str | int, draws_S: np.ndarray | None = None
) -> SessionDraws:
    """Draw sessions with replacement within each subtask.

    Each subtask has draws of its own (shared ones would correlate the subtasks), at an address of its own, and the
    first replicates do not depend on how many follow.

    Args:
        sessions_S: (S,) sessions of each subtask, at least 1.
        replicates: B.
        seed: Global seed.
        address: Whose sessions these are, for example "model" or "people".
        draws_S: (S,) sessions to draw; as many as there are when None.

    Raises:
        ValueError: If a number is not positive.
    """
    sizes = np.asarray(sessions_S, dtype=np.int64)
    draws = sizes if draws_S is None else np.broadcast_to(np.asarray(draws_S, dtype=np.int64), sizes.shape)
    if replicates < 1 or not len(sizes) or (sizes < 1).any() or (draws < 1).any():
        raise ValueError("drawing needs at least one replicate, and every subtask at least one session to draw from")
    times = tuple(
        _draw_times(int(size), int(number), replicates, generator(seed, "learning", "sessions", *address, subtask))
        for subtask, (size, number) in enumerate(zip(sizes, draws, strict=True))
    )
    return SessionDraws(times, np.array(draws))


def sessions_by_subtask(correct_ST: np.ndarray, subtask_S: np.ndarray, num_subtasks: int) -> tuple[np.ndarray, ...]:
    """Sessions in one table, sorted into one (n, T) bool table a subtask, order kept.

    Args:
        correct_ST: (sessions, T) bool, or integers 0 and 1; -1 marks a trial that is not there.
        subtask_S: (sessions,) subtask of each.
        num_subtasks: S.

    Raises:
        ValueError: If lengths differ, a trial is missing (sessions of unequal length have no common curve), a subtask
            is out of range or has fewer than two sessions.
    """
    correct_ST, subtask_S = np.asarray(correct_ST), np.asarray(subtask_S)
    if correct_ST.ndim != 2 or subtask_S.shape != correct_ST.shape[:1]:
        raise ValueError(
            f"correct_ST must be (sessions, trials) with one subtask a session, got {correct_ST.shape} and "
            f"{subtask_S.shape}"
        )
    bad = (correct_ST != 0) & (correct_ST != 1)
    if bad.any():
        session, trial = np.argwhere(bad)[0]
        raise ValueError(
            f"sessions must be of equal length and hold 0 and 1 only; session {session}, trial {trial} is "
            f"{correct_ST[session, trial]}: leave out sessions that are not complete"
        )
    if len(subtask_S) and not (subtask_S.min() >= 0 and subtask_S.max() < num_subtasks):
        raise ValueError(f"subtasks must lie in [0, {num_subtasks}), got {subtask_S.min()} to {subtask_S.max()}")
    number_S = np.bincount(subtask_S, minlength=num_subtasks)
    if (number_S < 2).any():
        subtask = int(np.argmax(number_S < 2))
        raise ValueError(f"subtask {subtask} has {number_S[subtask]} sessions; at least 2 are needed for a variance")
    return tuple(correct_ST[subtask_S == s].astype(bool) for s in range(num_subtasks))


@dataclass(frozen=True)
class PeopleReplicates:
    """People's counts of correct choices, as observed and in every replicate; one such object serves every model.

    Attributes:
        k_ST: (S, T) int64 correct choices.
        n_S: (S,) int64 sessions.
        replicate_SBT: (S, B, T) int32 correct choices in every replicate; those of each subtask come from `n_S` draws.
        flags: `within_session_correlation_ignored` where only counts were known.
    """

    k_ST: np.ndarray
    n_S: np.ndarray
    replicate_SBT: np.ndarray
    flags: tuple[str, ...] = field(default=())
    _accuracy: dict[tuple[int, int, int], np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def from_sessions(
        cls, sessions: Sequence[np.ndarray], replicates: int, seed: int, role: str = "people"
    ) -> PeopleReplicates:
        """Resample whole sessions within each subtask.

        Args:
            sessions: S tables (n, T) bool (see `sessions_by_subtask`).
            replicates: B.
            seed: Global seed.
            role: Address of the draws; another one gives an independent resample.
        """
        n_S = np.array([len(table) for table in sessions])
        draws = draw_sessions(n_S, replicates, seed, role)
        return cls(
            np.stack([table.sum(axis=0, dtype=np.int64) for table in sessions]),
            n_S,
            np.stack(
                [resampled_counts(w, table).astype(np.int32) for w, table in zip(draws.times, sessions, strict=True)]
            ),
        )

    @classmethod
    def from_counts(
        cls, k_ST: np.ndarray, n_S: np.ndarray, replicates: int, seed: int, role: str = "people"
    ) -> PeopleReplicates:
        """Draw every cell alone from its binomial distribution, flagged: nothing is known on sessions.

        Args:
            k_ST: (S, T) correct choices.
            n_S: (S,) sessions.
            replicates: B.
            seed: Global seed.
            role: Address of the draws.

        Raises:
            ValueError: If counts do not fit.
        """
        k_ST, n_S = checked_counts(k_ST, n_S)
        drawn = np.stack(
            [binomial_replicates(k_ST[s], n, int(n), replicates, seed, role, s) for s, n in enumerate(n_S)]
        )
        return cls(k_ST, n_S, drawn, (WITHIN_SESSION_CORRELATION_IGNORED,))

    @property
    def replicates(self) -> int:
        """B."""
        return self.replicate_SBT.shape[1]

    @functools.cached_property
    def own_sums(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(B,) Σ (p - ½)² and Σ var p over all cells of every replicate, which no model enters."""
        squares_SB = np.empty(self.replicate_SBT.shape[:2])
        for s, n in enumerate(self.n_S):  # one subtask at a time stays in the cache
            centred_BT = 2.0 * self.replicate_SBT[s] - n
            squares_SB[s] = np.einsum("bt,bt->b", centred_BT, centred_BT)
        return squared_share_sums(squares_SB, self.n_S[:, None], self.k_ST.shape[1])

    @functools.cached_property
    def curve_std_error_T(self) -> np.ndarray:
        """(T,) standard error of the mean curve over subtasks, from the replicates."""
        mean_BT = np.zeros(self.replicate_SBT.shape[1:])
        for n, count_BT in zip(self.n_S, self.replicate_SBT, strict=True):
            mean_BT += count_BT / n
        return (mean_BT / len(self.n_S)).std(axis=0, ddof=1)

    def accuracy_BS(self, trials: slice = slice(None)) -> np.ndarray:
        """(B, S) mean accuracy over the trials in every replicate; computed once for all models."""
        key = trials.indices(self.k_ST.shape[1])
        if key not in self._accuracy:
            self._accuracy[key] = (self.replicate_SBT[:, :, trials].mean(axis=2) / self.n_S[:, None]).T
        return self._accuracy[key]


def squared_share_sums(squares_SX: np.ndarray, n_S1: np.ndarray, num_trials: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Σ (p - ½)² and Σ p(1 - p)/(n - 1) over all cells, from each subtask's whole number Σ_t (2k - n)².

    p - ½ = (2k - n)/2n, and p(1 - p) = ¼ - (p - ½)²: the variance needs no sum of its own.

    Args:
        squares_SX: (S, ...) sums over a subtask's trials.
        n_S1: (S, 1, ...) sessions, broadcasting.
        num_trials: T.
    """
    shares_SX = squares_SX / (4.0 * n_S1**2)
    var_SX = (num_trials / 4 - shares_SX) / (n_S1 - 1)
    return torch.as_tensor(shares_SX.sum(axis=0)), torch.as_tensor(var_SX.sum(axis=0))


def checked_counts(k_ST: np.ndarray, n_S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as int64.

    Raises:
        ValueError: If shapes differ, an n is below 2, or a count is no whole number in [0, n] (the first is named).
    """
    k_ST, n_S = np.asarray(k_ST), np.asarray(n_S)
    if k_ST.ndim != 2 or n_S.shape != k_ST.shape[:1]:
        raise ValueError(f"counts must be (subtasks, trials) with one n a subtask, got {k_ST.shape} and {n_S.shape}")
    if (n_S < 2).any():
        raise ValueError(f"subtask {int(np.argmax(n_S < 2))} has {n_S.min()} sessions; at least 2 are needed")
    bad = ~((k_ST >= 0) & (k_ST <= n_S[:, None]) & (k_ST == np.round(k_ST)))
    if bad.any():
        s, t = np.argwhere(bad)[0]
        raise ValueError(f"subtask {s}, trial {t}: {k_ST[s, t]} correct choices of {n_S[s]} sessions")
    return k_ST.astype(np.int64), n_S.astype(np.int64)


def binomial_replicates(
    k_T: np.ndarray, n: int, draws: int, replicates: int, seed: int, *address: str | int
) -> np.ndarray:
    """(B, T) int32 binomial counts of `draws` choices, each right with the share k/n."""
    rng = generator(seed, "learning", "binomial", *address)
    return rng.binomial(draws, k_T / n, size=(replicates, len(k_T))).astype(np.int32)


def _draw_times(size: int, draws: int, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """(B, size) how often each of `size` is among `draws`.

    Indices are made of the generator's raw bits, 16 for each, by Lemire's method: the very draws of NumPy's `integers`,
    but faster, and the same in every version of it.
    """
    # One session fills a byte only when it is drawn 16 times as often as on average and more than 255 times.
    times_type = np.uint8 if draws <= max(255, 8 * size) else np.uint32
    times = np.zeros((replicates, size), dtype=times_type)
    if size == 1:
        times[:] = draws
    elif size >= 1 << 16:
        for row in times:
            np.add.at(row, rng.integers(0, size, size=draws, dtype=np.uint32), times_type(1))
    else:
        done, tally, index_D = 0, _tally(), np.empty(draws, dtype=np.uint16)
        while done < replicates * draws:  # again only for the few that were refused, because they favour some index
            raw = rng.bit_generator.random_raw(-(-(replicates * draws - done) // 4))
            halves = raw.astype("<u8", copy=False).view("<u2").astype(np.uint16, copy=False)
            done = tally(halves, size, draws, done, index_D, times)
    return times


@functools.cache
def _tally() -> Callable[..., int]:
    """Compiled loop that counts draws row by row; compiled when first needed, because the compiler loads slowly."""

    def count(halves: np.ndarray, size: int, draws: int, done: int, index_D: np.ndarray, times_BN: np.ndarray) -> int:
        size32, least = np.uint32(size), np.uint32((65536 - size) % size)
        low, shift = np.uint32(65535), np.uint32(16)
        b, d, position = done // draws, done % draws, 0
        while position < len(halves) and b < len(times_BN):
            part, row, refused = halves[position : position + draws - d], times_BN[b], 0
            for i in range(len(part)):
                product = np.uint32(np.uint32(part[i]) * size32)
                index_D[i] = product >> shift
                refused += int(np.uint32(product & low) < least)
            if refused == 0:
                for i in range(len(part)):
                    row[index_D[i]] += 1
            else:
                for i in range(len(part)):
                    if np.uint32(np.uint32(part[i]) * size32) & low >= least:
                        row[index_D[i]] += 1
            position += len(part)
            d += len(part) - refused
            if d == draws:
                b, d = b + 1, 0
        return b * draws + d

    return compiled(count)
