"""Sums of whole numbers over resampled rows: one matrix product, exact in float32, several columns in one number.

How often each row is drawn, times the rows' values, gives the sums of all replicates. Whole numbers below 2²⁴ are exact
in float32, and counts are much smaller than that: several columns share a number's bits, and the product shrinks as
many times.

Legend: n rows, M columns, B replicates, W columns after packing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_EXACT_BITS = 24
_LARGEST_EXACT = 1 << _EXACT_BITS  # whole numbers that float32 holds
_BLOCK_REPLICATES = 250


@dataclass(frozen=True)
class PackedColumns:
    """Columns of whole numbers ≥ 0, several in the bits of one float32, to be multiplied by draws.

    Attributes:
        packed_NW: (n, W) float32. Column m stands in part m // W, whose bits start at part × `bits`, of column m % W.
        bits: Bits of a part: enough for any sum that the draws can give.
        parts: Parts that a number has.
        columns: M, columns before packing, at most W × parts.
    """

    packed_NW: np.ndarray
    bits: int
    parts: int
    columns: int

    @classmethod
    def pack(cls, values_NM: np.ndarray, draws: int) -> PackedColumns:
        """Pack (n, M) whole numbers (bool too) that rows of `draws` draws are going to be multiplied with.

        Raises:
            ValueError: If a sum could exceed 2²⁴, where float32 skips whole numbers.
        """
        values = np.asarray(values_NM)
        largest = draws * int(np.abs(values).max(initial=0))
        if largest > _LARGEST_EXACT:
            raise ValueError(f"counts up to {largest} cannot be summed exactly in float32; the limit is 2²⁴")
        bits, columns = max(1, largest.bit_length()), values.shape[1]
        parts = max(1, min(_EXACT_BITS // bits, columns)) if int(values.min(initial=0)) >= 0 else 1
        width = -(-columns // parts)
        packed_NW = values[:, :width].astype(np.float32)
        for part in range(1, parts):
            own = values[:, part * width : (part + 1) * width]
            packed_NW[:, : own.shape[1]] += own * np.float32(1 << (bits * part))
        return cls(packed_NW, bits, parts, columns)

    def resampled(self, times_BN: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Replicates and their (b, W) product with the draws, still packed, a block at a time."""
        for start in range(0, len(times_BN), _BLOCK_REPLICATES):
            rows = slice(start, min(start + _BLOCK_REPLICATES, len(times_BN)))
            yield rows, times_BN[rows].astype(np.float32) @ self.packed_NW


def resampled_counts(times_BN: np.ndarray, values_NM: np.ndarray) -> np.ndarray:
    """(B, M) float32 product of draws and whole numbers, exact.

    Args:
        times_BN: (B, n) draws.
        values_NM: (n, M) whole numbers (bool too).

    Raises:
        ValueError: If a result could exceed 2²⁴, where float32 skips whole numbers.

    Example:
        >>> resampled_counts(np.array([[2, 0, 1]]), np.array([[True, False], [True, True], [False, True]])).tolist()
        [[2.0, 1.0]]
    """
    packed = PackedColumns.pack(values_NM, int(times_BN[0].sum(dtype=np.int64)))
    out = np.empty((len(times_BN), packed.columns), dtype=np.float32)
    width, mask = packed.packed_NW.shape[1], (1 << packed.bits) - 1
    for rows, product_BW in packed.resampled(times_BN):
        if packed.parts == 1:
            out[rows] = product_BW
            continue
        number_BW = product_BW.astype(np.int32)
        for part in range(packed.parts):
            own = out[rows, part * width : (part + 1) * width]
            own[:] = (number_BW[:, : own.shape[1]] >> (packed.bits * part)) & mask
    return out
