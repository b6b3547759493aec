"""Agreement of a model with people, item by item (error consistency) and answer by answer (distance of labels)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from humanlike.metrics.functional import jensen_shannon_distance, kappa_from_counts
from humanlike.rng import generator
from humanlike.stats import CodedResponses
from humanlike.stats.count_entropy import ratio

MIN_COMMON_ITEMS = 10
"""Fewest common items (median over pairs) for which the mean κ over pairs of people is taken as the ceiling."""


@dataclass(frozen=True)
class ErrorConsistency:
    """Error consistency of a model with people, and of people with each other.

    κ of a pair with two or three common items is hardly ever defined and far too low, and in a study where everyone
    judges a random handful of many sketches most pairs are like that: the mean over pairs would then put the ceiling
    below what models reach. There the ceiling is `each_with_others`, with as many items a person as the model's κ.

    Attributes:
        value: Mean over participants of κ(model, participant); NaN when no κ is defined.
        pairs_mean: Mean over pairs of participants of κ on their common items; NaN when no pair has one.
        each_with_others: Mean over participants of κ with all others' answers to the items the participant judged.
        participants: Participants whose κ with the model is defined.
        pairs: Pairs of participants whose κ is defined.
        common_items_median: Median number of common items of these pairs.
        repeated_judgments: Judgments left out because another one of the same item by the same participant is used.
    """

    value: float
    pairs_mean: float
    each_with_others: float
    participants: int
    pairs: int
    common_items_median: float
    repeated_judgments: int

    @property
    def ceiling_kind(self) -> str:
        """Which of the two ceilings holds for this study: `pairs_mean` or `each_with_others`."""
        return "pairs_mean" if self.common_items_median >= MIN_COMMON_ITEMS else "each_with_others"

    @property
    def ceiling(self) -> float:
        """How consistent people are with each other; NaN where that is not defined."""
        return self.pairs_mean if self.ceiling_kind == "pairs_mean" else self.each_with_others


def kappa_of_counts(*counts: np.ndarray) -> np.ndarray:
    """κ of many pairs of observers; arguments as `kappa_from_counts`, whole numbers of any dtype and one shape."""
    return kappa_from_counts(*(torch.from_numpy(np.rint(count).astype(np.int64)) for count in counts)).numpy()


def error_consistency_with_people(
    correct_N: np.ndarray, responses: CodedResponses, target_N: np.ndarray
) -> ErrorConsistency:
    """Error consistency of a model with people over the items that each participant judged.

    A participant's answer to an item is the first guess of one judgment of it: where one person judged an item more
    than once, the first in the order of `responses`, which carries no time. Items a participant did not see are left
    out of that participant's κ.

    Args:
        correct_N: (N,) whether the model's top-1 label of an item is its target.
        responses: People's coded answers.
        target_N: (N,) label index of every item's concept.

    References:
        Geirhos, Meding and Wichmann (2020), "Beyond accuracy: quantifying trial-by-trial behaviour by measuring error
        consistency".
    """
    num_items = len(target_N)
    first = first_of_each(responses)
    participant, item = responses.participant_R[first], responses.item_R[first]
    right = responses.guess_RG[first, 0] == target_N[item]
    num_people = int(participant.max()) + 1
    model_right = np.asarray(correct_N, bool)[item]

    def per_person(count: np.ndarray) -> np.ndarray:
        return np.bincount(participant, weights=count, minlength=num_people)

    kappa = _defined(
        kappa_of_counts(
            per_person(right & model_right),
            per_person(model_right),
            per_person(right),
            per_person(np.ones(len(item))),
        )
    )
    others = np.bincount(item, minlength=num_items)[item] - 1
    others_right = np.bincount(item, weights=right, minlength=num_items)[item] - right
    with_others = _defined(
        kappa_of_counts(
            per_person(right * others_right), per_person(right * others), per_person(others_right), per_person(others)
        )
    )
    pairs, common = _kappa_of_pairs(participant, item, right, (num_people, num_items))
    return ErrorConsistency(
        value=_mean(kappa),
        pairs_mean=_mean(pairs),
        each_with_others=_mean(with_others),
        participants=len(kappa),
        pairs=len(pairs),
        common_items_median=float(np.median(common)) if len(common) else np.nan,
        repeated_judgments=len(responses) - len(first),
    )


def first_of_each(responses: CodedResponses) -> np.ndarray:
    """Positions of the first judgment of every item by every participant, sorted by participant, then item."""
    order = np.lexsort((responses.item_R, responses.participant_R))  # stable: repeats stay in their order
    person_R, item_R = responses.participant_R[order], responses.item_R[order]
    again = (np.diff(person_R, prepend=-1) == 0) & (np.diff(item_R, prepend=-1) == 0)
    return order[~again]


def _defined(kappa: np.ndarray) -> np.ndarray:
    return kappa[np.isfinite(kappa)]


def _mean(value: np.ndarray) -> float:
    return float(value.mean()) if len(value) else np.nan


def _kappa_of_pairs(
    participant: np.ndarray, item: np.ndarray, right: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """κ and number of common items of all pairs that have a κ, by products of sparse tables."""
    seen = sparse.csr_array((np.ones(len(item)), (participant, item)), shape=shape)
    correct = sparse.csr_array((right.astype(float), (participant, item)), shape=shape)
    common = sparse.triu(seen @ seen.T, k=1).tocoo()
    a, b = common.row, common.col
    if not len(a):
        return np.empty(0), np.empty(0)

    def of_pairs(product: sparse.csr_array) -> np.ndarray:
        # every pair of `a, b` is a stored or an absent (zero) entry of the other products
        table = sparse.csr_array(product)
        return np.asarray(table[a, b]).ravel()

    kappa = kappa_of_counts(
        of_pairs(correct @ correct.T), of_pairs(correct @ seen.T), of_pairs(seen @ correct.T), common.data
    )
    defined = np.isfinite(kappa)
    return kappa[defined], common.data[defined]


def label_counts(cell: np.ndarray, label: np.ndarray, num_cells: int, num_labels: int) -> np.ndarray:
    """(C, L) int64 table of how often every label was given in every cell; label -1 is no answer."""
    given = label >= 0
    flat = cell[given] * num_labels + label[given]
    return np.bincount(flat, minlength=num_cells * num_labels).reshape(num_cells, num_labels)


def people_label_counts(responses: CodedResponses, cell_N: np.ndarray, num_cells: int, num_labels: int) -> np.ndarray:
    """(C, L) int64 table of all guesses that people gave in every cell."""
    guess_RG = responses.guess_RG
    cell_RG = np.broadcast_to(cell_N[responses.item_R][:, None], guess_RG.shape)
    return label_counts(cell_RG.ravel(), guess_RG.ravel(), num_cells, num_labels)


def cell_distance(counts_a_CL: np.ndarray, counts_b_CL: np.ndarray) -> np.ndarray:
    """(C,) Jensen-Shannon distance of two label tables per cell, in [0, √log 2]; NaN where either is empty."""
    both = (counts_a_CL.sum(1) > 0) & (counts_b_CL.sum(1) > 0)
    distance_C = np.full(len(both), np.nan)
    if both.any():
        a_BL, b_BL = (torch.from_numpy(c[both].astype(np.float64)) for c in (counts_a_CL, counts_b_CL))
        distance_C[both] = jensen_shannon_distance(a_BL, b_BL).numpy()
    return distance_C


def distance_between_halves(
    responses: CodedResponses, cell_N: np.ndarray, num_cells: int, num_labels: int, seed: int, halves: int = 10
) -> np.ndarray:
    """How far two random halves of the participants are from each other: what a model's distance is held against.

    Halves have fewer answers than all people, and distances of small samples are larger, so this is an upper bound.

    Args:
        responses: People's coded answers, of two participants or more.
        cell_N: (N,) cell of every item.
        num_cells: C.
        num_labels: L.
        seed: Global seed; every split has its own address.
        halves: Number of random splits.

    Returns:
        (C,) mean Jensen-Shannon distance over the splits in which both halves answered; NaN where none.
    """
    people_P, person_R = np.unique(responses.participant_R, return_inverse=True)
    total_C, known_C = np.zeros(num_cells), np.zeros(num_cells)
    for split in range(halves):
        first_R = (generator(seed, "halves_distance", split).permutation(len(people_P)) < len(people_P) // 2)[person_R]
        tables = (
            people_label_counts(
                CodedResponses(responses.participant_R[rows], responses.item_R[rows], responses.guess_RG[rows]),
                cell_N,
                num_cells,
                num_labels,
            )
            for rows in (first_R, ~first_R)
        )
        distance_C = cell_distance(*tables)
        known_C += np.isfinite(distance_C)
        total_C += np.nan_to_num(distance_C)
    return ratio(total_C, known_C)
