"""Estimates with intervals: means over cells, alignment of a model with people, and what it adds over the condition.

Legend: C cells, B replicates, K concepts, J source images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from humanlike.benchmarks.protocol import Protocol
from humanlike.stats import (
    CellDesign,
    Interval,
    SketchStatistics,
    SplitHalf,
    alignment_r2,
    basic,
    cell_metrics,
    condition_r2,
    delta_r2,
    difference,
    image_weights,
    jackknife,
    left_out_images,
    left_out_metrics,
    percentile,
    ratio_centred,
)
from humanlike.stats.crossed import Resample, over_participants, with_participants
from humanlike.stats.hidden_spread import hidden_variance
from humanlike.stats.intervals import widened
from humanlike.stats.noise_correction import noise_corrected


@dataclass(frozen=True)
class Resamples:
    """Image weights of the replicates of a run, the same for every side and every model.

    Attributes:
        bootstrap_BKJ: Images of every concept drawn with replacement; all 1 where participants alone are drawn.
        concept_of_left_out_B: Concept of the image left out, one at a time; None unless the protocol's interval is the
            jackknife.
        kind: What is drawn anew. Participants' weights are drawn where people are known, from the same seed.
        seed: Global seed.
    """

    bootstrap_BKJ: np.ndarray
    concept_of_left_out_B: np.ndarray | None = None
    kind: Resample = "images"
    seed: int = 0

    def __len__(self) -> int:
        return len(self.bootstrap_BKJ)


def resample_images(
    design: CellDesign, protocol: Protocol, replicates: int, seed: int, kind: Resample = "images"
) -> Resamples:
    """The resamples that the protocol asks for; the jackknife leaves out images, of whatever kind the bootstrap is."""
    if protocol.interval == "jackknife":
        return Resamples(image_weights(design, replicates, seed), left_out_images(design)[0], seed=seed)
    if kind == "participants":
        every_BKJ = np.broadcast_to(design.image_mask_KJ.astype(np.int16), (replicates, *design.image_mask_KJ.shape))
        return Resamples(every_BKJ, kind=kind, seed=seed)
    return Resamples(image_weights(design, replicates, seed), kind=kind, seed=seed)


@dataclass(frozen=True)
class Side:
    """Cell metrics (`accuracy`, `entropy`, `snp`) of a model or of people; NaN where there is no evidence.

    Attributes:
        statistics: Per-item sufficient statistics.
        full: The full sample, (1, C) each.
        bootstrap: Resampled images, (B, C) each.
        left_out: One image left out at a time, (B', C) each, or None.
        fewer_participants: Without a fifth of the participants, (B, C) each; None where they are not resampled.
        fewer_judgments: Without a fifth of the judgments, as above.
    """

    statistics: SketchStatistics
    full: dict[str, np.ndarray]
    bootstrap: dict[str, np.ndarray]
    left_out: dict[str, np.ndarray] | None
    fewer_participants: dict[str, np.ndarray] | None = None
    fewer_judgments: dict[str, np.ndarray] | None = None


def resampled_side(design: CellDesign, statistics: SketchStatistics, resamples: Resamples) -> Side:
    """Cell metrics of one side on the full sample and on resampled images."""
    full = cell_metrics(design, statistics)
    if resamples.kind == "participants":
        same = {
            metric: np.broadcast_to(value_1C, (len(resamples), value_1C.shape[1])) for metric, value_1C in full.items()
        }
        return Side(statistics, full, same, None)
    return Side(
        statistics,
        full,
        cell_metrics(design, statistics, resamples.bootstrap_BKJ),
        None if resamples.concept_of_left_out_B is None else left_out_metrics(design, statistics),
    )


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Attributes:
        value: What is reported.
        full_sample: The value on the full sample; differs where the protocol reports the mean of the replicates.
        interval: 95% interval.
        replicates_B: The bootstrap replicates behind it.
    """

    value: float
    full_sample: float
    interval: Interval
    replicates_B: np.ndarray


Statistic = Callable[..., np.ndarray]


class Estimator:
    """Applies a statistic of cell metrics to the full sample and its resamples, as the protocol says.

    Args:
        design: The study's cells.
        protocol: Names the interval and the point estimate.
        resamples: The resamples that the sides were computed on.
    """

    def __init__(self, design: CellDesign, protocol: Protocol, resamples: Resamples) -> None:
        self.design, self.protocol, self.resamples = design, protocol, resamples

    def cell_mean(self, side: Side, metric: str) -> Estimate:
        """Mean of a metric over the cells that have it, so that every concept and condition weighs the same.

        In a centred interval of mean SNP the replicates are given the spread that cells with few errors hide; see
        `humanlike.stats.hidden_spread`.
        """
        neighbours = side.statistics.neighbours if metric == "snp" else None
        hidden = 0.0 if neighbours is None else hidden_variance(self.design, neighbours)
        return self.estimate(_mean_over_cells, (side,), metric, hidden)

    def alignment(self, people: Side, model: Side, metric: str) -> Estimate:
        """Adjusted R² of people ~ 1 + model + t + model·t over cells, t numeric."""
        return self._reported(self.estimate(self._alignment_r2, (people, model), metric))

    def added_r2(self, people: Side, model: Side, metric: str) -> Estimate:
        """Adjusted R² of people ~ C(t) + model + model·t, less that of people ~ C(t) on the same cells.

        The ratio of a difference would be unbounded near 0, so the ratio-centred interval centres both parts.
        """
        added = self.estimate(self._delta_r2, (people, model), metric)
        if self.protocol.interval == "ratio_centred":
            alone = self.estimate(self._condition_r2, (people, model), metric)
            interval = difference(
                added.full_sample + alone.full_sample,
                added.replicates_B + alone.replicates_B,
                alone.full_sample,
                alone.replicates_B,
            )
            added = Estimate(added.value, added.full_sample, interval, added.replicates_B)
        return self._reported(added)

    def estimate(self, statistic: Statistic, sides: tuple[Side, ...], metric: str, hidden: float = 0.0) -> Estimate:
        """Any statistic of one metric of several sides, with the protocol's interval.

        Args:
            statistic: Takes one (B, C) array a side, gives (B,).
            sides: Whose cells, in the order of the statistic's arguments.
            metric: Which cell metric.
            hidden: Variance over images that resampling them does not show, for centred intervals.
        """
        full = float(statistic(*(side.full[metric] for side in sides))[0])
        replicates_B = self._replicates(full, statistic, sides, metric, hidden)
        if self.resamples.kind == "participants" and all(side.fewer_participants is None for side in sides):
            # Other participants would not change what a model does: that is no interval of width 0, but none.
            return Estimate(full, full, Interval(np.nan, np.nan, "none", 0), replicates_B)
        intervals: dict[str, Callable[[], Interval]] = {
            "ratio_centred": lambda: ratio_centred(full, replicates_B),
            "basic": lambda: basic(full, replicates_B),
            "percentile": lambda: percentile(replicates_B),
            "jackknife": lambda: self._jackknife(full, statistic, sides, metric),
        }
        return Estimate(full, full, intervals[self.protocol.interval](), replicates_B)

    def _replicates(
        self, full: float, statistic: Statistic, sides: tuple[Side, ...], metric: str, hidden: float
    ) -> np.ndarray:
        """(B,) replicates over what is resampled; see `humanlike.stats.crossed` for participants."""

        def without(kind: str) -> np.ndarray:
            cells = [getattr(side, kind) or side.full for side in sides]
            return statistic(*(value[metric] for value in cells))

        images_B = statistic(*(side.bootstrap[metric] for side in sides))
        if self.protocol.interval in ("ratio_centred", "basic"):
            images_B = widened(images_B, self.design.resampling_spread, hidden)
        if all(side.fewer_participants is None for side in sides):
            return images_B
        if self.resamples.kind == "participants":
            return over_participants(full, without("fewer_participants"))
        return with_participants(images_B, without("fewer_participants"), without("fewer_judgments"))

    def corrected(self, aligned: Estimate, consistency: SplitHalf) -> Estimate:
        """An alignment as it would be with people's true cells.

        Its interval is the basic one where the protocol's is, and the ratio-centred one under any other protocol: a
        percentile would miss it, and halves of people have no jackknife.
        """
        corrected = noise_corrected(aligned.full_sample, aligned.replicates_B, consistency)
        interval = corrected.interval
        if self.protocol.interval == "basic":
            interval = basic(corrected.value, corrected.replicates_B)
        return Estimate(corrected.value, corrected.value, interval, corrected.replicates_B)

    def _alignment_r2(self, people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
        return alignment_r2(people_BC, model_BC, self.design.condition_C)

    def _delta_r2(self, people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
        return delta_r2(people_BC, model_BC, self.design.condition_C)

    def _condition_r2(self, people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
        return condition_r2(people_BC, self.design.condition_C, model_BC)

    def _jackknife(self, full: float, statistic: Statistic, sides: tuple[Side, ...], metric: str) -> Interval:
        left_out = [side.left_out[metric] for side in sides if side.left_out is not None]
        concept_B = self.resamples.concept_of_left_out_B
        if len(left_out) < len(sides) or concept_B is None or not len(concept_B):
            return Interval(np.nan, np.nan, "jackknife", 0)
        return jackknife(full, statistic(*left_out), concept_B)

    def _reported(self, estimate: Estimate) -> Estimate:
        """The estimate with the point that the protocol reports."""
        usable = estimate.replicates_B[np.isfinite(estimate.replicates_B)]
        if self.protocol.alignment_point == "full_sample" or not len(usable):
            return estimate
        return Estimate(float(usable.mean()), estimate.full_sample, estimate.interval, estimate.replicates_B)


def _mean_over_cells(value_BC: np.ndarray) -> np.ndarray:
    """(B,) mean of the cells that are not NaN; NaN where all are."""
    known = np.isfinite(value_BC)
    count = known.sum(1)
    return np.where(count > 0, np.where(known, value_BC, 0.0).sum(1) / np.maximum(count, 1), np.nan)
