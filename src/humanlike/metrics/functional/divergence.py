"""Jensen-Shannon divergence and distance between response distributions, and the divergence rank.

Legend: B pairs of rows, L labels, M machine cells, H human cells; p and q normalised rows, s = p + q, t = |p - q|/s.
The textbook form, a difference of entropies, loses all digits for near-equal inputs; here every term is ≥ 0:
D = ¼ Σ s·f(t), f(t) = (1 + t) log(1 + t) + (1 - t) log(1 - t).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from humanlike.metrics.functional.arguments import (
    index_vector,
    nonnegative_table,
    require_length,
    require_positive_rows,
    require_tensor,
)

_LOG2 = math.log(2.0)
# Differences of a few units in the last place are the rounding of scaling and normalising, not of the distributions:
# below this many epsilons of the coarser input, t is 0, so that rows which are proportional have distance 0.
_EPSILONS = 4.0
_SMALLEST_P = 1e-12
# Distances of rows that differ by a permutation of labels are equal but for the order of their sums.
_TIE = 1e-12
# Divergences below this lose digits in the fast pairwise sum: at 1e-4 its error, 1e-15, is 5e-14 of a distance.
_NEAR = 1e-4
# Entries worked on at once, which bounds the memory.
_ENTRIES = 2**18


def jensen_shannon_divergence(p_BL: Tensor, q_BL: Tensor, base: float | None = None) -> Tensor:
    """Jensen-Shannon divergence of paired rows, JSD(p‖q) = H((p + q)/2) - (H(p) + H(q))/2.

    0 for equal distributions (exactly 0 for proportional rows), log 2 for disjoint ones; exactly symmetric.
    Gradients with respect to the normalised rows are ½ log(max(p, 1e-12)/m), m = (p + q)/2, and 0 where the
    divergence is 0: finite everywhere; they are carried through the normalisation to the rows as given.

    Args:
        p_BL: (B, L) or (L,) counts or probabilities ≥ 0; need not be normalised.
        q_BL: The same for the other side; dimensions of size 1 broadcast.
        base: Base of the logarithm, > 1; None means nats. With base 2 the divergence lies in [0, 1].

    Returns:
        (B,) float64 in [0, log 2] (a scalar for two (L,) rows).

    Raises:
        TypeError: If an argument is no tensor.
        ValueError: If an entry is negative or not finite, a row sums to 0 (it is named), shapes do not fit, or base
            ≤ 1.

    References:
        Lin (1991), "Divergence measures based on the Shannon entropy"; SEVA, comparison with CLIPasso.

    Example:
        >>> jensen_shannon_divergence(torch.tensor([[1, 0], [1, 2]]), torch.tensor([[0, 1], [3, 6]]), base=2).tolist()
        [1.0, 0.0]
    """
    scale = _unit(base)
    p, q, shape = _paired(p_BL, q_BL)
    tiny = _EPSILONS * max(_epsilon(p), _epsilon(q))
    divergence_B: Tensor = _Divergence.apply(_normalised(p), _normalised(q), tiny)
    return (divergence_B / scale).reshape(shape)


def jensen_shannon_distance(p_BL: Tensor, q_BL: Tensor, base: float | None = None) -> Tensor:
    """Jensen-Shannon distance of paired rows, sqrt(JSD(p‖q)): the paper's measure, a metric in the mathematical sense.

    Args:
        p_BL: As for `jensen_shannon_divergence`.
        q_BL: As for `jensen_shannon_divergence`.
        base: As for `jensen_shannon_divergence`.

    Returns:
        (B,) float64 in [0, sqrt(log 2)], in [0, 1] for base 2. The gradient is 0 where the distance is 0.

    Raises:
        TypeError: As for `jensen_shannon_divergence`.
        ValueError: As for `jensen_shannon_divergence`.

    References:
        Endres and Schindelin (2003), "A new metric for probability distributions"; SEVA, comparison with CLIPasso.

    Example:
        >>> jensen_shannon_distance(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 4.0]), base=2).item()
        1.0
    """
    return _root(jensen_shannon_divergence(p_BL, q_BL, base))


def pairwise_jensen_shannon_distance(p_ML: Tensor, q_HL: Tensor, base: float | None = None) -> Tensor:
    """Jensen-Shannon distance of every row of one table from every row of another, without gradient.

    Fast where rows are sparse, as counts of responses are: D = log 2 + ½ Σ (p log p + q log q - s log s), s = p + q,
    over the labels that both rows have, since the others cancel. Where this sum cancels too, below a divergence of
    1e-4, the paired formula takes over. Equal rows have exactly equal distances, so that ties stay ties, and
    swapping the tables transposes the result to the last bit. Computed on the CPU, whatever the device of the tables,
    because the order of the sums counts.

    Args:
        p_ML: (M, L) counts or probabilities ≥ 0.
        q_HL: (H, L) counts or probabilities ≥ 0.
        base: As for `jensen_shannon_divergence`.

    Returns:
        (M, H) float64, equal to the paired function up to 1e-12 in the divergence.

    Raises:
        TypeError: If an argument is no tensor.
        ValueError: As for `jensen_shannon_divergence`.

    Example:
        >>> pairwise_jensen_shannon_distance(torch.eye(2), torch.tensor([[0, 3]]), base=2).tolist()
        [[1.0], [0.0]]
    """
    scale, device = _unit(base), p_ML.device
    p_ML, q_HL = nonnegative_table(p_ML.detach(), "p_ML"), nonnegative_table(q_HL.detach(), "q_HL")
    if p_ML.shape[1] != q_HL.shape[1]:
        raise ValueError(f"p_ML has {p_ML.shape[1]} labels and q_HL {q_HL.shape[1]}; both need the same label order")
    require_positive_rows(p_ML, "p_ML")
    require_positive_rows(q_HL, "q_HL")
    tiny = _EPSILONS * max(_epsilon(p_ML), _epsilon(q_HL))
    p_ML, q_HL = _normalised(p_ML.cpu()), _normalised(q_HL.cpu())
    if len(p_ML) > len(q_HL):  # the loop is over the rows of the first
        divergence_MH = _by_shared_labels(q_HL.numpy(), p_ML.numpy()).T
    else:
        divergence_MH = _by_shared_labels(p_ML.numpy(), q_HL.numpy())
    near_m, near_h = np.nonzero(divergence_MH < _NEAR)
    num_pairs = max(1, _ENTRIES // p_ML.shape[1])
    for start in range(0, len(near_m), num_pairs):
        m, h = near_m[start : start + num_pairs], near_h[start : start + num_pairs]
        divergence_MH[m, h] = _terms(p_ML[m], q_HL[h], tiny).sum(dim=-1).numpy()
    return torch.from_numpy(np.sqrt(np.minimum(divergence_MH, _LOG2) / scale)).to(device)


def divergence_rank(machine_ML: Tensor, human_HL: Tensor, machine_concept_M: Tensor, human_concept_H: Tensor) -> Tensor:
    """How near is a machine sketch's response distribution to those of human sketches of the same concept?

    For each machine cell, all human cells (every concept, every condition) are ranked by Jensen-Shannon distance to
    it, ties (to 1e-12) sharing their average rank; the value is the smallest rank among the human cells of the machine
    cell's concept. 1 is best.

    Args:
        machine_ML: (M, L) counts or probabilities ≥ 0, a row for each machine cell.
        human_HL: (H, L) counts or probabilities ≥ 0, a row for each human cell.
        machine_concept_M: (M,) integer concept codes ≥ 0.
        human_concept_H: (H,) integer concept codes ≥ 0.

    Returns:
        (M,) float64 in [1, H]. Empty human cells are not ranked; NaN for an empty machine cell, or where all human
        cells of the concept are empty.

    Raises:
        TypeError: If an argument is no tensor, or codes are not of an integer dtype.
        ValueError: If entries are negative or not finite, lengths differ, or a machine concept has no human cell at
            all.

    References:
        SEVA, comparison with CLIPasso (the published figure plots this rank under the name of the divergence).

    Example:
        >>> human = torch.tensor([[4, 0, 0], [0, 4, 0], [0, 3, 1]])
        >>> divergence_rank(torch.tensor([[0, 1, 0]]), human, torch.tensor([2]), torch.tensor([0, 1, 2])).item()
        2.0
    """
    machine_ML, human_HL = nonnegative_table(machine_ML, "machine_ML"), nonnegative_table(human_HL, "human_HL")
    codes = torch.iinfo(torch.int64).max
    machine_concept_M = index_vector(machine_concept_M, "machine_concept_M", codes)
    human_concept_H = index_vector(human_concept_H, "human_concept_H", codes)
    require_length(machine_concept_M, "machine_concept_M", len(machine_ML), "machine_ML")
    require_length(human_concept_H, "human_concept_H", len(human_HL), "human_HL")
    same_MH = machine_concept_M[:, None] == human_concept_H[None]
    lonely_M = ~same_MH.any(dim=1)
    if bool(lonely_M.any()):
        row = int(lonely_M.nonzero()[0])
        raise ValueError(
            f"machine cell {row} has concept {int(machine_concept_M[row])}, of which there is no human cell"
        )
    seen_M, seen_H = (machine_ML > 0).any(dim=1), (human_HL > 0).any(dim=1)
    rank_M = torch.full((len(machine_ML),), torch.nan, dtype=torch.float64, device=machine_ML.device)
    if bool(seen_M.any()) and bool(seen_H.any()):
        distance_MH = pairwise_jensen_shannon_distance(machine_ML[seen_M], human_HL[seen_H])
        rank_M[seen_M] = _smallest_rank(distance_MH, same_MH[seen_M][:, seen_H])
    return rank_M


def _smallest_rank(distance_MH: Tensor, same_MH: Tensor) -> Tensor:
    """Average rank of the nearest permitted column; NaN for a row without one."""
    best_M1 = torch.where(same_MH, distance_MH, torch.inf).amin(dim=1, keepdim=True)
    nearer_M = (distance_MH < best_M1 - _TIE).sum(dim=1)
    equal_M = ((distance_MH - best_M1).abs() <= _TIE).sum(dim=1)
    return torch.where(same_MH.any(dim=1), nearer_M + (equal_M + 1) / 2.0, torch.nan).double()


def _by_shared_labels(p_ML: np.ndarray, q_HL: np.ndarray) -> np.ndarray:
    """(M, H) log 2 + ½ Σ (p log p + q log q - s log s) over shared labels, in the order of the labels.

    Errors are some units of 1e-16 of an absolute value, which is nothing to a distance unless rows are near-equal.
    """
    sum_MH = np.empty((len(p_ML), len(q_HL)))
    for rows in _blocks(q_HL):
        label_E, row_E = np.nonzero(q_HL[rows].T)
        q_E = q_HL[rows][row_E, label_E]
        q_log_q_E = q_E * np.log(q_E)
        count_L = np.bincount(label_E, minlength=q_HL.shape[1])
        end_L = np.cumsum(count_L)
        for p_L, sum_H in zip(p_ML, sum_MH[:, rows], strict=True):
            label_S = np.flatnonzero(p_L)
            p_S, count_S = p_L[label_S], count_L[label_S]
            # The entries of q at these labels: a run for each label.
            entry_T = np.repeat(end_L[label_S] - np.cumsum(count_S), count_S)
            entry_T += np.arange(len(entry_T))
            term_T = np.repeat(p_S * np.log(p_S), count_S)
            term_T += q_log_q_E[entry_T]
            s_T = np.repeat(p_S, count_S)
            s_T += q_E[entry_T]
            term_T -= s_T * np.log(s_T)
            # Adds one by one in this order: the same numbers give the same sum wherever their row stands.
            sum_H[:] = np.bincount(row_E[entry_T], weights=term_T, minlength=len(sum_H))
    return _LOG2 + 0.5 * sum_MH


def _blocks(q_HL: np.ndarray) -> Iterator[slice]:
    """Slices of rows with about `_ENTRIES` entries that are not 0, or of one row."""
    block_H = np.cumsum(np.count_nonzero(q_HL, axis=1)) // _ENTRIES
    bounds = [0, *(np.flatnonzero(np.diff(block_H)) + 1).tolist(), len(q_HL)]
    return (slice(start, stop) for start, stop in pairwise(bounds))


def _terms(p: Tensor, q: Tensor, tiny: float) -> Tensor:
    """¼ s·f(t) of every label; 0 where both are 0."""
    s = p + q
    t = (p - q).abs() / torch.where(s > 0, s, 1.0)
    t = torch.where(t <= tiny, 0.0, t)
    # Near 0 the two terms of f cancel to first order; 2 t artanh t + log(1 - t²) is the same without cancelling.
    # artanh by log1p: torch.atanh rounds otherwise at the end of a block of memory than inside, which would part ties.
    near = torch.where(t < 0.5, t, 0.0)
    small = near * (torch.log1p(near) - torch.log1p(-near)) + torch.log1p(-near * near)
    large = torch.special.xlog1py(1.0 + t, t) + torch.special.xlog1py(1.0 - t, -t)
    return 0.25 * s * torch.where(t < 0.5, small, large)


class _Divergence(torch.autograd.Function):
    """(B,) divergence of normalised rows, with the gradient that stays finite at p = 0."""

    @staticmethod
    def forward(ctx: Any, p_BL: Tensor, q_BL: Tensor, tiny: float) -> Tensor:
        # Rounding may lift disjoint rows above log 2 by an ulp. Cut here, because outside of this function the gradient
        # of a clamp would be 0 at its bound, and disjoint rows would never approach each other.
        divergence_B = _terms(p_BL, q_BL, tiny).sum(dim=-1).clamp(max=_LOG2)
        ctx.save_for_backward(p_BL, q_BL, divergence_B)
        return divergence_B

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor) -> tuple[Tensor, Tensor, None]:
        p_BL, q_BL, divergence_B = ctx.saved_tensors
        middle_BL = 0.5 * (p_BL + q_BL)
        # Where both are 0 the one-sided derivative is ½ log 2.
        middle_BL = middle_BL.masked_fill(middle_BL == 0, 0.5 * _SMALLEST_P)
        weight_B1 = torch.where(divergence_B > 0, grad_B, 0.0)[:, None]
        grad_p, grad_q = (0.5 * weight_B1 * torch.log(x.clamp(min=_SMALLEST_P) / middle_BL) for x in (p_BL, q_BL))
        return grad_p, grad_q, None


def _normalised(x_BL: Tensor) -> Tensor:
    x_BL = x_BL.double()
    return x_BL / x_BL.sum(dim=-1, keepdim=True)


def _root(x: Tensor) -> Tensor:
    """Square root whose gradient at 0 is 0: masked before the root as well as after it."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).sqrt(), 0.0)


