"""Accuracy and entropy of response distributions.

Legend: C cells (concept × condition), L labels, B rows of any table; N = Σ n, m = #{n > 0}, f₁ = #{n = 1} in a row.
Entropies are in nats. Everything is computed in float64, row by row, so that a row's value does not depend on its
company.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Literal, get_args

import torch
from torch import Tensor

from humanlike.metrics.functional.arguments import (
    index_vector,
    nonnegative_table,
    require_integer_valued,
    require_length,
)

EntropyEstimator = Literal["pooled", "miller_madow", "chao_shen"]

# Rows turned to float64 at a time: 1,024 × 1,854 labels take 15 MB.
_ROWS_AT_A_TIME = 1024


def top1_accuracy(counts_CL: Tensor, target_C: Tensor) -> Tensor:
    """Share of a cell's top-1 responses that name the cell's concept.

    accuracy[c] = n[c, target[c]] / Σ_l n[c, l]; 0 is never right, 1 always. Responses are hard labels: the mean
    probability of the target is another quantity.

    Args:
        counts_CL: (C, L) counts ≥ 0 of top-1 responses.
        target_C: (C,) integer label index of each cell's concept.

    Returns:
        (C,) float64 in [0, 1]; NaN for a cell without responses.

    Raises:
        TypeError: If an argument is no tensor, or `target_C` is not of an integer dtype.
        ValueError: If a count is negative or not finite, a target lies outside [0, L), or lengths differ.

    References:
        SEVA (Mukherjee et al., 2023), Section 3, "top-1 classification accuracy".

    Example:
        >>> top1_accuracy(torch.tensor([[3, 1], [0, 0]]), torch.tensor([0, 1])).tolist()
        [0.75, nan]
    """
    counts_CL = nonnegative_table(counts_CL, "counts_CL")
    target_C = index_vector(target_C, "target_C", counts_CL.shape[1])
    require_length(target_C, "target_C", len(counts_CL), "counts_CL")
    hits_C = counts_CL.gather(1, target_C[:, None]).squeeze(1).double()
    return hits_C / counts_CL.sum(dim=1, dtype=torch.float64)


def row_entropy(p_BL: Tensor) -> Tensor:
    """Plug-in Shannon entropy of each row of a table of counts or probabilities, in nats.

    H = -Σ_l q_l log q_l with q = row / Σ row and 0·log 0 = 0; 0 is certainty, log L is uniformity.

    Args:
        p_BL: (B, L) entries ≥ 0; rows need not be normalised.

    Returns:
        (B,) float64 in [0, log L]; NaN for a row that sums to 0.

    Raises:
        TypeError: If `p_BL` is no tensor.
        ValueError: If an entry is negative or not finite.

    Example:
        >>> row_entropy(torch.tensor([[5.0, 0.0], [1.0, 1.0], [0.0, 0.0]])).tolist()
        [0.0, 0.6931471805599453, nan]
    """
    return _by_rows(nonnegative_table(p_BL, "p_BL"), _plug_in)


def response_entropy(counts_CL: Tensor, estimator: EntropyEstimator = "pooled") -> Tensor:
    """Entropy of the distribution of responses in each cell, in nats.

    * "pooled": H(q) = -Σ q log q of q = n / N, the plug-in estimate (the paper's text). Biased low, the more so the
      fewer the responses.
    * "miller_madow": H(q) + (m - 1) / (2N).
    * "chao_shen": with coverage Ĉ = 1 - f₁/N (f₁ = N counts as N - 1) and p̃ = Ĉ n / N,
      -Σ p̃ log p̃ / (1 - (1 - p̃)^N); a single response has value 0.

    The corrections lessen the bias but do not remove it: at 16 responses over 1,854 labels and a true entropy near
    3.5 nats the plug-in is about 1.2 low, Miller-Madow .8, Chao-Shen .2. Distributions with different numbers of
    responses are still not on one scale. Corrected values may exceed log L and are not clipped.

    Args:
        counts_CL: (C, L) responses; integer valued for the two corrections, any finite numbers ≥ 0 for "pooled".
        estimator: Which estimate.

    Returns:
        (C,) float64 ≥ 0 (at most log L for "pooled"); NaN for a cell without responses.

    Raises:
        TypeError: If `counts_CL` is no tensor.
        ValueError: If an entry is negative, not finite, or fractional where counts are needed; or for an unknown
            estimator, "per_sketch" included, because it needs one row a sketch: average `row_entropy` over the
            sketches of a cell, as `humanlike.metrics.ResponseDistribution` does.

    References:
        SEVA, Section 3, "response entropy"; Miller (1955); Chao and Shen (2003), Environmental and Ecological
        Statistics 10.

    Example:
        >>> counts = torch.tensor([[2, 1, 1, 0]])
        >>> [round(response_entropy(counts, e).item(), 4) for e in ("pooled", "miller_madow", "chao_shen")]
        [1.0397, 1.2897, 1.7632]
    """
    if estimator not in _ESTIMATORS:
        hint = ""
        if str(estimator).startswith("per_sketch"):
            hint = "; a per-sketch entropy needs one row a sketch, see row_entropy and ResponseDistribution"
        raise ValueError(f"estimator must be one of {list(get_args(EntropyEstimator))}, got {estimator!r}{hint}")
    counts_CL = nonnegative_table(counts_CL, "counts_CL")
    if estimator != "pooled":
        require_integer_valued(counts_CL, "counts_CL", f"for the estimator {estimator!r}")
    return _by_rows(counts_CL, _ESTIMATORS[estimator])


def _by_rows(x_BL: Tensor, entropy: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a row-wise function in float64, a bounded number of rows at a time."""
    parts = [entropy(part.double()) for part in x_BL.split(_ROWS_AT_A_TIME)]
    return torch.cat(parts) if parts else x_BL.new_zeros(0, dtype=torch.float64)


def plug_in_terms(n: Tensor, total: Tensor) -> Tensor:
    """-q log q with q = n / N, whose sum over labels is the plug-in entropy in nats.

    The estimates are given label by label, so that tables whose rows are labels of many cells use the same formulas.

    Args:
        n: Counts, float64.
        total: N of the distribution that a count belongs to; broadcasts.

    Returns:
        Terms ≥ 0, NaN where N is 0.
    """
    return torch.special.entr(n / total)


def miller_madow_shift(kinds: Tensor, total: Tensor) -> Tensor:
    """(m - 1) / (2N), what Miller-Madow adds to the plug-in entropy; `kinds` is m = #{n > 0}."""
    return (kinds - 1) / (2 * total)


def chao_shen_coverage(singletons: Tensor, total: Tensor) -> Tensor:
    """Estimated coverage Ĉ = 1 - f₁/N; where all N > 1 responses are singletons, f₁ counts as N - 1.

    Otherwise the coverage would be 0 there and the entropy infinite. A single response has coverage 0 (and entropy 0).
    """
    singletons = torch.where((singletons == total) & (total > 1), total - 1, singletons)
    return 1 - singletons / total


def chao_shen_terms(n: Tensor, total: Tensor, coverage: Tensor) -> Tensor:
    """-p̃ log p̃ / (1 - (1 - p̃)^N) with p̃ = Ĉ n / N, whose sum over labels is the Chao-Shen entropy in nats.

    Args:
        n: Counts, float64.
        total: N of the distribution that a count belongs to; broadcasts.
        coverage: Its Ĉ, see `chao_shen_coverage`.

    Returns:
        Terms ≥ 0; 0 where p̃ is 0 or 1 and where N is 0.
    """
    p = coverage * n / total
    met = -torch.expm1(total * torch.log1p(-p))  # probability that a label is met at all
    return torch.where(p > 0, torch.special.entr(p) / torch.where(p > 0, met, 1.0), 0.0)


def _plug_in(n_BL: Tensor) -> Tensor:
    entropy_B = plug_in_terms(n_BL, n_BL.sum(dim=1, keepdim=True)).sum(dim=1)
    # Rounding may lift a uniform row above log L by an ulp.
    return entropy_B.clamp(min=0.0, max=math.log(n_BL.shape[1])) if n_BL.shape[1] else entropy_B / 0.0


def _miller_madow(n_BL: Tensor) -> Tensor:
    return _plug_in(n_BL) + miller_madow_shift((n_BL > 0).sum(dim=1), n_BL.sum(dim=1))


def _chao_shen(n_BL: Tensor) -> Tensor:
    total_B = n_BL.sum(dim=1)
    coverage_B = chao_shen_coverage((n_BL == 1).sum(dim=1).double(), total_B)
    entropy_B = chao_shen_terms(n_BL, total_B[:, None], coverage_B[:, None]).sum(dim=1)
    return torch.where(total_B > 0, entropy_B, torch.nan)


_ESTIMATORS = MappingProxyType({"pooled": _plug_in, "miller_madow": _miller_madow, "chao_shen": _chao_shen})
