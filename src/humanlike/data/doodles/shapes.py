"""Shapes of which doodles are made: every function returns a path, a (k, 4, 2) chain of cubic Béziers.

Coordinates are free here (the concepts use a board of 100 × 100), x to the right, y down; angles are degrees, 0
pointing right and 90 down. A *path* is what a hand draws without lifting the pen, so the end of each Bézier is the
start of the next one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

Path = np.ndarray
Point = tuple[float, float]


def poly(*points: Point, closed: bool = False) -> Path:
    """Straight pieces through `points`, back to the first one if `closed`.

    Example:
        >>> poly((0, 0), (3, 0)).tolist()
        [[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]]
    """
    knots = _knots(points, closed)
    steps = np.arange(4.0)[None, :, None] / 3
    return knots[:-1, None, :] * (1 - steps) + knots[1:, None, :] * steps


def line(x0: float, y0: float, x1: float, y1: float) -> Path:
    """One straight piece."""
    return poly((x0, y0), (x1, y1))


def rect(x0: float, y0: float, x1: float, y1: float) -> Path:
    """A rectangle between two opposite corners."""
    return poly((x0, y0), (x1, y0), (x1, y1), (x0, y1), closed=True)


def curve(*points: Point, closed: bool = False) -> Path:
    """A smooth line through `points` (Catmull-Rom), back to the first one if `closed`."""
    knots = _knots(points, closed)
    if closed:
        before, after = knots[-2], knots[1]
    else:
        before, after = 2 * knots[0] - knots[1], 2 * knots[-1] - knots[-2]
    padded = np.concatenate([before[None], knots, after[None]])
    tangent = (padded[2:] - padded[:-2]) / 6
    return np.stack([knots[:-1], knots[:-1] + tangent[:-1], knots[1:] - tangent[1:], knots[1:]], axis=1)


def arc(x: float, y: float, rx: float, ry: float, start: float, stop: float) -> Path:
    """A piece of an ellipse around (x, y), from angle `start` to angle `stop` (backwards if stop < start)."""
    pieces = max(1, math.ceil(abs(stop - start) / 91))
    angle = np.radians(np.linspace(start, stop, pieces + 1))
    handle = 4 / 3 * math.tan(math.radians(stop - start) / pieces / 4)
    knots = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    turned = np.stack([-np.sin(angle), np.cos(angle)], axis=1) * handle
    unit = np.stack([knots[:-1], knots[:-1] + turned[:-1], knots[1:] - turned[1:], knots[1:]], axis=1)
    return unit * (rx, ry) + (x, y)


def ellipse(x: float, y: float, rx: float, ry: float | None = None, tilt: float = 0.0) -> Path:
    """A whole ellipse (a circle without `ry`), turned by `tilt` degrees; begun at the top left, as hands do."""
    outline = arc(0, 0, rx, rx if ry is None else ry, 230, 590)
    return moved(turned(outline, tilt), x, y)


def bumps(
    x: float, y: float, rx: float, ry: float, count: int, height: float, start: float = 0.0, stop: float = 360.0
) -> Path:
    """An elliptic outline of `count` round bumps of the given height: manes, clouds, foam."""
    angle = np.radians(np.linspace(start, stop, count + 1))
    knots = np.stack([x + rx * np.cos(angle), y + ry * np.sin(angle)], axis=1)
    middle = (angle[:-1] + angle[1:]) / 2
    outward = np.stack([np.cos(middle), np.sin(middle)], axis=1) * height * 4 / 3
    return np.stack([knots[:-1], knots[:-1] + outward, knots[1:] + outward, knots[1:]], axis=1)


def scallops(x0: float, y0: float, x1: float, y1: float, count: int, height: float) -> Path:
    """A row of `count` bumps between two points, bulging to the left of the way (upwards when drawn to the right)."""
    knots = _between(x0, y0, x1, y1, count)
    out = _leftward(x0, y0, x1, y1) * height * 4 / 3
    return np.stack([knots[:-1], knots[:-1] + out, knots[1:] + out, knots[1:]], axis=1)


def zigzag(x0: float, y0: float, x1: float, y1: float, count: int, height: float) -> Path:
    """A row of `count` teeth between two points, pointing to the left of the way."""
    knots = _between(x0, y0, x1, y1, 2 * count)
    knots[1::2] += _leftward(x0, y0, x1, y1) * height
    return poly(*(tuple(p) for p in knots))


def wave(x0: float, y0: float, x1: float, y1: float, count: int, height: float) -> Path:
    """`count` smooth half waves between two points."""
    knots = _between(x0, y0, x1, y1, 2 * count)
    sides = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    knots[1::2] += sides[:, None] * _leftward(x0, y0, x1, y1) * height
    return curve(*(tuple(p) for p in knots))


def spiral(x: float, y: float, radius: float, turns: float, start: float = 0.0) -> Path:
    """A spiral from the centre to `radius`."""
    angle = np.linspace(0, 360 * turns, max(3, math.ceil(turns * 6)))
    r = radius * angle / angle[-1]
    a = np.radians(angle + start)
    return curve(*zip((x + r * np.cos(a)).tolist(), (y + r * np.sin(a)).tolist(), strict=True))


def rays(
    x: float, y: float, inner: float, outer: float, count: int, start: float = 0.0, stop: float = 360.0
) -> list[Path]:
    """`count` straight lines away from (x, y), from radius `inner` to `outer`; a full turn has no line twice."""
    closed = abs(stop - start) >= 360
    angles = np.radians(np.linspace(start, stop, count, endpoint=not closed)).tolist()
    return [
        line(x + inner * math.cos(a), y + inner * math.sin(a), x + outer * math.cos(a), y + outer * math.sin(a))
        for a in angles
    ]


def dots(points: Iterable[Point], radius: float = 0.8) -> list[Path]:
    """Small circles at `points`."""
    return [arc(px, py, radius, radius, 0, 360) for px, py in points]


def leg(x: float, top: float, bottom: float, width: float, lean: float = 0.0) -> Path:
    """A leg with a flat foot, open at the top; the foot stands `lean` to the right of the hip."""
    half = width / 2
    return poly((x - half, top), (x - half + lean, bottom), (x + half + lean, bottom), (x + half, top))


def mirrored(paths: Sequence[Path], x: float = 50.0) -> list[Path]:
    """`paths` followed by their mirror images about the vertical line at `x`."""
    return [*paths, *(moved(path * (-1, 1), 2 * x, 0) for path in paths)]


def turned(path: Path, degrees: float, x: float = 0.0, y: float = 0.0) -> Path:
    """`path` rotated about (x, y); positive angles turn to the right (clockwise on the screen)."""
    a = math.radians(degrees)
    matrix = np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
    return (path - (x, y)) @ matrix + (x, y)


def moved(path: Path, x: float, y: float) -> Path:
    """`path` shifted by x to the right and y down."""
    return path + np.array([x, y])


def _knots(points: Sequence[Point], closed: bool) -> np.ndarray:
    if len(points) < 2:
        raise ValueError(f"a path needs two points or more, got {len(points)}: {points}")
    return np.array([*points, points[0]] if closed else points, dtype=np.float64)


def _between(x0: float, y0: float, x1: float, y1: float, pieces: int) -> np.ndarray:
    share = np.linspace(0, 1, pieces + 1)[:, None]
    return np.array([[x0, y0]]) * (1 - share) + np.array([[x1, y1]]) * share


def _leftward(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    length = math.hypot(x1 - x0, y1 - y0)
    return np.array([y1 - y0, -(x1 - x0)]) / length
