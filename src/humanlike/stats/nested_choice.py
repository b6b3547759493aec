"""Alignment of the best of several candidates (layers of a network), chosen on other concepts than it is measured on.

The best of several estimates is too high: it was chosen for its luck too. Here concepts are split into folds; the
candidate is chosen by its alignment on all folds but one and measured on the one left out, which the choice never saw.

Legend: M candidates, B replicates, C cells, K concepts, F folds, R repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanlike.rng import generator
from humanlike.stats.regression import alignment_r2

MIN_CONCEPTS = 2
"""Fewest concepts in a fold."""


def concept_folds(num_concepts: int, folds: int, repeats: int, seed: int) -> np.ndarray:
    """Random folds of the concepts, equal in size but for one concept.

    Args:
        num_concepts: K.
        folds: Folds F asked for; fewer where a fold would have less than two concepts.
        repeats: How often the concepts are split anew.
        seed: Global seed.

    Returns:
        (R, K) fold of every concept, 0 … F-1; all 0 where there are too few concepts for two folds.

    Raises:
        ValueError: If `folds` is below 2 or `repeats` below 1.

    Example:
        >>> fold_RK = concept_folds(7, folds=3, repeats=2, seed=0)
        >>> np.sort(np.bincount(fold_RK[0])).tolist(), fold_RK.shape
        ([2, 2, 3], (2, 7))
    """
    if folds < 2 or repeats < 1:
        raise ValueError(f"a nested choice needs 2 or more folds and 1 or more repeats, got {folds} and {repeats}")
    used = max(min(folds, num_concepts // MIN_CONCEPTS), 1)
    fold_RK = np.empty((repeats, num_concepts), np.int64)
    for repeat in range(repeats):
        fold_RK[repeat, generator(seed, "concept_folds", repeat).permutation(num_concepts)] = (
            np.arange(num_concepts) % used
        )
    return fold_RK


@dataclass(frozen=True)
class NestedChoice:
    """What was chosen, and what it was worth where the choice had not looked.

    Attributes:
        chosen_BRF: (B, R, F) candidate that was best on all folds but F; -1 where no candidate had an alignment.
        inner_BRF: (B, R, F) its alignment on the concepts it was chosen on: too high, as the best of several.
        held_out_BRF: (B, R, F) its alignment on the concepts left out; NaN where it is not defined.
    """

    chosen_BRF: np.ndarray
    inner_BRF: np.ndarray
    held_out_BRF: np.ndarray

    @property
    def value_B(self) -> np.ndarray:
        """(B,) mean of the held-out alignments that are defined; NaN where none is."""
        return _mean_over_folds(self.held_out_BRF)


def nested_choice(
    people_BC: np.ndarray,
    candidates_BC: Sequence[np.ndarray],
    condition_C: np.ndarray,
    fold_RC: np.ndarray,
) -> NestedChoice:
    """Choose a candidate by its alignment on all folds but one, measure it on that one, for all folds and replicates.

    Every replicate chooses anew, so that an interval over replicates covers the choice as well.

    Args:
        people_BC: (B, C) cell metric of people; NaN marks a missing cell.
        candidates_BC: M times (B, C), the candidates' cell metric.
        condition_C: (C,) condition value of every cell.
        fold_RC: (R, C) fold of every cell's concept (`concept_folds` of it).

    Returns:
        The choices; with one fold alone nothing can be left out, and everything is -1 or NaN.

    Raises:
        ValueError: If there is no candidate, or a candidate's cells are not people's.

    References:
        Varma and Simon (2006), "Bias in error estimation when using cross-validation for model selection".
    """
    shapes = {np.shape(c) for c in (people_BC, *candidates_BC)}
    if len(candidates_BC) == 0 or len(shapes) != 1 or np.ndim(people_BC) != 2:
        raise ValueError(f"people and one or more candidates need (B, C) cells of one shape, got {sorted(shapes)}")
    folds, shape = int(fold_RC.max()) + 1, (len(people_BC), len(fold_RC), int(fold_RC.max()) + 1)
    chosen, inner, held_out = np.full(shape, -1), np.full(shape, np.nan), np.full(shape, np.nan)
    for r, f in np.ndindex(len(fold_RC), folds if folds > 1 else 0):
        out_C = fold_RC[r] == f
        inner_MB = _alignments(people_BC, candidates_BC, condition_C, ~out_C)
        known_MB = np.isfinite(inner_MB)
        best_B = np.where(known_MB, inner_MB, -np.inf).argmax(0)
        any_B = known_MB.any(0)
        chosen[any_B, r, f] = best_B[any_B]
        inner[any_B, r, f] = inner_MB.max(0, where=known_MB, initial=-np.inf)[any_B]
        for candidate in np.unique(best_B[any_B]):
            rows = np.flatnonzero(any_B & (best_B == candidate))
            held_out[rows, r, f] = _alignments(people_BC[rows], [candidates_BC[candidate][rows]], condition_C, out_C)[0]
    return NestedChoice(chosen, inner, held_out)


def alignment_within_folds(
    people_BC: np.ndarray, candidate_BC: np.ndarray, condition_C: np.ndarray, fold_RC: np.ndarray
) -> np.ndarray:
    """(B,) mean over folds of one fixed candidate's alignment on the fold's concepts alone.

    Every fold has its own regression, so this is not the alignment over all concepts, and often higher. It is what a
    nested choice's value is to be compared with.

    Args:
        people_BC: See `nested_choice`.
        candidate_BC: (B, C) the candidate's cell metric.
        condition_C: See `nested_choice`.
        fold_RC: See `nested_choice`.
    """
    value_BRF = np.full((len(people_BC), len(fold_RC), int(fold_RC.max()) + 1), np.nan)
    for r, f in np.ndindex(value_BRF.shape[1:] if value_BRF.shape[2] > 1 else (0, 0)):
        value_BRF[:, r, f] = _alignments(people_BC, [candidate_BC], condition_C, fold_RC[r] == f)[0]
    return _mean_over_folds(value_BRF)


def _mean_over_folds(value_BRF: np.ndarray) -> np.ndarray:
    """(B,) mean of what is defined."""
    known = np.isfinite(value_BRF)
    count_B = known.sum((1, 2))
    return np.where(count_B > 0, np.where(known, value_BRF, 0.0).sum((1, 2)) / np.maximum(count_B, 1), np.nan)


def _alignments(
    people_BC: np.ndarray, candidates_BC: Sequence[np.ndarray], condition_C: np.ndarray, cells_C: np.ndarray
) -> np.ndarray:
    """(M, B) alignment of every candidate over some of the cells."""
    people, condition = people_BC[:, cells_C], condition_C[cells_C]
    return np.stack([alignment_r2(people, candidate[:, cells_C], condition) for candidate in candidates_BC])
