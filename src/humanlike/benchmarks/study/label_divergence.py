"""How far the labels given to two sets of sketches lie apart, cell by cell, on the full sample and on resampled images.

Legend: E entries (one label of one item), N items, C cells, L labels, B replicates, K concepts, J source images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from humanlike.benchmarks.seva_agreement import cell_distance
from humanlike.metrics.functional import divergence_rank
from humanlike.stats import CellDesign, CodedResponses


@dataclass(frozen=True, eq=False)
class CellLabels:
    """All guesses of people about the items of a design, ready to be counted under image weights.

    Attributes:
        design: Where every item stands.
        responses: People's answers.
        num_labels: L.
    """

    design: CellDesign
    responses: CodedResponses
    num_labels: int

    @cached_property
    def _entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Cell, image, label and count of every entry, sorted by cell."""
        guesses = self.responses.all_guesses
        cell_E = self.design.cell_N[guesses.item_E]
        order = np.argsort(cell_E, kind="stable")
        columns = (cell_E, self.design.image_N[guesses.item_E], guesses.label_E, guesses.counts(None))
        return tuple(column[order] for column in columns)  # type: ignore[return-value]

    def table(self, weights_KJ: np.ndarray | None = None) -> np.ndarray:
        """(C, L) how often every label was given in every cell, each image counted as often as it was drawn."""
        cell_E, image_E, label_E, count_E = self._entries
        if weights_KJ is not None:
            count_E = count_E * weights_KJ[cell_E // self.design.num_conditions, image_E]
        shape = (self.design.num_cells, self.num_labels)
        flat = np.bincount(cell_E * self.num_labels + label_E, weights=count_E, minlength=shape[0] * shape[1])
        return flat.reshape(shape)

    def of_cell(self, cell: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Label, image and count of the entries of one cell."""
        cell_E, image_E, label_E, count_E = self._entries
        part = slice(*np.searchsorted(cell_E, [cell, cell + 1]))
        return label_E[part], image_E[part], count_E[part]


def require_same_cells(people: CellDesign, machine: CellDesign) -> None:
    """Refuse designs whose cells do not stand for the same concepts, level by level."""
    same = np.array_equal(people.concepts_K, machine.concepts_K) and people.num_conditions == machine.num_conditions
    if not same:
        raise ValueError(
            f"both kinds of sketches need the same concepts and as many levels, got {people.num_concepts} and "
            f"{machine.num_concepts} concepts, levels {people.conditions_T.tolist()} and "
            f"{machine.conditions_T.tolist()}"
        )


def distance_replicates(
    people: CellLabels, machine: CellLabels, people_BKJ: np.ndarray, machine_BKJ: np.ndarray
) -> np.ndarray:
    """Jensen-Shannon distance of the two label distributions of every cell, on resampled images.

    Args:
        people: Labels given to people's sketches.
        machine: Labels given to the machine's sketches of the same cells.
        people_BKJ: (B, K, J) how often each source image of people's sketches was drawn.
        machine_BKJ: The same for the machine's, B of them too.

    Returns:
        (B, C) distances in [0, √log 2]; NaN where a side has no label.
    """
    require_same_cells(people.design, machine.design)
    out_BC = np.full((len(people_BKJ), people.design.num_cells), np.nan)
    for cell in range(people.design.num_cells):
        parts = people.of_cell(cell), machine.of_cell(cell)
        if not all(len(label_E) for label_E, _, _ in parts):
            continue
        label_U, code_E = np.unique(np.concatenate([parts[0][0], parts[1][0]]), return_inverse=True)
        codes = np.split(code_E, [len(parts[0][0])])
        concept = cell // people.design.num_conditions
        counts = []
        for code, (_, image_E, count_E), weights_BKJ in zip(codes, parts, (people_BKJ, machine_BKJ), strict=True):
            shape = (len(label_U), weights_BKJ.shape[2])
            flat = np.bincount(code * shape[1] + image_E, weights=count_E, minlength=shape[0] * shape[1])
            counts.append(weights_BKJ[:, concept].astype(np.float64) @ flat.reshape(shape).T)
        out_BC[:, cell] = cell_distance(*counts)
    return out_BC


def rank_of_cells(
    people: CellLabels,
    machine: CellLabels,
    people_KJ: np.ndarray | None = None,
    machine_KJ: np.ndarray | None = None,
) -> np.ndarray:
    """Divergence rank of every machine cell among all cells of people, on the full sample or on drawn images.

    Args:
        people: Labels given to people's sketches.
        machine: Labels given to the machine's sketches.
        people_KJ: (K, J) how often each source image was drawn; None: every image once.
        machine_KJ: The same for the machine's.

    Returns:
        (C,) smallest rank of a cell of the same concept, 1 being nearest; NaN where there is no label. See
        `divergence_rank`.
    """
    require_same_cells(people.design, machine.design)
    concept_C = torch.from_numpy(np.repeat(np.arange(people.design.num_concepts), people.design.num_conditions))
    machine_CL, people_CL = (torch.from_numpy(t) for t in (machine.table(machine_KJ), people.table(people_KJ)))
    return divergence_rank(machine_CL, people_CL, concept_C, concept_C).numpy()
