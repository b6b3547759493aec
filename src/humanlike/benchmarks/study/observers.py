"""Cell metrics of one observer (people or a model) under any protocol, each computed once.

Most switches of a protocol leave most cell metrics as they are. An observer remembers every metric by the switches it
depends on, so that a table of what each switch changes costs little more than the study itself, and people's side is
computed once for all models.

Legend: C cells, B replicates, N items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np

from humanlike.benchmarks.protocol import Protocol, preset
from humanlike.benchmarks.seva_answers import NeighbourRanks, model_switches, people_switches
from humanlike.benchmarks.seva_comparison import Resamples, Side, resample_images
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.stats import (
    CellDesign,
    CodedResponses,
    ModelAnswers,
    ModelSwitches,
    PeopleSwitches,
    SketchStatistics,
    cell_metrics,
    left_out_images,
    left_out_metrics,
    model_statistics,
    people_statistics,
)
from humanlike.stats.crossed import PeopleUnderWeights, Resample, fewer_people
from humanlike.stats.sketch_statistics import MeanEntropy

MODEL_SWITCHES: Mapping[str, tuple[str, ...]] = {
    "accuracy": ("model_accuracy",),
    "entropy": ("model_entropy",),
    "snp": ("model_snp", "no_error_cell"),
}
"""Metric of a model → the switches that can move it."""

PEOPLE_SWITCHES: Mapping[str, tuple[str, ...]] = {
    "accuracy": ("people_accuracy",),
    "entropy": ("people_entropy",),
    "snp": ("people_snp", "no_error_cell"),
}
"""Metric of people → the switches that can move it."""


@dataclass(frozen=True, eq=False)
class StudyResamples:
    """What is drawn anew in the replicates, the same for all observers and protocols.

    Attributes:
        design: The study's cells.
        replicates: Number of replicates B.
        seed: Global seed.
        kind: `images`, `participants` or `crossed`.
    """

    design: CellDesign
    replicates: int
    seed: int
    kind: Resample = "images"

    @cached_property
    def bootstrap(self) -> Resamples:
        """Resamples without a jackknife."""
        return resample_images(self.design, preset("corrected"), self.replicates, self.seed, self.kind)

    @cached_property
    def jackknife(self) -> Resamples:
        """The same with one image left out at a time beside them."""
        return replace(self.bootstrap, concept_of_left_out_B=left_out_images(self.design)[0])

    def of(self, protocol: Protocol) -> Resamples:
        """The resamples that a protocol asks for."""
        return self.jackknife if protocol.interval == "jackknife" else self.bootstrap


Cells = dict[str, np.ndarray]
"""Metric → (B, C) values of cells."""

Unit = Literal["participants", "judgments"]
Kind = Literal["full", "bootstrap", "left_out", "participants", "judgments"]


class Observer:
    """One observer's cell metrics.

    Args:
        resamples: What is drawn anew.
        statistics: Gives the sufficient statistics under a protocol.
        switches: Metric → the switches that can move it.
        fewer: Gives the cells of all metrics without some of the participants or judgments, for resampled
            participants; None where nobody is resampled.
    """

    def __init__(
        self,
        resamples: StudyResamples,
        statistics: Callable[[Protocol], SketchStatistics],
        switches: Mapping[str, tuple[str, ...]],
        fewer: Callable[[Protocol, Unit], Cells] | None = None,
    ) -> None:
        self._resamples, self._statistics, self._switches, self._fewer = resamples, statistics, switches, fewer
        self._remembered: dict[tuple[str, ...], np.ndarray] = {}
        self.fits: dict[tuple[int, int], np.ndarray] = {}
        """Fits of this observer's cells that no other observer enters; see `Comparison`."""

    def key(self, metric: str, protocol: Protocol) -> tuple[str, ...]:
        """The values of the switches that can move a metric: equal keys mean equal cells."""
        return tuple(getattr(protocol, name) for name in self._switches[metric])

    def statistics(self, protocol: Protocol) -> SketchStatistics:
        """Per-item sufficient statistics."""
        return self._statistics(protocol)

    def full(self, metric: str, protocol: Protocol) -> np.ndarray:
        """(C,) the metric of every cell on the full sample; NaN where there is no evidence."""
        return self._cells("full", metric, protocol)[0]

    def side(self, metric: str, protocol: Protocol) -> Side:
        """One metric on the full sample and all resamples, as an `Estimator` takes it.

        The arrays are the same objects whenever they are the same values, for as long as the observer lives.
        """
        full, bootstrap = ({metric: self._cells(kind, metric, protocol)} for kind in ("full", "bootstrap"))
        left_out = {metric: self._cells("left_out", metric, protocol)} if protocol.interval == "jackknife" else None
        side = Side(self._statistics(protocol), full, bootstrap, left_out)
        if self._fewer is None:
            return side
        return replace(
            side,
            fewer_participants={metric: self._cells("participants", metric, protocol)},
            fewer_judgments={metric: self._cells("judgments", metric, protocol)},
        )

    def _cells(self, kind: Kind, metric: str, protocol: Protocol) -> np.ndarray:
        key = (kind, metric, *self.key(metric, protocol))
        if key in self._remembered:
            return self._remembered[key]
        if (kind == "participants" or kind == "judgments") and self._fewer is not None:
            found = {(kind, m, *self.key(m, protocol)): cells for m, cells in self._fewer(protocol, kind).items()}
            self._remembered = {**found, **self._remembered}
        else:
            self._remembered[key] = self._of_images(kind, metric, protocol)
        return self._remembered[key]

    def _of_images(self, kind: Kind, metric: str, protocol: Protocol) -> np.ndarray:
        alone = only(self._statistics(protocol), metric)
        if kind == "left_out":
            return left_out_metrics(self._resamples.design, alone)[metric]
        if kind == "full":
            return cell_metrics(self._resamples.design, alone)[metric]
        if self._resamples.kind == "participants":  # other participants change nothing of a model
            full_1C = self._cells("full", metric, protocol)
            return np.broadcast_to(full_1C, (self._resamples.replicates, full_1C.shape[1]))
        return cell_metrics(self._resamples.design, alone, self._resamples.bootstrap.bootstrap_BKJ)[metric]


