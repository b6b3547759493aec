"""Means and standard deviations of groups from whole numbers only, so that no order, cut or sharding can change a bit.

A value is rounded to a multiple of 2⁻⁴⁰ (`to_fixed`). The sums of these whole numbers and of their squares would pass
2⁶³, so both are kept as digits in base 2²⁰, each summed by itself; Python's integers put them together at the end.
Mean and standard deviation are thus exact but for the rounding of the values (4.5·10⁻¹³) and one rounding at the end:
equal values have a standard deviation of exactly 0, which sums of floating-point squares cannot promise.

Legend: Q quantities, N rows, G groups.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from humanlike.metrics.cell_tables import FIXED_POINT_BITS, to_fixed

SUM_DIGITS = 2
SQUARE_DIGITS = 4
DIGITS = SUM_DIGITS + SQUARE_DIGITS
"""Whole numbers kept for a quantity of a group: two digits of its sum, four of its sum of squares."""

_BITS = 20
_MASK = (1 << _BITS) - 1
# Rows worked on at a time, which bounds the memory: 7 quantities × 6 digits × 32,768 rows are 11 MB.
_ROWS_AT_A_TIME = 2**15


def add_moments(digits_DQG: Tensor, group_N: Tensor, values_QN: Tensor) -> None:
    """Add rows to the digits of their groups, in place.

    Args:
        digits_DQG: (6, Q, G) int64 sums.
        group_N: (N,) int64 group of every row.
        values_QN: (Q, N) values, |x| < 2¹⁰.

    Raises:
        ValueError: If a value is not finite or too large; nothing is added then.
    """
    if not bool((values_QN.abs() < 2.0**10).all()):
        raise ValueError("values must be finite and below 1,024, or their squares would not fit into four digits")
    _, quantities, groups = digits_DQG.shape
    offset_Q1 = torch.arange(quantities, device=group_N.device)[:, None] * groups
    for group, values in zip(group_N.split(_ROWS_AT_A_TIME), values_QN.split(_ROWS_AT_A_TIME, dim=1), strict=True):
        index = (offset_Q1 + group).flatten()
        whole = to_fixed(values).flatten()
        high, low = whole >> _BITS, whole & _MASK
        units = low * low
        middle = 2 * high * low + (units >> _BITS)
        upper = high * high + (middle >> _BITS)
        digits = (low, high, units & _MASK, middle & _MASK, upper & _MASK, upper >> _BITS)
        for total_QG, digit in zip(digits_DQG, digits, strict=True):
            total_QG.view(-1).index_add_(0, index, digit)


def means_and_deviations(digits_DQG: Tensor, count_G: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and sample standard deviation (n - 1) of every quantity and group.

    Args:
        digits_DQG: (6, Q, G) from `add_moments`.
        count_G: (G,) int64 number of rows n.

    Returns:
        Two (Q, G) float64 tensors; the mean is NaN for n = 0, the deviation for n < 2.
    """
    digits = digits_DQG.cpu().numpy().astype(object)
    count_G1 = count_G.cpu().numpy().astype(object)
    total_QG = digits[0] + digits[1] * (1 << _BITS)
    squares_QG = sum(digits[SUM_DIGITS + d] * (1 << (_BITS * d)) for d in range(SQUARE_DIGITS))
    unit = 1 << FIXED_POINT_BITS
    spread_QG = squares_QG * count_G1 - total_QG * total_QG
    mean_QG = _quotient(total_QG, count_G1 * unit)
    variance_QG = _quotient(spread_QG, count_G1 * (count_G1 - 1) * unit * unit)
    device = digits_DQG.device
    return torch.from_numpy(mean_QG).to(device), torch.from_numpy(np.sqrt(variance_QG)).to(device)


def _quotient(part_QG: np.ndarray, whole_G: np.ndarray) -> np.ndarray:
    """Quotients of Python integers, rounded once; NaN for a divisor of 0."""
    whole_QG = np.broadcast_to(whole_G, part_QG.shape)
    pairs = zip(part_QG.flat, whole_QG.flat, strict=True)
    return np.array([a / b if b else np.nan for a, b in pairs], dtype=np.float64).reshape(part_QG.shape)
