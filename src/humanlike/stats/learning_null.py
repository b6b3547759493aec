"""Could a perfect model have scored so badly? The distribution of MSE_n when the model learns exactly as people do.

A perfect model cannot be run, but by definition it chooses like a person drawn at random: a replicate of it is a sample
of people's sessions, as many per subtask as the model has simulations, drawn with replacement; people are resampled
independently of it. (The paper says "without replacement", which cannot give 500 sessions out of 50.) The statistic is
MSE_n with people's noise subtracted, whose null mean is 0.

Whole sessions carry correlations between their trials that the model's sampling noise lacks, so the test is
conservative with sessions: it rejects less often than it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from humanlike.metrics.functional import CurveSums, MSEnSwitches
from humanlike.stats.learning_resampling import (
    PeopleReplicates,
    binomial_replicates,
    draw_sessions,
    resampled_counts,
    squared_share_sums,
)

NullConvention = Literal["paper", "refitted"]
"""See `NullDistribution.values_B`."""

CONSERVATIVE = "null_test_conservative"
"""Flag: sessions were resampled whole."""


@dataclass(frozen=True)
class NullDistribution:
    """Scores of a perfect model.

    Attributes:
        sums: (B,) sums of all replicates, from which every convention follows.
        noise_floor: Mean variance of people's shares, the score of a perfect model when people's noise is left in.
        flags: `null_test_conservative` with sessions, `within_session_correlation_ignored` with counts.
    """

    sums: CurveSums
    noise_floor: float
    flags: tuple[str, ...]

    def values_B(
        self,
        convention: NullConvention,
        switches: MSEnSwitches | None = None,
        *,
        fit_lapse: bool = True,
    ) -> np.ndarray:
        """(B,) MSE_n of a perfect model with people's noise subtracted.

        Args:
            convention: "paper" (publication-time code) fits no lapse rate in the replicates and shifts them so that
                their mean is the noise floor when people's noise is left in, 0 when it is subtracted as here;
                "refitted" treats replicates as the model is treated, and shifts nothing.
            switches: Whose lapse objective is used by "refitted"; whether people's noise is subtracted is not asked.
            fit_lapse: Whether the model's score has a fitted lapse rate.

        Raises:
            ValueError: If the convention is unknown.
        """
        if convention not in ("paper", "refitted"):
            raise ValueError(f"the convention of the null test must be 'paper' or 'refitted', got {convention!r}")
        objective = (switches or MSEnSwitches()).lapse_objective
        fit = fit_lapse and convention == "refitted"
        values = self.sums.msen(MSEnSwitches(objective, subtract_human_noise=True), fit_lapse=fit).value.numpy()
        return values - values.mean() if convention == "paper" else values


def null_distribution(
    people: PeopleReplicates,
    simulations_S: np.ndarray,
    *,
    sessions: Sequence[np.ndarray] | None = None,
    seed: int = 0,
) -> NullDistribution:
    """Replicates of MSE_n between a perfect model and people.

    Args:
        people: People's counts and replicates; the replicates serve as the resampled people.
        simulations_S: (S,) simulations of the model in each subtask, or one number; at least 2.
        sessions: S tables (n, T) of people's sessions that `people` was made from; None where only counts are known:
            cells are then drawn alone, from binomials.
        seed: Global seed.

    Raises:
        ValueError: If a number of simulations is below 2, or sessions do not fit people's counts.

    References:
        Lee and DiCarlo, "Null hypothesis testing".
    """
    num_subtasks, num_trials = people.k_ST.shape
    draws_S = np.broadcast_to(np.asarray(simulations_S, dtype=np.int64), (num_subtasks,))
    if (draws_S < 2).any():
        raise ValueError(f"a model needs at least 2 simulations per subtask, got {draws_S.min()}")
    if sessions is None:
        drawn = [
            binomial_replicates(k, int(n), int(d), people.replicates, seed, "null", s)
            for s, (k, n, d) in enumerate(zip(people.k_ST, people.n_S, draws_S, strict=True))
        ]
    else:
        if len(sessions) != num_subtasks or any(
            len(t) != n or (t.sum(axis=0) != k).any() for t, n, k in zip(sessions, people.n_S, people.k_ST, strict=True)
        ):
            raise ValueError("sessions must be those that people's counts were made from, subtask by subtask")
        draws = draw_sessions(people.n_S, people.replicates, seed, "null", draws_S=draws_S)
        drawn = [resampled_counts(w, table) for w, table in zip(draws.times, sessions, strict=True)]
    aa_SB, ab_SB = np.empty((2, num_subtasks, people.replicates))
    for s, k_BT in enumerate(drawn):
        c_BT = 2.0 * k_BT - draws_S[s]
        aa_SB[s] = (c_BT * c_BT).sum(axis=1)
        ab_SB[s] = (c_BT * (2.0 * people.replicate_SBT[s] - people.n_S[s])).sum(axis=1)
    ab_B = torch.from_numpy((ab_SB / (4.0 * draws_S * people.n_S)[:, None]).sum(axis=0))
    aa_B, variance_B = squared_share_sums(aa_SB, draws_S[:, None], num_trials)
    bb_B, own_variance_B = people.own_sums
    share_ST = people.k_ST / people.n_S[:, None]
    floor = float((share_ST * (1 - share_ST) / (people.n_S[:, None] - 1)).mean())
    flags = people.flags if sessions is None else (CONSERVATIVE,)
    return NullDistribution(CurveSums(aa_B, ab_B, bb_B, variance_B, own_variance_B, people.k_ST.size), floor, flags)


def p_value(null_B: np.ndarray, observed: float) -> float:
    """(1 + #{null ≥ observed}) / (B + 1): how often a perfect model scores as badly; NaN for a NaN score.

    Example:
        >>> p_value(np.array([0.1, 0.2, 0.3]), 0.25)
        0.5
    """
    if not np.isfinite(observed):
        return float("nan")
    null = np.asarray(null_B, dtype=np.float64)
    return float((1 + (null >= observed).sum()) / (len(null) + 1))
