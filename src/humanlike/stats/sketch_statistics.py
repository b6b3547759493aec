"""Per-item sufficient statistics: what of an item's answers every cell metric under any weights needs.

Legend: N items, L labels, E entries of a sparse table (item, key, count), R judgments, G guesses.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import torch

from humanlike.metrics.functional.response import row_entropy
from humanlike.stats.coded_responses import CodedResponses
from humanlike.stats.count_entropy import Estimator, group_sums, grouped_entropy
from humanlike.stats.switches import ModelSwitches, NoErrorCell, PeopleSwitches, SNPVariant

METRICS = ("accuracy", "entropy", "snp")
"""Metrics of a cell."""


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """How often a key (a label, a semantic rank) was met at an item, zero counts left out.

    Attributes:
        item_E: (E,) int64 item.
        key_E: (E,) int64 label or rank.
        count_E: (E,) float64 whole numbers > 0.
    """

    item_E: np.ndarray
    key_E: np.ndarray
    count_E: np.ndarray

    @classmethod
    def from_entries(cls, item_E: np.ndarray, key_E: np.ndarray, count_E: np.ndarray) -> SparseCounts:
        """The entries with a count above 0; an (item, key) pair may occur in several entries."""
        keep = np.flatnonzero(count_E > 0)
        return cls(
            item_E.astype(np.int64, copy=False)[keep],
            key_E.astype(np.int64, copy=False)[keep],
            count_E.astype(np.float64, copy=False)[keep],
        )

    def per_item(self, num_items: int, value_E: np.ndarray | None = None) -> np.ndarray:
        """(N,) sum of count (times `value_E`) over each item's entries."""
        weights = self.count_E if value_E is None else self.count_E * value_E
        return np.bincount(self.item_E, weights=weights, minlength=num_items)


@dataclass(frozen=True, eq=False)
class MeanEntropy:
    """Entropy of a cell as the mean of its items' entropies; weight 0 marks an item without one."""

    sum_N: np.ndarray
    weight_N: np.ndarray


@dataclass(frozen=True, eq=False)
class PooledEntropy:
    """Entropy of a cell from the pooled labels of its items."""

    labels: SparseCounts
    estimator: Estimator


@dataclass(frozen=True, eq=False)
class NeighbourStatistics:
    """What semantic neighbour preference (SNP) needs.

    Attributes:
        ranks: (item, rank 1 … L-1, count) of off-target answers.
        answered_N: (N,) number of answers that have a rank, correct ones included.
        num_labels: L, the number of labels with an embedding.
        variant: "paper" or "exact".
        no_error_cell: "one" or "missing".
        unranked: Number of answers left out because they or their target have no embedding.
    """

    ranks: SparseCounts
    answered_N: np.ndarray
    num_labels: int
    variant: SNPVariant
    no_error_cell: NoErrorCell
    unranked: int


@dataclass(frozen=True, eq=False)
class SketchStatistics:
    """One side (a model or people) of a study, item by item.

    Attributes:
        accuracy_sum_N: (N,) an item's correct answers (or their share); cell accuracy = Σ w·sum / Σ w·weight.
        accuracy_weight_N: (N,) its number of answers (or 1, or 0 where nobody answered).
        entropy: Mean of item entropies, or pooled labels.
        neighbours: For SNP; None where there is no semantic space.
    """

    accuracy_sum_N: np.ndarray
    accuracy_weight_N: np.ndarray
    entropy: MeanEntropy | PooledEntropy
    neighbours: NeighbourStatistics | None

    def __len__(self) -> int:
        return len(self.accuracy_sum_N)

    @property
    def unranked_answers(self) -> int:
        """Answers left out of SNP because they or their target have no embedding."""
        return 0 if self.neighbours is None else self.neighbours.unranked


