"""One drawing as plain arrays: polylines and chained cubic Béziers with pen width, opacity, element name and time.

Coordinates are canvas units: the canvas is [0, 1]², x to the right, y down; points may lie outside and are then clipped
by the renderer. Widths are fractions of the canvas side. Legend: n points of a stroke, m cubics of a curved stroke
(n = 3m + 1: neighbours share an end point), S strokes of a drawing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

DEFAULT_WIDTH = 0.0125
Box = tuple[float, float, float, float]


class EmptyDrawingError(ValueError):
    """A drawing without any ink where ink is needed."""


@dataclass(frozen=True, eq=False)
class Stroke:
    """One movement of the pen.

    Attributes:
        points: (n, 2) float64. A polyline, or with `curved` the control points of m cubics in a chain, n = 3m + 1. One
            point is a dot of the pen's width.
        width: Pen width as a fraction of the canvas side, above 0.
        opacity: 0 (invisible) to 1.
        curved: True when `points` are Bézier control points.
        element: Name of the part that the stroke draws ("mane"), or None.
        time_s: (n,) seconds since the drawing began, not decreasing, polylines only; or None.

    Raises:
        ValueError: For wrong shapes, no point, values that are not finite, or a width or opacity out of range.

    Example:
        >>> Stroke([(0.1, 0.2), (0.4, 0.2)], element="rim").points.shape
        (2, 2)
    """

    points: np.ndarray
    width: float = DEFAULT_WIDTH
    opacity: float = 1.0
    curved: bool = False
    element: str | None = None
    time_s: np.ndarray | None = None

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2 or len(points) == 0:
            raise ValueError(f"points of a stroke must have shape (n, 2) with n ≥ 1, got {points.shape}")
        if not np.isfinite(points).all():
            raise ValueError("points of a stroke must be finite, found NaN or infinity")
        if self.curved and len(points) % 3 != 1:
            raise ValueError(f"a curved stroke needs 3m + 1 control points, got {len(points)}")
        if not (self.width > 0 and np.isfinite(self.width)):
            raise ValueError(f"stroke width must be a positive fraction of the canvas side, got {self.width}")
        if not 0 <= self.opacity <= 1:
            raise ValueError(f"stroke opacity must lie in [0, 1], got {self.opacity}")
        object.__setattr__(self, "points", points)
        if self.time_s is not None:
            time_s = np.asarray(self.time_s, dtype=np.float64)
            if self.curved or time_s.shape != (len(points),) or not np.isfinite(time_s).all():
                raise ValueError(
                    f"time_s must hold one finite second value a point of a polyline: {len(points)} points, "
                    f"curved={self.curved}, time_s of shape {time_s.shape}"
                )
            if (np.diff(time_s) < 0).any():
                raise ValueError("time_s must not decrease within a stroke")
            object.__setattr__(self, "time_s", time_s)

    def cubics(self) -> np.ndarray:
        """(m, 4, 2) control points; a polyline's segments are raised to cubics exactly, a dot is one cubic."""
        p = self.points
        if self.curved and len(p) > 1:
            return np.stack([p[0:-1:3], p[1::3], p[2::3], p[3::3]], axis=1)
        a, b = (p[:-1], p[1:]) if len(p) > 1 else (p, p)
        return np.stack([a, (2 * a + b) / 3, (a + 2 * b) / 3, b], axis=1)

    def flattened(self, per_curve: int = 16) -> np.ndarray:
        """(n', 2) points of the stroke as a polyline, `per_curve` segments a cubic."""
        if not self.curved or len(self.points) == 1:
            return self.points
        t = (np.arange(1, per_curve + 1) / per_curve)[None, :, None]
        a, b, c, d = (self.cubics()[:, i, None, :] for i in range(4))
        curve = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
        return np.concatenate([self.points[:1], curve.reshape(-1, 2)])


