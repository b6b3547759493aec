"""Intervals of MSE_n by resampling the sessions of models and people, the lapse rate fitted anew in every replicate.

Resampling adds noise that MSE_n subtracts once, so replicates lie too high by about mean var H + mean var M': the basic
interval, centred on their mean, is the default, and the percentile interval never covers.

The way through: `draw_sessions` and `PeopleReplicates` once per benchmark, `bootstrap_sums` once per simulation, and
from its sums `interval_of_msen` under any convention.

Legend: S subtasks, R models or rules, n sessions of a subtask, T trials, B replicates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from humanlike.compilation import compiled
from humanlike.metrics.functional import CurveSums, MSEn, MSEnSwitches
from humanlike.stats.intervals import Interval, basic, percentile
from humanlike.stats.learning_resampling import (
    PeopleReplicates,
    SessionDraws,
    draw_sessions,
    squared_share_sums,
)
from humanlike.stats.packed_counts import PackedColumns


@dataclass(frozen=True)
class BootstrapSums:
    """What MSE_n of R models is a function of, on the full sample and in every replicate.

    Attributes:
        full: Sums of (R,) models.
        replicates: Sums of (R, B).
        k_RST: (R, S, T) int64 the models' correct choices.
        n_S: (S,) int64 simulations.
        flags: Those of people's counts.
    """

    full: CurveSums
    replicates: CurveSums
    k_RST: np.ndarray
    n_S: np.ndarray
    flags: tuple[str, ...]


@dataclass(frozen=True)
class MSEnEstimate:
    """MSE_n of one model with its intervals.

    Attributes:
        score: MSE_n, lapse rate, noise floor on the full sample.
        interval: Basic (centred) interval of MSE_n.
        lapse_interval: Basic interval of the lapse rate, cut to [0, 1].
        diagnostic: Percentile interval of MSE_n; biased upwards, it does not cover and is no result.
        replicates_B: (B,) MSE_n of the replicates.
        flags: What limits the interval.
    """

    score: MSEn
    interval: Interval
    lapse_interval: Interval
    diagnostic: Interval
    replicates_B: np.ndarray
    flags: tuple[str, ...]


def bootstrap_sums(
    sessions: Sequence[np.ndarray], people: PeopleReplicates, draws: SessionDraws | None = None, *, seed: int = 0
) -> BootstrapSums:
    """Resample the sessions of R models within each subtask, all models by the same draws, against people's replicates.

    Args:
        sessions: S tables (R, n, T) bool: was the choice correct? (n, T) counts as one model.
        people: People's counts and their replicates.
        draws: How often each session is drawn; drawn with `seed` when None, at the address "model".
        seed: Global seed.

    Raises:
        ValueError: If subtasks, trials, sessions or replicates do not fit, or a subtask has fewer than two sessions.
    """
    tables = [np.asarray(t)[None] if np.ndim(t) == 2 else np.asarray(t) for t in sessions]
    num_subtasks, num_trials = people.k_ST.shape
    _require_tables(tables, num_subtasks, num_trials)
    n_S = np.array([table.shape[1] for table in tables], dtype=np.int64)
    if draws is None:
        draws = draw_sessions(n_S, people.replicates, seed, "model")
    if (
        tuple(t.shape for t in draws.times) != tuple((people.replicates, n) for n in n_S)
        or (draws.draws_S != n_S).any()
    ):
        raise ValueError("draws must hold, for each subtask, people's number of replicates of all the model's sessions")
    k_RST = np.stack([table.sum(axis=1, dtype=np.int64) for table in tables], axis=1)
    num_models = len(k_RST)
    aa_SRB = np.empty((num_subtasks, num_models, people.replicates))
    ab_SRB = np.empty_like(aa_SRB)
    for s, table in enumerate(tables):
        aa_SRB[s], ab_SRB[s] = _subtask_sums(table, draws.times[s], 2 * people.replicate_SBT[s] - people.n_S[s])
    own_B, own_variance_B = people.own_sums
    n_S11 = n_S[:, None, None]
    aa_RB, variance_RB = squared_share_sums(aa_SRB, n_S11, num_trials)
    ab_RB = torch.from_numpy((ab_SRB / (4.0 * n_S11 * people.n_S[:, None, None])).sum(axis=0))
    replicates = CurveSums(aa_RB, ab_RB, own_B, variance_RB, own_variance_B, people.k_ST.size)
    return BootstrapSums(_full_sums(k_RST, n_S, people), replicates, k_RST, n_S, people.flags)


def interval_of_msen(
    sums: BootstrapSums, switches: MSEnSwitches | None = None, *, fit_lapse: bool = True, level: float = 0.95
) -> list[MSEnEstimate]:
    """MSE_n of each of the R models under one convention, with intervals.

    Args:
        sums: Of `bootstrap_sums`; every convention is evaluated from the same sums.
        switches: See `humanlike.metrics.functional.MSEN_CONVENTIONS`; the paper's when None.
        fit_lapse: Whether the lapse rate is fitted (anew in every replicate).
        level: Coverage asked for.
    """
    full = sums.full.msen(switches, fit_lapse=fit_lapse)
    drawn = sums.replicates.msen(switches, fit_lapse=fit_lapse)
    estimates = []
    for r in range(len(full.value)):
        score = MSEn(*(x[r] for x in (full.value, full.lapse_rate, full.noise_floor, full.model_noise)))
        value_B = drawn.value[r].numpy()
        lapse = basic(score.lapse_rate.item(), drawn.lapse_rate[r].numpy(), level)
        low, high = (float(np.clip(end, 0, 1)) for end in (lapse.low, lapse.high))
        estimates.append(
            MSEnEstimate(
                score=score,
                interval=basic(score.value.item(), value_B, level),
                lapse_interval=Interval(low, high, lapse.kind, lapse.n_degenerate),
                diagnostic=percentile(value_B, level),
                replicates_B=value_B,
                flags=sums.flags,
            )
        )
    return estimates


def _subtask_sums(table_RNT: np.ndarray, times_BN: np.ndarray, people_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R, B) each: Σ_t c² and Σ_t c h, with c = 2k - n of the model and h = 2k - n of people in that replicate."""
    num_models, n, num_trials = table_RNT.shape
    packed = PackedColumns.pack(table_RNT.transpose(1, 0, 2).reshape(n, -1), n)
    aa_BR, ab_BR = np.zeros((2, len(times_BN), num_models))
    sums, people = _packed_sums(), people_BT.astype(np.float64)
    for rows, product_BW in packed.resampled(times_BN):
        sums(product_BW, packed.bits, packed.parts, n, num_trials, people[rows], aa_BR[rows], ab_BR[rows])
    return aa_BR.T, ab_BR.T


