"""Intraclass correlation: how reliable ratings of targets by judges are.

Legend: N targets (sketches), K judges (participants).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import f as f_distribution


@dataclass(frozen=True)
class IntraclassCorrelation:
    """One of Shrout and Fleiss's six coefficients.

    Attributes:
        model: 1 (judges differ from target to target), 2 (judges are a sample of judges), 3 (these judges alone).
        average: Whether it is of the mean over the K judges rather than of one judge.
        value: The coefficient; below 0 where targets differ less than their ratings vary.
        low: Lower end of its interval.
        high: Upper end.
    """

    model: int
    average: bool
    value: float
    low: float
    high: float


def intraclass_correlations(rating_NK: np.ndarray, level: float = 0.95) -> dict[str, IntraclassCorrelation]:
    """All six coefficients of Shrout and Fleiss with their intervals.

    ICC(2,k) is that of a study whose judges are a sample of people and whose result is the mean over them.

    Args:
        rating_NK: (N, K) ratings, every judge on every target.
        level: Coverage of the intervals, in (0, 1).

    Returns:
        "icc1", "icc2", "icc3", "icc1k", "icc2k", "icc3k" → coefficient.

    Raises:
        ValueError: When a rating is missing, or there are fewer than two targets or judges.

    References:
        Shrout & Fleiss 1979 (Psychological Bulletin 86); McGraw & Wong 1996 (Psychological Methods 1) for intervals.

    Example:
        >>> table = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
        >>> {name: round(c.value, 2) for name, c in intraclass_correlations(table).items()}
        {'icc1': 0.17, 'icc2': 0.29, 'icc3': 0.71, 'icc1k': 0.44, 'icc2k': 0.62, 'icc3k': 0.91}
    """
    rating_NK = np.asarray(rating_NK, np.float64)
    if rating_NK.ndim != 2 or min(rating_NK.shape) < 2:
        raise ValueError(f"ratings must be two or more targets × two or more judges, got shape {rating_NK.shape}")
    if not np.isfinite(rating_NK).all():
        row, column = np.argwhere(~np.isfinite(rating_NK))[0]
        raise ValueError(
            f"judge {column} has no rating of target {row}; intraclass correlations need every judge on every target"
        )
    n, k = rating_NK.shape
    target_N, judge_K = rating_NK.mean(axis=1), rating_NK.mean(axis=0)
    mean = rating_NK.mean()
    between = k * ((target_N - mean) ** 2).sum() / (n - 1)
    judges = n * ((judge_K - mean) ** 2).sum() / (k - 1)
    residual = rating_NK - target_N[:, None] - judge_K + mean
    error = (residual**2).sum() / ((n - 1) * (k - 1))
    within = ((rating_NK - target_N[:, None]) ** 2).sum() / (n * (k - 1))
    if between + judges + error <= 0:
        nothing = float("nan")
        return {
            f"icc{m}{'k' if a else ''}": IntraclassCorrelation(m, a, nothing, nothing, nothing)
            for a in (False, True)
            for m in (1, 2, 3)
        }
    tail = (1 - level) / 2
    one = _one_way(between, within, n, k, tail)
    two = _two_way_random(between, judges, error, n, k, tail)
    three = _one_way(between, error, n, k, tail, fixed=True)
    single = {1: one, 2: two, 3: three}
    out = {f"icc{m}": IntraclassCorrelation(m, False, *values) for m, values in single.items()}
    return out | {
        f"icc{m}k": IntraclassCorrelation(m, True, *(_stepped_up(v, k) for v in values)) for m, values in single.items()
    }


def _one_way(
    between: float, noise: float, n: int, k: int, tail: float, fixed: bool = False
) -> tuple[float, float, float]:
    """ICC(1,1), or ICC(3,1) with the judges' means taken out, and its exact interval."""
    below = between + (k - 1) * noise
    value = (between - noise) / below if below > 0 else np.nan
    if noise <= 0:
        return float(value), float(value), float(value)
    ratio, df_noise = between / noise, (n - 1) * (k - 1) if fixed else n * (k - 1)
    low = ratio / f_distribution.ppf(1 - tail, n - 1, df_noise)
    high = ratio * f_distribution.ppf(1 - tail, df_noise, n - 1)
    return float(value), float((low - 1) / (low + k - 1)), float((high - 1) / (high + k - 1))


def _two_way_random(
    between: float, judges: float, error: float, n: int, k: int, tail: float
) -> tuple[float, float, float]:
    """ICC(2,1) and its approximate interval with Satterthwaite's degrees of freedom."""
    value = (between - error) / (between + (k - 1) * error + k * (judges - error) / n)
    if error <= 0:
        return float(value), np.nan, np.nan
    ratio = judges / error
    a, b = k * value * ratio, n * (1 + (k - 1) * value) - k * value
    df = (k - 1) * (n - 1) * (a + b) ** 2 / ((n - 1) * a**2 + b**2)
    upper, lower = f_distribution.ppf(1 - tail, n - 1, df), f_distribution.ppf(1 - tail, df, n - 1)
    rest = k * judges + (k * n - k - n) * error
    low = n * (between - upper * error) / (upper * rest + n * between)
    high = n * (lower * between - error) / (rest + n * lower * between)
    return float(value), float(low), float(high)


def _stepped_up(value: float, k: int) -> float:
    """Spearman and Brown's formula: from one judge to the mean of k."""
    below = 1 + (k - 1) * value
    return float(k * value / below) if below > 0 else float("nan")
