"""What the metrics over cells share: exact sums, parsing of responses, and a torchmetrics base without its traps.

Sums of real numbers are kept as int64 in units of 2⁻⁴⁰ ("fixed point"), because whole numbers add to the same total
in any order, any batch size and any number of processes, which floating-point numbers do not.

Legend: N rows of an update (one sketch each), C cells, L labels.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from humanlike.metrics.functional.arguments import (
    INTEGER_DTYPES,
    index_vector,
    nonnegative_table,
    require_positive_rows,
    require_tensor,
)

FIXED_POINT_BITS = 40
_UNIT = float(2**FIXED_POINT_BITS)
# Rows converted at a time: 512 × 1,854 labels take 8 MB as int64.
_ROWS_AT_A_TIME = 512


def to_fixed(x: Tensor) -> Tensor:
    """Real numbers as int64 in units of 2⁻⁴⁰, rounded; integers are exact."""
    if not x.is_floating_point():
        return x.long() << FIXED_POINT_BITS
    return (x.double() * _UNIT).round().long()


def from_fixed(total: Tensor) -> Tensor:
    """Fixed-point sums as float64.

    Raises:
        ValueError: If a sum has overflowed (8.4 million responses of one label in one cell).
    """
    if bool((total < 0).any()):
        raise ValueError(
            "a sum in a cell has passed 2²³ and overflowed its fixed-point counter; split the cell, or rescale the rows"
        )
    return total.double() / _UNIT


def require_fixed_point_range(responses: Tensor, name: str) -> None:
    """Refuse rows that fixed point cannot hold: an entry of 2²³ overflows, a row nowhere above 2⁻⁴¹ vanishes."""
    if responses.ndim == 1:
        return
    peak_N = responses.amax(dim=1).double()
    bad_N = (peak_N >= 2.0 ** (63 - FIXED_POINT_BITS)) | (peak_N <= 2.0 ** -(FIXED_POINT_BITS + 1))
    if bool(bad_N.any()):
        row = int(bad_N.nonzero()[0])
        raise ValueError(
            f"{name} must have its largest entry between 2⁻⁴¹ and 2²³ in every row, because rows are summed in units "
            f"of 2⁻⁴⁰; that of row {row} is {peak_N[row].item()!r}: rescale the rows"
        )


def add_rows(table_CL: Tensor, cells_N: Tensor, responses: Tensor, *, fixed: bool) -> None:
    """Add each row, a hard label (N,) or counts or probabilities (N, L), to its cell, in place and exactly."""
    if responses.ndim == 1:
        flat_N = cells_N * table_CL.shape[1] + responses
        one = 1 << FIXED_POINT_BITS if fixed else 1
        table_CL.view(-1).index_add_(0, flat_N, torch.full_like(flat_N, one))
        return
    for cells, part in zip(cells_N.split(_ROWS_AT_A_TIME), responses.split(_ROWS_AT_A_TIME), strict=True):
        table_CL.index_add_(0, cells, to_fixed(part) if fixed else part.long())


def checked_responses(responses: Tensor, name: str, num_labels: int) -> Tensor:
    """Hard labels (N,) in [0, L), or rows (N, L) of counts or probabilities with a positive sum, without gradient.

    Raises:
        TypeError: If it is no tensor, or one-dimensional and not of an integer dtype.
        ValueError: If the shape is neither (N,) nor (N, L), or a label, an entry or a row's sum is out of range.
    """
    require_tensor(responses, name)
    responses = responses.detach()
    if responses.ndim == 1:
        if responses.dtype not in INTEGER_DTYPES and len(responses):
            raise TypeError(f"{name} with one dimension are hard labels of an integer dtype, got {responses.dtype}")
        return index_vector(responses.long(), name, num_labels)
    if responses.ndim != 2 or responses.shape[1] != num_labels:
        raise ValueError(
            f"{name} must be (N,) hard labels or (N, {num_labels}) rows of counts or probabilities, "
            f"got shape {tuple(responses.shape)}"
        )
    responses = nonnegative_table(responses, name)
    require_positive_rows(responses, name)
    return responses


class CellMetric(Metric):
    """Abstract base of the metrics that keep one fixed-size table of whole numbers per cell.

    All states are int64 sums, so `compute` gives the same bits for any order, batch size and number of processes,
    and a process without data takes part like any other. Three habits of torchmetrics are set aside:

    * `compute` before `update` warns there; here it is defined (NaN in every cell) and silent.
    * `MetricCollection` merges metrics whose states agree after the first batch. The name of one counter holds a
      digest of class and settings, and states of different names are never merged.
    * Cached values are off: a process that got no more data would answer from its cache while the others wait for it.

    Args:
        num_cells: C, the number of cells.
        num_labels: L, the number of labels.
        settings: Everything else that the value depends on, for the digest.
        kwargs: Passed on to `torchmetrics.Metric`.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(self, num_cells: int, num_labels: int, settings: tuple[Any, ...], **kwargs: Any) -> None:
        kwargs.setdefault("compute_with_cache", False)
        super().__init__(**kwargs)
        for name, size in (("num_cells", num_cells), ("num_labels", num_labels)):
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} must be a whole number ≥ 1, got {size!r}")
        self.num_cells = num_cells
        self.num_labels = num_labels
        self._empty_at: tuple[int, list[int]] | None = None  # the update count at `compute`, and what was empty
        digest = hashlib.sha256(repr((type(self).__qualname__, num_cells, num_labels, settings)).encode())
        self._rows_state = f"rows_{digest.hexdigest()[:12]}"
        self.add_count(self._rows_state)

    def add_count(self, name: str, *shape: int) -> None:
        """Add an int64 state of zeros that is summed over processes."""
        self.add_state(name, torch.zeros(shape, dtype=torch.int64), dist_reduce_fx="sum")

    @property
    def num_rows(self) -> int:
        """Number of rows this process has been given."""
        return int(getattr(self, self._rows_state))

    @property
    def empty_cells(self) -> list[int]:
        """Cells without responses: of all processes after `compute`, of this one before it or after an `update`."""
        if self._empty_at is not None and self._empty_at[0] == self.update_count:
            return self._empty_at[1]
        return self._find_empty()

    def reset(self) -> None:
        """Forget all that was given."""
        super().reset()
        self._empty_at = None

    @abstractmethod
    def _find_empty(self) -> list[int]:
        """Cells without responses according to the states as they stand."""

    def _note_empty(self) -> None:
        """Keep what is empty now, because the sums of all processes are at hand in `compute` only."""
        self._empty_at = (self.update_count, self._find_empty())

    def _count_rows(self, rows: int) -> None:
        getattr(self, self._rows_state).add_(rows)

    def _checked_cells(self, cells_N: Tensor, rows: int) -> Tensor:
        require_tensor(cells_N, "cells")
        # An empty tensor is a float by default, and an empty update is as good as any.
        cells_N = index_vector(cells_N if cells_N.numel() else cells_N.long(), "cells", self.num_cells)
        if len(cells_N) != rows:
            raise ValueError(f"cells has {len(cells_N)} entries for {rows} rows of responses; give each row its cell")
        return cells_N

    def _wrap_compute(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        wrapped = super()._wrap_compute(compute)

        @functools.wraps(compute)
        def compute_without_warning(*args: Any, **kwargs: Any) -> Any:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The ``compute`` method of metric", UserWarning)
                return wrapped(*args, **kwargs)

        return compute_without_warning

    def extra_repr(self) -> str:
        """Sizes and the empty cells, for `repr`."""
        empty = self.empty_cells
        shown = ", ".join(map(str, empty[:10])) + (", …" if len(empty) > 10 else "")
        told = f"{len(empty)} empty cells [{shown}]" if empty else "no empty cells"
        return f"num_cells={self.num_cells}, num_labels={self.num_labels}, {told}"


def tensor_digest(x: Tensor, name: str) -> str:
    """Hex digest of a tensor's shape and values, for the settings of a metric."""
    require_tensor(x, name)
    data = x.detach().cpu().double().contiguous()
    return hashlib.sha256(repr(tuple(data.shape)).encode() + data.numpy().tobytes()).hexdigest()
