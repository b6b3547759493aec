"""Several data sets with the same labels as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from humanlike.types import ImageSource, Sketches

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class JoinedImages:
    """Images of several sources one after the other, an `ImageSource`."""

    parts: tuple[ImageSource, ...]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        part, place = self._at(index)
        return part.load(place)

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        part, place = self._at(index)
        return part.content_hash(place)

    def describe(self, index: int) -> str:
        """See ImageSource."""
        part, place = self._at(index)
        return part.describe(place)

    def _at(self, index: int) -> tuple[ImageSource, int]:
        ends = list(accumulate(len(part) for part in self.parts))
        number = int(np.searchsorted(ends, index, side="right"))
        return self.parts[number], index - (ends[number - 1] if number else 0)


def joined(parts: Sequence[Sketches], name: str) -> Sketches:
    """Sketches of several data sets, whose ids get the number of their part in front; people's answers are left out.

    Args:
        parts: One or more data sets with the same labels.
        name: Name of the whole.

    Raises:
        ValueError: There is no part, or labels differ.

    Example:
        >>> from humanlike.data.doodles import doodles
        >>> two = [doodles(["lion", "taxi"], instances=1, judgments=0, seed=s) for s in (0, 1)]
        >>> whole = joined(two, "both")
        >>> len(whole), whole.table["sketch_id"].iloc[8]
        (16, '1:lion-00@4s')
    """
    if not parts:
        raise ValueError("joined needs one data set or more")
    different = [p.name for p in parts if p.labels != parts[0].labels]
    if different:
        raise ValueError(f"data sets with other labels cannot be joined: {different[0]} and {parts[0].name}")
    elements = [_marked(p.elements, k) for k, p in enumerate(parts) if p.elements is not None]
    return replace(
        parts[0],
        name=name,
        table=pd.concat([_marked(p.table, k) for k, p in enumerate(parts)], ignore_index=True),
        elements=pd.concat(elements, ignore_index=True) if elements else None,
        images=JoinedImages(tuple(p.images for p in parts)),
        responses=None,
    )


def _marked(table: pd.DataFrame, number: int) -> pd.DataFrame:
    ids = [c for c in ("sketch_id", "image_id") if c in table]
    return table.assign(**{c: f"{number}:" + table[c].astype(str) for c in ids})
