"""The shaking hand: fewer control points and more jitter the less time there is.

Legend: K Béziers in chains, S strokes. All functions work on all strokes of a sketch at once, because a data set draws
tens of thousands of them.
"""

from __future__ import annotations

import numpy as np

from humanlike.data.doodles.program import progress

CORNER_COSINE = 0.6
"""Neighbouring Béziers whose directions differ by more than about 53° meet in a corner, which a hand keeps."""


def simplified(points_K42: np.ndarray, stroke_K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every second smooth joint left out: pairs of Béziers become one that starts and ends in the same directions.

    Pairs are formed from the beginning of each stroke; corners stay, and so do pairs that span much more than half a
    circle. A pair that came from halving one Bézier gives that Bézier back.

    Returns:
        The (K', 4, 2) points and the (K',) strokes, K/2 ≤ K' ≤ K.
    """
    k = len(points_K42)
    start = np.concatenate([[True], stroke_K[1:] != stroke_K[:-1]])
    place = np.arange(k) - np.maximum.accumulate(np.where(start, np.arange(k), 0))
    incoming = points_K42[:-1, 3] - points_K42[:-1, 2]
    outgoing = points_K42[1:, 1] - points_K42[1:, 0]
    lengths = np.linalg.norm(incoming, axis=1) * np.linalg.norm(outgoing, axis=1)
    smooth = (incoming * outgoing).sum(axis=1) >= CORNER_COSINE * lengths
    chord = np.linalg.norm(points_K42[:, 3] - points_K42[:, 0], axis=1)
    span = np.linalg.norm(points_K42[1:, 3] - points_K42[:-1, 0], axis=1)
    # One Bézier cannot stand for more than about half a circle: it would collapse into a line.
    open_enough = span >= 0.6 * (chord[:-1] + chord[1:])
    merges = np.concatenate([(place[:-1] % 2 == 0) & ~start[1:] & smooth & open_enough, [False]])
    second = np.concatenate([[False], merges[:-1]])
    merged = points_K42.copy()
    a, b = points_K42[:-1][merges[:-1]], points_K42[1:][merges[:-1]]
    merged[merges] = np.stack([a[:, 0], 2 * a[:, 1] - a[:, 0], 2 * b[:, 2] - b[:, 3], b[:, 3]], axis=1)
    return merged[~second], stroke_K[~second]


def shaken(points_K42: np.ndarray, stroke_K: np.ndarray, seconds: float, rng: np.random.Generator) -> np.ndarray:
    """Points as a hand puts them: the sheet is misjudged smoothly, strokes are misplaced, joints tremble, lines bow.

    Joints move together with their handles, so smooth lines stay smooth; the ends of closed outlines miss each other.

    Args:
        points_K42: (K, 4, 2) canvas units.
        stroke_K: (K,) stroke of every Bézier, not decreasing.
        seconds: Time limit; the trembling at 4 s is three times that at 32 s.
        rng: Generator addressed by seed, concept, instance and condition.
    """
    amount = 3 ** -progress(seconds)
    p = _misjudged(points_K42, 0.012 * amount + 0.006, rng)
    first = np.flatnonzero(np.concatenate([[True], stroke_K[1:] != stroke_K[:-1]]))
    index = np.cumsum(np.concatenate([[0], (stroke_K[1:] != stroke_K[:-1]).astype(np.int64)]))
    low = np.minimum.reduceat(p.min(axis=1), first)
    high = np.maximum.reduceat(p.max(axis=1), first)
    extent = np.linalg.norm(high - low, axis=1)
    p = _misplaced(p, index, (low + high) / 2, extent, amount, rng)
    tremble = np.minimum(0.011 * amount, 0.07 * extent)[index]
    p = _trembling(p, first, tremble, rng)
    return _bowed(p, amount, rng)


def _misjudged(p: np.ndarray, amplitude: float, rng: np.random.Generator) -> np.ndarray:
    phase = rng.uniform(0, 2 * np.pi, (2, 2))
    wavenumber = rng.uniform(2.5, 6.5, (2, 2))
    x, y = p[..., 0], p[..., 1]
    dx = np.sin(wavenumber[0, 0] * y + phase[0, 0]) + np.sin(wavenumber[0, 1] * x + phase[0, 1])
    dy = np.sin(wavenumber[1, 0] * x + phase[1, 0]) + np.sin(wavenumber[1, 1] * y + phase[1, 1])
    return np.stack([x + amplitude * dx, y + amplitude * dy], axis=-1)


def _misplaced(
    p: np.ndarray,
    index_K: np.ndarray,
    centre_S2: np.ndarray,
    extent_S: np.ndarray,
    amount: float,
    rng: np.random.Generator,
) -> np.ndarray:
    normal = rng.standard_normal((len(centre_S2), 5))
    # Small strokes are placed with less absolute error than large ones, so that eyes stay inside heads.
    reach = np.minimum(0.009 * amount, 0.004 * amount + 0.02 * extent_S)
    shift = normal[:, :2] * reach[:, None]
    angle = 0.03 * amount * normal[:, 2]
    scale = 1 + 0.03 * amount * normal[:, 3:]
    local = (p - centre_S2[index_K][:, None]) * scale[index_K][:, None]
    cos, sin = np.cos(angle)[index_K][:, None], np.sin(angle)[index_K][:, None]
    turned = np.stack([local[..., 0] * cos - local[..., 1] * sin, local[..., 0] * sin + local[..., 1] * cos], axis=-1)
    return turned + (centre_S2 + shift)[index_K][:, None]


def _trembling(p: np.ndarray, first_S: np.ndarray, sigma_K: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    at_start = rng.standard_normal((len(p), 2)) * sigma_K[:, None]
    at_end = np.concatenate([at_start[1:], at_start[:1]])
    last = np.concatenate([first_S[1:], [len(p)]]) - 1
    at_end[last] = rng.standard_normal((len(last), 2)) * sigma_K[last][:, None]
    moved = p.copy()
    moved[:, :2] += at_start[:, None]
    moved[:, 2:] += at_end[:, None]
    return moved


def _bowed(p: np.ndarray, amount: float, rng: np.random.Generator) -> np.ndarray:
    chord = p[:, 3] - p[:, 0]
    sideways = np.stack([-chord[:, 1], chord[:, 0]], axis=1) * (0.03 * amount * rng.standard_normal(len(p)))[:, None]
    bowed = p.copy()
    bowed[:, 1:3] += sideways[:, None]
    return bowed
