"""Strokes as an ImageSource: many drawings in a few arrays, cut and rendered when an item is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from PIL import Image

from humanlike.data.drawing import Drawing, Stroke
from humanlike.data.render import Renderer
from humanlike.files import sha256_value


@dataclass(frozen=True, eq=False)
class PackedDrawings:
    """D polyline drawings in flat arrays (P points, S strokes), small and quick to hand to other processes.

    Attributes:
        points_P2: (P, 2) float32 in canvas units.
        time_P: (P,) float32 seconds, not decreasing within a drawing, or None.
        stroke_start_S: (S + 1,) int64, where every stroke starts in `points_P2`; last entry P.
        drawing_start_D: (D + 1,) int64, where every drawing starts in `stroke_start_S`; last entry S.
        keys: D unique names.
        concepts: D concept names.
        where: D places (file:line) for messages.
    """

    points_P2: np.ndarray
    time_P: np.ndarray | None
    stroke_start_S: np.ndarray
    drawing_start_D: np.ndarray
    keys: Sequence[str]
    concepts: Sequence[str]
    where: Sequence[str]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def first_point_D(self) -> np.ndarray:
        """(D + 1,) int64, where every drawing starts in `points_P2`."""
        return self.stroke_start_S[self.drawing_start_D]

    def points_until(self, cuts: Sequence[float] | None, unit: str) -> np.ndarray:
        """(D, T) int64 number of points of every drawing up to every cut.

        Args:
            cuts: Seconds or numbers of strokes, or None for one column with the full drawings.
            unit: "s" or "strokes".
        """
        first = self.first_point_D
        total_D1 = np.diff(first)[:, None]
        if cuts is None:
            return total_D1
        if unit == "strokes":
            last = np.minimum(
                self.drawing_start_D[:-1, None] + np.asarray(cuts, np.int64), self.drawing_start_D[1:, None]
            )
            return self.stroke_start_S[last] - first[:-1, None]
        if self.time_P is None:
            raise ValueError("the drawings have no times; use stroke_cuts, or the raw files")
        limits = np.asarray(cuts, dtype=self.time_P.dtype)
        rows = [np.searchsorted(self.time_P[a:b], limits, side="right") for a, b in pairwise(first)]
        return np.array(rows, dtype=np.int64).reshape(len(self), len(limits))

    def strokes_within(self, drawing_N: np.ndarray, num_points_N: np.ndarray) -> np.ndarray:
        """(N,) int64 number of strokes begun within the first points of drawings."""
        end = self.first_point_D[drawing_N] + num_points_N
        return np.searchsorted(self.stroke_start_S, end, side="left") - self.drawing_start_D[drawing_N]

    def drawing(self, index: int, num_points: int | None = None) -> Drawing:
        """Drawing `index`, or its first `num_points` points."""
        first, last = self.drawing_start_D[index], self.drawing_start_D[index + 1]
        starts = self.stroke_start_S[first : last + 1]
        end = starts[-1] if num_points is None else starts[0] + num_points
        strokes = []
        for a, b in zip(starts[:-1], np.minimum(starts[1:], end), strict=True):
            if a < b:
                time_s = None if self.time_P is None else self.time_P[a:b]
                strokes.append(Stroke(self.points_P2[a:b], time_s=time_s))
        return Drawing(tuple(strokes))


@dataclass(frozen=True, eq=False)
class StrokeImages:
    """Cut drawings as images.

    Attributes:
        packed: The drawings.
        drawing_N: (N,) which drawing every item shows.
        num_points_N: (N,) how many of its points.
        renderer: How strokes become pixels.
    """

    packed: PackedDrawings
    drawing_N: np.ndarray
    num_points_N: np.ndarray
    renderer: Renderer

    def __len__(self) -> int:
        return len(self.drawing_N)

    def drawing(self, index: int) -> Drawing:
        """The strokes of item `index`."""
        return self.packed.drawing(int(self.drawing_N[index]), int(self.num_points_N[index]))

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        return self.renderer(self.drawing(index))

    def content_hash(self, index: int) -> str:
        """Hex SHA-256 of the points shown, of how they part into strokes, and of the render settings."""
        packed, number = self.packed, int(self.drawing_N[index])
        begin = packed.first_point_D[number]
        end = begin + int(self.num_points_N[index])
        starts = packed.stroke_start_S[packed.drawing_start_D[number] : packed.drawing_start_D[number + 1]]
        digest = hashlib.sha256(self._render_hash.encode())
        digest.update((starts[starts < end] - begin).astype("<i8").tobytes())
        digest.update(packed.points_P2[begin:end].astype("<f4").tobytes())
        return digest.hexdigest()

    def describe(self, index: int) -> str:
        """File, line and key of the drawing."""
        number = int(self.drawing_N[index])
        return f"{self.packed.where[number]} (key_id {self.packed.keys[number]})"

    @cached_property
    def _render_hash(self) -> str:
        return sha256_value(self.renderer.fingerprint)
