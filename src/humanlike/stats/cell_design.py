"""Which item stands in which cell: concepts × source images × conditions.

Legend: N items, K concepts, T conditions, C = K·T cells (cell = concept · T + condition), J most source images of a
concept, G source images of all concepts together, B replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class CellDesign:
    """The crossed design of a study: every item is a drawing of one source image of one concept in one condition.

    A source image keeps its code in all conditions, so that resampling images takes all drawings of an image together.
    An image may have several items in a condition, or none.

    Args:
        concept_N: (N,) int code of the item's concept, 0 … K-1.
        image_N: (N,) int code of the source image within its concept, 0 … J_k-1.
        condition_N: (N,) int index into `conditions_T`.
        conditions_T: (T,) increasing condition values (seconds, strokes).
        concepts_K: (K,) names or label indices of the concepts, the keys by which cells are matched; default 0 … K-1.

    Raises:
        ValueError: If the columns differ in length, are empty, or hold a code outside its range.

    Example:
        >>> design = CellDesign.from_columns(["ant", "ant", "bat"], ["x", "x", "y"], [4.0, 8.0, 4.0])
        >>> design.num_cells, design.cell_N.tolist(), design.images_K.tolist()
        (4, [0, 1, 2], [1, 1])
    """

    concept_N: np.ndarray
    image_N: np.ndarray
    condition_N: np.ndarray
    conditions_T: np.ndarray
    concepts_K: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        for name in ("concept_N", "image_N", "condition_N"):
            object.__setattr__(self, name, _codes(name, getattr(self, name)))
        conditions_T = np.asarray(self.conditions_T, dtype=np.float64)
        if conditions_T.ndim != 1 or not np.all(np.isfinite(conditions_T)) or np.any(np.diff(conditions_T) <= 0):
            raise ValueError(f"conditions_T must be a list of increasing finite numbers, got {conditions_T.tolist()}")
        object.__setattr__(self, "conditions_T", conditions_T)
        lengths = {len(self.concept_N), len(self.image_N), len(self.condition_N)}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(
                "concept_N, image_N and condition_N need one entry per item and at least one item, got lengths "
                f"{len(self.concept_N)}, {len(self.image_N)}, {len(self.condition_N)}"
            )
        if self.condition_N.max() >= len(conditions_T):
            item = int(np.argmax(self.condition_N))
            raise ValueError(
                f"condition_N[{item}] is {self.condition_N[item]}, but there are {len(conditions_T)} conditions"
            )
        concepts_K = np.asarray(self.concepts_K)
        if len(concepts_K) == 0:
            concepts_K = np.arange(int(self.concept_N.max()) + 1)
        if self.concept_N.max() >= len(concepts_K):
            item = int(np.argmax(self.concept_N))
            raise ValueError(f"concept_N[{item}] is {self.concept_N[item]}, but there are {len(concepts_K)} concepts")
        object.__setattr__(self, "concepts_K", concepts_K)

    @classmethod
    def from_columns(
        cls, concept: Sequence | np.ndarray, image_id: Sequence | np.ndarray, condition: Sequence | np.ndarray
    ) -> CellDesign:
        """The design of a table, from its columns (one entry per item, in item order).

        Args:
            concept: (N,) label indices or names; concept codes follow their sorted order.
            image_id: (N,) source ids; equal ids under different concepts are different images.
            condition: (N,) numbers; condition indices follow their increasing order.

        Returns:
            A CellDesign whose `concepts_K` and `conditions_T` are the sorted distinct values.
        """
        concept_N, concepts_K = pd.factorize(np.asarray(concept), sort=True)
        condition_N, conditions_T = pd.factorize(np.asarray(condition, dtype=np.float64), sort=True)
        if np.any(concept_N < 0) or np.any(condition_N < 0):
            row = int(np.flatnonzero((concept_N < 0) | (condition_N < 0))[0])
            raise ValueError(f"row {row} lacks a concept or a condition; every item needs both")
        ids_N, _ = pd.factorize(np.asarray(image_id))
        if not len(ids_N) == len(concept_N) == len(condition_N):
            raise ValueError(
                f"concept, image_id and condition must have equal lengths, got {len(concept_N)}, {len(ids_N)}, "
                f"{len(condition_N)}"
            )
        if np.any(ids_N < 0):
            raise ValueError(f"row {int(np.argmin(ids_N))} lacks an image_id; every item needs its source image")
        # Ids are numbered within the concept in order of their text, so that the order of the items does not matter.
        order = pd.DataFrame({"concept": concept_N, "id": np.asarray(image_id).astype(str), "code": ids_N})
        distinct = order.drop_duplicates(["concept", "code"]).sort_values(["concept", "id"])
        distinct["image"] = distinct.groupby("concept").cumcount()
        key = distinct.set_index(["concept", "code"])["image"]
        image_N = key.reindex(pd.MultiIndex.from_arrays([concept_N, ids_N])).to_numpy(np.int64)
        return cls(concept_N, image_N, condition_N, np.asarray(conditions_T), np.asarray(concepts_K))

    def __len__(self) -> int:
        return len(self.concept_N)

    @property
    def num_concepts(self) -> int:
        """K."""
        return len(self.concepts_K)

    @property
    def num_conditions(self) -> int:
        """T."""
        return len(self.conditions_T)

    @property
    def num_cells(self) -> int:
        """C = K·T, empty cells included."""
        return self.num_concepts * self.num_conditions

    @cached_property
    def cell_N(self) -> np.ndarray:
        """(N,) cell of every item: concept · T + condition."""
        return self.concept_N * self.num_conditions + self.condition_N

    @cached_property
    def condition_C(self) -> np.ndarray:
        """(C,) condition value of every cell."""
        return np.tile(self.conditions_T, self.num_concepts)

    @cached_property
    def concept_C(self) -> np.ndarray:
        """(C,) concept name or label index of every cell."""
        return np.repeat(self.concepts_K, self.num_conditions)

    @cached_property
    def concept_code_C(self) -> np.ndarray:
        """(C,) concept code of every cell, as `concept_N` has them."""
        return np.repeat(np.arange(self.num_concepts), self.num_conditions)

    @cached_property
    def items_C(self) -> np.ndarray:
        """(C,) number of items in every cell."""
        return np.bincount(self.cell_N, minlength=self.num_cells)

    @property
    def in_cell_CN(self) -> np.ndarray:
        """(C, N) float64, 1 where the item stands in the cell: times a value an item it sums over cells."""
        return _members(self.cell_N, self.num_cells)

    @property
    def in_condition_TN(self) -> np.ndarray:
        """(T, N) float64, 1 where the item stands in the condition."""
        return _members(self.condition_N, self.num_conditions)

    @property
    def in_concept_KN(self) -> np.ndarray:
        """(K, N) float64, 1 where the item is of the concept."""
        return _members(self.concept_N, self.num_concepts)

    @cached_property
    def images_K(self) -> np.ndarray:
        """(K,) number of source images of every concept (codes below the highest one count, even without an item)."""
        images_K = np.zeros(self.num_concepts, dtype=np.int64)
        np.maximum.at(images_K, self.concept_N, self.image_N + 1)
        return images_K

    @cached_property
    def image_mask_KJ(self) -> np.ndarray:
        """(K, J) True where concept k has an image j."""
        return np.arange(int(self.images_K.max())) < self.images_K[:, None]

    @cached_property
    def slot_N(self) -> np.ndarray:
        """(N,) position of the item's source image among the G images of all concepts."""
        first_K = np.concatenate([[0], np.cumsum(self.images_K)[:-1]])
        return first_K[self.concept_N] + self.image_N

    @cached_property
    def resampling_spread(self) -> float:
        """√(Σ J_k / Σ (J_k - 1)) over concepts: what the spread of resampled images falls short of.

        J images drawn from J vary as if their variance were divided by J, not J - 1: by 3% of the spread at 16 images a
        concept. 1 where no concept has two images.
        """
        fewer = int((self.images_K - 1).clip(0).sum())
        return float(np.sqrt(self.images_K[self.images_K > 1].sum() / fewer)) if fewer else 1.0

    def weights_GB(self, weights_BKJ: np.ndarray | None) -> np.ndarray:
        """Image weights as a (G, B) float64 matrix; None gives one replicate with every weight 1.

        Raises:
            ValueError: If the shape is not (B, K, J) or a weight is negative or not finite.
        """
        if weights_BKJ is None:
            return np.ones((int(self.images_K.sum()), 1))
        weights = np.asarray(weights_BKJ)
        if weights.ndim != 3 or weights.shape[1:] != self.image_mask_KJ.shape:
            k, j = self.image_mask_KJ.shape
            raise ValueError(f"weights_BKJ must have shape (B, {k}, {j}), got {weights.shape}")
        weights_GB = np.ascontiguousarray(weights[:, self.image_mask_KJ].T, dtype=np.float64)
        if not np.all(np.isfinite(weights_GB)) or np.any(weights_GB < 0):
            raise ValueError("image weights must be finite and not negative")
        return weights_GB


def _members(code_N: np.ndarray, groups: int) -> np.ndarray:
    return (np.arange(groups)[:, None] == code_N).astype(np.float64)


def _codes(name: str, value: np.ndarray) -> np.ndarray:
    codes = np.asarray(value)
    if codes.ndim != 1 or (codes.size and not np.issubdtype(codes.dtype, np.integer)):
        raise TypeError(f"{name} must be a one-dimensional array of integer codes, got {codes.dtype} {codes.shape}")
    if np.any(codes < 0):
        item = int(np.argmin(codes))
        raise ValueError(f"{name}[{item}] is {codes[item]}; codes count from 0")
    return codes.astype(np.int64)
