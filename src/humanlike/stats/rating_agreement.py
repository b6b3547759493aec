"""Do people's mean ratings rise with a score? Correlations, bins and reliability of ratings.

Legend: P participants, S sketches, B replicates.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from humanlike.rng import generator
from humanlike.stats.intervals import Interval, basic
from humanlike.stats.two_way_bootstrap import CrossedWeights

CORRELATIONS = ("pearson", "spearman", "kendall")
_CLOSEST = 1 - 1e-9
"""Correlations nearer to 1 than this are taken as this on Fisher's scale."""


def mean_ratings(rating_PS: np.ndarray, weights_BP: np.ndarray | None = None) -> np.ndarray:
    """(S,) mean rating of every sketch, or (B, S) under weights of participants; NaN where nobody rated it.

    Args:
        rating_PS: (P, S) ratings, NaN where there is none.
        weights_BP: (B, P) how often each participant counts.

    Example:
        >>> mean_ratings(np.array([[1.0, 4.0], [3.0, np.nan]])).tolist()
        [2.0, 4.0]
    """
    known_PS = np.isfinite(rating_PS)
    weights = np.ones((1, len(rating_PS))) if weights_BP is None else np.asarray(weights_BP, np.float64)
    count_BS = weights @ known_PS.astype(np.float64)
    sum_BS = weights @ np.where(known_PS, rating_PS, 0.0)
    mean_BS = np.divide(sum_BS, count_BS, out=np.full(sum_BS.shape, np.nan), where=count_BS > 0)
    return mean_BS[0] if weights_BP is None else mean_BS


def weighted_correlations(x_S: np.ndarray, y_S: np.ndarray, count_S: np.ndarray | None = None) -> dict[str, float]:
    """Pearson's r, Spearman's ρ and Kendall's τ_b, each sketch as often as `count_S` says.

    Args:
        x_S: (S,) first values; pairs with a NaN are left out.
        y_S: (S,) second values.
        count_S: (S,) whole numbers ≥ 0; None: once each.

    Returns:
        `CORRELATIONS` → value; NaN below two different values on either side.

    Example:
        >>> found = weighted_correlations(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 9.0]))
        >>> {name: round(value, 3) for name, value in found.items()}
        {'pearson': 0.918, 'spearman': 1.0, 'kendall': 1.0}
    """
    count_S = np.ones(len(x_S)) if count_S is None else np.asarray(count_S, np.float64)
    kept = (count_S > 0) & np.isfinite(x_S) & np.isfinite(y_S)
    x, y, w = x_S[kept], y_S[kept], count_S[kept]
    if len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return dict.fromkeys(CORRELATIONS, float("nan"))
    sign_x, sign_y = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    pairs = np.outer(w, w)
    below = np.sqrt((pairs * (sign_x != 0)).sum()) * np.sqrt((pairs * (sign_y != 0)).sum())
    return {
        "pearson": _pearson(x, y, w),
        "spearman": _pearson(_weighted_ranks(x, w), _weighted_ranks(y, w), w),
        "kendall": float((pairs * sign_x * sign_y).sum() / below),
    }


def correlations_under(score_S: np.ndarray, rating_PS: np.ndarray, weights: CrossedWeights) -> dict[str, np.ndarray]:
    """`CORRELATIONS` → (B,) correlation of mean ratings with a score on resampled participants and sketches.

    Args:
        score_S: (S,) score of every sketch, NaN where it has none.
        rating_PS: (P, S) ratings, NaN where there is none.
        weights: Draws of participants and sketches.
    """
    mean_BS = mean_ratings(rating_PS, weights.participants_BP)
    found = [
        weighted_correlations(score_S, mean_S, count_S)
        for mean_S, count_S in zip(mean_BS, weights.items_BI, strict=True)
    ]
    return {name: np.array([one[name] for one in found]) for name in CORRELATIONS}


