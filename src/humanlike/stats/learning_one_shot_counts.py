"""Trials of the one-shot experiment as counts, and their correction for lapses.

People who remember their ten training trials answer a repeated training image correctly; where they do not (catch
trials), they have lapsed. With p_catch pooled over all people, γ = 2 - 2 p_catch and p' = (p - γ/2)/(1 - γ).

Legend: N sessions, T trials, C conditions, B replicates, M = 2C + 2 columns of counts, U units that are resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from humanlike.stats.learning_resampling import draw_sessions, resampled_counts

PeopleResampling = Literal["sessions", "worker_then_session", "workers"]
"""What is drawn: sessions within their subtask; a worker and then one session of theirs, as often as there are
sessions; workers with all their sessions."""
HumanVariance = Literal["bootstrap", "analytic"]
"""Variance of p': over the replicates, or p(1 - p)/(n - 1)/(1 - γ)²."""


@dataclass(frozen=True)
class OneShotSwitches:
    """How one-shot behaviour is scored.

    Attributes:
        catch_trials: 0-based trials whose support images count as catch trials.
        clip: Whether p' is clipped to [0, 1].
        people_resampling: See `PeopleResampling`.
        human_variance: See `HumanVariance`.
        subtract_human_noise: Whether the mean variance of people's p' is subtracted from MSE_n.
        compat: Repeat a fault of the current code: under "workers", only the last session of each worker enters
            p_catch, in the point estimate too.
    """

    catch_trials: tuple[int, ...] = (14, 19)
    clip: bool = False
    people_resampling: PeopleResampling = "worker_then_session"
    human_variance: HumanVariance = "bootstrap"
    subtract_human_noise: bool = False
    compat: bool = False

    def __post_init__(self) -> None:
        for name, known in (("people_resampling", PeopleResampling), ("human_variance", HumanVariance)):
            if getattr(self, name) not in get_args(known):
                raise ValueError(f"{name} must be one of {list(get_args(known))}, got {getattr(self, name)!r}")
        if self.compat and self.people_resampling != "workers":
            raise ValueError("compat repeats a fault of resampling workers; it needs people_resampling='workers'")


ONE_SHOT_CONVENTIONS: Mapping[str, OneShotSwitches] = MappingProxyType(
    {
        "paper": OneShotSwitches(),
        "v2": OneShotSwitches((9, 14, 19), True, "workers", "analytic", True),
        "paper_text": OneShotSwitches(people_resampling="sessions"),
    }
)
"""The three published definitions: code at publication, current code, the paper's words."""


@dataclass(frozen=True)
class OneShotCounts:
    """Correct choices and trials of each session by condition, and on catch trials.

    Attributes:
        k_NC: (N, C) int64 correct choices.
        n_NC: (N, C) int64 trials.
        catch_k_N: (N,) int64 correct choices on catch trials.
        catch_n_N: (N,) int64 catch trials.
    """

    k_NC: np.ndarray
    n_NC: np.ndarray
    catch_k_N: np.ndarray
    catch_n_N: np.ndarray

    @classmethod
    def from_trials(
        cls, correct_NT: np.ndarray, condition_NT: np.ndarray, catch_trials: Sequence[int], num_conditions: int = 36
    ) -> OneShotCounts:
        """Count trials.

        Args:
            correct_NT: (N, T) bool or 0 and 1; -1 for trials that are not there.
            condition_NT: (N, T) condition in [0, C), -1 for trials that none is scored of.
            catch_trials: 0-based trials that are catch trials.
            num_conditions: C.

        Raises:
            ValueError: If shapes differ, an entry or a trial is out of range, or a catch trial has a condition.
        """
        correct, condition = np.asarray(correct_NT).astype(np.int64), np.asarray(condition_NT)
        if correct.ndim != 2 or correct.shape != condition.shape:
            raise ValueError(
                f"choices and conditions need equal (sessions, trials), got {correct.shape} and {condition.shape}"
            )
        if condition.size and not (condition.min() >= -1 and condition.max() < num_conditions):
            raise ValueError(f"conditions must lie in [-1, {num_conditions}), got {condition.min()}, {condition.max()}")
        if not np.isin(correct, (-1, 0, 1)).all():
            raise ValueError("choices must be 1 (correct), 0 or -1 (no such trial)")
        catch = list(catch_trials)
        if not all(0 <= trial < correct.shape[1] for trial in catch):
            raise ValueError(f"catch trials {catch} must be 0-based trials of sessions of {correct.shape[1]}")
        if (condition[:, catch] >= 0).any():
            session = int(np.argwhere(condition[:, catch] >= 0)[0][0])
            raise ValueError(f"session {session} shows a transformed image on one of the catch trials {catch}")
        there = correct >= 0
        rows, trials = np.nonzero(there & (condition >= 0))
        where = rows * num_conditions + condition[rows, trials]
        shape, size = (len(correct), num_conditions), len(correct) * num_conditions
        return cls(
            np.bincount(where[correct[rows, trials] == 1], minlength=size).reshape(shape),
            np.bincount(where, minlength=size).reshape(shape),
            (correct[:, catch] == 1).sum(axis=1),
            there[:, catch].sum(axis=1),
        )

    def __len__(self) -> int:
        return len(self.k_NC)

    @property
    def table_NM(self) -> np.ndarray:
        """(N, 2C + 2) k, n, catch k, catch n side by side."""
        return np.column_stack([self.k_NC, self.n_NC, self.catch_k_N, self.catch_n_N])


