"""Semantic neighbour preference: when an answer is wrong, how near is it to the truth?

Legend: C cells, L labels, D dimensions of the semantic space.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor

from humanlike.metrics.functional.arguments import (
    INTEGER_DTYPES,
    index_vector,
    nonnegative_table,
    require_choice,
    require_length,
    require_tensor,
)

SNPVariant = Literal["paper", "exact"]

# Rows of the similarity matrix computed at a time: 8 × 1,854 × 66 doubles take 8 MB.
_ROWS_AT_A_TIME = 8


def semantic_ranks(embedding_LD: Tensor) -> Tensor:
    """Rank of every label in the neighbourhood of every other, by cosine distance.

    ranks[c, l] = position of l when the other L - 1 labels are sorted by their distance from c, 1 being the nearest.
    Distances are float64 (float32 moves hundreds of ranks at L = 1,854). The label itself is dropped by identity,
    not by position, so that a twin with distance 0 cannot take its place; ties are broken by label index.

    Args:
        embedding_LD: (L, D) finite rows, none of them zero.

    Returns:
        (L, L) int64, 0 on the diagonal, each row a permutation of 0 … L - 1.

    Raises:
        TypeError: If `embedding_LD` is no tensor.
        ValueError: If it is not two-dimensional, or rows are zero or not finite (they are named).

    References:
        SEVA, Section 3, "semantic neighbor preference"; THINGS labels with the SPoSE embedding.

    Example:
        >>> semantic_ranks(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])).tolist()
        [[0, 1, 2], [1, 0, 2], [2, 1, 0]]
    """
    unit_LD = _unit_rows(embedding_LD)
    num_labels = len(unit_LD)
    positions_L = torch.arange(num_labels, device=unit_LD.device)
    ranks_LL = torch.empty(num_labels, num_labels, dtype=torch.int64, device=unit_LD.device)
    for start in range(0, num_labels, _ROWS_AT_A_TIME):
        own = positions_L[start : start + _ROWS_AT_A_TIME]
        # Not a matrix product: its blocking may give twins cosines an ulp apart, and their tie would be lost.
        distance_RL = 1.0 - (unit_LD[own][:, None, :] * unit_LD[None]).sum(dim=-1)
        distance_RL[torch.arange(len(own), device=own.device), own] = -torch.inf
        order_RL = distance_RL.argsort(dim=1, stable=True)
        ranks_LL[own] = torch.empty_like(order_RL).scatter_(1, order_RL, positions_L.expand_as(order_RL).contiguous())
    return ranks_LL


def _unit_rows(embedding_LD: Tensor) -> Tensor:
    require_tensor(embedding_LD, "embedding_LD")
    if embedding_LD.ndim != 2:
        raise ValueError(
            f"embedding_LD must have two dimensions (labels, features), got shape {tuple(embedding_LD.shape)}"
        )
    x_LD = embedding_LD.detach().double().contiguous()
    for bad_L, fault in ((~x_LD.isfinite().all(dim=1), "not finite"), ((x_LD == 0).all(dim=1), "zero")):
        if bool(bad_L.any()):
            rows = bad_L.nonzero().flatten().tolist()
            raise ValueError(
                f"embedding_LD has {len(rows)} row(s) that are {fault}: {rows[:10]}; a label without an embedding has "
                "no neighbours, so rank the others alone and give it rank -1"
            )
    # Divided by the largest entry first: squares of very large or small entries would overflow or vanish.
    x_LD = x_LD / x_LD.abs().amax(dim=1, keepdim=True)
    return x_LD / x_LD.square().sum(dim=1, keepdim=True).sqrt()


def semantic_neighbour_preference(
    counts_CL: Tensor, target_C: Tensor, ranks_LL: Tensor, variant: SNPVariant = "paper"
) -> Tensor:
    """Semantic neighbour preference (SNP) of each cell: area under the curve of cumulative errors over neighbour rank.

    Only off-target responses count. 1 means that errors are near neighbours of the concept, 0 that they are the
    farthest labels.

    * "paper" (parity with the published numbers): positions are counted from 0, and the answers at position 0, the
      nearest neighbour, are dropped together with the correct ones, which share the code 0 in the authors'
      analysis. The curve has the points (position / L, cumulative share) at the observed positions in increasing
      order, then (1, 1); SNP is the trapezoid area under these points, with nothing added left of the first. A cell
      with responses but no off-target one left has SNP 1. Biased by the number of wrong answers: uniform answers
      give .583 at 2, .527 at 16, .502 at 200 of them, so people (about 200 a cell) and models (at most 16) are not
      on one scale.
    * "exact": ranks 1 … L - 1, nothing dropped, SNP = 1 - (mean rank - 1) / (L - 2): the area under the step
      function. 1 if every error is the nearest neighbour, 0 if every error is the farthest label, .5 in expectation
      for uniform errors at any number of answers. A cell without an off-target response is NaN: there is no evidence.

    Args:
        counts_CL: (C, L) top-1 responses ≥ 0.
        target_C: (C,) integer label index of each cell's concept.
        ranks_LL: (L, L) integers as `semantic_ranks` returns them. -1 marks a label without an embedding: answers
            there are left out, and L is the number of ranked labels.
        variant: Which definition.

    Returns:
        (C,) float64 in [0, 1]; NaN for a cell without (ranked) responses, for "exact" also for one without errors
        or with fewer than three ranked labels.

    Raises:
        TypeError: If an argument is no tensor or of a wrong dtype.
        ValueError: If shapes do not fit, a count is negative or not finite, a target lies outside [0, L), a rank
            outside [-1, L), a rank of 0 stands off the diagonal, or the variant is unknown.

    References:
        SEVA, Section 3, "semantic neighbor preference". Deviates: "exact" is this project's unbiased form.

    Example:
        >>> ranks = torch.tensor([[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3], [1, 2, 3, 0]])
        >>> counts = torch.tensor([[5, 2, 0, 2], [4, 0, 0, 0]])
        >>> semantic_neighbour_preference(counts, torch.tensor([0, 0]), ranks, variant="exact").tolist()
        [0.5, nan]
        >>> semantic_neighbour_preference(counts, torch.tensor([0, 0]), ranks).tolist()
        [0.5, 1.0]
    """
    require_choice(variant, "variant", SNPVariant)
    counts_CL = nonnegative_table(counts_CL, "counts_CL")
    target_C = index_vector(target_C, "target_C", counts_CL.shape[1])
    require_length(target_C, "target_C", len(counts_CL), "counts_CL")
    num_labels = counts_CL.shape[1]
    target_U, concept_C = target_C.unique(return_inverse=True)  # a concept has several cells
    rank_UL = rank_rows(ranks_LL, target_U, num_labels)
    num_ranked_U = rank_UL.amax(dim=1) + 1 if rank_UL.numel() else target_U
    # Answers without a rank go to a column of their own, which is cut off. Ranks of a row are distinct, so that no
    # other sum has more than one term.
    column_UL = torch.where((rank_UL >= 0) & (num_ranked_U > 1)[:, None], rank_UL, num_labels)
    by_rank_CL = counts_CL.new_zeros(len(counts_CL), num_labels + 1, dtype=torch.float64)
    by_rank_CL = by_rank_CL.scatter_add_(1, column_UL[concept_C], counts_CL.double())[:, :num_labels]
    return _VARIANTS[variant](by_rank_CL, num_ranked_U[concept_C].double())


def rank_rows(ranks_LL: Tensor, target_C: Tensor, num_labels: int) -> Tensor:
    """(C, L) rows of `ranks_LL` seen from each cell's concept, checked; see `semantic_neighbour_preference`."""
    require_tensor(ranks_LL, "ranks_LL")
    if ranks_LL.dtype not in INTEGER_DTYPES:
        raise TypeError(f"ranks_LL must be of an integer dtype, got {ranks_LL.dtype}; see semantic_ranks")
    if tuple(ranks_LL.shape) != (num_labels, num_labels):
        raise ValueError(f"ranks_LL must be ({num_labels}, {num_labels}), one row a label, got {tuple(ranks_LL.shape)}")
    rank_CL = ranks_LL[target_C].long()
    own_CL = torch.arange(num_labels, device=target_C.device) == target_C[:, None]
    bad_CL = (rank_CL < -1) | (rank_CL >= num_labels) | ((rank_CL == 0) & ~own_CL) | ((rank_CL > 0) & own_CL)
    if bool(bad_CL.any()):
        cell, label = (int(i) for i in bad_CL.nonzero()[0])
        raise ValueError(
            f"ranks_LL[{int(target_C[cell])}, {label}] is {int(rank_CL[cell, label])}; a rank is 0 on the diagonal, "
            f"1 … {num_labels - 1} elsewhere, or -1 for a label without an embedding (see semantic_ranks)"
        )
    return rank_CL


