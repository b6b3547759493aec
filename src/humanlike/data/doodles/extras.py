"""Additions that belong to no element of the concept: a ground line, hatching, a frame, stray marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from humanlike.data.doodles.program import progress
from humanlike.data.doodles.shapes import Path, curve, line

Draw = Callable[[Sequence[Path], np.random.Generator], list[Path]]


@dataclass(frozen=True)
class Extra:
    """A kind of addition.

    Attributes:
        strokes: Number of strokes that it has.
        draw: Program from the paths drawn so far (canvas units) to the added ones.
    """

    strokes: int
    draw: Draw


def _box(paths: Sequence[Path]) -> np.ndarray:
    points = np.concatenate(paths)
    return np.concatenate([points.min(axis=(0, 1)), points.max(axis=(0, 1))])


def _inside(x: float) -> float:
    return float(min(max(x, 0.02), 0.98))


def ground(paths: Sequence[Path], rng: np.random.Generator) -> list[Path]:
    """A line on which the thing stands."""
    left, _, right, low = _box(paths)
    u = rng.random(4)
    y = [_inside(low + 0.03 * (v - 0.4)) for v in u[:3]]
    left, right = _inside(left - 0.25 * u[3]), _inside(right + 0.25 * (1 - u[3]))
    return [curve((left, y[0]), ((left + right) / 2, y[1]), (right, y[2]))]


def hatching(paths: Sequence[Path], rng: np.random.Generator) -> list[Path]:
    """Three parallel lines in a part of one of the larger strokes: shading."""
    size = [np.ptp(path.reshape(-1, 2), axis=0).min() for path in paths]
    x0, y0, x1, y1 = _box([paths[int(rng.choice(np.argsort(size)[-3:]))]])
    u = rng.random(10)
    width, height = 0.25 * (x1 - x0), 0.25 * (y1 - y0)
    x, y = x0 + u[0] * (x1 - x0 - width), y0 + u[1] * (y1 - y0 - height)
    side = 1 if u[9] < 0.7 else -1
    lines = []
    for i in range(3):
        left = x + width * i / 3 + 0.01 * u[2 + i]
        ends = (left + (0.25 * width + 0.02) * side, left)
        lines.append(line(_inside(ends[0]), _inside(y + 0.02 * u[i]), _inside(ends[1]), _inside(y + height)))
    return lines


def stray(paths: Sequence[Path], rng: np.random.Generator) -> list[Path]:
    """A false start: a short line of no meaning near the drawing."""
    x0, y0, x1, y1 = _box(paths)
    u = rng.random(6)
    x, y = x0 + u[0] * (x1 - x0), y0 + u[1] * (y1 - y0)
    a, reach = 2 * np.pi * u[2], 0.05 + 0.12 * u[3]
    to = (x + reach * np.cos(a), y + reach * np.sin(a))
    bend = ((x + to[0]) / 2 + 0.05 * (u[4] - 0.5), (y + to[1]) / 2 + 0.05 * (u[5] - 0.5))
    return [curve(*((_inside(px), _inside(py)) for px, py in ((x, y), bend, to)))]


EXTRAS = (Extra(1, ground), Extra(3, hatching), Extra(1, stray))


def choose_extras(expected: float, seconds: float, rng: np.random.Generator) -> tuple[Extra, ...]:
    """The additions of a sketch, each kind once at most; on average `expected` in 32 s, next to none in 4 s."""
    chance = expected * (0.15 + 0.85 * max(progress(seconds), 0.0)) / len(EXTRAS)
    return tuple(extra for extra, u in zip(EXTRAS, rng.random(len(EXTRAS)), strict=True) if u < chance)
