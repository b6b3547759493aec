"""Presence from a data set's own annotation: what people said, or what a program is known to have drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from humanlike.elements.presence import ElementsOf, Presence, elements_by_item, presence_of
from humanlike.types import Features, Sketches


def annotated_elements(sketches: Sketches) -> dict[str, tuple[str, ...]]:
    """Concept → the elements that its sketches are annotated for, in the order in which they first occur.

    Raises:
        ValueError: The data set has no annotation.
    """
    table = _annotation(sketches)
    concept_of = dict(zip(sketches.table["sketch_id"], sketches.table["concept"], strict=True))
    pairs = pd.DataFrame({"concept": table["sketch_id"].map(concept_of), "element": table["element"].astype(str)})
    if pairs["concept"].isna().any():
        row = table[pairs["concept"].isna()].iloc[0]
        raise ValueError(f"{sketches.name}: elements are annotated for {row['sketch_id']!r}, which is no sketch")
    unique = pairs.drop_duplicates()
    found = {str(c): tuple(group) for c, group in unique.groupby("concept", sort=False)["element"]}
    return {concept: found[concept] for concept in sketches.labels if concept in found}


@dataclass(frozen=True)
class AnnotationJudge:
    """Reads `Sketches.elements`; an element without a row, or with an empty one, is missing.

    Example:
        >>> from humanlike.data.doodles import doodles
        >>> data = doodles(["lion", "taxi"], instances=1, judgments=0)
        >>> presence = AnnotationJudge().judge(data, annotated_elements(data))
        >>> presence.coverage, bool(presence.visual_ratio["v"].between(0, 1).all())
        (1.0, True)
    """

    open_vocabulary: ClassVar[bool] = False  # it knows what was annotated

    def judge(self, sketches: Sketches, elements: ElementsOf, features: Features | None = None) -> Presence:
        """See `PresenceJudge`; probabilities are 0 or 1.

        Raises:
            ValueError: The data set has no annotation, or an element of a sketch is annotated twice.
        """
        del features
        table = _annotation(sketches)
        twice = table.duplicated(["sketch_id", "element"])
        if twice.any():
            row = table[twice].iloc[0]
            raise ValueError(f"{sketches.name}: {row['element']!r} of sketch {row['sketch_id']!r} is annotated twice")
        drawn = table["drawn"].astype("boolean").astype("Float64").to_numpy(np.float64, na_value=np.nan)
        known = dict(zip(zip(table["sketch_id"], table["element"].astype(str), strict=True), drawn, strict=True))
        ids = sketches.table["sketch_id"].tolist()
        names = elements_by_item(sketches, elements)
        p = [[float(known.get((s, e), np.nan)) for e in row] for s, row in zip(ids, names, strict=True)]
        unknown = {
            (s, e): "the annotation is empty" if (s, e) in known else "not annotated"
            for s, row in zip(ids, names, strict=True)
            for e in row
        }
        return presence_of(ids, names, p, source=f"annotation of {sketches.name}", reasons=unknown)


def _annotation(sketches: Sketches) -> pd.DataFrame:
    if sketches.elements is None:
        raise ValueError(
            f"{sketches.name} has no annotation of elements; judge its sketches with a presence head or with "
            "contrastive presence, or give the data set a table sketch_id, element, drawn"
        )
    return sketches.elements
