"""What learning curves say besides MSE_n: accuracy, how soon, on which subtasks, and how alike difficulty is.

Legend: S subtasks, T trials, B replicates, C conditions. Trials count from 0, so that trial t comes after t examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata

from humanlike.metrics.functional import CurveSums, MSEn, MSEnSwitches
from humanlike.stats.intervals import Interval, basic, percentile
from humanlike.stats.learning_resampling import PeopleReplicates, checked_counts


@dataclass(frozen=True)
class CurveSummary:
    """Numbers of one observer's learning curves.

    Attributes:
        accuracy: Mean over subtasks and trials.
        hardest_decile: Mean accuracy on the observer's own hardest tenth of the subtasks (rounded, at least one).
        examples_to_75: Fewest examples after which the mean curve reaches .75; NaN if it never does.
        examples_to_90_percent: Fewest examples after which it reaches 90% of its level on the last trial.
        mean_curve_T: (T,) mean over subtasks.
        accuracy_S: (S,) mean over trials.
    """

    accuracy: float
    hardest_decile: float
    examples_to_75: float
    examples_to_90_percent: float
    mean_curve_T: np.ndarray
    accuracy_S: np.ndarray


def curve_summary(k_ST: np.ndarray, n_S: np.ndarray) -> CurveSummary:
    """Summary of counts of correct choices.

    Args:
        k_ST: (S, T) correct choices.
        n_S: (S,) sessions.

    Raises:
        ValueError: If counts do not fit.

    References:
        Lee and DiCarlo, "Humans rapidly learn" (Figure 1).
    """
    k_ST, n_S = checked_counts(k_ST, n_S)
    share_ST = k_ST / n_S[:, None]
    curve_T, accuracy_S = share_ST.mean(axis=0), share_ST.mean(axis=1)
    return CurveSummary(
        accuracy=float(share_ST.mean()),
        hardest_decile=hardest_decile(accuracy_S),
        examples_to_75=examples_to_reach(curve_T, 0.75),
        examples_to_90_percent=examples_to_reach(curve_T, 0.9 * float(curve_T[-1])),
        mean_curve_T=curve_T,
        accuracy_S=accuracy_S,
    )


def hardest_decile(accuracy_S: np.ndarray) -> float:
    """Mean of the lowest tenth of the subtasks' accuracies (their number rounded, at least one).

    Example:
        >>> hardest_decile(np.array([0.5, 0.75, *[0.9] * 18]))
        0.625
    """
    return float(np.sort(accuracy_S)[: max(1, round(len(accuracy_S) / 10))].mean())


def examples_to_reach(curve_T: np.ndarray, level: float) -> float:
    """Number of examples seen before the first trial whose accuracy is at least `level`; NaN if there is none.

    The curve is taken as it is, not smoothed: with few sessions a lucky early trial counts.

    Example:
        >>> examples_to_reach(np.array([0.5, 0.7, 0.8]), 0.75), examples_to_reach(np.array([0.5]), 0.75)
        (2.0, nan)
    """
    reached = np.asarray(curve_T) >= level
    return float(np.argmax(reached)) if reached.any() else float("nan")


def rank_correlation(first_XS: np.ndarray, second_XS: np.ndarray) -> np.ndarray:
    """(...) Spearman's ρ over the last dimension, average ranks for ties; NaN where a side does not vary.

    Example:
        >>> float(rank_correlation(np.array([0.1, 0.5, 0.9]), np.array([3, 7, 8])))
        1.0
    """
    a, b = (rankdata(x, axis=-1) for x in (first_XS, second_XS))
    a, b = (x - x.mean(axis=-1, keepdims=True) for x in (a, b))
    scale = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    return np.divide((a * b).sum(axis=-1), scale, out=np.full(scale.shape, np.nan), where=scale > 0)


@dataclass(frozen=True)
class ConsistencyCeiling:
    """Consistency between two repetitions of the experiment.

    Attributes:
        mean: Mean of the replicates.
        range: Their percentile range, where 95% of repetitions lie.
        replicates_B: (B,) ρ between two independent resamples of people.
        flags: `within_session_correlation_ignored` from counts: ρ is then overstated (.988 where sessions give .97),
            because what a session is good at as a whole does not vary.
    """

    mean: float
    range: Interval
    replicates_B: np.ndarray
    flags: tuple[str, ...]


def consistency_ceiling(people: PeopleReplicates, again: PeopleReplicates, level: float = 0.95) -> ConsistencyCeiling:
    """ρ of the subtasks' accuracies between two independent resamples of the same people.

    Args:
        people: One set of replicates.
        again: Another of the same people, drawn under another `role`.
        level: Share of the replicates in `range`.

    Raises:
        ValueError: If the two are not of the same people, or are the same draws.

    References:
        Lee and DiCarlo, "Consistency of subtask difficulty".
    """
    if people.replicate_SBT.shape != again.replicate_SBT.shape or (people.k_ST != again.k_ST).any():
        raise ValueError("both sets of replicates must be of the same people and equally many")
    if (people.replicate_SBT == again.replicate_SBT).all():
        raise ValueError("both sets hold the same draws; make the second under another role")
    rho_B = rank_correlation(resampled_accuracy(people), resampled_accuracy(again))
    return ConsistencyCeiling(float(np.nanmean(rho_B)), percentile(rho_B, level), rho_B, people.flags)


def resampled_accuracy(people: PeopleReplicates, trials: slice = slice(None)) -> np.ndarray:
    """(B, S) people's mean accuracy over the trials in every replicate."""
    return people.accuracy_BS(trials)


