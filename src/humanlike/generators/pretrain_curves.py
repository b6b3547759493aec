"""Any drawing as at most K cubic Béziers: what a generator with K curves learns from.

Every stroke is sampled at 49 points, even in arc length, and cut into n pieces of equal length; a piece becomes the
cubic through its two ends whose two inner control points fit the points between best (least squares). All strokes begin
with one curve; the one that its curves fit worst gets one more until all fit or there are K.
"""

from __future__ import annotations

import heapq
from functools import cache
from typing import NamedTuple

import numpy as np

from humanlike.data.drawing import Drawing

INTERVALS = 48
"""Intervals a stroke is sampled in; divisible by every number of curves in `PIECES`."""
PIECES = (1, 2, 3, 4, 6, 8, 12, 16)
"""Numbers of curves that a stroke may have."""


class Curves(NamedTuple):
    """M cubics of one drawing.

    Attributes:
        points_M42: (M, 4, 2) float64 control points in canvas units.
        width_M: (M,) float64 pen widths, fractions of the canvas side.
        stroke_M: (M,) int64, the stroke of the drawing that a curve belongs to, not decreasing.
    """

    points_M42: np.ndarray
    width_M: np.ndarray
    stroke_M: np.ndarray


def fit_curves(drawing: Drawing, max_curves: int, tolerance: float = 0.008) -> Curves:
    """A drawing as at most `max_curves` cubics.

    Args:
        drawing: The drawing; of one with more strokes than `max_curves`, the longest are kept.
        max_curves: K ≥ 1.
        tolerance: Distance, in canvas sides, from sampled points to the curve at the same parameter below which a
            stroke gets no further curve.

    Raises:
        ValueError: `max_curves` or `tolerance` is out of range.

    Example:
        >>> curves = fit_curves(Drawing.from_polylines([[(0, 0), (0.9, 0)], [(0.5, 0.5)]]), max_curves=8)
        >>> curves.points_M42[0, :, 0].round(3).tolist(), curves.stroke_M.tolist()
        ([0.0, 0.3, 0.6, 0.9], [0, 1])
    """
    if max_curves < 1:
        raise ValueError(f"max_curves must be 1 or more, got {max_curves}")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be a positive share of the canvas side, got {tolerance}")
    sampled = [_even(stroke.flattened()) for stroke in drawing.strokes]
    length = np.array([np.linalg.norm(np.diff(s, axis=0), axis=1).sum() for s in sampled])
    kept = np.sort(np.argsort(-length, kind="stable")[:max_curves])
    level = dict.fromkeys(kept.tolist(), 0)
    fits = {s: _fit(sampled[s], 1) for s in level}
    worst = [(-fits[s][1], s) for s in level]
    heapq.heapify(worst)
    total = len(level)
    while worst and -worst[0][0] > tolerance:
        _, s = heapq.heappop(worst)
        if level[s] + 1 == len(PIECES):
            continue
        more = PIECES[level[s] + 1] - PIECES[level[s]]
        if total + more > max_curves:
            continue
        total, level[s] = total + more, level[s] + 1
        fits[s] = _fit(sampled[s], PIECES[level[s]])
        heapq.heappush(worst, (-fits[s][1], s))
    if not level:
        return Curves(np.zeros((0, 4, 2)), np.zeros(0), np.zeros(0, dtype=np.int64))
    stroke_M = np.repeat(kept, [PIECES[level[s]] for s in kept.tolist()]).astype(np.int64)
    width_S = np.array([stroke.width for stroke in drawing.strokes])
    return Curves(np.concatenate([fits[s][0] for s in kept.tolist()]), width_S[stroke_M], stroke_M)


def _even(points_n2: np.ndarray) -> np.ndarray:
    """(49, 2) points, even in arc length, along a polyline."""
    step = np.linalg.norm(np.diff(points_n2, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(step)])
    at = np.linspace(0.0, along[-1], INTERVALS + 1)
    return np.column_stack([np.interp(at, along, points_n2[:, axis]) for axis in (0, 1)])


def _fit(sampled_P2: np.ndarray, pieces: int) -> tuple[np.ndarray, float]:
    """(pieces, 4, 2) curves and their largest error."""
    m = INTERVALS // pieces
    part = np.arange(pieces)[:, None] * m + np.arange(m + 1)
    points = sampled_P2[part]
    ends, inner, solve = _design(m)
    rest = points - np.einsum("tc,pcx->ptx", ends, points[:, [0, -1]])
    middle = np.einsum("ct,ptx->pcx", solve, rest)
    error = np.linalg.norm(rest - np.einsum("tc,pcx->ptx", inner, middle), axis=2).max()
    return np.concatenate([points[:, :1], middle, points[:, -1:]], axis=1), float(error)


@cache
def _design(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bernstein weights of the ends, of the inner control points, and the latter's pseudo-inverse."""
    t = np.linspace(0.0, 1.0, m + 1)
    r = 1 - t
    ends = np.column_stack([r**3, t**3])
    inner = np.column_stack([3 * r**2 * t, 3 * r * t**2])
    return ends, inner, np.linalg.pinv(inner)
