"""From a concept to a drawn sketch: an instance fixes exemplar and person, a time budget fixes what the hand manages.

Legend: K Béziers of an instance, S strokes (paths), E elements. What is drawn at random has an address of its own below
the seed: the instance's proportions and pose and the habits of the person who draws it (shared by its conditions), and
per condition the choice of elements, the plan of strokes and the hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from humanlike.data.doodles.concept import Concept, Vary
from humanlike.data.doodles.drawer import Drawer, Drawers, fitted, imagined, pose
from humanlike.rng import generator

PEOPLE = Drawers()
"""The people who draw the demo."""


@dataclass(frozen=True, eq=False)
class Instance:
    """One posed exemplar of a concept as one person has it in mind, completely drawn and without a shaking hand.

    Attributes:
        elements: The E element names, most diagnostic first.
        points_K42: (K, 4, 2) Béziers of all strokes, canvas units.
        stroke_K: (K,) stroke that a Bézier belongs to, not decreasing.
        element_S: (S,) element that a stroke belongs to, not decreasing.
        drawer: The person.
    """

    elements: tuple[str, ...]
    points_K42: np.ndarray
    stroke_K: np.ndarray
    element_S: np.ndarray
    drawer: Drawer


@lru_cache(maxsize=4096)
def instance(concept: Concept, number: int | None, seed: int, variation: float = 1.0) -> Instance:
    """Instance `number` of a concept (None: the nominal one in its plain pose, drawn by a tidy person).

    Args:
        concept: What is drawn.
        number: Which exemplar.
        seed: Global seed.
        variation: How much the people who draw differ, see `Drawers`.
    """
    if number is None:
        strength, rng = 0.0, None
        hers = generator(seed, "doodles", concept.name, "drawer")
    else:
        strength, rng = variation, generator(seed, "doodles", concept.name, number, "instance")
        hers = generator(seed, "doodles", concept.name, number, "drawer")
    parts = concept.draw(Vary(rng, 1 + PEOPLE.spread * strength))
    paths = [path for strokes in parts.values() for path in strokes]
    counts = [len(strokes) for strokes in parts.values()]
    points = np.concatenate(paths)
    stroke_K = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    element_S = np.repeat(np.arange(len(counts)), counts)
    drawer = Drawer.sampled(len(parts), strength, hers, PEOPLE)
    if rng is None:
        points = fitted(points)
    else:
        points = imagined(points, stroke_K, element_S[stroke_K], drawer, PEOPLE, hers)
        points = pose(points, rng, concept.turn, strength, PEOPLE)
    return Instance(tuple(parts), points, stroke_K, element_S, drawer)


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
    return min(0.24 + 0.64 * progress(seconds), 1.0) if progress(seconds) > 0 else 0.24 * 2 ** (1.5 * progress(seconds))


def choose_elements(
    num_elements: int, seconds: float, rng: np.random.Generator, drawer: Drawer | None = None
) -> np.ndarray:
    """The elements that get drawn, in the order drawn: about that of diagnosticity, changed by habit and by chance."""
    normal = rng.standard_normal(num_elements + 1)
    habit_E = 0.0 if drawer is None else drawer.habit_E
    pace = 0.0 if drawer is None else drawer.pace
    count = round(num_elements * (expected_share(seconds) + pace + 0.07 * normal[-1]))
    order = np.argsort(np.arange(num_elements) + habit_E + 0.9 * normal[:-1], kind="stable")
    return order[: min(max(count, 1), num_elements)]


def choose_strokes(doodle: Instance, order: np.ndarray, seconds: float) -> np.ndarray:
    """The strokes that get drawn, in order: of an element with many strokes the hurried and the plain omit some."""
    counts = np.bincount(doodle.element_S, minlength=len(doodle.elements))
    first = np.cumsum(counts) - counts
    share = min(0.55 + 0.45 * progress(seconds), 1.0) * doodle.drawer.detail
    kept = np.where(counts <= 2, counts, np.maximum(np.ceil(counts * share), 2)).astype(np.int64)
    return np.concatenate([np.arange(first[e], first[e] + kept[e]) for e in order])
