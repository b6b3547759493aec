"""Drawings as tensors of curves or pen movements, for the pre-training of generators.

Legend: B drawings a batch, K curves, T steps of the pen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from humanlike.data.datamodule import ItemDataset, SketchDataModule
from humanlike.generators.pretrain_alignment import aligned
from humanlike.generators.pretrain_table import CurveBatch, CurveTable
from humanlike.types import Sketches

STEPS_A_CURVE = 3
"""Straight movements of the pen that stand for one curve."""


class CurveItems(ItemDataset):
    """Chosen items of a `CurveTable`."""

    def __init__(self, data: Sketches, rows: np.ndarray, table: CurveTable, concepts: Sequence[str]) -> None:
        super().__init__(data, rows, transform=None)
        self.table = table
        position = {concept: i for i, concept in enumerate(concepts)}
        self._concept_N = data.table["concept"].map(position).fillna(-1).to_numpy(np.int64)

    def __getitem__(self, item: int) -> CurveBatch:  # type: ignore[override]
        row = int(self.rows[item])
        t = self.table
        return CurveBatch(
            t.points_NK42[row],
            t.width_NK[row],
            t.stroke_NK[row],
            torch.tensor(self._concept_N[row]),
            torch.tensor(row),
        )


class StrokeDataModule(SketchDataModule):
    """Training and validation drawings as `CurveBatch`es: split by source, exact under several processes, resumable.

    Args:
        data: Sketches with strokes.
        concepts: Concepts of the generator; items of others may not be in a fold.
        fold_N: (N,) fold of every item, -1 for items that are left out.
        max_curves: Curves a drawing, K.
        tolerance: See `fit_curves`.
        val_fold: The fold to validate on.
        batch_size: Drawings a batch and process.
        seed: Global seed of the training order.
        table: The drawings as curves, where they are known already.

    Raises:
        ValueError: The data set has no strokes, a fold holds other concepts, or a side is empty.
    """

    def __init__(
        self,
        data: Sketches,
        concepts: Sequence[str],
        fold_N: np.ndarray,
        max_curves: int,
        tolerance: float = 0.008,
        val_fold: int = 0,
        batch_size: int = 32,
        seed: int = 0,
        table: CurveTable | None = None,
    ) -> None:
        used = data.table["concept"].to_numpy()[np.asarray(fold_N) >= 0]
        foreign = sorted(set(used) - set(concepts))
        if foreign:
            raise ValueError(f"{data.name}: {foreign[:5]} are no concepts of the generator; give their items fold -1")
        super().__init__(data, _no_pixels, fold_N, val_fold, batch_size, 0, seed)
        rows = np.flatnonzero(np.asarray(fold_N) >= 0)
        table = CurveTable.of(data, max_curves, tolerance, rows) if table is None else table
        self.table = aligned(table, data.target_N.tolist())
        self.train_items = CurveItems(data, self.train_items.rows, self.table, concepts)
        self.val_items = CurveItems(data, self.val_items.rows, self.table, concepts)

    def train_table(self, batch_size: int = 256) -> Iterator[CurveBatch]:
        """Every training drawing once, in item order, in every process alike."""
        for start in range(0, len(self.train_items), batch_size):
            rows = range(start, min(start + batch_size, len(self.train_items)))
            items = [self.train_items[row] for row in rows]
            yield CurveBatch(*(torch.stack(column) for column in zip(*items, strict=True)))


def _no_pixels(image: object) -> torch.Tensor:
    raise TypeError("a StrokeDataModule serves strokes, not pixels")


class PenBatch(NamedTuple):
    """Drawings as movements of the pen (stroke-5, Ha and Eck 2018).

    Attributes:
        offset_BT2: (B, T, 2) float32 dx, dy in canvas sides.
        pen_BT: (B, T) int64: 0 the pen stays down after this movement, 1 it is lifted, 2 the drawing is over (and on to
            the end of the row).
    """

    offset_BT2: torch.Tensor
    pen_BT: torch.Tensor


def pen_movements(batch: CurveBatch, steps_a_curve: int = STEPS_A_CURVE) -> PenBatch:
    """Curves as straight movements, from the canvas' middle on; T = K (steps + 1) + 1, the last step is an end.

    Example:
        >>> line = torch.tensor([[[[0.5, 0.5], [0.6, 0.5], [0.7, 0.5], [0.8, 0.5]]]])
        >>> batch = CurveBatch(line, torch.ones(1, 1), torch.zeros(1, 1).long(), torch.zeros(1).long(), torch.zeros(1))
        >>> moves = pen_movements(batch, steps_a_curve=1)
        >>> moves.offset_BT2[0, :, 0].round(decimals=3).tolist(), moves.pen_BT.tolist()
        ([0.0, 0.30000001192092896, 0.0], [[0, 1, 2]])
    """
    t = torch.linspace(0, 1, steps_a_curve + 1, device=batch.points_BK42.device)
    r = 1 - t
    weight_S4 = torch.stack([r**3, 3 * r**2 * t, 3 * r * t**2, t**3], 1)
    points_BKS2 = torch.einsum("sc,bkcx->bksx", weight_S4, batch.points_BK42)
    B, K = batch.stroke_BK.shape
    steps = K * (steps_a_curve + 1) + 1
    offset = batch.points_BK42.new_zeros(B, steps, 2)
    pen = torch.full((B, steps), 2, dtype=torch.int64, device=offset.device)
    for b in range(B):
        owner = batch.stroke_BK[b]
        count = int((owner >= 0).sum())
        if not count:
            continue
        begins = torch.ones(count, dtype=torch.bool, device=offset.device)
        begins[1:] = owner[1:count] != owner[: count - 1]
        shown = torch.ones(count, steps_a_curve + 1, dtype=torch.bool, device=offset.device)
        shown[:, 0] = begins  # a curve that goes on where the last one ended does not move there first
        place = points_BKS2[b, :count][shown]
        last = torch.zeros_like(shown)
        last[:-1, -1], last[-1, -1] = begins[1:], True
        start = torch.full((1, 2), 0.5, device=offset.device)
        offset[b, : len(place)] = torch.diff(place, dim=0, prepend=start)
        pen[b, : len(place)] = last[shown].long()
    return PenBatch(offset, pen)
