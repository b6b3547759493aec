"""Drawings without some of their strokes, and what these still show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

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
    """Drawings of another source with a random part of their strokes, an `ImageSource`.

    Attributes:
        source: Where drawings come from: `drawing(index)` and a `renderer`.
        least: Smallest share of strokes that is asked for; the share is uniform between it and 1.
        seed: Of the choice of strokes; an item's depends on its place and the seed only.
    """

    source: Any
    least: float
    seed: int

    def __len__(self) -> int:
        return len(self.source)

    def kept(self, index: int) -> np.ndarray:
        """Strokes of item `index` that stay, increasing; one or more, unless it has none."""
        return self._kept(index, self.source.drawing(index).num_strokes)

    def _kept(self, index: int, strokes: int) -> np.ndarray:
        rng = generator(self.seed, "thinned", index)
        count = max(round(strokes * rng.uniform(self.least, 1)), 1)
        return np.sort(rng.permutation(strokes)[:count])

    def drawing(self, index: int) -> Drawing:
        """What is left of item `index`."""
        whole = self.source.drawing(index)
        return Drawing(tuple(whole.strokes[s] for s in self._kept(index, whole.num_strokes)))

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        return self.source.renderer(self.drawing(index))

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return sha256_value([self.source.content_hash(index), self.kept(index).tolist()])

    def describe(self, index: int) -> str:
        """See ImageSource."""
        return f"{self.source.describe(index)}, strokes {self.kept(index).tolist()} of it"


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
    images = ThinnedImages(sketches.images, float(least), int(seed))
    left = [_left(images, i) for i in range(len(sketches))]
    table = sketches.table
    if "num_strokes" in table:
        table = table.assign(num_strokes=[len(images.kept(i)) for i in range(len(sketches))])
    elements = sketches.elements
    if elements is not None:
        place = {s: i for i, s in enumerate(table["sketch_id"])}
        pairs = zip(elements["sketch_id"], elements["element"], strict=True)
        still = [left[place[s]].get(e, 0.0) >= ENOUGH for s, e in pairs]
        elements = elements.assign(drawn=elements["drawn"].to_numpy(bool) & np.array(still))
    name = name or f"{sketches.name}, thinned"
    return replace(sketches, name=name, table=table, images=images, elements=elements, responses=None)


def _left(images: ThinnedImages, index: int) -> dict[str, float]:
    """Element → share of its strokes that are left."""
    names = pd.Series([s.element for s in images.source.drawing(index).strokes], dtype=object)
    kept = pd.Series(False, index=names.index)
    kept.iloc[images.kept(index)] = True
    return {str(name): float(share) for name, share in kept.groupby(names).mean().items()}
