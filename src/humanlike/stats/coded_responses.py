"""People's answers as integer codes, sorted once so that any part of them is counted fast.

Legend: R judgments (one participant, one sketch), G guesses of a judgment, N items, E distinct (item, label) pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class LabelGroups:
    """The distinct (item, label) pairs of some guesses, sorted by item and label, and which guess belongs to which.

    Attributes:
        item_E: (E,) item of a pair.
        label_E: (E,) label of a pair.
        entry_M: (M,) pair of every guess.
        row_M: (M,) judgment of every guess.
    """

    item_E: np.ndarray
    label_E: np.ndarray
    entry_M: np.ndarray
    row_M: np.ndarray

    def counts(self, weight_R: np.ndarray | None) -> np.ndarray:
        """(E,) how often each pair was given, judgment r counted weight_R[r] times (None: once)."""
        weights = None if weight_R is None else weight_R[self.row_M]
        return np.bincount(self.entry_M, weights=weights, minlength=len(self.item_E)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CodedResponses:
    """People's judgments as codes.

    Args:
        participant_R: (R,) int code of who answered.
        item_R: (R,) int item index that was judged.
        guess_RG: (R, G) int label indices in the order given, -1 where there is none. Column 0 is the first guess; a
            judgment with -1 there has no first guess and counts only where all guesses do.

    Raises:
        ValueError: If shapes do not fit or a code is below its range.

    Example:
        >>> coded = CodedResponses(np.array([0, 1]), np.array([0, 0]), np.array([[3, 5], [3, -1]]))
        >>> coded.all_guesses.label_E.tolist(), coded.all_guesses.counts(None).tolist()
        ([3, 5], [2.0, 1.0])
    """

    participant_R: np.ndarray
    item_R: np.ndarray
    guess_RG: np.ndarray

    def __post_init__(self) -> None:
        for name, ndim in (("participant_R", 1), ("item_R", 1), ("guess_RG", 2)):
            value = np.asarray(getattr(self, name))
            if value.ndim != ndim or (value.size and not np.issubdtype(value.dtype, np.integer)):
                raise ValueError(f"{name} must be an integer array with {ndim} axes, got {value.dtype} {value.shape}")
            lowest = -1 if name == "guess_RG" else 0
            if value.size and value.min() < lowest:
                row = int(np.argwhere(value < lowest)[0][0])
                raise ValueError(f"{name} of judgment {row} is {value[row].tolist()}; the lowest code is {lowest}")
            object.__setattr__(self, name, value.astype(np.int64))
        if not len(self.participant_R) == len(self.item_R) == len(self.guess_RG):
            raise ValueError(
                "participant_R, item_R and guess_RG need one entry per judgment, got "
                f"{len(self.participant_R)}, {len(self.item_R)}, {len(self.guess_RG)}"
            )
        if self.guess_RG.shape[1] == 0:
            raise ValueError("guess_RG needs at least one column, the first guess")

    def __len__(self) -> int:
        return len(self.item_R)

    @cached_property
    def participants_P(self) -> np.ndarray:
        """(P,) the distinct participant codes."""
        return np.unique(self.participant_R)

    @cached_property
    def all_guesses(self) -> LabelGroups:
        """All guesses by (item, label)."""
        row_M, guess_M = np.nonzero(self.guess_RG >= 0)
        return self._groups(row_M, self.guess_RG[row_M, guess_M])

    @cached_property
    def first_guesses(self) -> LabelGroups:
        """First guesses by (item, label)."""
        row_M = np.flatnonzero(self.guess_RG[:, 0] >= 0)
        return self._groups(row_M, self.guess_RG[row_M, 0])

    def _groups(self, row_M: np.ndarray, label_M: np.ndarray) -> LabelGroups:
        width = int(self.guess_RG.max(initial=0)) + 1
        key_E, entry_M = np.unique(self.item_R[row_M] * width + label_M, return_inverse=True)
        return LabelGroups(key_E // width, key_E % width, entry_M, row_M)

    def row_weights(self, rows: np.ndarray | None) -> np.ndarray | None:
        """(R,) how often each judgment is used, or None for once each.

        Args:
            rows: Positions of judgments (repeats allowed), or a boolean mask over them.
        """
        if rows is None:
            return None
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            if chosen.shape != self.item_R.shape:
                raise ValueError(f"the mask of judgments has shape {chosen.shape}, expected {self.item_R.shape}")
            return chosen.astype(np.float64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(self)):
            raise ValueError(f"rows must lie in 0 … {len(self) - 1}, got {chosen.min()} … {chosen.max()}")
        return np.bincount(chosen.astype(np.int64), minlength=len(self)).astype(np.float64)

    def check_items(self, num_items: int) -> None:
        """Raise ValueError if a judgment is of an item that does not exist."""
        if len(self) and self.item_R.max() >= num_items:
            row = int(np.argmax(self.item_R))
            raise ValueError(f"judgment {row} is of item {self.item_R[row]}, but there are {num_items} items")
