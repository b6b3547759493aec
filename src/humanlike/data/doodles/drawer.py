"""The people who draw the doodles: every instance is drawn by another person, and people draw differently.

Legend: K Béziers of an instance, S strokes, E elements. `Drawers` says how much people differ, `Drawer` is one of them.
The functions here bend a tidy drawing into the one that a person has in mind; what the hand does to it under a time
limit comes later (`hand`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Drawers:
    """How much people differ. Lengths are shares of the drawing's longer side, angles degrees, σ standard deviations.

    All of it is for `variation` = 1 and shrinks or grows in proportion to it; at 0 everybody draws as the program says.

    Attributes:
        spread: Factor on the programs' own spread of proportions, minus 1.
        small: How far below the usual 0.9 of the sheet the longer side may fall (uniform).
        stretch: σ of the logarithm of width over height.
        slant: σ of the shear in either direction.
        taper: σ of the growth of one side over the other, as in a view from the side.
        turn: σ of the rotation of the whole, besides what the concept allows by itself.
        warp: σ of the smooth bending of the whole: bad proportions.
        shift: σ of the misplacement of an element.
        growth: σ of the logarithm of an element's size, and of its width over height.
        tilt: σ of the rotation of an element.
        clumsy: σ of the logarithm of a person's share in the last four.
        habit: σ of a person's own order of the elements, in ranks of diagnosticity.
        pace: σ of the share of elements that a person manages in excess of others.
        plain: Largest share of an element's many strokes that plain drawers leave out (uniform).
        stick: Probability of drawing long thin parts as single lines.
        angular: Probability of joining points by straight lines.
        rounded: Probability of cutting corners.
        gap: σ of what outlines lack, or have too much, at their ends.
        shaky: σ of the logarithm of the hand's trembling.
        retrace: Largest share of strokes that sketchy drawers draw twice (uniform, for one person in three).
        extra: Expected number of additions that belong to no element in 32 s (ground, hatching, stray marks).
    """

    spread: float = 1.2
    small: float = 0.4
    stretch: float = 0.2
    slant: float = 0.08
    taper: float = 0.13
    turn: float = 5.0
    warp: float = 0.035
    shift: float = 0.025
    growth: float = 0.13
    tilt: float = 5.5
    clumsy: float = 0.4
    habit: float = 1.1
    pace: float = 0.07
    plain: float = 0.5
    stick: float = 0.25
    angular: float = 0.2
    rounded: float = 0.3
    gap: float = 0.05
    shaky: float = 0.4
    retrace: float = 0.4
    extra: float = 0.6


@dataclass(frozen=True, eq=False)
class Drawer:
    """One person's habits, drawn from `Drawers`.

    Attributes:
        clumsy: Factor on every misjudgement of place, size and angle.
        habit_E: How much later than usual each element is drawn, in ranks.
        pace: Share of elements beyond what others manage.
        detail: Share of an element's many strokes that is drawn, (0, 1].
        stick: Whether long thin parts become lines.
        roundness: -1 (corners and straight lines) to 1 (no corners).
        gap: σ of missing or excess length at a stroke's end, canvas units.
        shaky: Factor on the trembling.
        retrace: Probability of drawing a stroke twice.
        extra: Expected number of additions in 32 s.
    """

    clumsy: float
    habit_E: np.ndarray
    pace: float
    detail: float
    stick: bool
    roundness: float
    gap: float
    shaky: float
    retrace: float
    extra: float

    @classmethod
    def sampled(cls, num_elements: int, variation: float, rng: np.random.Generator, of: Drawers) -> Drawer:
        """One person among `of` for a concept of `num_elements` elements."""
        normal, uniform = rng.standard_normal(4 + num_elements), rng.random(6)
        angular, rounded = of.angular * variation, of.rounded * variation
        strength = 0.4 + 0.4 * uniform[1]
        return cls(
            clumsy=variation * math.exp(of.clumsy * min(normal[0], 1.5)),
            habit_E=of.habit * variation * normal[4:],
            pace=of.pace * variation * normal[1],
            detail=1 - min(of.plain * variation, 0.9) * uniform[2],
            stick=bool(uniform[3] < of.stick * variation),
            roundness=float(-strength if uniform[0] < angular else strength * (uniform[0] > 1 - rounded)),
            gap=of.gap * variation * abs(normal[2]),
            shaky=math.exp(of.shaky * variation * normal[3]),
            retrace=min(of.retrace * variation, 1.0) * max(3 * uniform[4] - 2, 0.0),
            extra=of.extra * variation * 2 * uniform[5],
        )


def imagined(
    points_K42: np.ndarray,
    stroke_K: np.ndarray,
    element_K: np.ndarray,
    who: Drawer,
    of: Drawers,
    rng: np.random.Generator,
) -> np.ndarray:
    """The tidy drawing as a person imagines it: elements misjudged one by one, the whole bent; longer side about 1."""
    low, high = points_K42.min(axis=(0, 1)), points_K42.max(axis=(0, 1))
    p = (points_K42 - (low + high) / 2) / (high - low).max()
    if who.stick:
        p = thinned(p, stroke_K)
    if who.clumsy == 0:
        return p
    p = misplaced(p, element_K, who.clumsy, of, rng)
    return warped(p, of.warp * who.clumsy, rng)


def misplaced(
    p_K42: np.ndarray, group_K: np.ndarray, amount: float, of: Drawers, rng: np.random.Generator
) -> np.ndarray:
    """Every group of Béziers moved, resized and turned on its own.

    Args:
        p_K42: (K, 4, 2) points; the longer side of the whole drawing, or of the canvas, is 1.
        group_K: (K,) group of every Bézier; neighbours with one number are one group.
        amount: Factor on the errors.
        of: `shift`, `growth` and `tilt` are used.
        rng: Source of the errors.
    """
    first = np.flatnonzero(np.diff(group_K, prepend=-1))
    index = np.cumsum(np.diff(group_K, prepend=group_K[0]) != 0)
    low, high = np.minimum.reduceat(p_K42.min(axis=1), first), np.maximum.reduceat(p_K42.max(axis=1), first)
    centre, extent = (low + high) / 2, np.linalg.norm(high - low, axis=1)
    normal = np.clip(rng.standard_normal((len(first), 5)), -2.2, 2.2) * amount
    # Small parts are put near where they belong, so that eyes mostly stay inside heads.
    shift = normal[:, :2] * (of.shift * np.minimum(0.35 + extent, 1.0))[:, None]
    scale = np.exp(of.growth * (normal[:, 2:3] + 0.5 * normal[:, 3:4] * (1, -1)))
    angle = np.radians(of.tilt) * normal[:, 4]
    local = (p_K42 - centre[index][:, None]) * scale[index][:, None]
    cos, sin = np.cos(angle)[index][:, None], np.sin(angle)[index][:, None]
    turned = np.stack([local[..., 0] * cos - local[..., 1] * sin, local[..., 0] * sin + local[..., 1] * cos], axis=-1)
    return turned + (centre + shift)[index][:, None]


def warped(p: np.ndarray, amplitude: float, rng: np.random.Generator) -> np.ndarray:
    """Points moved by a smooth field of long waves: distances are misjudged alike in a neighbourhood."""
    phase = rng.uniform(0, 2 * np.pi, (2, 2))
    wavenumber = rng.uniform(2.5, 6.5, (2, 2))
    x, y = p[..., 0], p[..., 1]
    dx = np.sin(wavenumber[0, 0] * y + phase[0, 0]) + np.sin(wavenumber[0, 1] * x + phase[0, 1])
    dy = np.sin(wavenumber[1, 0] * x + phase[1, 0]) + np.sin(wavenumber[1, 1] * y + phase[1, 1])
    return np.stack([x + amplitude * dx, y + amplitude * dy], axis=-1)


def thinned(p_K42: np.ndarray, stroke_K: np.ndarray, slender: float = 2.6, longest: float = 0.5) -> np.ndarray:
    """Strokes more than `slender` times as long as wide collapsed to their long axis, as legs of stick figures are.

    Strokes longer than `longest`, of the drawing's longer side, keep their width: they are bodies, not limbs.
    """
    q = p_K42.copy()
    for path in np.split(np.arange(len(q)), np.flatnonzero(np.diff(stroke_K)) + 1):
        flat = q[path].reshape(-1, 2)
        centre = flat.mean(axis=0)
        _, size, axes = np.linalg.svd(flat - centre, full_matrices=False)
        if len(path) > 1 and size[0] > slender * size[1] and np.ptp(flat, axis=0).max() < longest:
            q[path] = (centre + (flat - centre) @ axes[0][:, None] * axes[0]).reshape(-1, 4, 2)
    return q


def pose(p_K42: np.ndarray, rng: np.random.Generator, turn: float, variation: float, of: Drawers) -> np.ndarray:
    """Points mirrored or not, stretched, sheared, tapered as in a view from the side, rotated, put on the sheet."""
    normal = np.clip(rng.standard_normal(6), -2.2, 2.2)
    uniform = rng.random(4)
    low, high = p_K42.min(axis=(0, 1)), p_K42.max(axis=(0, 1))
    x, y = np.moveaxis((p_K42 - (low + high) / 2) / (high - low).max(), -1, 0)
    stretch = math.exp(of.stretch * variation * normal[0] / 2)
    x, y = x * stretch * (-1 if uniform[0] < 0.5 else 1), y / stretch
    y = y + of.slant * variation * normal[1] * x
    x = x + of.slant * variation * normal[2] * y
    taper = min(of.taper * variation, 0.4) * normal[3]
    x, y = x * (1 + taper * y), y * (1 + taper * y)
    a = math.radians(turn * normal[4] + of.turn * variation * normal[5])
    turned = np.stack([x * math.cos(a) - y * math.sin(a), x * math.sin(a) + y * math.cos(a)], axis=-1)
    size = 0.9 - 0.05 * uniform[1] - min(of.small * variation, 0.7) * uniform[1]
    return fitted(turned, size, (uniform[2], uniform[3]))


def fitted(points_K42: np.ndarray, size: float = 0.84, at: tuple[float, float] = (0.5, 0.5)) -> np.ndarray:
    """Points scaled to `size` of the canvas on the longer side, placed at share `at` of the room inside a margin."""
    low, high = points_K42.min(axis=(0, 1)), points_K42.max(axis=(0, 1))
    scale = size / (high - low).max()
    room = 0.92 - scale * (high - low)
    return (points_K42 - low) * scale + 0.04 + room * np.asarray(at)
