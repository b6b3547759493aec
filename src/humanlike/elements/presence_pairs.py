"""The (concept, element) pairs that a presence head knows, and what of them is drawn in the sketches of a data set.

Shapes: N sketches, K concepts, E the most elements of a concept, P pairs, U distinct element names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from humanlike.elements.annotation import annotated_elements
from humanlike.types import Sketches

PRESENT, ABSENT, MISSING = 1, 0, -1


class ElementPairs(Mapping[str, tuple[str, ...]]):
    """Concept → elements in a fixed order, and the positions that follow from it.

    Args:
        elements: Concept → its elements, one or more, all different.

    Raises:
        ValueError: There is no concept, or one without elements or with one twice.

    Example:
        >>> pairs = ElementPairs({"lion": ["mane", "tail"], "taxi": ["wheel"]})
        >>> len(pairs.names), pairs.pair_KE.tolist()
        (3, [[0, 1], [2, -1]])
    """

    def __init__(self, elements: Mapping[str, Sequence[str]]) -> None:
        self._elements = {str(c): tuple(str(e) for e in row) for c, row in elements.items()}
        if not self._elements:
            raise ValueError("a presence head needs one or more concepts with elements, got none")
        for concept, row in self._elements.items():
            if not row or len(set(row)) != len(row):
                raise ValueError(f"the elements of {concept!r} must be one or more different names, got {list(row)}")

    def __getitem__(self, concept: str) -> tuple[str, ...]:
        return self._elements[concept]

    def __iter__(self) -> Iterator[str]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """The K concepts."""
        return tuple(self._elements)

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The P (concept, element) pairs, those of a concept side by side."""
        return tuple((concept, e) for concept, row in self._elements.items() for e in row)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The U element names, sorted."""
        return tuple(sorted({e for _, e in self.pairs}))

    @cached_property
    def name_P(self) -> np.ndarray:
        """(P,) position of every pair's element in `names`."""
        position = {name: u for u, name in enumerate(self.names)}
        return np.array([position[e] for _, e in self.pairs], dtype=np.int64)

    @cached_property
    def pair_KE(self) -> np.ndarray:
        """(K, E) pair of every concept and column; -1 where the concept has fewer elements."""
        table = np.full((len(self), max(map(len, self._elements.values()))), -1, dtype=np.int64)
        start = 0
        for k, row in enumerate(self._elements.values()):
            table[k, : len(row)] = np.arange(start, start + len(row))
            start += len(row)
        return table

    def concept_positions(self, concepts: Sequence[str]) -> np.ndarray:
        """(B,) position of every concept, -1 for one that is not known."""
        position = {concept: k for k, concept in enumerate(self.concepts)}
        return np.array([position.get(c, -1) for c in concepts], dtype=np.int64)

    def targets(self, sketches: Sketches) -> np.ndarray:
        """(N, E) int8: `PRESENT`, `ABSENT` or `MISSING` for every item and column of its concept.

        Raises:
            ValueError: The data set has no annotation of elements.
        """
        annotated_elements(sketches)  # refuses what is no annotation of these sketches
        table = sketches.elements
        assert table is not None
        row_of = {s: i for i, s in enumerate(sketches.table["sketch_id"])}
        concept_N = sketches.table["concept"].to_numpy()
        column = {(c, e): j for c, row in self._elements.items() for j, e in enumerate(row)}
        codes = np.full((len(sketches), self.pair_KE.shape[1]), MISSING, dtype=np.int8)
        for sketch_id, element, drawn in zip(table["sketch_id"], table["element"], table["drawn"], strict=True):
            i = row_of[sketch_id]
            j = column.get((concept_N[i], str(element)))
            if j is not None and not pd.isna(drawn):
                codes[i, j] = PRESENT if drawn else ABSENT
        return codes