@dataclass(frozen=True, eq=False)
class ModelAnswers:
    """A model's answers to N items.

    Attributes:
        top1_N: (N,) label of the highest probability, the lowest index on ties; -1 where the item was not answered.
        entropy_N: (N,) entropy of the item's probabilities in nats; NaN where the item was not answered.
    """

    top1_N: np.ndarray
    entropy_N: np.ndarray

    @classmethod
    def from_proba(cls, proba_NL: np.ndarray, answered_N: np.ndarray | None = None) -> ModelAnswers:
        """From (N, L) probabilities (rows need not be normalised); rows where `answered_N` is False are not read.

        Raises:
            ValueError: If a row is not finite, is negative somewhere or sums to 0; the row is named.
        """
        proba = np.asarray(proba_NL)
        answered = np.ones(len(proba), dtype=bool) if answered_N is None else np.asarray(answered_N, dtype=bool)
        top1_N = np.full(len(proba), -1, dtype=np.int64)
        entropy_N = np.full(len(proba), np.nan)
        rows = np.flatnonzero(answered)
        for start in range(0, len(rows), 512):  # blocks keep float64 copies small at 8,192 × 1,854 and beyond
            block = rows[start : start + 512]
            p_BL = proba[block].astype(np.float64)
            bad = ~(np.isfinite(p_BL).all(axis=1) & (p_BL >= 0).all(axis=1) & (p_BL.sum(axis=1) > 0))
            if bad.any():
                raise ValueError(
                    f"row {int(block[np.argmax(bad)])} of proba_NL is not a distribution (finite, not negative, "
                    "positive sum); mark items without an answer in answered_N"
                )
            top1_N[block] = proba[block].argmax(axis=1)
            entropy_N[block] = row_entropy(torch.from_numpy(p_BL)).numpy()
        return cls(top1_N, entropy_N)


def model_statistics(
    answers: np.ndarray | ModelAnswers,
    target_N: np.ndarray,
    ranks_LL: np.ndarray | None = None,
    switches: ModelSwitches | None = None,
) -> SketchStatistics:
    """Sufficient statistics of a model.

    Args:
        answers: (N, L) probabilities, or the compact ModelAnswers (which also says which items lack an answer).
        target_N: (N,) label of every item's concept.
        ranks_LL: [c, l] = rank of label l seen from c: 0 on the diagonal, 1 … L-1 by distance, -1 for labels without an
            embedding; None where there is no semantic space (SNP is then NaN).
        switches: What the protocol says; default ModelSwitches().

    Returns:
        SketchStatistics with N items.

    Raises:
        ValueError: If lengths differ or a label is out of range.
    """
    switches = switches or ModelSwitches()
    answers = answers if isinstance(answers, ModelAnswers) else ModelAnswers.from_proba(answers)
    target_N = _targets(target_N, len(answers.top1_N), "the model's answers")
    item_E = np.flatnonzero(answers.top1_N >= 0)
    label_E, ones_E = answers.top1_N[item_E], np.ones(len(item_E))
    hard = SparseCounts.from_entries(item_E, label_E, ones_E)
    answered_N = (answers.top1_N >= 0).astype(np.float64)
    entropy: MeanEntropy | PooledEntropy
    if switches.entropy == "pooled":
        entropy = PooledEntropy(hard, switches.estimator)
    else:
        entropy = _mean_entropy(answers.entropy_N)
    return SketchStatistics(
        accuracy_sum_N=(answers.top1_N == target_N).astype(np.float64),
        accuracy_weight_N=answered_N,
        entropy=entropy,
        neighbours=_neighbours(hard, target_N, ranks_LL, switches.snp, switches.no_error_cell),
    )


def people_statistics(
    coded: CodedResponses,
    target_N: np.ndarray,
    ranks_LL: np.ndarray | None = None,
    switches: PeopleSwitches | None = None,
    rows: np.ndarray | None = None,
    metrics: Collection[str] = METRICS,
) -> SketchStatistics:
    """Sufficient statistics of people, or of a part of them.

    Args:
        coded: Judgments as codes.
        target_N: (N,) label of every item's concept.
        ranks_LL: As in `model_statistics`.
        switches: What the protocol says; default PeopleSwitches().
        rows: Judgments to use (positions in `coded`), for split halves and resampled participants; a row may be
            repeated. None uses all.
        metrics: What is wanted; the others are NaN, and cost nothing. Accuracy is always there.

    Returns:
        SketchStatistics with N items; an item without answers has weight 0 everywhere.

    Raises:
        ValueError: If an item or a label is out of range.
    """
    switches = switches or PeopleSwitches()
    target_N = _targets(target_N, None, "")
    num_items = len(target_N)
    coded.check_items(num_items)
    counts = cache(lambda which: _counts(coded, which, rows))
    scored = counts("first" if switches.accuracy == "first_guess" else "all")
    correct_N = scored.per_item(num_items, (scored.key_E == target_N[scored.item_E]).astype(np.float64))
    given_N = scored.per_item(num_items)
    if switches.accuracy == "first_guess":
        correct_N, given_N = correct_N / np.maximum(given_N, 1.0), (given_N > 0).astype(np.float64)
    entropy: MeanEntropy | PooledEntropy
    if "entropy" not in metrics:
        entropy = _mean_entropy(np.full(num_items, np.nan))
    elif switches.entropy == "pooled":
        entropy = PooledEntropy(counts("all"), switches.estimator)
    else:
        entropy = _mean_entropy(_item_entropy(counts("all"), num_items, switches.estimator))
    neighbours = None
    if "snp" in metrics and ranks_LL is not None:
        ranked = counts("first" if switches.snp_answers == "first" else "all")
        neighbours = _neighbours(ranked, target_N, ranks_LL, switches.snp, switches.no_error_cell)
    return SketchStatistics(
        accuracy_sum_N=correct_N,
        accuracy_weight_N=given_N,
        entropy=entropy,
        neighbours=neighbours,
    )


