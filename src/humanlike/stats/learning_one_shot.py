"""The one-shot experiment: accuracy under 36 transformations, corrected for people's lapses, and MSE_n over them.

Models are not corrected, and no lapse rate is fitted.

Legend: N sessions, C conditions, B replicates, M = 2C + 2 columns of counts, U units that are resampled (sessions or
workers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from humanlike.metrics.functional import CurveSums, MSEn, MSEnSwitches
from humanlike.rng import generator
from humanlike.stats.intervals import Interval, basic
from humanlike.stats.learning_one_shot_counts import (
    OneShotCounts,
    OneShotSwitches,
    PeopleResampling,
    corrected_shares,
    draw_within,
    require_trials,
    shares,
)
from humanlike.stats.learning_resampling import draw_sessions, resampled_counts


@dataclass(frozen=True)
class OneShotPeople:
    """People's accuracy under every transformation; one such object serves every model.

    Attributes:
        p_C: (C,) accuracy, corrected for lapses.
        variance_C: (C,) its variance.
        replicate_BC: (B, C) replicates of p_C; NaN where a resample cannot be corrected.
        replicate_variance_BC: (B, C) replicates of variance_C.
        lapse_rate: γ, NaN where only corrected values are known.
        flags: What limits the numbers.
    """

    p_C: np.ndarray
    variance_C: np.ndarray
    replicate_BC: np.ndarray
    replicate_variance_BC: np.ndarray
    lapse_rate: float
    flags: tuple[str, ...] = ()

    @property
    def noise_floor(self) -> float:
        """Mean variance over the conditions."""
        return float(self.variance_C.mean())

    def intervals(self, level: float = 0.95) -> list[Interval]:
        """Basic interval of the accuracy under each condition."""
        return [basic(float(p), drawn_B, level) for p, drawn_B in zip(self.p_C, self.replicate_BC.T, strict=True)]

    @classmethod
    def from_sessions(
        cls,
        counts: OneShotCounts,
        worker_N: np.ndarray,
        subtask_N: np.ndarray,
        switches: OneShotSwitches,
        replicates: int,
        seed: int,
    ) -> OneShotPeople:
        """Estimate from people's sessions.

        Args:
            counts: Of every session, in the order in which they took place.
            worker_N: (N,) who did each session.
            subtask_N: (N,) subtask of each session, integers from 0.
            switches: Resampling, clip, variance; `catch_trials` were used when counting.
            replicates: B.
            seed: Global seed.

        Raises:
            ValueError: If lengths differ, p_catch ≤ ½, or a condition has fewer than two trials.
        """
        if not len(counts) == len(worker_N) == len(subtask_N):
            numbers = f"{len(worker_N)} and {len(subtask_N)}"
            raise ValueError(f"{len(counts)} sessions need as many workers and subtasks, got {numbers}")
        require_trials(counts, "people")
        table_UM = _units(counts, worker_N, switches)
        p_C, variance_C, gamma = corrected_shares(table_UM.sum(axis=0)[None].astype(np.float64), switches.clip)
        if not gamma[0] < 1:
            raise ValueError(
                "people are right on half of the catch trials or fewer, so their lapses cannot be corrected for; check "
                "which trials are catch trials, and the coding of correct choices"
            )

        drawn_BM = _draw(table_UM, worker_N, subtask_N, switches.people_resampling, replicates, seed)
        p_BC, variance_BC, _ = corrected_shares(drawn_BM, switches.clip)
        variance_C = variance_C[0]
        if switches.human_variance == "bootstrap":
            variance_C = np.nanvar(p_BC, axis=0, ddof=1)
            variance_BC = np.broadcast_to(variance_C, p_BC.shape)
        flags = ("catch_rate_of_last_sessions_only",) if switches.compat else ()
        return cls(p_C[0], variance_C, p_BC, variance_BC, float(gamma[0]), flags)

    @classmethod
    def from_estimates(cls, p_C: np.ndarray, se_C: np.ndarray, replicates: int, seed: int) -> OneShotPeople:
        """Published accuracies with standard errors; replicates are normal and independent, flagged.

        Args:
            p_C: (C,) accuracies, corrected for lapses.
            se_C: (C,) standard errors.
            replicates: B.
            seed: Global seed.

        Raises:
            ValueError: If lengths differ or a number is not finite or negative.
        """
        p_C, se_C = np.asarray(p_C, dtype=np.float64), np.asarray(se_C, dtype=np.float64)
        if p_C.ndim != 1 or p_C.shape != se_C.shape or not (np.isfinite(p_C).all() and (se_C >= 0).all()):
            raise ValueError("accuracies and standard errors must be lists of equal length of finite numbers ≥ 0")
        rng = generator(seed, "learning", "one_shot", "published")
        drawn_BC = p_C + se_C * rng.standard_normal((replicates, len(p_C)))
        variance_C = se_C**2
        flags = ("published_standard_errors",)
        return cls(p_C, variance_C, drawn_BC, np.broadcast_to(variance_C, drawn_BC.shape), float("nan"), flags)


@dataclass(frozen=True)
class OneShotScore:
    """MSE_n of one model over the conditions.

    Attributes:
        score: On the full sample; its lapse rate is 0.
        interval: Basic interval of MSE_n.
        replicates_B: (B,) MSE_n of the replicates.
        p_C: (C,) the model's accuracy.
        variance_C: (C,) its variance.
        condition_intervals: Basic interval of each accuracy.
        replicate_BC: (B, C) replicates of p_C.
        flags: Those of people.
    """

    score: MSEn
    interval: Interval
    replicates_B: np.ndarray
    p_C: np.ndarray
    variance_C: np.ndarray
    condition_intervals: list[Interval]
    replicate_BC: np.ndarray
    flags: tuple[str, ...]


def one_shot_score(
    model: OneShotCounts,
    people: OneShotPeople,
    *,
    subtract_human_noise: bool = False,
    stratum_N: np.ndarray | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> OneShotScore:
    """MSE_n between a model's accuracies and people's corrected ones, with its interval.

    The draws of sessions depend on `seed` and the number of sessions alone, so that models are compared in pairs.

    Args:
        model: Counts of every session; its catch trials are not used.
        people: See `OneShotPeople`.
        subtract_human_noise: Whether people's noise is subtracted.
        stratum_N: (N,) subtask of each session to resample within; None draws from all sessions pooled.
        seed: Global seed.
        level: Coverage asked for.

    Raises:
        ValueError: If conditions differ in number, or one has fewer than two trials of the model.

    References:
        Lee and DiCarlo, "Comparing model one-shot learning with human one-shot learning".
    """
    num_conditions = model.k_NC.shape[1]
    if num_conditions != len(people.p_C):
        raise ValueError(f"the model has {num_conditions} conditions, people {len(people.p_C)}")
    require_trials(model, "the model")
    table_NM = model.table_NM[:, : 2 * num_conditions]
    total_1M = table_NM.sum(axis=0)[None].astype(np.float64)
    strata = np.zeros(len(model), dtype=np.int64) if stratum_N is None else np.asarray(stratum_N)
    replicates = len(people.replicate_BC)
    p_1C, variance_1C = shares(total_1M, num_conditions)
    p_BC, variance_BC = shares(draw_within(table_NM, strata, replicates, seed, "model"), num_conditions)
    switches = MSEnSwitches(subtract_human_noise=subtract_human_noise)
    full = _msen(p_1C[0], variance_1C[0], people.p_C, people.variance_C, switches)
    drawn = _msen(p_BC, variance_BC, people.replicate_BC, people.replicate_variance_BC, switches).value.numpy()
    return OneShotScore(
        full,
        basic(full.value.item(), drawn, level),
        drawn,
        p_1C[0],
        variance_1C[0],
        [basic(float(p), column_B, level) for p, column_B in zip(p_1C[0], p_BC.T, strict=True)],
        p_BC,
        people.flags,
    )


def one_shot_null(
    counts: OneShotCounts, people: OneShotPeople, simulations: int, *, clip: bool = False, seed: int = 0
) -> np.ndarray:
    """(B,) MSE_n of a perfect model, people's noise subtracted: people's sessions, drawn as often as the model's.

    Its sessions are drawn from all of people's pooled, with replacement; unlike a model's they contain lapses, and are
    corrected by the catch trials in the same draw. Replicates are shifted to mean 0. NaN where a draw cannot be
    corrected. See `humanlike.stats.learning_null.p_value`.

    Args:
        counts: Of people's sessions.
        people: Made from them.
        simulations: Sessions of the model, over all subtasks.
        clip: As in the convention.
        seed: Global seed.
    """
    replicates = len(people.replicate_BC)
    size = np.array([len(counts)])
    draws = draw_sessions(size, replicates, seed, "one_shot", "null", draws_S=np.array([simulations]))
    p_BC, variance_BC, _ = corrected_shares(resampled_counts(draws.times[0], counts.table_NM).astype(np.float64), clip)
    switches = MSEnSwitches(subtract_human_noise=True)
    values = _msen(p_BC, variance_BC, people.replicate_BC, people.replicate_variance_BC, switches).value.numpy()
    return values - np.nanmean(values)


def _units(counts: OneShotCounts, worker_N: np.ndarray, switches: OneShotSwitches) -> np.ndarray:
    """(U, 2C + 2) table of what is resampled: sessions, or workers with their sessions summed."""
    if switches.people_resampling != "workers":
        return counts.table_NM
    _, code_N = np.unique(worker_N, return_inverse=True)
    if switches.compat:
        last_N = np.zeros(len(code_N), dtype=bool)
        last_N[len(code_N) - 1 - np.unique(code_N[::-1], return_index=True)[1]] = True
        counts = replace(counts, catch_k_N=counts.catch_k_N * last_N, catch_n_N=counts.catch_n_N * last_N)
    table_UM = np.zeros((code_N.max() + 1, counts.table_NM.shape[1]), dtype=np.int64)
    np.add.at(table_UM, code_N, counts.table_NM)
    return table_UM


def _draw(
    table_UM: np.ndarray,
    worker_N: np.ndarray,
    subtask_N: np.ndarray,
    resampling: PeopleResampling,
    replicates: int,
    seed: int,
) -> np.ndarray:
    """(B, 2C + 2) summed counts of every replicate."""
    if resampling == "workers":
        return draw_within(table_UM, np.zeros(len(table_UM), dtype=np.int64), replicates, seed, "workers")
    if resampling == "sessions":
        return draw_within(table_UM, np.asarray(subtask_N), replicates, seed, "sessions")
    _, code_N, sessions_W = np.unique(worker_N, return_inverse=True, return_counts=True)
    chance_N = 1 / (len(sessions_W) * sessions_W[code_N])
    rng = generator(seed, "learning", "one_shot", "worker_then_session")
    times_BN = rng.multinomial(len(code_N), chance_N / chance_N.sum(), size=replicates)
    return resampled_counts(times_BN, table_UM).astype(np.float64)


def _msen(
    p: np.ndarray, variance: np.ndarray, people: np.ndarray, people_variance: np.ndarray, switches: MSEnSwitches
) -> MSEn:
    tensors = (torch.from_numpy(np.array(x, dtype=np.float64)) for x in (p, people, variance, people_variance))
    return CurveSums.from_shares(*tensors).msen(switches, fit_lapse=False)
