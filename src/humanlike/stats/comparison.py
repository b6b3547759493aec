"""All pairs of many models compared on the same resamples, with p-values adjusted for their number.

Legend: M models, B replicates, Q = M (M - 1) / 2 pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtr

from humanlike.stats.intervals import recentred

Centring = Literal["ratio_centred", "basic"]
"""How each model's replicates are moved to its estimate: stretched by θ̂/m (an R²), or moved only (a mean)."""
Adjustment = Literal["holm", "benjamini_hochberg", "none"]

_PAIRS_AT_A_TIME = 1024
_ROUNDING = 1e-13


@dataclass(frozen=True)
class PairedComparisons:
    """Differences of all pairs of models, a before b in the order given.

    Attributes:
        a_Q: Index of the first model.
        b_Q: Index of the second.
        difference_Q: θ̂_a - θ̂_b on the full sample.
        std_error_Q: Standard deviation of the replicates of the difference.
        low_Q: Lower end of its interval.
        high_Q: Upper end.
        p_Q: Two-sided p of "no difference"; NaN where it cannot be said.
        p_adjusted_Q: The same for all pairs together.
        n_Q: Replicates that both models have.
        adjustment: How p was adjusted.
        level: Coverage of each interval, one pair at a time.
    """

    a_Q: np.ndarray
    b_Q: np.ndarray
    difference_Q: np.ndarray
    std_error_Q: np.ndarray
    low_Q: np.ndarray
    high_Q: np.ndarray
    p_Q: np.ndarray
    p_adjusted_Q: np.ndarray
    n_Q: np.ndarray
    adjustment: str
    level: float

    def separable(self, num_models: int) -> np.ndarray:
        """(M, M) bool, symmetric: pairs whose adjusted p is at most 1 - level."""
        out = np.zeros((num_models, num_models), dtype=bool)
        told = self.p_adjusted_Q <= 1 - self.level + 1e-12
        out[self.a_Q[told], self.b_Q[told]] = out[self.b_Q[told], self.a_Q[told]] = True
        return out


def compare_pairs(
    estimate_M: np.ndarray,
    replicates_MB: np.ndarray,
    *,
    centring: Centring = "ratio_centred",
    adjustment: Adjustment = "holm",
    level: float = 0.95,
) -> PairedComparisons:
    """Every pair of models on the same resamples.

    The interval is that of `intervals.difference`: both models' replicates are moved to their full-sample estimates and
    the spread of the differences is reflected about the full-sample difference. p is of z = difference / s.d. of the
    replicates of the difference, from the normal distribution: counting replicates could not go below 2/(B + 1), which
    no adjustment for 136 pairs survives. So p and interval rest on the same replicates, but a p next to 0.05 may
    disagree with the interval's end. Where neither the difference nor any replicate of it differs from 0 (a model
    against itself), p is 1.

    Args:
        estimate_M: (M,) full-sample values; a model with NaN has NaN comparisons, which no adjustment counts.
        replicates_MB: (M, B) replicates, column by column on one resample; NaN where degenerate.
        centring: "ratio_centred" for R², "basic" for anything else.
        adjustment: "holm" (family-wise error), "benjamini_hochberg" (false discovery rate) or "none".
        level: Coverage of the intervals, and 1 - level the size of the tests in `separable`.

    Raises:
        ValueError: If shapes do not fit or an option is unknown.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> pairs = compare_pairs(np.array([0.5, 0.1]), rng.normal([[0.5], [0.1]], 0.01, (2, 200)))
        >>> round(float(pairs.difference_Q[0]), 6), bool(pairs.p_Q[0] < 1e-6), pairs.separable(2)[0, 1].item()
        (0.4, True, True)
    """
    estimate_M, replicates_MB = np.asarray(estimate_M, np.float64), np.asarray(replicates_MB, np.float64)
    if estimate_M.ndim != 1 or replicates_MB.ndim != 2 or len(estimate_M) != len(replicates_MB):
        raise ValueError(
            "estimate_M must be (M,) and replicates_MB (M, B) for the same models, got shapes "
            f"{estimate_M.shape} and {replicates_MB.shape}"
        )
    for name, value, allowed in (
        ("centring", centring, get_args(Centring)),
        ("adjustment", adjustment, get_args(Adjustment)),
    ):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, for example 0.95, got {level}")
    moved_MB = np.stack(
        [_moved(e, r, centring) for e, r in zip(estimate_M, replicates_MB, strict=True)]
        or [np.empty(replicates_MB.shape[1])]
    )
    a_Q, b_Q = np.triu_indices(len(estimate_M), k=1)
    difference_Q = estimate_M[a_Q] - estimate_M[b_Q]
    std_error_Q, low_Q, high_Q, n_Q = _spread(moved_MB, a_Q, b_Q, level)
    # What is left by rounding where all replicates are equal is no spread.
    rounding_Q = _ROUNDING * (np.abs(estimate_M[a_Q]) + np.abs(estimate_M[b_Q]))
    std_error_Q[std_error_Q <= rounding_Q] = 0.0
    p_Q = difference_p(difference_Q, std_error_Q)
    return PairedComparisons(
        a_Q=a_Q,
        b_Q=b_Q,
        difference_Q=difference_Q,
        std_error_Q=std_error_Q,
        low_Q=difference_Q + low_Q,
        high_Q=difference_Q + high_Q,
        p_Q=p_Q,
        p_adjusted_Q=ADJUSTMENTS[adjustment](p_Q),
        n_Q=n_Q,
        adjustment=adjustment,
        level=level,
    )


