"""The demo's images: every item is drawn from its address when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from humanlike.data.doodles.concept import Concept
from humanlike.data.doodles.hand import shaken, simplified
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
    """

    concepts: tuple[Concept, ...]
    address: tuple[tuple[int, int, float], ...]
    seed: int = 0
    renderer: Renderer = field(default_factory=Renderer)
    stroke_width: float = DEFAULT_WIDTH

    def __len__(self) -> int:
        return len(self.address)

    def drawn_elements(self, index: int) -> np.ndarray:
        """(E,) bool, which elements of its concept item `index` shows, in the order of `Concept.elements`."""
        concept, number, seconds = self._resolved(index)
        rng = generator(self.seed, "doodles", concept.name, number, f"{seconds:g}", "elements")
        return choose_elements(len(concept.elements), seconds, rng)

    def num_strokes(self, index: int) -> int:
        """Number of strokes of item `index`."""
        concept, number, seconds = self._resolved(index)
        doodle = instance(concept, number, self.seed)
        return int(choose_strokes(doodle, self.drawn_elements(index), seconds).sum())

    def drawing(self, index: int) -> Drawing:
        """The strokes of item `index`, each with the name of its element, most diagnostic elements first."""
        concept, number, seconds = self._resolved(index)
        doodle = instance(concept, number, self.seed)
        kept_S = choose_strokes(doodle, self.drawn_elements(index), seconds)
        kept_K = kept_S[doodle.stroke_K]
        points, stroke = doodle.points_K42[kept_K], doodle.stroke_K[kept_K]
        for below, merges in MERGES_BELOW_S:
            if seconds < below:
                for _ in range(merges):
                    points, stroke = simplified(points, stroke)
                break
        rng = generator(self.seed, "doodles", concept.name, number, f"{seconds:g}", "hand")
        points = shaken(points, stroke, seconds, rng)
        names = [doodle.elements[e] for e in doodle.element_S[kept_S]]
        return Drawing(
            tuple(
                Stroke(_chained(path), width=self.stroke_width, curved=True, element=name)
                for path, name in zip(np.split(points, np.flatnonzero(np.diff(stroke)) + 1), names, strict=True)
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

    def _resolved(self, index: int) -> tuple[Concept, int, float]:
        position, number, seconds = self.address[index]
        return self.concepts[position], number, seconds


def _chained(path_M42: np.ndarray) -> np.ndarray:
    return np.concatenate([path_M42[:1, 0], path_M42[:, 1:].reshape(-1, 2)])
