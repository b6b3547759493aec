"""The tables of a study that need no inference: Table 3, Figures 3 to 5, and the long tables that models are fitted on.

Every table has one row an observer (`people`, or a model's name) and further keys, with columns of the same names
everywhere: `estimate`, `std_error`, `ci_low`, `ci_high`, `n`, `note`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import norm

from humanlike.benchmarks.protocol import Protocol
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.benchmarks.study.comparison import Comparison
from humanlike.benchmarks.study.models import PEOPLE
from humanlike.benchmarks.study.observers import Observer
from humanlike.benchmarks.study.people import StudyPeople
from humanlike.stats import METRICS, SketchStatistics, SplitHalf, condition_summary
from humanlike.stats.count_entropy import ratio
from humanlike.stats.sketch_statistics import MeanEntropy

PUBLISHED = pd.DataFrame(
    {
        "condition": [4.0, 8.0, 16.0, 32.0],
        "accuracy": [0.030829, 0.081503, 0.138663, 0.198681],
        "accuracy_std_error": [0.002693, 0.004413, 0.005864, 0.006715],
        "entropy": [1.958259, 1.814551, 1.689727, 1.554702],
        "entropy_std_error": [0.010626, 0.01278, 0.014093, 0.014858],
        "snp": [0.627561, 0.701014, 0.749846, 0.787072],
        "snp_std_error": [0.007923, 0.009194, 0.009994, 0.009865],
    }
)
"""People's row of the paper's Table 3, by seconds of drawing."""


def sketch_rows(items: SevaItems, observer: str, statistics: SketchStatistics) -> pd.DataFrame:
    """One row a sketch of one observer.

    Returns:
        Columns `observer, sketch_id, concept, condition, image_id, accuracy, entropy`: accuracy 0 or 1 for a model and
        the mean over the judgments for people; entropy in nats, of the sketch alone (NaN where the protocol pools the
        answers of a cell). Sketches without an answer are left out.
    """
    answered_N = statistics.accuracy_weight_N > 0
    entropy_N = np.full(len(items), np.nan)
    if isinstance(statistics.entropy, MeanEntropy):
        entropy_N = ratio(statistics.entropy.sum_N, statistics.entropy.weight_N)
    table = items.table.assign(
        accuracy=ratio(statistics.accuracy_sum_N, statistics.accuracy_weight_N), entropy=entropy_N
    )
    table.insert(0, "observer", observer)
    return table[answered_N].reset_index(drop=True)


def cell_rows(
    items: SevaItems, labels: tuple[str, ...], name: str, observer: Observer, protocol: Protocol
) -> pd.DataFrame:
    """One row a cell of one observer: `observer, concept, condition, accuracy, entropy, snp`; NaN without evidence."""
    design = items.design
    columns = {
        "observer": np.full(design.num_cells, name, dtype=object),
        "concept": np.array(labels, dtype=object)[design.concept_C],
        "condition": design.condition_C,
        **{metric: observer.full(metric, protocol) for metric in METRICS},
    }
    return pd.DataFrame(columns)


def by_condition(items: SevaItems, observer: str, statistics: SketchStatistics) -> pd.DataFrame:
    """Means by condition, as in Table 3: accuracy and entropy over sketches, SNP over concepts.

    Returns:
        Columns `observer, condition, metric, estimate, std_error, ci_low, ci_high, n, over`; the interval is the
        normal one at 95%.
    """
    z = float(norm.ppf(0.975))
    parts = []
    for metric, summary in condition_summary(items.design, statistics).items():
        table = pd.DataFrame(
            {
                "condition": items.design.conditions_T,
                "metric": metric,
                "estimate": summary.mean_T,
                "std_error": summary.sem_T,
                "ci_low": summary.mean_T - z * summary.sem_T,
                "ci_high": summary.mean_T + z * summary.sem_T,
                "n": summary.n_T,
                "over": summary.over,
            }
        )
        table.insert(0, "observer", observer)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def with_published(people: pd.DataFrame) -> pd.DataFrame:
    """People's rows of `by_condition` with the published Table 3 beside them (`published`, `published_std_error`)."""
    value = PUBLISHED.melt("condition", list(METRICS), "metric", "published")
    error = PUBLISHED.melt("condition", [f"{m}_std_error" for m in METRICS], "metric", "published_std_error")
    error["metric"] = error["metric"].str.removesuffix("_std_error")
    published = value.merge(error, on=["condition", "metric"], validate="1:1")
    table = people.merge(published, on=["condition", "metric"], how="left", validate="1:1")
    return table.assign(difference=table["estimate"] - table["published"])