def _epsilon(x: Tensor) -> float:
    return torch.finfo(x.dtype if x.is_floating_point() else torch.float64).eps


def _unit(base: float | None) -> float:
    if base is None:
        return 1.0
    if not base > 1:
        raise ValueError(f"base must be a number greater than 1, or None for nats, got {base!r}")
    return _LOG2 if base == 2 else math.log(base)


def _paired(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor, torch.Size]:
    """Both arguments as checked (B, L) tables, and the shape of the result."""
    for x, name in ((p, "p_BL"), (q, "q_BL")):
        require_tensor(x, name)
        if x.ndim == 0 or x.shape[-1] == 0:
            raise ValueError(f"{name} must have a last dimension of labels, got shape {tuple(x.shape)}")
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p_BL has {p.shape[-1]} labels and q_BL {q.shape[-1]}; both need the same label order")
    try:
        p, q = torch.broadcast_tensors(p, q)
    except RuntimeError as error:
        raise ValueError(f"p_BL {tuple(p.shape)} and q_BL {tuple(q.shape)} cannot be paired row by row") from error
    shape, num_labels = p.shape[:-1], p.shape[-1]
    p = nonnegative_table(p.reshape(-1, num_labels), "p_BL")
    q = nonnegative_table(q.reshape(-1, num_labels), "q_BL")
    require_positive_rows(p, "p_BL")
    require_positive_rows(q, "q_BL")
    return p, q, shape