def only(statistics: SketchStatistics, metric: str) -> SketchStatistics:
    """The statistics with what the other metrics need left out, so that one metric is computed and not three."""
    nothing_N = np.zeros(len(statistics))
    return replace(
        statistics,
        entropy=statistics.entropy if metric == "entropy" else MeanEntropy(nothing_N, nothing_N),
        neighbours=statistics.neighbours if metric == "snp" else None,
    )


def model_observer(
    answers: ModelAnswers, items: SevaItems, ranks: NeighbourRanks, resamples: StudyResamples
) -> Observer:
    """A model's cells."""

    @cache
    def of(switches: ModelSwitches) -> SketchStatistics:
        return model_statistics(answers, items.target_N, ranks.ranks_LL, switches)

    return Observer(resamples, cache(lambda protocol: of(model_switches(protocol))), MODEL_SWITCHES)


def people_observer(
    answers: CodedResponses, items: SevaItems, ranks: NeighbourRanks, resamples: StudyResamples
) -> Observer:
    """People's cells."""

    @cache
    def of(switches: PeopleSwitches) -> SketchStatistics:
        return people_statistics(answers, items.target_N, ranks.ranks_LL, switches)

    def fewer(protocol: Protocol, unit: Unit) -> Cells:
        switches = people_switches(protocol)
        weighted = PeopleUnderWeights(items.design, answers, items.target_N, ranks.ranks_LL, switches)
        return fewer_people(weighted, resamples.replicates, resamples.seed, unit)

    statistics = cache(lambda protocol: of(people_switches(protocol)))
    return Observer(resamples, statistics, PEOPLE_SWITCHES, None if resamples.kind == "images" else fewer)