def human_baseline(people: StudyPeople, protocol: Protocol) -> pd.DataFrame:
    """People's consistency with one another by metric, the first rows of the alignment table."""
    corrected = protocol.human_baseline == "split_half_and_spearman_brown"
    rows = []
    for metric, split in people.consistency(protocol).items():
        interval = split.interval()
        row = {
            "observer": PEOPLE,
            "metric": metric,
            "estimate": split.mean,
            "ci_low": interval.low,
            "ci_high": interval.high,
            "interval": "split_half",
            "n": int(np.isfinite(split.r2_S).sum()),
        }
        rows.append(row | _corrected(split) if corrected else row)
    return pd.DataFrame(rows)


def _corrected(split: SplitHalf) -> dict[str, float]:
    interval = split.spearman_brown_interval()
    return {
        "spearman_brown": split.spearman_brown,
        "spearman_brown_low": interval.low,
        "spearman_brown_high": interval.high,
    }


def alignment_rows(name: str, comparison: Comparison, protocol: Protocol) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """A model's alignment by metric, and its bootstrap replicates.

    Returns:
        Columns `observer, metric, estimate, full_sample, ci_low, ci_high, interval, n, delta_r2, delta_r2_low,
        delta_r2_high, degenerate`, and metric → (B,) replicates. `n` is the number of cells that both sides have;
        `interval` the kind of the interval.
    """
    rows, replicates = [], {}
    for metric in METRICS:
        estimate, added = comparison.alignment(metric, protocol), comparison.added_r2(metric, protocol)
        replicates[metric] = estimate.replicates_B
        row = {
            "observer": name,
            "metric": metric,
            "estimate": estimate.value,
            "full_sample": estimate.full_sample,
            "ci_low": estimate.interval.low,
            "ci_high": estimate.interval.high,
            "interval": estimate.interval.kind,
            "n": comparison.cells_paired(metric, protocol),
            "delta_r2": added.value,
            "delta_r2_low": added.interval.low,
            "delta_r2_high": added.interval.high,
            "degenerate": estimate.interval.n_degenerate,
        }
        rows.append(row)
    return pd.DataFrame(rows), replicates


def mean_rows(name: str, comparison: Comparison, protocol: Protocol) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Mean of an observer's cells by metric with its interval over images, and its bootstrap replicates."""
    rows, replicates = [], {}
    for metric in METRICS:
        estimate = comparison.cell_mean(metric, protocol)
        replicates[metric] = estimate.replicates_B
        row = {
            "observer": name,
            "metric": metric,
            "estimate": estimate.value,
            "ci_low": estimate.interval.low,
            "ci_high": estimate.interval.high,
            "n": int(np.isfinite(comparison.model.full(metric, protocol)).sum()),
        }
        rows.append(row)
    return pd.DataFrame(rows), replicates


def replicates_table(replicates: Mapping[str, Mapping[str, np.ndarray]]) -> pd.DataFrame:
    """Replicates in long form: `metric, observer, replicate, value`, from {metric: {observer: (B,)}}."""
    parts = [
        pd.DataFrame({"metric": metric, "observer": name, "replicate": np.arange(len(value_B)), "value": value_B})
        for metric, by_observer in replicates.items()
        for name, value_B in by_observer.items()
    ]
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=["metric", "observer", "replicate", "value"])
    )


def strokes_by_condition(strokes: pd.DataFrame) -> pd.DataFrame:
    """Number of strokes by condition (Figure 3): `condition, estimate, std_error, median, ci_low, ci_high, n`.

    `ci_low` and `ci_high` are the normal 95% interval of the mean.
    """
    grouped = strokes.groupby("condition")["num_strokes"]
    table = pd.DataFrame(
        {"estimate": grouped.mean(), "std_error": grouped.sem(), "median": grouped.median(), "n": grouped.size()}
    ).reset_index()
    half = float(norm.ppf(0.975)) * table["std_error"]
    return table.assign(ci_low=table["estimate"] - half, ci_high=table["estimate"] + half)
