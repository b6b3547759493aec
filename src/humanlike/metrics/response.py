"""Accuracy, entropy and semantic neighbour preference of responses, cell by cell, as a torchmetrics class."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor

from humanlike.metrics.cell_tables import (
    CellMetric,
    add_rows,
    checked_responses,
    from_fixed,
    require_fixed_point_range,
    tensor_digest,
    to_fixed,
)
from humanlike.metrics.functional.arguments import (
    INTEGER_DTYPES,
    index_vector,
    require_choice,
    require_integer_valued,
    require_length,
    require_tensor,
)
from humanlike.metrics.functional.neighbour_preference import (
    SNPVariant,
    rank_rows,
    semantic_neighbour_preference,
)
from humanlike.metrics.functional.response import EntropyEstimator, response_entropy, top1_accuracy

EntropyMode = Literal[
    "per_sketch", "per_sketch_miller_madow", "per_sketch_chao_shen", "pooled", "miller_madow", "chao_shen"
]
AccuracyMode = Literal["per_sketch", "pooled"]

# Name → (is it computed per sketch?, estimate of one row).
_MODES: MappingProxyType[str, tuple[bool, EntropyEstimator]] = MappingProxyType(
    {
        "per_sketch": (True, "pooled"),
        "per_sketch_miller_madow": (True, "miller_madow"),
        "per_sketch_chao_shen": (True, "chao_shen"),
        "pooled": (False, "pooled"),
        "miller_madow": (False, "miller_madow"),
        "chao_shen": (False, "chao_shen"),
    }
)


class ResponseDistribution(CellMetric):
    """How sketches of each cell (concept × condition) are recognised: accuracy, entropy, semantic neighbour preference.

    One row of an update is one sketch. A model gives a row of probabilities (its top-1 response is the argmax, the
    lowest index on ties). People give a row of counts of all their guesses and, as `top1_NL`, a row of counts of
    their first guesses. Hard labels, one a row, do for everything but per-sketch entropy.

    Two tables are kept: `top1` (C, L), the top-1 responses, which serves accuracy and SNP, and `labels` (C, L), the
    sums of rows in units of 2⁻⁴⁰, which serves pooled entropy; and per cell the number of sketches and the sums of
    per-sketch accuracy and entropy. All are int64 sums; see `CellMetric`.

    * accuracy: mean over the cell's sketches of the share of top-1 responses that name the concept, in [0, 1]
      (`accuracy="pooled"`: share over all top-1 responses of the cell; both agree where every sketch has as many).
    * entropy, in nats: "per_sketch" is the mean over sketches of the entropy of the sketch's own row (the published
      analysis); "per_sketch_miller_madow" and "per_sketch_chao_shen" correct each row before the mean; "pooled",
      "miller_madow" and "chao_shen" are `response_entropy` of the aggregated cell (the paper's text). Corrections need
      whole counts.
    * snp: `semantic_neighbour_preference` of `top1`, "paper" or "exact"; NaN without `ranks`.

    Args:
        num_cells: C.
        num_labels: L.
        target: (C,) integer label index of each cell's concept.
        ranks: (L, L) integers from `semantic_ranks`, or None where there is no semantic space.
        snp_variant: "paper" or "exact".
        entropy_estimator: See above.
        accuracy: "per_sketch" or "pooled".
        kwargs: Passed on to `torchmetrics.Metric`.

    Raises:
        TypeError: If `target` or `ranks` is no tensor of an integer dtype.
        ValueError: If a size, target, rank or name is not as stated.

    References:
        SEVA (Mukherjee et al., 2023), Section 3.

    Example:
        >>> metric = ResponseDistribution(num_cells=2, num_labels=3, target=torch.tensor([0, 1]))
        >>> metric.update(torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([0, 0]))
        >>> {name: [round(v, 4) for v in value.tolist()] for name, value in metric.compute().items()}
        {'accuracy': [0.5, nan], 'entropy': [0.3466, nan], 'snp': [nan, nan]}
        >>> metric.empty_cells
        [1]
    """

    target: Tensor
    ranks: Tensor | None
    top1: Tensor
    labels: Tensor
    sketches: Tensor
    accuracy_sum: Tensor
    entropy_sum: Tensor

    def __init__(
        self,
        num_cells: int,
        num_labels: int,
        target: Tensor,
        ranks: Tensor | None = None,
        snp_variant: SNPVariant = "paper",
        entropy_estimator: EntropyMode = "per_sketch",
        accuracy: AccuracyMode = "per_sketch",
        **kwargs: Any,
    ) -> None:
        given = [tensor_digest(target, "target"), ranks if ranks is None else tensor_digest(ranks, "ranks")]
        super().__init__(num_cells, num_labels, (*given, snp_variant, entropy_estimator, accuracy), **kwargs)
        require_choice(snp_variant, "snp_variant", SNPVariant)
        require_choice(entropy_estimator, "entropy_estimator", EntropyMode)
        require_choice(accuracy, "accuracy", AccuracyMode)
        target_C = index_vector(target, "target", num_labels)
        require_length(target_C, "target", num_cells, "cells (num_cells)")
        if ranks is not None:
            rank_rows(ranks, target_C, num_labels)
        self.snp_variant = snp_variant
        self.entropy_estimator = entropy_estimator
        self.accuracy = accuracy
        self.register_buffer("target", target_C, persistent=False)
        self.register_buffer("ranks", ranks, persistent=False)
        self.add_count("top1", num_cells, num_labels)
        self.add_count("labels", num_cells, num_labels)
        self.add_count("sketches", num_cells)
        self.add_count("accuracy_sum", num_cells)
        self.add_count("entropy_sum", num_cells)

    def update(self, labels_or_probs: Tensor, cells: Tensor, top1_NL: Tensor | None = None) -> None:
        """Add sketches.

        Args:
            labels_or_probs: (N, L) rows of counts or probabilities with a positive sum, or (N,) integer labels.
            cells: (N,) integer cell of each row.
            top1_NL: (N, L) integer counts (or (N,) labels) of top-1 responses; by default the label itself, or the
                argmax of the row.

        Raises:
            TypeError: If an argument is no tensor or of a wrong dtype.
            ValueError: If hard labels meet a per-sketch entropy; if a label, entry or cell is out of range; if a
                row sums to 0, or is fractional where counts are needed; or if shapes do not fit. Nothing is added
                then.
        """
        responses = checked_responses(labels_or_probs, "labels_or_probs", self.num_labels)
        require_fixed_point_range(responses, "labels_or_probs")
        cells = self._checked_cells(cells, len(responses))
        per_sketch, estimator = _MODES[self.entropy_estimator]
        if per_sketch and responses.ndim == 1 and len(responses):
            raise ValueError(
                f"entropy_estimator={self.entropy_estimator!r} needs one row of counts or probabilities a sketch, but "
                "hard labels came; pass (N, L) rows, or set entropy_estimator to 'pooled', 'miller_madow', 'chao_shen'"
            )
        if responses.ndim == 2 and estimator != "pooled":
            require_integer_valued(responses, "labels_or_probs", f"for entropy_estimator={self.entropy_estimator!r}")
        top1 = self._top1(responses, top1_NL)

        self._count_rows(len(responses))
        add_rows(self.labels, cells, responses, fixed=True)
        add_rows(self.top1, cells, top1, fixed=False)
        self.sketches.index_add_(0, cells, torch.ones_like(cells))
        self.accuracy_sum.index_add_(0, cells, to_fixed(self._share_right(top1, cells)))
        if per_sketch and len(responses):
            self.entropy_sum.index_add_(0, cells, to_fixed(response_entropy(responses, estimator)))

    def compute(self) -> dict[str, Tensor]:
        """`accuracy`, `entropy` and `snp`, each (C,) float64, NaN for an empty cell (listed in `repr`)."""
        self._note_empty()
        per_sketch, estimator = _MODES[self.entropy_estimator]
        sketches_C = self.sketches.double()
        if self.accuracy == "per_sketch":
            accuracy_C = from_fixed(self.accuracy_sum) / sketches_C
        else:
            accuracy_C = top1_accuracy(self.top1, self.target)
        if per_sketch:
            entropy_C = from_fixed(self.entropy_sum) / sketches_C
        else:
            entropy_C = response_entropy(from_fixed(self.labels), estimator)
        if self.ranks is None:
            snp_C = torch.full_like(sketches_C, torch.nan)
        else:
            snp_C = semantic_neighbour_preference(self.top1, self.target, self.ranks, self.snp_variant)
        return {"accuracy": accuracy_C, "entropy": entropy_C, "snp": snp_C}

    @property
    def counts(self) -> Tensor:
        """(C, L) int64 top-1 responses that this process has been given (of all processes inside `sync_context`)."""
        return self.top1

    @property
    def label_sums(self) -> Tensor:
        """(C, L) float64 sums of all rows given (hard labels count 1), the aggregated response distributions."""
        return from_fixed(self.labels)

    def _top1(self, responses: Tensor, top1: Tensor | None) -> Tensor:
        if top1 is None:
            return responses if responses.ndim == 1 else responses.argmax(dim=1)
        require_tensor(top1, "top1_NL")
        if top1.dtype not in INTEGER_DTYPES:
            raise TypeError(f"top1_NL holds counts of top-1 responses, of an integer dtype; got {top1.dtype}")
        require_length(top1, "top1_NL", len(responses), "labels_or_probs")
        return checked_responses(top1, "top1_NL", self.num_labels)

    def _share_right(self, top1: Tensor, cells: Tensor) -> Tensor:
        """(N,) share of a sketch's top-1 responses that name its concept."""
        target_N = self.target[cells]
        return (top1 == target_N).double() if top1.ndim == 1 else top1_accuracy(top1, target_N)

    def _find_empty(self) -> list[int]:
        return (self.sketches == 0).nonzero().flatten().tolist()