def _targets(target_N: np.ndarray, num_items: int | None, what: str) -> np.ndarray:
    target = np.asarray(target_N)
    if target.ndim != 1 or not np.issubdtype(target.dtype, np.integer) or np.any(target < 0):
        raise ValueError("target_N must be a one-dimensional array of label indices that count from 0")
    if num_items is not None and len(target) != num_items:
        raise ValueError(f"target_N has {len(target)} entries, but {what} have {num_items}")
    return target.astype(np.int64)


def _mean_entropy(entropy_N: np.ndarray) -> MeanEntropy:
    known_N = np.isfinite(entropy_N)
    return MeanEntropy(np.where(known_N, entropy_N, 0.0), known_N.astype(np.float64))


def _counts(coded: CodedResponses, which: Literal["first", "all"], rows: np.ndarray | None) -> SparseCounts:
    groups = coded.first_guesses if which == "first" else coded.all_guesses
    return SparseCounts.from_entries(groups.item_E, groups.label_E, groups.counts(coded.row_weights(rows)))


def _item_entropy(labels: SparseCounts, num_items: int, estimator: Estimator) -> np.ndarray:
    """(N,) entropy of every item's labels; the entries of an item are adjacent, as CodedResponses sorts them."""
    entropy_N = np.full(num_items, np.nan)
    if len(labels.item_E):
        item_S, start_S = np.unique(labels.item_E, return_index=True)
        sums = group_sums(start_S, len(labels.item_E))
        entropy_N[item_S] = grouped_entropy(labels.count_E[:, None], sums, estimator)[:, 0]
    return entropy_N


def _neighbours(
    answers: SparseCounts,
    target_N: np.ndarray,
    ranks_LL: np.ndarray | None,
    variant: SNPVariant,
    no_error_cell: NoErrorCell,
) -> NeighbourStatistics | None:
    if ranks_LL is None:
        return None
    num_ranked = len(ranks_LL)
    highest = max(int(target_N.max(initial=0)), int(answers.key_E.max(initial=0)))
    if ranks_LL.ndim != 2 or ranks_LL.shape[1] != num_ranked or highest >= num_ranked:
        raise ValueError(
            f"ranks_LL must be square with a row for every label; it is {ranks_LL.shape}, and label {highest} occurs"
        )
    concepts, inverse_N = np.unique(target_N, return_inverse=True)
    # A target without an embedding has no neighbours (its row is -1 save for the diagonal): nothing can be said.
    row_max = ranks_LL[concepts].max(axis=1)
    rank_E = ranks_LL[target_N[answers.item_E], answers.key_E]
    has_rank = (rank_E >= 0) & (row_max[inverse_N[answers.item_E]] > 0)
    error = has_rank & (rank_E > 0)
    ranked = SparseCounts(answers.item_E[has_rank], rank_E[has_rank], answers.count_E[has_rank])
    return NeighbourStatistics(
        ranks=SparseCounts.from_entries(answers.item_E[error], rank_E[error], answers.count_E[error]),
        answered_N=ranked.per_item(len(target_N)),
        num_labels=int(row_max.max(initial=0)) + 1,
        variant=variant,
        no_error_cell=no_error_cell,
        unranked=int(answers.count_E[~has_rank].sum()),
    )