def difference_p(difference: np.ndarray, std_error: np.ndarray) -> np.ndarray:
    """Two-sided normal p; 1 where difference and standard error are 0, NaN where only the latter is."""
    difference, std_error = np.asarray(difference, np.float64), np.asarray(std_error, np.float64)
    z = np.divide(np.abs(difference), std_error, out=np.full(difference.shape, np.nan), where=std_error > 0)
    return np.where((difference == 0) & (std_error == 0), 1.0, 2 * ndtr(-z))


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment: the chance of any false claim among all stays below the level at which p is read.

    Args:
        p: p-values; NaN is left out of the family and stays NaN.

    References:
        Holm 1979 (Scandinavian Journal of Statistics 6).

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).round(6).tolist()
        [0.03, 0.06, 0.06]
    """
    return _stepwise(p, lambda p_sorted: np.maximum.accumulate(p_sorted * np.arange(len(p_sorted), 0, -1)))


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's step-up adjustment: the expected share of false claims among the claims.

    Valid for independent and for positively dependent tests; differences that share a model are not all of that kind.

    Args:
        p: As in `holm`.

    References:
        Benjamini & Hochberg 1995 (Journal of the Royal Statistical Society B 57).

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(6).tolist()
        [0.03, 0.04, 0.04]
    """

    def step_up(p_sorted: np.ndarray) -> np.ndarray:
        scaled = p_sorted * len(p_sorted) / np.arange(1, len(p_sorted) + 1)
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _stepwise(p, step_up)


def _unadjusted(p: np.ndarray) -> np.ndarray:
    return np.asarray(p, np.float64).copy()


ADJUSTMENTS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = MappingProxyType(
    {"holm": holm, "benjamini_hochberg": benjamini_hochberg, "none": _unadjusted}
)
"""Name → function from p-values to adjusted ones."""


def _stepwise(p: np.ndarray, adjust: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    p = np.asarray(p, np.float64)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    out = np.full(p.shape, np.nan)
    out[order] = np.minimum(adjust(p[order]), 1.0)
    return out


def _moved(estimate: float, replicates_B: np.ndarray, centring: Centring) -> np.ndarray:
    """Replicates with the estimate as their mean."""
    if centring == "ratio_centred":
        return recentred(estimate, replicates_B)
    known = np.isfinite(replicates_B)
    return replicates_B + (estimate - replicates_B[known].mean() if known.any() else np.nan)


def _spread(
    moved_MB: np.ndarray, a_Q: np.ndarray, b_Q: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standard deviation of the replicates of each difference, ends of the reflected spread, usable replicates."""
    sd_Q, low_Q, high_Q = (np.full(len(a_Q), np.nan) for _ in range(3))
    n_Q = np.zeros(len(a_Q), dtype=np.int64)
    for pairs, difference_qB in _complete(moved_MB, a_Q, b_Q):
        n_Q[pairs] = difference_qB.shape[1]
        if difference_qB.shape[1] < 2:
            continue
        mean_q = difference_qB.mean(axis=1)
        q_low, q_high = np.quantile(difference_qB, [(1 - level) / 2, (1 + level) / 2], axis=1, overwrite_input=True)
        sd_Q[pairs] = difference_qB.std(axis=1, ddof=1)
        low_Q[pairs], high_Q[pairs] = mean_q - q_high, mean_q - q_low
    return sd_Q, low_Q, high_Q, n_Q


def _complete(moved_MB: np.ndarray, a_Q: np.ndarray, b_Q: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs, and their (q, B') differences without a NaN: many complete pairs at a time, others one by one."""
    known_MB = np.isfinite(moved_MB)
    whole_M = known_MB.all(axis=1)
    whole = np.flatnonzero(whole_M[a_Q] & whole_M[b_Q])
    for start in range(0, len(whole), _PAIRS_AT_A_TIME):
        pairs = whole[start : start + _PAIRS_AT_A_TIME]
        yield pairs, moved_MB[a_Q[pairs]] - moved_MB[b_Q[pairs]]
    for pair in np.flatnonzero(~(whole_M[a_Q] & whole_M[b_Q])):
        a, b = a_Q[pair], b_Q[pair]
        both_B = known_MB[a] & known_MB[b]
        yield np.array([pair]), (moved_MB[a, both_B] - moved_MB[b, both_B])[None]