def random_guess_score(k_ST: np.ndarray, n_S: np.ndarray, switches: MSEnSwitches | None = None) -> MSEn:
    """MSE_n of a model that guesses on every trial, simulated infinitely often: mean (½ - H)² [- mean var H].

    Args:
        k_ST: (S, T) people's correct choices.
        n_S: (S,) sessions.
        switches: Convention; the paper's when None.
    """
    k_ST, n_S = checked_counts(k_ST, n_S)
    people = k_ST / n_S[:, None]
    variance = people * (1 - people) / (n_S[:, None] - 1)
    half, zero = np.full(people.size, 0.5), np.zeros(people.size)
    arrays = (half, people.ravel(), zero, variance.ravel())
    return CurveSums.from_shares(*(torch.from_numpy(x) for x in arrays)).msen(switches, fit_lapse=False)


def strong_baselines(score_M: np.ndarray, share: float = 0.01) -> np.ndarray:
    """Indices of the models with the lowest scores, best first: a share of them (rounded up), ties by position.

    Args:
        score_M: (M,) MSE_n; NaN are never chosen.
        share: In (0, 1].

    Raises:
        ValueError: If the share is out of range.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share of strong baselines must lie in (0, 1], got {share}")
    score = np.asarray(score_M, dtype=np.float64)
    chosen = np.argsort(score, kind="stable")[: int(np.ceil(share * len(score) - 1e-9))]
    return chosen[np.isfinite(score[chosen])]


def mean_by_group(
    value_C: np.ndarray, replicate_BC: np.ndarray, group_C: np.ndarray, level: float = 0.95
) -> dict[str, tuple[float, Interval]]:
    """Mean accuracy of every transformation type (over its levels) with its basic interval.

    Args:
        value_C: (C,) accuracies.
        replicate_BC: (B, C) their replicates.
        group_C: (C,) type of each condition.
        level: Coverage asked for.
    """
    means = {}
    for name in dict.fromkeys(np.asarray(group_C).tolist()):
        inside = np.asarray(group_C) == name
        value = float(np.mean(np.asarray(value_C)[inside]))
        means[str(name)] = (value, basic(value, np.asarray(replicate_BC)[:, inside].mean(axis=1), level))
    return means