def exact_preference(mean_rank: Tensor, num_ranked: Tensor) -> Tensor:
    """1 - (mean rank - 1) / (L - 2) of off-target answers, L the number of ranked labels; NaN where L < 3."""
    return torch.where(num_ranked > 2, 1.0 - (mean_rank - 1.0) / (num_ranked - 2.0), torch.nan)


def paper_terms(n: Tensor, position: Tensor, gap: Tensor, num_ranked: Tensor) -> Tensor:
    """Terms n (L - x + ½ gap), whose sum over the observed positions x ≥ 1, divided by L Σn, is the published area.

    An observed position lifts the curve of cumulative shares by n/Σn: a step from x to the end, (L - x)/L wide, and,
    because the curve is straight between observed points, half the step's way from the observed position before it.

    Args:
        n: Answers at each position.
        position: Position x, counted from 0.
        gap: Distance to the observed position before it, 0 for the first.
        num_ranked: L, the number of ranked labels.
    """
    return n * (num_ranked - position + 0.5 * gap)


def _exact(by_rank_CL: Tensor, num_ranked_C: Tensor) -> Tensor:
    ranks_L = torch.arange(by_rank_CL.shape[1], dtype=torch.float64, device=by_rank_CL.device)
    errors_C = by_rank_CL[:, 1:].sum(dim=1)
    mean_rank_C = (by_rank_CL * ranks_L).sum(dim=1) / errors_C
    return exact_preference(mean_rank_C, num_ranked_C)


def _paper(by_rank_CL: Tensor, num_ranked_C: Tensor) -> Tensor:
    n_CP = by_rank_CL[:, 2:]  # the answers at position 1 … L - 2; position = rank - 1
    cell_E, place_E = (n_CP > 0).nonzero(as_tuple=True)  # observed positions, in increasing order in every cell
    n_E, position_E = n_CP[cell_E, place_E], (place_E + 1).double()
    same_E = cell_E[1:] == cell_E[:-1]
    gap_E = torch.nn.functional.pad(torch.where(same_E, position_E.diff(), 0.0), (1, 0))[: len(cell_E)]
    terms_E = paper_terms(n_E, position_E, gap_E, num_ranked_C[cell_E])
    area_C, total_C = (torch.zeros_like(num_ranked_C).index_add(0, cell_E, x_E) for x_E in (terms_E, n_E))
    snp_C = torch.where(total_C > 0, area_C / (num_ranked_C * total_C), 1.0)
    return torch.where(by_rank_CL.sum(dim=1) > 0, snp_C, torch.nan)


_VARIANTS = MappingProxyType({"paper": _paper, "exact": _exact})
