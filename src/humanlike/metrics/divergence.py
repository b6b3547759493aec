"""Jensen-Shannon distance between two sides' response distributions, cell by cell, as a torchmetrics class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from humanlike.metrics.cell_tables import (
    CellMetric,
    add_rows,
    checked_responses,
    from_fixed,
    require_fixed_point_range,
)
from humanlike.metrics.functional.divergence import jensen_shannon_distance


class JensenShannonDistance(CellMetric):
    """Jensen-Shannon distance between the pooled responses of side 0 and side 1 in every cell.

    0 means equal distributions, sqrt(log 2) (1 in base 2) disjoint ones; see
    `humanlike.metrics.functional.jensen_shannon_distance`. The states are two (C, L) int64 tables; hard labels are
    counted exactly, probabilities are summed in units of 2⁻⁴⁰.

    Args:
        num_cells: C.
        num_labels: L.
        base: Base of the logarithm, > 1; None means nats.
        kwargs: Passed on to `torchmetrics.Metric`.

    Raises:
        ValueError: If a size is not a whole number ≥ 1, or base ≤ 1.

    Example:
        >>> metric = JensenShannonDistance(num_cells=2, num_labels=3, base=2)
        >>> metric.update(torch.tensor([0, 0]), torch.tensor([0, 1]), side=0)
        >>> metric.update(torch.tensor([2]), torch.tensor([0]), side=1)
        >>> metric.compute().tolist()
        [1.0, nan]
    """

    higher_is_better = False
    side_0: Tensor
    side_1: Tensor

    def __init__(self, num_cells: int, num_labels: int, base: float | None = None, **kwargs: Any) -> None:
        super().__init__(num_cells, num_labels, (base,), **kwargs)
        if base is not None and not base > 1:
            raise ValueError(f"base must be a number greater than 1, or None for nats, got {base!r}")
        self.base = base
        self.add_count("side_0", num_cells, num_labels)
        self.add_count("side_1", num_cells, num_labels)

    def update(self, labels_or_probs: Tensor, cells: Tensor, side: int) -> None:
        """Add responses of one side.

        Args:
            labels_or_probs: (N,) integer labels, or (N, L) rows of counts or probabilities with a positive sum.
            cells: (N,) integer cell of each row.
            side: 0 or 1.

        Raises:
            TypeError: If an argument is no tensor or of a wrong dtype.
            ValueError: If a label, entry, cell or the side is out of range, shapes do not fit, or a row cannot be held
                (see `require_fixed_point_range`).
        """
        if side not in (0, 1):
            raise ValueError(f"side must be 0 or 1, got {side!r}")
        responses = checked_responses(labels_or_probs, "labels_or_probs", self.num_labels)
        require_fixed_point_range(responses, "labels_or_probs")
        cells = self._checked_cells(cells, len(responses))
        self._count_rows(len(responses))
        add_rows((self.side_0, self.side_1)[side], cells, responses, fixed=True)

    def compute(self) -> Tensor:
        """(C,) float64 distances; NaN for a cell that is empty on either side (listed in `repr`)."""
        self._note_empty()
        sides = [from_fixed(table_CL) for table_CL in (self.side_0, self.side_1)]
        both_C = (sides[0] > 0).any(dim=1) & (sides[1] > 0).any(dim=1)
        distance_C = torch.full_like(sides[0][:, 0], torch.nan)
        distance_C[both_C] = jensen_shannon_distance(sides[0][both_C], sides[1][both_C], self.base)
        return distance_C

    def _find_empty(self) -> list[int]:
        filled_C = (self.side_0 > 0).any(dim=1) & (self.side_1 > 0).any(dim=1)
        return (~filled_C).nonzero().flatten().tolist()
