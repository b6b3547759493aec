"""Drawings of a data set as tensors of curves.

Legend: N drawings, B drawings a batch, K curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from humanlike.data.drawing import Drawing
from humanlike.generators.pretrain_curves import Curves, fit_curves
from humanlike.types import Sketches


class CurveBatch(NamedTuple):
    """Drawings as sets of curves.

    Attributes:
        points_BK42: (B, K, 4, 2) float32 control points; padding is 0.
        width_BK: (B, K) float32 pen widths; padding is 0.
        stroke_BK: (B, K) int64, -1 for padding.
        concept_B: (B,) int64 index into the module's concepts.
        index_B: (B,) int64 item of the data set.
    """

    points_BK42: torch.Tensor
    width_BK: torch.Tensor
    stroke_BK: torch.Tensor
    concept_B: torch.Tensor
    index_B: torch.Tensor


@dataclass(frozen=True)
class CurveTable:
    """All drawings of a data set as curves, in item order; see `CurveBatch` for the columns."""

    points_NK42: torch.Tensor
    width_NK: torch.Tensor
    stroke_NK: torch.Tensor

    @classmethod
    def of(
        cls, data: Sketches, max_curves: int, tolerance: float = 0.008, rows: np.ndarray | None = None
    ) -> CurveTable:
        """Fit the drawings of a data set; those outside `rows` (None: there are none) are left blank.

        Raises:
            ValueError: The data set's images are pixels and not strokes.
        """
        drawing = getattr(data.images, "drawing", None)
        if drawing is None:
            raise ValueError(
                f"{data.name} holds pictures without strokes, and a generator learns strokes: use dataset=doodles, "
                "quickdraw, quickdraw_stroke3 or another one with strokes"
            )
        blank = fit_curves(Drawing(()), max_curves)
        curves = [blank] * len(data)
        for i in range(len(data)) if rows is None else rows.tolist():
            curves[i] = fit_curves(drawing(i), max_curves, tolerance)
        return cls.from_curves(curves, max_curves)

    @classmethod
    def from_curves(cls, curves: Sequence[Curves], max_curves: int) -> CurveTable:
        """Pad to K = `max_curves`."""
        n = len(curves)
        points = np.zeros((n, max_curves, 4, 2), dtype=np.float32)
        width, stroke = np.zeros((n, max_curves), np.float32), np.full((n, max_curves), -1, np.int64)
        for row, c in enumerate(curves):
            m = len(c.width_M)
            points[row, :m], width[row, :m], stroke[row, :m] = c.points_M42, c.width_M, c.stroke_M
        return cls(torch.from_numpy(points), torch.from_numpy(width), torch.from_numpy(stroke))
