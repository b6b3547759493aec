"""Drawings without some of their strokes, and what these still show."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from humanlike.data.drawing import Drawing
from humanlike.files import sha256_value
from humanlike.rng import generator
from humanlike.types import Sketches

if TYPE_CHECKING:
    from PIL import Image

ENOUGH = 0.5
"""Share of an element's strokes that must be left for it to count as drawn."""


@dataclass(frozen=True)
class ThinnedImages:
    """Drawings of another source with a part of their strokes, an `ImageSource`.

    Attributes:
        source: Where drawings come from: `drawing(index)` and a `renderer`.
        kept_N: For every item the strokes that stay, increasing.
    """

    source: Any
    kept_N: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.kept_N)

    def drawing(self, index: int) -> Drawing:
        """What is left of item `index`."""
        strokes = self.source.drawing(index).strokes
        return Drawing(tuple(strokes[s] for s in self.kept_N[index]))

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        return self.source.renderer(self.drawing(index))

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return sha256_value([self.source.content_hash(index), list(self.kept_N[index])])

    def describe(self, index: int) -> str:
        """See ImageSource."""
        return f"{self.source.describe(index)}, strokes {list(self.kept_N[index])} of it"


def thinned(sketches: Sketches, least: float = 0.3, seed: int = 0, name: str | None = None) -> Sketches:
    """Every drawing with a random part of its strokes, so that whoever learns from them knows incomplete ones.

    An element that was drawn still counts as drawn while half of its strokes or more are left; without strokes of its
    name it does not. People's answers, which were given to the whole drawings, are left out.

    Args:
        sketches: A data set with strokes.
        least: Smallest share of strokes that is kept, in (0, 1]; the share is uniform between it and 1.
        seed: Of the choice.
        name: Name of the result.

    Raises:
        ValueError: The data set has no strokes, or `least` is out of range.

    Example:
        >>> from humanlike.data.doodles import doodles
        >>> data = doodles(["lion", "taxi"], instances=1, judgments=0)
        >>> less = thinned(data, least=0.5)
        >>> len(less) == len(data), int(less.elements["drawn"].sum()) < int(data.elements["drawn"].sum())
        (True, True)
    """
    if getattr(sketches.images, "drawing", None) is None or getattr(sketches.images, "renderer", None) is None:
        raise ValueError(f"{sketches.name} holds pictures without strokes, of which none can be left out")
    if not 0 < least <= 1:
        raise ValueError(f"least must be a share of strokes in (0, 1], got {least}")
    kept, left = zip(*(_thinned(sketches.images, i, least, seed) for i in range(len(sketches))), strict=True)
    images, table, elements = ThinnedImages(sketches.images, kept), sketches.table, sketches.elements
    if "num_strokes" in table:
        table = table.assign(num_strokes=[len(strokes) for strokes in kept])
    if elements is not None:
        place = {s: i for i, s in enumerate(table["sketch_id"])}
        pairs = zip(elements["sketch_id"], elements["element"], strict=True)
        still = [left[place[s]].get(e, 0.0) >= ENOUGH for s, e in pairs]
        elements = elements.assign(drawn=elements["drawn"].to_numpy(bool) & np.array(still))
    name = name or f"{sketches.name}, thinned"
    return replace(sketches, name=name, table=table, images=images, elements=elements, responses=None)


def _thinned(images: Any, index: int, least: float, seed: int) -> tuple[tuple[int, ...], dict[str | None, float]]:
    """Strokes of an item that stay, one or more unless it has none; and element → share of its strokes among them."""
    strokes = images.drawing(index).strokes
    rng = generator(seed, "thinned", index)
    count = max(round(len(strokes) * rng.uniform(least, 1)), 1)
    kept = tuple(sorted(rng.permutation(len(strokes))[:count].tolist()))
    whole, rest = Counter(s.element for s in strokes), Counter(strokes[s].element for s in kept)
    return kept, {element: rest[element] / number for element, number in whole.items()}
