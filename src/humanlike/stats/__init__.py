"""Cell metrics of models and people under resampling, and what follows from them.

The way through: `CellDesign` (where items stand) → `model_statistics`, `people_statistics` (sufficient statistics) →
`cell_metrics` under `image_weights` → `alignment_r2`, `delta_r2` → an `Interval`; `split_half_consistency` is the
people's own baseline.
"""

from humanlike.stats.cell_bootstrap import METRICS, cell_metrics, image_weights, left_out_images, left_out_metrics
from humanlike.stats.cell_design import CellDesign
from humanlike.stats.coded_responses import CodedResponses
from humanlike.stats.consistency import ConsistencyGap, SplitHalf, gap_to_consistency, split_half_consistency
from humanlike.stats.hypothesis import least_squares, welch_test
from humanlike.stats.intervals import Interval, basic, difference, jackknife, percentile, ratio_centred, recentred
from humanlike.stats.mixed import MixedDesign, fit_mixed, likelihood_ratio_test
from humanlike.stats.regression import (
    alignment_r2,
    condition_model_r2,
    condition_r2,
    delta_r2,
    paired_cells,
    split_correlation,
)
from humanlike.stats.sketch_statistics import ModelAnswers, SketchStatistics, model_statistics, people_statistics
from humanlike.stats.summary import ConditionSummary, condition_summary
from humanlike.stats.switches import ModelSwitches, PeopleSwitches

__all__ = [
    "METRICS",
    "CellDesign",
    "CodedResponses",
    "ConditionSummary",
    "ConsistencyGap",
    "Interval",
    "MixedDesign",
    "ModelAnswers",
    "ModelSwitches",
    "PeopleSwitches",
    "SketchStatistics",
    "SplitHalf",
    "alignment_r2",
    "basic",
    "cell_metrics",
    "condition_model_r2",
    "condition_r2",
    "condition_summary",
    "delta_r2",
    "difference",
    "fit_mixed",
    "gap_to_consistency",
    "image_weights",
    "jackknife",
    "least_squares",
    "left_out_images",
    "left_out_metrics",
    "likelihood_ratio_test",
    "model_statistics",
    "paired_cells",
    "people_statistics",
    "percentile",
    "ratio_centred",
    "recentred",
    "split_correlation",
    "split_half_consistency",
    "welch_test",
]
