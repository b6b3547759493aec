"""Mean and standard error of every metric in every condition, as in the paper's Table 3.

Legend: T conditions, N items, K concepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from humanlike.stats.cell_bootstrap import cell_metrics
from humanlike.stats.cell_design import CellDesign
from humanlike.stats.count_entropy import ratio
from humanlike.stats.sketch_statistics import MeanEntropy, SketchStatistics


@dataclass(frozen=True)
class ConditionSummary:
    """One metric by condition.

    Attributes:
        mean_T: (T,) mean, NaN where nothing was seen.
        sem_T: (T,) standard deviation (n - 1) / √n, NaN below two values.
        n_T: (T,) number of values.
        over: What the values are: "sketches" or "concepts".
    """

    mean_T: np.ndarray
    sem_T: np.ndarray
    n_T: np.ndarray
    over: Literal["sketches", "concepts"]


def condition_summary(design: CellDesign, side: SketchStatistics) -> dict[str, ConditionSummary]:
    """Per-condition means: accuracy and entropy over sketches, SNP over concepts.

    A sketch's accuracy is the share of its answers that are the target. Pooled entropy exists for cells only, so its
    values are those of the concepts.

    Args:
        design: Where every item stands.
        side: Statistics of the model or of people.

    Returns:
        {"accuracy", "entropy", "snp"} → ConditionSummary.

    References:
        Mukherjee et al. 2023 (SEVA), Table 3 (s.e.m. over 2,048 sketches, and over 128 concepts for SNP).

    Example:
        >>> from humanlike.stats.sketch_statistics import model_statistics
        >>> design = CellDesign.from_columns([0, 0], ["a", "b"], [4, 4])
        >>> side = model_statistics(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]))
        >>> s = condition_summary(design, side)["accuracy"]
        >>> s.mean_T.tolist(), s.sem_T.round(6).tolist(), s.over
        ([0.5], [0.5], 'sketches')
    """
    t = design.num_conditions
    cells = cell_metrics(design, side)
    condition_of_cell = np.tile(np.arange(t), design.num_concepts)
    accuracy_N = ratio(side.accuracy_sum_N, side.accuracy_weight_N)
    if isinstance(side.entropy, MeanEntropy):
        entropy_N = ratio(side.entropy.sum_N, side.entropy.weight_N)
        entropy = _by_condition(entropy_N, design.condition_N, t, "sketches")
    else:
        entropy = _by_condition(cells["entropy"][0], condition_of_cell, t, "concepts")
    return {
        "accuracy": _by_condition(accuracy_N, design.condition_N, t, "sketches"),
        "entropy": entropy,
        "snp": _by_condition(cells["snp"][0], condition_of_cell, t, "concepts"),
    }


def _by_condition(
    value: np.ndarray, condition: np.ndarray, num_conditions: int, over: Literal["sketches", "concepts"]
) -> ConditionSummary:
    known = np.isfinite(value)
    value, condition = value[known], condition[known]
    n_T = np.bincount(condition, minlength=num_conditions)
    mean_T = ratio(np.bincount(condition, weights=value, minlength=num_conditions), n_T.astype(np.float64))
    deviation = value - mean_T[condition]
    square_T = np.bincount(condition, weights=deviation**2, minlength=num_conditions)
    sem_T = np.sqrt(ratio(square_T, (n_T * np.maximum(n_T - 1, 0)).astype(np.float64)))
    return ConditionSummary(mean_T, sem_T, n_T, over)
