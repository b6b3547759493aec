"""Intervals of the error consistency of models with people: over images, participants, or both.

Legend: N items, R judgments, P participants, G images, B replicates.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array

from humanlike.benchmarks.seva_agreement import (
    ErrorConsistency,
    error_consistency_with_people,
    first_of_each,
    kappa_of_counts,
)
from humanlike.stats import CellDesign, CodedResponses, Interval, basic, image_weights
from humanlike.stats.crossed import Resample, participant_weights
from humanlike.stats.intervals import widened

_REPLICATES_AT_A_TIME = 64


def consistency_with_people(
    correct: Mapping[str, np.ndarray],
    responses: CodedResponses,
    target_N: np.ndarray,
    design: CellDesign,
    resample: Resample,
    replicates: int,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, tuple[ErrorConsistency, Interval]]:
    """Error consistency of every model with people and its interval over what is resampled.

    The interval reflects the replicates' spread about the estimate whatever the protocol says: κ of resampled items,
    which repeat, is not κ of the items, so the replicates' own place says nothing.

    Args:
        correct: Observer → (N,) whether it was right.
        responses: People's coded answers; of repeated judgments of an item by one person the first counts.
        target_N: (N,) label index of every item's concept.
        design: The study's items.
        resample: What the interval is over.
        replicates: Number B.
        seed: Global seed.
        level: Coverage of the interval.
    """
    drawn = kappa_replicates(correct, responses, target_N, design, resample, replicates, seed)
    spread = 1.0 if resample == "participants" else design.resampling_spread
    found = {}
    for name, correct_N in correct.items():
        own = error_consistency_with_people(correct_N, responses, target_N)
        found[name] = own, basic(own.value, widened(drawn[name], spread), level)
    return found


def kappa_replicates(
    correct: Mapping[str, np.ndarray],
    responses: CodedResponses,
    target_N: np.ndarray,
    design: CellDesign,
    resample: Resample,
    replicates: int,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Mean over participants of κ(model, participant) on resampled images, participants, or both.

    A participant drawn w times counts w times in the mean, an item drawn w times w times in the participant's κ.

    Returns:
        Observer → (B,) float64; NaN where no drawn participant has a κ.
    """
    first = first_of_each(responses)
    people, person_R = np.unique(responses.participant_R[first], return_inverse=True)
    item_R = responses.item_R[first]
    right_R = (responses.guess_RG[first, 0] == np.asarray(target_N)[item_R]).astype(np.float64)
    slot_R = design.slot_N[item_R]
    shape = (len(people), int(design.images_K.sum()))

    def by_image(value_R: np.ndarray) -> csr_array:
        return csr_array((value_R, (person_R, slot_R)), shape=shape)

    seen_PG, right_PG = by_image(np.ones(len(item_R))), by_image(right_R)
    of_models = {name: np.asarray(c, bool)[item_R].astype(np.float64) for name, c in correct.items()}
    tables = {name: (by_image(c * right_R), by_image(c)) for name, c in of_models.items()}
    out = {name: np.empty(replicates) for name in correct}
    for start in range(0, replicates, _REPLICATES_AT_A_TIME):
        size = min(_REPLICATES_AT_A_TIME, replicates - start)
        images = None if resample == "participants" else image_weights(design, size, seed, start)
        weight_GB = np.broadcast_to(design.weights_GB(images), (shape[1], size))
        weight_PB = np.ones((len(people), size))
        if resample != "images":
            weight_PB = participant_weights(len(people), size, seed, start).T.astype(np.float64)
        right_PB, seen_PB = right_PG @ weight_GB, seen_PG @ weight_GB
        for name, (both_PG, own_PG) in tables.items():
            kappa_PB = kappa_of_counts(both_PG @ weight_GB, own_PG @ weight_GB, right_PB, seen_PB)
            known_PB = np.where(np.isfinite(kappa_PB), weight_PB, 0.0)
            total_B = known_PB.sum(axis=0)
            sum_B = (np.nan_to_num(kappa_PB) * known_PB).sum(axis=0)
            out[name][start : start + size] = np.divide(sum_B, total_B, out=np.full(size, np.nan), where=total_B > 0)
    return out
