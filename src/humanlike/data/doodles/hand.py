"""The hand: fewer control points, more misjudgement and more trembling the less time there is, and a person's style.

Legend: K Béziers in chains, S strokes. All functions work on all strokes of a sketch at once, because a data set draws
tens of thousands of them.
"""

from __future__ import annotations

import numpy as np

from humanlike.data.doodles.drawer import Drawer, Drawers, misplaced, warped
from humanlike.data.doodles.program import progress

HURRY = Drawers(shift=0.04, growth=0.16, tilt=7.0, warp=0.025)
"""What haste at 4 s adds to the misjudgement of elements; the rest of the record is not used."""

STROKES = Drawers(shift=0.01, growth=0.03, tilt=1.7)
"""How far single strokes are misplaced, at 4 s; the rest of the record is not used."""

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


def by_hand(
    points_K42: np.ndarray,
    stroke_K: np.ndarray,
    element_K: np.ndarray,
    seconds: float,
    who: Drawer,
    rng: np.random.Generator,
) -> np.ndarray:
    """What a person's hand makes of the strokes that are in mind: style, misjudgement, trembling, ends, place.

    Args:
        points_K42: (K, 4, 2) canvas units.
        stroke_K: (K,) stroke of every Bézier, not decreasing.
        element_K: (K,) element of every Bézier, elements in one piece.
        seconds: Time limit.
        who: The person.
        rng: Generator addressed by seed, concept, instance and condition.
    """
    p = styled(points_K42, stroke_K, who.roundness)
    if who.clumsy > 0:
        hurry = 3 ** -progress(seconds)
        p = misplaced(p, element_K, hurry * who.clumsy, HURRY, rng)
        p = warped(p, HURRY.warp * hurry * who.clumsy, rng)
        p = trimmed(p, stroke_K, who.gap * (0.5 + hurry), rng)
    return on_the_sheet(shaken(p, stroke_K, seconds, rng, who.shaky))


def shaken(
    points_K42: np.ndarray, stroke_K: np.ndarray, seconds: float, rng: np.random.Generator, shaky: float = 1.0
) -> np.ndarray:
    """Points as a hand puts them: the sheet is misjudged smoothly, strokes are misplaced, joints tremble, lines bow.

    Joints move together with their handles, so smooth lines stay smooth; the ends of closed outlines miss each other.

    Args:
        points_K42: (K, 4, 2) canvas units.
        stroke_K: (K,) stroke of every Bézier, not decreasing.
        seconds: Time limit; the trembling at 4 s is three times that at 32 s.
        rng: Generator addressed by seed, concept, instance and condition.
        shaky: A person's factor on the trembling.
    """
    amount = 3 ** -progress(seconds)
    p = warped(points_K42, 0.012 * amount + 0.006, rng)
    first = np.flatnonzero(np.diff(stroke_K, prepend=-1))
    index = np.cumsum(np.diff(stroke_K, prepend=stroke_K[0]) != 0)
    extent = np.linalg.norm(
        np.maximum.reduceat(p.max(axis=1), first) - np.minimum.reduceat(p.min(axis=1), first), axis=1
    )
    p = misplaced(p, stroke_K, amount * shaky, STROKES, rng)
    tremble = np.minimum(0.011 * amount * shaky, 0.07 * extent)[index]
    p = _trembling(p, first, tremble, rng)
    return _bowed(p, amount * shaky, rng)


def styled(points_K42: np.ndarray, stroke_K: np.ndarray, roundness: float) -> np.ndarray:
    """Lines made straight between their joints (-1), as they are (0), or smooth at every joint (1)."""
    if roundness == 0 or len(points_K42) < 2:
        return points_K42
    p, q = points_K42, points_K42.copy()
    chord = (p[:, 3] - p[:, 0]) / 3
    start, end = chord, -chord
    if roundness > 0:
        joined = (stroke_K[1:] == stroke_K[:-1])[:, None]
        through = p[1:, 3] - p[:-1, 0]
        through /= np.maximum(np.linalg.norm(through, axis=1, keepdims=True), 1e-9)
        # A third of the chord at most: longer handles would inflate the short sides of thin shapes.
        reach = np.linalg.norm(chord, axis=1, keepdims=True)
        start, end = p[:, 1] - p[:, 0], p[:, 2] - p[:, 3]
        start = np.concatenate([start[:1], np.where(joined, through * reach[1:], start[1:])])
        end = np.concatenate([np.where(joined, -through * reach[:-1], end[:-1]), end[-1:]])
    weight = abs(roundness)
    q[:, 1] = (1 - weight) * p[:, 1] + weight * (p[:, 0] + start)
    q[:, 2] = (1 - weight) * p[:, 2] + weight * (p[:, 3] + end)
    return q


def trimmed(points_K42: np.ndarray, stroke_K: np.ndarray, gap: float, rng: np.random.Generator) -> np.ndarray:
    """Strokes begun too late and ended too early or too late, by normal lengths of standard deviation `gap`.

    At most half of the outer Bézier goes, and at most a third of its length is added.
    """
    q = points_K42.copy()
    change = np.diff(stroke_K) != 0
    for edge, forward in ((np.append(change, True), True), (np.insert(change, 0, True), False)):
        outer = np.flatnonzero(edge)
        bezier = q[outer] if forward else q[outer, ::-1]
        length = np.linalg.norm(np.diff(bezier, axis=1), axis=2).sum(axis=1) + 1e-9
        share = np.clip(1 - gap * rng.standard_normal(len(outer)) / length, 0.5, 1.33)
        cut = _part(bezier, share[:, None])
        q[outer] = cut if forward else cut[:, ::-1]
    return q


def on_the_sheet(p_K42: np.ndarray, margin: float = 0.03) -> np.ndarray:
    """Points moved, and made smaller if need be, until all of them lie inside the margin."""
    low, high = p_K42.min(axis=(0, 1)), p_K42.max(axis=(0, 1))
    scale = min(1.0, (1 - 2 * margin) / max(float((high - low).max()), 1e-9))
    middle = (low + high) / 2
    half = scale * (high - low) / 2
    return (p_K42 - middle) * scale + np.clip(middle, margin + half, 1 - margin - half)


def _part(bezier_S42: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The pieces from 0 to t (beyond 1: continued), by De Casteljau's construction."""
    a, b, c, d = (bezier_S42[:, i] for i in range(4))
    ab, bc, cd = a + t * (b - a), b + t * (c - b), c + t * (d - c)
    abc, bcd = ab + t * (bc - ab), bc + t * (cd - bc)
    return np.stack([a, ab, abc, abc + t * (bcd - abc)], axis=1)


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
