"""Entropy of many small groups of counts at once, for many replicates at once.

The formulas are those of `humanlike.metrics.functional.response`; here their terms are summed over groups of entries.

Legend: E entries (one label of one group), S groups (a sketch or a cell), B replicates.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from scipy.sparse import csr_matrix

from humanlike.metrics.functional.response import (
    chao_shen_coverage,
    chao_shen_terms,
    miller_madow_shift,
    plug_in_terms,
)

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
    plugin        H = -Σ q log q, q = n/N;
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
    if estimator != "plugin":
        _need_whole(n_EB, estimator)
    entries_S = np.diff(sums_SE.indptr)
    total_SB = sums_SE @ n_EB
    total_EB = np.repeat(total_SB, entries_S, axis=0)
    n, total_s, total_e = (torch.from_numpy(x) for x in (n_EB, total_SB, total_EB))
    if estimator == "chao_shen":
        coverage_SB = chao_shen_coverage(torch.from_numpy(sums_SE @ (n_EB == 1).astype(np.float64)), total_s).numpy()
        coverage_EB = np.repeat(coverage_SB, entries_S, axis=0)
        given_EB, terms_EB = n_EB > 0, np.zeros(n_EB.shape)  # most labels are absent from a resample, and cost the most
        given = (torch.from_numpy(x_EB[given_EB]) for x_EB in (n_EB, total_EB, coverage_EB))
        terms_EB[given_EB] = chao_shen_terms(*given).numpy()
        return np.where(total_SB > 0, sums_SE @ terms_EB, np.nan)
    entropy_SB = sums_SE @ plug_in_terms(n, total_e).numpy()
    if estimator == "miller_madow":
        kinds_s = torch.from_numpy(sums_SE @ (n_EB > 0).astype(np.float64))
        entropy_SB += miller_madow_shift(kinds_s, total_s).numpy()
    return entropy_SB


def _need_whole(n_EB: np.ndarray, estimator: str) -> None:
    if np.any(n_EB != np.rint(n_EB)):
        raise ValueError(
            f"estimator={estimator!r} needs whole counts (and whole image weights); use 'plugin' for probabilities "
            "or fractional weights"
        )