@functools.cache
def _packed_sums() -> Callable[..., None]:
    """Compiled sums over unpacked counts; compiled when first needed, because the compiler loads slowly."""

    def add(
        product_BW: np.ndarray,
        bits: int,
        parts: int,
        n: int,
        num_trials: int,
        people_BT: np.ndarray,
        aa_BR: np.ndarray,
        ab_BR: np.ndarray,
    ) -> None:
        width, columns, mask = product_BW.shape[1], aa_BR.shape[1] * num_trials, np.int32((1 << bits) - 1)
        for b in range(len(product_BW)):
            for part in range(parts):
                first, stop, shift = part * width, min((part + 1) * width, columns), np.int32(bits * part)
                m = first
                while m < stop:  # a model's trials that lie in this part
                    r, t = m // num_trials, m % num_trials
                    length = min(num_trials - t, stop - m)
                    own_W, people_T = product_BW[b, m - first : m - first + length], people_BT[b, t : t + length]
                    aa = ab = 0.0
                    for i in range(length):
                        c = np.float64(2 * ((np.int32(own_W[i]) >> shift) & mask) - n)
                        aa += c * c
                        ab += c * people_T[i]
                    aa_BR[b, r] += aa
                    ab_BR[b, r] += ab
                    m += length

    # Sums of whole numbers below 2⁵³ are exact in any order, so that the compiler may take several at a time.
    return compiled(add, fastmath={"reassoc"})


def _full_sums(k_RST: np.ndarray, n_S: np.ndarray, people: PeopleReplicates) -> CurveSums:
    """Sums of the full sample, (R,)."""
    c_RST, h_ST = 2 * k_RST - n_S[:, None], 2 * people.k_ST - people.n_S[:, None]
    num_trials = h_ST.shape[1]
    aa_R, variance_R = squared_share_sums((c_RST**2).sum(axis=2).T.astype(np.float64), n_S[:, None], num_trials)
    bb, own_variance = squared_share_sums((h_ST**2).sum(axis=1).astype(np.float64), people.n_S, num_trials)
    ab_RS = (c_RST * h_ST).sum(axis=2) / (4.0 * n_S * people.n_S)
    return CurveSums(aa_R, torch.from_numpy(ab_RS.sum(axis=1)), bb, variance_R, own_variance, h_ST.size)


def _require_tables(tables: list[np.ndarray], num_subtasks: int, num_trials: int) -> None:
    if len(tables) != num_subtasks:
        raise ValueError(f"the model has sessions of {len(tables)} subtasks, people of {num_subtasks}")
    for s, table in enumerate(tables):
        if table.ndim != 3 or len(table) != len(tables[0]) or table.shape[2] != num_trials:
            shape = (len(tables[0]), "sessions", num_trials)
            raise ValueError(f"subtask {s}: choices must have shape {shape}, got {table.shape}")
        if table.shape[1] < 2:
            raise ValueError(f"subtask {s} has {table.shape[1]} sessions of the model; at least 2 are needed")