@dataclass(frozen=True, eq=False)
class Drawing:
    """A sketch: strokes in the order drawn.

    Attributes:
        strokes: The S strokes; S = 0 is a blank sheet.

    Example:
        >>> d = Drawing.from_polylines([[(0, 0), (10, 0)], [(5, 5)]]).fitted(margin=0.1)
        >>> d.num_strokes, d.num_points, [round(float(v), 3) for v in d.box()]
        (2, 3, [0.1, 0.3, 0.9, 0.7])
    """

    strokes: tuple[Stroke, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "strokes", tuple(self.strokes))

    @classmethod
    def from_polylines(
        cls,
        polylines: Iterable[np.ndarray | Sequence[Sequence[float]]],
        *,
        width: float = DEFAULT_WIDTH,
        elements: Sequence[str | None] | None = None,
        times_s: Sequence[np.ndarray] | None = None,
    ) -> Drawing:
        """A drawing from (n, 2) polylines with one pen width, optional element names and optional times."""
        lines = list(polylines)
        names = _per_stroke(elements, len(lines), "elements")
        times = _per_stroke(times_s, len(lines), "times_s")
        return cls(
            tuple(
                Stroke(np.asarray(line, dtype=np.float64), width=width, element=name, time_s=time)
                for line, name, time in zip(lines, names, times, strict=True)
            )
        )

    @classmethod
    def from_cubics(
        cls,
        points_K42: np.ndarray,
        *,
        width: float | Sequence[float] = DEFAULT_WIDTH,
        opacity: float | Sequence[float] = 1.0,
        elements: Sequence[str | None] | None = None,
    ) -> Drawing:
        """A drawing of K strokes, each one cubic Bézier, from (K, 4, 2) control points."""
        points = np.asarray(points_K42, dtype=np.float64)
        if points.ndim != 3 or points.shape[1:] != (4, 2):
            raise ValueError(f"points_K42 must have shape (K, 4, 2), got {points.shape}")
        widths = np.broadcast_to(np.asarray(width, dtype=np.float64), len(points))
        opacities = np.broadcast_to(np.asarray(opacity, dtype=np.float64), len(points))
        names = _per_stroke(elements, len(points), "elements")
        return cls(
            tuple(
                Stroke(p, width=float(w), opacity=float(o), curved=True, element=e)
                for p, w, o, e in zip(points, widths, opacities, names, strict=True)
            )
        )

    @property
    def num_strokes(self) -> int:
        """Number of strokes."""
        return len(self.strokes)

    @property
    def num_points(self) -> int:
        """Number of stored points (control points for curved strokes)."""
        return sum(len(s.points) for s in self.strokes)

    def box(self) -> Box:
        """Left, top, right and bottom of the pen's path (curves flattened, pen width not included).

        Raises:
            EmptyDrawingError: For a drawing without strokes.
        """
        if not self.strokes:
            raise EmptyDrawingError("an empty drawing has no bounding box")
        points = np.concatenate([s.flattened() for s in self.strokes])
        (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
        return float(x0), float(y0), float(x1), float(y1)

    def transformed(
        self, scale: float = 1.0, shift: tuple[float, float] = (0.0, 0.0), scale_width: bool = False
    ) -> Drawing:
        """Every point times `scale` plus `shift`; the pen keeps its width unless `scale_width`."""
        factor = scale if scale_width else 1.0
        offset = np.asarray(shift)
        return Drawing(
            tuple(replace(s, points=s.points * scale + offset, width=s.width * factor) for s in self.strokes)
        )

    def fitted(self, margin: float = 0.05, box: Box | None = None) -> Drawing:
        """Scaled without distortion so that `box` (default: its own) fills the canvas up to `margin`, centred.

        Args:
            margin: Free border on the longer axis as a fraction of the side, in [0, 0.5).
            box: Give the box of the *full* drawing to keep parts of it in register. A box without extent is centred
                at scale 1.
        """
        if not 0 <= margin < 0.5:
            raise ValueError(f"margin must lie in [0, 0.5), got {margin}")
        x0, y0, x1, y1 = self.box() if box is None else box
        side = max(x1 - x0, y1 - y0)
        scale = (1 - 2 * margin) / side if side > 0 else 1.0
        return self.transformed(scale, (0.5 - scale * (x0 + x1) / 2, 0.5 - scale * (y0 + y1) / 2))

    def until(self, time_s: float) -> Drawing:
        """What was drawn up to and including `time_s` seconds; needs times on every stroke."""
        kept = []
        for number, stroke in enumerate(self.strokes):
            if stroke.time_s is None:
                raise ValueError(f"stroke {number} has no times; cut by `first(k)` strokes instead")
            n = int(np.searchsorted(stroke.time_s, time_s, side="right"))
            if n:
                kept.append(replace(stroke, points=stroke.points[:n], time_s=stroke.time_s[:n]))
        return Drawing(tuple(kept))

    def first(self, num_strokes: int) -> Drawing:
        """The first `num_strokes` strokes (all of them where the drawing has fewer)."""
        return Drawing(self.strokes[:num_strokes])

    def digest(self) -> str:
        """Hex SHA-256 of everything that can change the picture (not of names and times)."""
        sha = hashlib.sha256()
        for s in self.strokes:
            sha.update(f"{len(s.points)},{float(s.width)!r},{float(s.opacity)!r},{bool(s.curved)};".encode())
            sha.update(np.ascontiguousarray(s.points, dtype="<f8").tobytes())
        return sha.hexdigest()


def _per_stroke(values: Sequence | None, count: int, name: str) -> Sequence:
    if values is None:
        return [None] * count
    if len(values) != count:
        raise ValueError(f"{name} must have one entry a stroke: {count} strokes, {len(values)} entries")
    return values
