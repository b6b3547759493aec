"""Entropy of many small groups of counts at once, for many replicates at once.

Legend: E entries (one label of one group), S groups (a sketch or a cell), B replicates.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.sparse import csr_matrix

Estimator = Literal["plugin", "miller_madow", "chao_shen"]
ESTIMATORS: tuple[str, ...] = get_args(Estimator)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Numerator / denominator, NaN where the denominator is 0 (nothing was seen).

    Example:
        >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
        [0.25, nan]
    """
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def group_sums(start_S: np.ndarray, num_entries: int) -> csr_matrix:
    """(S, E) matrix that sums entries over groups: group s owns the entries from start_S[s] to the next start."""
    indptr = np.append(start_S, num_entries)
    return csr_matrix((np.ones(num_entries), np.arange(num_entries), indptr), shape=(len(start_S), num_entries))


def grouped_entropy(n_EB: np.ndarray, sums_SE: csr_matrix, estimator: Estimator = "plugin") -> np.ndarray:
    """Response entropy of every group in nats.

    With N = Σn, m = #{n > 0}, f₁ = #{n = 1} in a group:
    plugin        H = log N - Σ n log n / N, the entropy of n/N;
    miller_madow  H + (m - 1) / (2N);
    chao_shen     -Σ p̃ log p̃ / (1 - (1 - p̃)^N), p̃ = Ĉ·n/N, Ĉ = 1 - f₁/N (f₁ = N → N - 1 in its place; N = 1 → 0).
    Low means that answers agree. The plug-in lies in [0, log m] and is biased low for few answers; the other two
    correct for that and may exceed it.

    Args:
        n_EB: (E, B) counts, entries of a group adjacent; whole numbers for the corrected estimators.
        sums_SE: (S, E) matrix of `group_sums`.
        estimator: Which of the three.

    Returns:
        (S, B) float64, NaN for a group without an answer.

    Raises:
        ValueError: If a corrected estimator meets a count that is not whole.

    References:
        Miller 1955; Chao & Shen 2003 (Environmental and Ecological Statistics 10). Mukherjee et al. 2023 (SEVA),
        Section 2.3, uses the plug-in.

    Example:
        >>> n = np.array([[2.0], [2.0], [1.0]])
        >>> grouped_entropy(n, group_sums(np.array([0, 2]), 3)).ravel().round(6).tolist()
        [0.693147, 0.0]
    """
    total_SB = sums_SE @ n_EB
    if estimator == "chao_shen":
        _need_whole(n_EB, estimator)
        return _chao_shen(n_EB, total_SB, sums_SE)
    # n log n is 0 at 0; log(max(n, tiny)) avoids the slow masked path.
    n_log_n = n_EB * np.log(np.where(n_EB > 0, n_EB, 1.0))
    share = ratio(sums_SE @ n_log_n, total_SB)
    entropy_SB = np.maximum(np.log(np.where(total_SB > 0, total_SB, 1.0)) - share, 0.0)
    if estimator == "miller_madow":
        _need_whole(n_EB, estimator)
        kinds_SB = sums_SE @ (n_EB > 0).astype(np.float64)
        entropy_SB = entropy_SB + ratio(kinds_SB - 1.0, 2.0 * total_SB)
    return entropy_SB


def _need_whole(n_EB: np.ndarray, estimator: str) -> None:
    if np.any(n_EB != np.rint(n_EB)):
        raise ValueError(
            f"estimator={estimator!r} needs whole counts (and whole image weights); use 'plugin' for probabilities "
            "or fractional weights"
        )


def _chao_shen(n_EB: np.ndarray, total_SB: np.ndarray, sums_SE: csr_matrix) -> np.ndarray:
    single_SB = sums_SE @ (n_EB == 1).astype(np.float64)
    single_SB = np.where((single_SB == total_SB) & (total_SB > 1), total_SB - 1.0, single_SB)
    coverage_SB = ratio(total_SB - single_SB, total_SB * np.maximum(total_SB, 1.0))  # Ĉ / N
    entries_S = np.diff(sums_SE.indptr)
    p_EB = n_EB * np.nan_to_num(np.repeat(coverage_SB, entries_S, axis=0))
    total_EB = np.repeat(total_SB, entries_S, axis=0)
    inside = (p_EB > 0) & (p_EB < 1)
    p_EB = np.where(inside, p_EB, 0.5)
    seen_EB = -np.expm1(np.where(inside, total_EB, 1.0) * np.log1p(-p_EB))
    entropy_SB = sums_SE @ np.where(inside, -p_EB * np.log(p_EB) / seen_EB, 0.0)
    return np.where(total_SB > 0, entropy_SB, np.nan)