def correlation_interval(estimate: float, replicates_B: np.ndarray, level: float = 0.95) -> Interval:
    """Interval of a correlation: replicates moved to the estimate and reflected on Fisher's scale (artanh).

    Resampled participants make means noisier, so replicates lie below the estimate; they are centred on it as
    `intervals.basic` does, and artanh keeps both ends within [-1, 1].

    Args:
        estimate: Correlation on the full sample.
        replicates_B: (B,) replicates, NaN where degenerate.
        level: Coverage asked for, in (0, 1).

    Example:
        >>> found = correlation_interval(0.9, np.tanh(np.array([1.0, 1.2, 1.4])))
        >>> round(found.low, 3), round(found.high, 3)
        (0.857, 0.931)
    """
    found = basic(float(_fisher(np.array(estimate))), _fisher(np.asarray(replicates_B, np.float64)), level)
    return Interval(float(np.tanh(found.low)), float(np.tanh(found.high)), "basic, Fisher's scale", found.n_degenerate)


def split_half_reliability(rating_PS: np.ndarray, splits: int, seed: int) -> dict[str, np.ndarray]:
    """Correlation of the mean ratings by two random halves of the participants, for many splits.

    Args:
        rating_PS: (P, S) ratings, NaN where there is none.
        splits: Number of random splits.
        seed: Global seed.

    Returns:
        `correlation`: (splits,) Pearson's r of the halves; `spearman_brown`: (splits,) 2r/(1 + r), the reliability of
        the mean over all participants.

    Raises:
        ValueError: Below two participants.

    References:
        Spearman 1910; Brown 1910 (British Journal of Psychology 3).
    """
    count = len(rating_PS)
    if count < 2 or splits < 1:
        raise ValueError(f"halves need two or more participants and a split or more, got {count} and {splits}")
    r = np.empty(splits)
    for split in range(splits):
        half_P = np.zeros(count)
        half_P[generator(seed, "rating halves", split).permutation(count)[: count // 2]] = 1
        one_S, other_S = mean_ratings(rating_PS, np.stack([half_P, 1 - half_P]))
        r[split] = weighted_correlations(one_S, other_S)["pearson"]
    stepped_up = np.divide(2 * r, 1 + r, out=np.full(splits, np.nan), where=r > -1)
    return {"correlation": r, "spearman_brown": stepped_up}


def quantile_bins(score_S: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Sketches in bins of equal numbers by their score.

    Args:
        score_S: (S,) scores, NaN where there is none.
        bins: How many.

    Returns:
        (S,) int64 bin of every sketch, -1 without a score; (bins + 1,) edges, a sketch on an edge in the upper bin.

    Example:
        >>> code, edges = quantile_bins(np.array([0.1, 0.9, 0.4, np.nan, 0.6]), 2)
        >>> code.tolist(), edges.tolist()
        ([0, 1, 0, -1, 1], [0.1, 0.5, 0.9])
    """
    known = np.isfinite(score_S)
    if bins < 1 or known.sum() < bins:
        raise ValueError(f"{int(known.sum())} scored sketches cannot fill {bins} bins; ask for fewer bins")
    edges = np.quantile(score_S[known], np.linspace(0, 1, bins + 1))
    code = np.full(len(score_S), -1, np.int64)
    code[known] = np.searchsorted(edges[1:-1], score_S[known], side="right")
    return code, edges


def noise_corrected_correlation(correlation: float, reliability: float) -> float:
    """R / √reliability: the correlation with ratings that had no noise; NaN where the reliability is not positive.

    Example:
        >>> round(noise_corrected_correlation(0.6, 0.81), 6)
        0.666667
    """
    return correlation / float(np.sqrt(reliability)) if reliability > 0 else float("nan")


def _fisher(r: np.ndarray) -> np.ndarray:
    return np.arctanh(np.clip(r, -_CLOSEST, _CLOSEST))


def _pearson(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    a, b = x - np.average(x, weights=w), y - np.average(y, weights=w)
    below = np.sqrt((w * a**2).sum() * (w * b**2).sum())
    return float((w * a * b).sum() / below) if below > 0 else float("nan")


def _weighted_ranks(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Average rank of each value in the sample that holds it w times."""
    dense = rankdata(values, method="dense") - 1
    at_value = np.bincount(dense, weights=w)
    return (np.cumsum(at_value) - (at_value - 1) / 2)[dense]
