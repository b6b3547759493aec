"""Do models err on the same sketches as people, and as each other? With intervals over images and participants.

Legend: M models, N items, R judgments, P participants, G images, B replicates.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from scipy.sparse import csr_array

from humanlike.benchmarks.seva_agreement import error_consistency_with_people, first_of_each
from humanlike.metrics.functional import kappa_from_counts
from humanlike.stats import CellDesign, CodedResponses, basic, image_weights
from humanlike.stats.crossed import Resample, participant_weights

_REPLICATES_AT_A_TIME = 64


def consistency_table(
    correct: Mapping[str, np.ndarray],
    responses: CodedResponses,
    target_N: np.ndarray,
    design: CellDesign,
    *,
    resample: Resample = "crossed",
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """Error consistency of every model with people, its interval and its ceiling.

    Args:
        correct: Observer → (N,) whether it was right.
        responses: People's coded answers; of repeated judgments of an item by one person the first counts.
        target_N: (N,) label index of every item's concept.
        design: The study's items.
        resample: What the interval is over.
        replicates: Number B.
        seed: Global seed.
        level: Coverage of the interval.

    Returns:
        A row a model: `observer, estimate, ci_low, ci_high, ceiling, ceiling_kind, pairs_mean, each_with_others,
        participants, n_replicates`. The interval reflects the replicates' spread about the estimate: κ of resampled
        items, which repeat, is not κ of the items, so the replicates' own place says nothing.
    """
    rows = []
    drawn = kappa_replicates(correct, responses, target_N, design, resample, replicates, seed)
    for name, correct_N in correct.items():
        found = error_consistency_with_people(correct_N, responses, target_N)
        interval = basic(found.value, drawn[name], level)
        row = {
            "observer": name,
            "estimate": found.value,
            "ci_low": interval.low,
            "ci_high": interval.high,
            "ceiling": found.ceiling,
            "ceiling_kind": found.ceiling_kind,
            "pairs_mean": found.pairs_mean,
            "each_with_others": found.each_with_others,
            "participants": found.participants,
            "n_replicates": replicates - interval.n_degenerate,
        }
        rows.append(row)
    return pd.DataFrame(rows)


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
            kappa_PB = _kappa(both_PG @ weight_GB, own_PG @ weight_GB, right_PB, seen_PB)
            known_PB = np.where(np.isfinite(kappa_PB), weight_PB, 0.0)
            total_B = known_PB.sum(axis=0)
            sum_B = (np.nan_to_num(kappa_PB) * known_PB).sum(axis=0)
            out[name][start : start + size] = np.divide(sum_B, total_B, out=np.full(size, np.nan), where=total_B > 0)
    return out


def models_consistency(
    correct: Mapping[str, np.ndarray], answered: Mapping[str, np.ndarray] | None = None
) -> pd.DataFrame:
    """κ of every pair of models on their hard labels: do they err on the same sketches?

    Args:
        correct: Observer → (N,) whether it was right.
        answered: Observer → (N,) whether it saw the item; items that one of a pair did not see are left out. None: all.

    Returns:
        A square table, observers as index and columns; 1 on the diagonal, NaN where κ is not defined.

    Example:
        >>> models_consistency({"a": np.array([1, 1, 0, 0]), "b": np.array([1, 1, 0, 1])}).round(2).to_numpy().tolist()
        [[1.0, 0.5], [0.5, 1.0]]
    """
    names = list(correct)
    right_MN = np.stack([np.asarray(correct[name], bool) for name in names]).astype(np.float64)
    seen_MN = np.ones_like(right_MN)
    if answered is not None:
        seen_MN = np.stack([np.asarray(answered[name], bool) for name in names]).astype(np.float64)
    right_MN = right_MN * seen_MN
    right_a = right_MN @ seen_MN.T  # of the items that both saw, those that the first has right
    kappa = _kappa(right_MN @ right_MN.T, right_a, right_a.T, seen_MN @ seen_MN.T)
    return pd.DataFrame(kappa, index=names, columns=names)


def _kappa(*counts: np.ndarray) -> np.ndarray:
    """κ from whole counts of any dtype; see `kappa_from_counts`."""
    return kappa_from_counts(*(torch.from_numpy(np.rint(count).astype(np.int64)) for count in counts)).numpy()
