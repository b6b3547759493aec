"""From a concept to a drawn sketch: an instance fixes pose and proportion, a time budget fixes what the hand manages.

Legend: K Béziers of an instance, S strokes (paths), E elements. Three things are drawn at random, each with its own
address below the seed: the instance's proportions and pose (shared by its conditions, as people draw the same
photograph under every limit), and per condition the choice of elements and the hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from humanlike.data.doodles.concept import Concept, Vary
from humanlike.rng import generator


@dataclass(frozen=True, eq=False)
class Instance:
    """One posed exemplar of a concept, completely drawn and without a shaking hand.

    Attributes:
        elements: The E element names, most diagnostic first.
        points_K42: (K, 4, 2) Béziers of all strokes, canvas units.
        stroke_K: (K,) stroke that a Bézier belongs to, not decreasing.
        element_S: (S,) element that a stroke belongs to, not decreasing.
    """

    elements: tuple[str, ...]
    points_K42: np.ndarray
    stroke_K: np.ndarray
    element_S: np.ndarray


@lru_cache(maxsize=4096)
def instance(concept: Concept, number: int | None, seed: int) -> Instance:
    """Instance `number` of a concept (None: the nominal one in its plain pose)."""
    rng = None if number is None else generator(seed, "doodles", concept.name, number, "instance")
    parts = concept.draw(Vary(rng))
    paths = [path for strokes in parts.values() for path in strokes]
    lengths = [len(path) for path in paths]
    points = np.concatenate(paths)
    posed = fitted(points) if rng is None else pose(points, rng, concept.turn)
    counts = [len(strokes) for strokes in parts.values()]
    return Instance(
        elements=tuple(parts),
        points_K42=posed,
        stroke_K=np.repeat(np.arange(len(paths)), lengths),
        element_S=np.repeat(np.arange(len(counts)), counts),
    )


def pose(points_K42: np.ndarray, rng: np.random.Generator, turn: float) -> np.ndarray:
    """Points mirrored or not, stretched, sheared, tapered as in a view from the side, rotated, and fitted in."""
    normal = rng.standard_normal(5)
    uniform = rng.random(4)
    low, high = points_K42.min(axis=(0, 1)), points_K42.max(axis=(0, 1))
    x, y = np.moveaxis((points_K42 - (low + high) / 2) / (high - low).max(), -1, 0)
    x = x * math.exp(0.1 * normal[0]) * (-1 if uniform[0] < 0.5 else 1)
    y = y + 0.05 * normal[1] * x
    x = x + 0.05 * normal[2] * y
    x, y = x * (1 + 0.12 * normal[3] * y), y * (1 + 0.12 * normal[3] * y)
    a = math.radians(turn * normal[4])
    turned = np.stack([x * math.cos(a) - y * math.sin(a), x * math.sin(a) + y * math.cos(a)], axis=-1)
    return fitted(turned, size=0.66 + 0.2 * uniform[1], at=(0.25 + 0.5 * uniform[2], 0.25 + 0.5 * uniform[3]))


def fitted(points_K42: np.ndarray, size: float = 0.84, at: tuple[float, float] = (0.5, 0.5)) -> np.ndarray:
    """Points scaled to `size` of the canvas on the longer side, placed at share `at` of the room inside a margin."""
    low, high = points_K42.min(axis=(0, 1)), points_K42.max(axis=(0, 1))
    scale = size / (high - low).max()
    room = 0.92 - scale * (high - low)
    return (points_K42 - low) * scale + 0.04 + room * np.asarray(at)


def progress(seconds: float) -> float:
    """Time on a scale where 4 s is 0 and 32 s is 1, linear in the logarithm, not beyond [-⅔, 1⅓] (1 s and 64 s).

    Raises:
        ValueError: For a time that is not positive and finite.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"a time limit must be a positive number of seconds, got {seconds}")
    return min(max(math.log2(seconds / 4) / 3, -2 / 3), 4 / 3)


def expected_share(seconds: float) -> float:
    """Expected share of a concept's elements that are drawn within `seconds`."""
    return min(0.3 + 0.62 * progress(seconds), 1.0) if progress(seconds) > 0 else 0.3 * 2 ** (1.5 * progress(seconds))


def choose_elements(num_elements: int, seconds: float, rng: np.random.Generator) -> np.ndarray:
    """(E,) bool, which elements get drawn: the first ones in order of diagnosticity, with noise, at least one."""
    normal = rng.standard_normal(num_elements + 1)
    count = round(num_elements * (expected_share(seconds) + 0.07 * normal[-1]))
    order = np.argsort(np.arange(num_elements) + 0.9 * normal[:-1], kind="stable")
    drawn = np.zeros(num_elements, dtype=bool)
    drawn[order[: min(max(count, 1), num_elements)]] = True
    return drawn


def choose_strokes(doodle: Instance, drawn_E: np.ndarray, seconds: float) -> np.ndarray:
    """(S,) bool, which strokes get drawn: of a drawn element with many strokes the hurried leave some out."""
    counts = np.bincount(doodle.element_S, minlength=len(doodle.elements))
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.arange(len(doodle.element_S)) - first[doodle.element_S]
    share = min(0.62 + 0.38 * progress(seconds), 1.0)
    kept = np.where(counts <= 3, counts, np.ceil(counts * share))
    return drawn_E[doodle.element_S] & (place < kept[doodle.element_S])
