"""What both sides answer: a model through its readout, people as they are, and how labels neighbour each other.

Legend: N items, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from humanlike.benchmarks.protocol import Protocol
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.interfaces import Readout
from humanlike.metrics.functional import semantic_ranks
from humanlike.readouts.folds import SmallClassError
from humanlike.stats import ModelAnswers, ModelSwitches, PeopleSwitches

_PEOPLE_ENTROPY: Mapping[str, dict[str, Any]] = {
    "pooled": {"entropy": "pooled", "estimator": "plugin"},
    "per_sketch": {"entropy": "per_sketch", "estimator": "plugin"},
    "per_sketch_chao_shen": {"entropy": "per_sketch", "estimator": "chao_shen"},
}
_PEOPLE_SNP: Mapping[str, dict[str, Any]] = {
    "all_labels_exact": {"snp": "exact", "snp_answers": "all"},
    "first_guess_paper": {"snp": "paper", "snp_answers": "first"},
    "first_guess_exact": {"snp": "exact", "snp_answers": "first"},
}


def model_switches(protocol: Protocol) -> ModelSwitches:
    """What the protocol says about a model's answers."""
    return ModelSwitches(entropy=protocol.model_entropy, snp=protocol.model_snp, no_error_cell=protocol.no_error_cell)


def people_switches(protocol: Protocol) -> PeopleSwitches:
    """What the protocol says about people's answers."""
    return PeopleSwitches(
        accuracy=protocol.people_accuracy,
        no_error_cell=protocol.no_error_cell,
        **_PEOPLE_ENTROPY[protocol.people_entropy],
        **_PEOPLE_SNP[protocol.people_snp],
    )


@dataclass(frozen=True)
class ModelReading:
    """What a model says about the N items, through its readout.

    Attributes:
        answers: Top-1 labels and entropies.
        probability_target_N: (N,) out-of-fold probability of the target.
        fold_N: (N,) fold in which the item was held out, -1 where the readout does not tell.
        certificate: How close the readout came to its optimum, as it says itself.
        converged: False when the readout says that it did not converge.
    """

    answers: ModelAnswers
    probability_target_N: np.ndarray
    fold_N: np.ndarray
    certificate: Mapping[str, Any]
    converged: bool


def out_of_fold(
    items: SevaItems, readout: Readout, num_labels: int, group_N: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(N, L) out-of-fold label probabilities and the (N,) fold of every item, -1 where the readout does not tell.

    Raises:
        ValueError: When the shape is wrong, or a group stands in several folds.
    """
    try:
        proba_NL = np.asarray(readout.out_of_fold_proba(items.f_ND, items.target_N, num_labels, group_N))
    except SmallClassError as error:
        concept_of = dict(zip(items.target_N.tolist(), items.table["concept"], strict=True))
        concept = concept_of[int(cast("int", error.label))]
        raise error.worded(
            repr(concept), setting="readout.n_splits", otherwise=error.otherwise and f"readout.{error.otherwise}"
        ) from None
    if proba_NL.shape != (len(items), num_labels):
        raise ValueError(
            f"the readout returned probabilities of shape {proba_NL.shape}, expected {(len(items), num_labels)}"
        )
    fold_N = np.asarray(getattr(readout, "folds_", np.full(len(items), -1)), np.int64)
    _check_folds(items, fold_N, group_N)
    return proba_NL, fold_N


def read_out(items: SevaItems, readout: Readout, num_labels: int, group_N: np.ndarray | None) -> ModelReading:
    """Out-of-fold label probabilities of every item, reduced to what the tables and metrics need."""
    proba_NL, fold_N = out_of_fold(items, readout, num_labels, group_N)
    return reduced(proba_NL, fold_N, items.target_N, readout)


def reduced(proba_NL: np.ndarray, fold_N: np.ndarray, target_N: np.ndarray, readout: Readout) -> ModelReading:
    """What the tables and metrics need of label probabilities, and how well the readout was trained."""
    certificate = readout.certificate() if hasattr(readout, "certificate") else {}
    return ModelReading(
        answers=ModelAnswers.from_proba(proba_NL),
        probability_target_N=proba_NL[np.arange(len(target_N)), target_N].astype(np.float64),
        fold_N=fold_N,
        certificate=certificate,
        converged=bool(np.all(getattr(readout, "converged_", True))),
    )


def _check_folds(items: SevaItems, fold_N: np.ndarray, group_N: np.ndarray | None) -> None:
    """A readout may ignore groups (scikit-learn style splitters do); a leak between folds must not pass unseen."""
    if group_N is None:
        return
    first_G = np.full(int(group_N.max()) + 1, -1)
    first_G[group_N] = fold_N
    split = np.flatnonzero(first_G[group_N] != fold_N)
    if len(split):
        raise ValueError(
            f"the readout put items of image {items.table['image_id'].iloc[split[0]]!r} in several folds, although the "
            "protocol's cv=stratified_group keeps an image in one; set readout.cv=stratified_group"
        )


@dataclass(frozen=True)
class NeighbourRanks:
    """Semantic ranks of the labels.

    Attributes:
        ranks_LL: [c, l] = rank of label l seen from c, 0 on the diagonal, -1 for labels without an embedding; None
            where there is no semantic space.
        matched: Labels with an embedding.
        unmatched: Labels without.
    """

    ranks_LL: np.ndarray | None
    matched: int
    unmatched: int


def neighbour_ranks(space_LD: np.ndarray | None, num_labels: int) -> NeighbourRanks:
    """Ranks of all labels by cosine distance; rows of NaN are labels that the semantic space does not know."""
    if space_LD is None:
        return NeighbourRanks(None, 0, num_labels)
    space = np.asarray(space_LD, np.float64)
    unknown_L = np.isnan(space).all(1)
    broken = np.flatnonzero(~np.isfinite(space).all(1) & ~unknown_L)
    if len(broken):
        raise ValueError(
            f"the semantic space is not finite in row {int(broken[0])} and {len(broken) - 1} other row(s); a row is "
            "finite throughout, or NaN throughout for a label without an embedding"
        )
    zero = np.flatnonzero((space == 0).all(1))
    if len(zero):
        raise ValueError(
            f"the semantic space is zero in row {int(zero[0])} and {len(zero) - 1} other row(s), which has no "
            "direction; a label without an embedding is a row of NaN"
        )
    known = np.flatnonzero(~unknown_L)
    ranks_LL = np.full((num_labels, num_labels), -1, np.int64)
    if len(known) > 1:
        ranks_LL[np.ix_(known, known)] = semantic_ranks(torch.from_numpy(space[known])).numpy()
    return NeighbourRanks(ranks_LL, len(known), num_labels - len(known))