def corrected_accuracy(p: np.ndarray, p_catch: float, *, clip: bool = False) -> np.ndarray:
    """Accuracy had there been no lapses: (p - γ/2)/(1 - γ), γ = 2 - 2 p_catch.

    Raises:
        ValueError: If p_catch is not in (½, 1].

    Example:
        >>> corrected_accuracy(np.array([0.95, 0.5]), 0.95).round(6).tolist()
        [1.0, 0.5]
    """
    if not 0.5 < p_catch <= 1:
        raise ValueError(f"accuracy on catch trials must lie above ½ and not above 1 to correct by it, got {p_catch}")
    gamma = 2 - 2 * p_catch
    value = (np.asarray(p, dtype=np.float64) - gamma / 2) / (1 - gamma)
    return value.clip(0, 1) if clip else value


def draw_within(table_UM: np.ndarray, stratum_U: np.ndarray, replicates: int, seed: int, role: str) -> np.ndarray:
    """(B, M) float64 sums of units drawn with replacement within strata."""
    _, code_U = np.unique(stratum_U, return_inverse=True)
    draws = draw_sessions(np.bincount(code_U), replicates, seed, "one_shot", role)
    total_BM = np.zeros((replicates, table_UM.shape[1]))
    for stratum, times in enumerate(draws.times):
        total_BM += resampled_counts(times, table_UM[code_U == stratum])
    return total_BM


def shares(total_BM: np.ndarray, num_conditions: int) -> tuple[np.ndarray, np.ndarray]:
    """(B, C) shares and their variances; NaN where fewer than two trials were drawn."""
    k_BC, n_BC = total_BM[:, :num_conditions], total_BM[:, num_conditions : 2 * num_conditions]
    n_BC = np.where(n_BC >= 2, n_BC, np.nan)  # a resample may miss a rare condition
    p_BC = k_BC / n_BC
    return p_BC, p_BC * (1 - p_BC) / (n_BC - 1)


def corrected_shares(total_BM: np.ndarray, clip: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(B, C) corrected shares and variances, and (B,) γ; NaN where p_catch ≤ ½."""
    p_BC, variance_BC = shares(total_BM, (total_BM.shape[1] - 2) // 2)
    catch_k_B, catch_n_B = total_BM[:, -2], total_BM[:, -1]
    known_B = 2 * catch_k_B > catch_n_B
    gamma_B = np.where(known_B, 2 - 2 * catch_k_B / np.maximum(catch_n_B, 1), np.nan)[:, None]
    p_BC = (p_BC - gamma_B / 2) / (1 - gamma_B)
    return p_BC.clip(0, 1) if clip else p_BC, variance_BC / (1 - gamma_B) ** 2, gamma_B[:, 0]


def require_trials(counts: OneShotCounts, who: str) -> None:
    """Refuse counts with a condition of fewer than two trials, whose variance is unknown."""
    n_C = counts.n_NC.sum(axis=0)
    if (n_C < 2).any():
        raise ValueError(f"condition {int(np.argmax(n_C < 2))} has {n_C.min()} trials of {who}; at least 2 are needed")
