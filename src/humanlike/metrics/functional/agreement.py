"""Do two observers err on the same items? N items; any leading dimensions are pairs of observers."""

from __future__ import annotations

import torch
from torch import Tensor

from humanlike.metrics.functional.arguments import require_tensor


def error_consistency(correct_a_N: Tensor, correct_b_N: Tensor) -> Tensor:
    """Error consistency κ: agreement on which items are right, beyond what the two accuracies imply by chance.

    κ = (o - e) / (1 - e), with o the share of items both right or both wrong, and e = p_a p_b + (1 - p_a)(1 - p_b).
    1 is perfect agreement, 0 is chance, negative values are systematic disagreement.

    A missing answer counts as wrong: code it 0. An item that one of the two did not see is left out: code it NaN in a
    float tensor.

    Args:
        correct_a_N: (..., N) bool, 0/1 integers, or floats 0, 1 and NaN (not seen).
        correct_b_N: The same for the other observer; leading dimensions broadcast, so that one model (N,) is
            compared with P people (P, N) at once.

    Returns:
        (...) float64 in [-1, 1]; NaN where no item was seen by both, or where e = 1 (both always right, or both
        always wrong), because κ is then undefined.

    Raises:
        TypeError: If an argument is no tensor.
        ValueError: If numbers of items differ, or an entry is none of 0, 1 and NaN (the first such item is named).

    References:
        Geirhos, Meding and Wichmann (2020), "Beyond accuracy: quantifying trial-by-trial behaviour by measuring error
        consistency".

    Example:
        >>> error_consistency(torch.tensor([1, 1, 0, 0]), torch.tensor([1, 1, 0, 1])).item()
        0.5
    """
    right_a, seen_a = _coded(correct_a_N, "correct_a_N")
    right_b, seen_b = _coded(correct_b_N, "correct_b_N")
    if right_a.shape[-1] != right_b.shape[-1]:
        raise ValueError(
            f"correct_a_N holds {right_a.shape[-1]} items and correct_b_N {right_b.shape[-1]}; pair them by item"
        )
    both = seen_a & seen_b
    return kappa_from_counts(
        (right_a & right_b & both).sum(-1), (right_a & both).sum(-1), (right_b & both).sum(-1), both.sum(-1)
    )


def kappa_from_counts(both_right: Tensor, right_a: Tensor, right_b: Tensor, items: Tensor) -> Tensor:
    """Error consistency from counts on the items that both have seen, for pairs too many to hold their items.

    Args:
        both_right: int64 number of items that both answered correctly.
        right_a: Items that the first answered correctly.
        right_b: Items that the second answered correctly.
        items: Common items n, below 2³¹ (products of two counts must fit into int64).

    Returns:
        float64 κ in [-1, 1]; NaN where there is no common item, or both are always right, or both always wrong.

    Example:
        >>> kappa_from_counts(*(torch.tensor(n) for n in (2, 2, 3, 4))).item()
        0.5
    """
    same = items - right_a - right_b + 2 * both_right
    # κ as a ratio of integers (numerator and denominator times n²), so that only the division rounds.
    expected = right_a * right_b + (items - right_a) * (items - right_b)
    return (items * same - expected).double() / (items * items - expected).double()


def _coded(correct: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """(right, seen) as bool tensors."""
    require_tensor(correct, name)
    if correct.ndim == 0:
        raise ValueError(f"{name} must have a dimension of items, got a scalar")
    if correct.dtype == torch.bool:
        return correct, torch.ones_like(correct)
    unseen = correct.isnan()
    bad = ~((correct == 0) | (correct == 1) | unseen)
    if bool(bad.any()):
        where = tuple(int(i) for i in bad.nonzero()[0])
        raise ValueError(f"{name} must hold 0, 1 or NaN (not seen); item {where[-1]} is {correct[where].item()!r}")
    return correct == 1, ~unseen
