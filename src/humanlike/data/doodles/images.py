"""The demo's images: every item is drawn from its address when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from humanlike.data.doodles.concept import Concept
from humanlike.data.doodles.extras import Extra, choose_extras
from humanlike.data.doodles.hand import by_hand, simplified
from humanlike.data.doodles.program import choose_elements, choose_strokes, instance
from humanlike.data.drawing import DEFAULT_WIDTH, Drawing, Stroke
from humanlike.data.render import Renderer
from humanlike.rng import generator

if TYPE_CHECKING:
    from PIL import Image

MERGES_BELOW_S = ((6.0, 2), (12.0, 1))
"""Time limits in seconds below which control points are thinned out, and how often."""


@dataclass(frozen=True)
class DoodleImages:
    """Doodles as images, an `ImageSource`.

    Attributes:
        concepts: The concepts, in label order.
        address: One (concept index, instance number, time limit in seconds) an item.
        seed: Global seed.
        renderer: How strokes become pixels.
        stroke_width: Pen width as a fraction of the side.
        variation: How much the people who draw differ, see `Drawers`.
    """

    concepts: tuple[Concept, ...]
    address: tuple[tuple[int, int, float], ...]
    seed: int = 0
    renderer: Renderer = field(default_factory=Renderer)
    stroke_width: float = DEFAULT_WIDTH
    variation: float = 1.0

    def __len__(self) -> int:
        return len(self.address)

    def drawn_elements(self, index: int) -> np.ndarray:
        """(E,) bool, which elements of its concept item `index` shows, in the order of `Concept.elements`."""
        drawn = np.zeros(len(self._resolved(index)[0].elements), dtype=bool)
        drawn[self._order(index)] = True
        return drawn

    def num_strokes(self, index: int) -> int:
        """Number of strokes of item `index`, additions that belong to no element included."""
        strokes, extras = self._plan(index)
        return len(strokes) + sum(extra.strokes for extra in extras)

    def drawing(self, index: int) -> Drawing:
        """The strokes of item `index` in the order drawn, each with the name of its element (None: an addition)."""
        concept, number, seconds = self._resolved(index)
        doodle = instance(concept, number, self.seed, self.variation)
        strokes, extras = self._plan(index)
        count = np.bincount(doodle.stroke_K)
        start = np.cumsum(count) - count
        rows = np.concatenate([np.arange(start[s], start[s] + count[s]) for s in strokes])
        points, stroke = doodle.points_K42[rows], np.repeat(np.arange(len(strokes)), count[strokes])
        for below, merges in MERGES_BELOW_S:
            if seconds < below:
                for _ in range(merges):
                    points, stroke = simplified(points, stroke)
                break
        rng = generator(self.seed, "doodles", concept.name, number, f"{seconds:g}", "hand")
        element = doodle.element_S[strokes]
        points = by_hand(points, stroke, element[stroke], seconds, doodle.drawer, rng)
        paths = np.split(points, np.flatnonzero(np.diff(stroke)) + 1)
        names: list[str | None] = [doodle.elements[e] for e in element]
        for extra in extras:
            added = extra.draw(paths[: len(strokes)], rng)
            paths += added
            names += [None] * len(added)
        return Drawing(
            tuple(
                Stroke(_chained(path), width=self.stroke_width, curved=True, element=name)
                for path, name in zip(paths, names, strict=True)
            )
        )

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        return self.renderer(self.drawing(index))

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return self.renderer.content_hash(self.drawing(index))

    def describe(self, index: int) -> str:
        """See ImageSource."""
        concept, number, seconds = self._resolved(index)
        return f"doodle of {concept.name}, instance {number}, {seconds:g} s, seed {self.seed}"

    def _order(self, index: int) -> np.ndarray:
        """The elements drawn, in order."""
        concept, number, seconds = self._resolved(index)
        drawer = instance(concept, number, self.seed, self.variation).drawer
        rng = generator(self.seed, "doodles", concept.name, number, f"{seconds:g}", "elements")
        return choose_elements(len(concept.elements), seconds, rng, drawer)

    def _plan(self, index: int) -> tuple[np.ndarray, tuple[Extra, ...]]:
        """The strokes in the order drawn, some of them twice, and what is added to them."""
        concept, number, seconds = self._resolved(index)
        doodle = instance(concept, number, self.seed, self.variation)
        strokes = choose_strokes(doodle, self._order(index), seconds)
        rng = generator(self.seed, "doodles", concept.name, number, f"{seconds:g}", "plan")
        twice = rng.random(len(strokes)) < doodle.drawer.retrace
        return np.repeat(strokes, 1 + twice), choose_extras(doodle.drawer.extra, seconds, rng)

    def _resolved(self, index: int) -> tuple[Concept, int, float]:
        position, number, seconds = self.address[index]
        return self.concepts[position], number, seconds


def _chained(path_M42: np.ndarray) -> np.ndarray:
    return np.concatenate([path_M42[:1, 0], path_M42[:, 1:].reshape(-1, 2)])
