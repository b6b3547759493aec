"""SEVA: how well a model recognises sketches, how its errors and doubts resemble people's, condition by condition.

python evaluate.py benchmark=seva dataset=doodles backbone=tf_efficientnet_lite0 benchmark.protocol=corrected
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanlike.benchmarks.protocol import preset
from humanlike.benchmarks.seva_agreement import cell_distance, label_counts
from humanlike.benchmarks.seva_answers import (
    ModelReading,
    NeighbourRanks,
    model_switches,
    neighbour_ranks,
    read_out,
)
from humanlike.benchmarks.seva_comparison import Estimator, Resamples, Side, resample_images, resampled_side
from humanlike.benchmarks.seva_item_consistency import consistency_with_people
from humanlike.benchmarks.seva_items import SevaItems, groups_for_folds, used_items
from humanlike.benchmarks.seva_people import PeopleSide, code_people, people_side
from humanlike.benchmarks.seva_scores import (
    Report,
    add_absent_people,
    add_agreement_scores,
    add_alignment_scores,
    add_model_scores,
    add_people_scores,
    chance_levels,
)
from humanlike.benchmarks.seva_tables import cells_table, conditions_table, items_table
from humanlike.benchmarks.seva_training import ScoredPart
from humanlike.interfaces import Readout
from humanlike.stats import model_statistics
from humanlike.stats.crossed import RESAMPLES, Resample
from humanlike.types import BenchmarkResult, Features, Sketches


@dataclass(frozen=True)
class SevaStudy:
    """What a study is, whatever model is compared with its people.

    Attributes:
        ranks: Semantic ranks of the labels.
        group_N: Groups that the readout keeps in one fold, or None.
        fold_flags: What has to be said about them.
        estimator: Applies statistics to the study's cells and resamples.
        people: People's side; None where nobody judged a used item.
    """

    ranks: NeighbourRanks
    group_N: np.ndarray | None
    fold_flags: tuple[str, ...]
    estimator: Estimator
    people: PeopleSide | None


class SevaBenchmark:
    """Accuracy, response entropy and semantic neighbour preference of a model and of people on the same sketches.

    A readout is trained on the model's features; its out-of-fold answers and people's are summarised per cell
    (concept × condition); alignment is how well the model's cells predict people's. What the data cannot give
    (people, a semantic space, conditions) is None with a flag.

    Args:
        protocol: Preset: `paper_text`, `paper_code` or `corrected`.
        replicates: Bootstrap replicates.
        resample: What a replicate draws anew: `images` within their concepts, `participants`, or both (`crossed`).
            Intervals then speak of other images, other people, or both.
        splits: Random halves of the participants, for the human-human baseline.
        interval: Kind of interval; None keeps the preset's.
        metric: Protocol switch → value, overriding the preset one by one; None keeps the preset's (see `Protocol`).
        on_unknown: `raise` or `drop` guesses that are not labels.

    Raises:
        ValueError: On an unknown preset, switch or value (the sentence names the nearest), or too few replicates.

    References:
        Mukherjee et al. (2023). Deviates: see DEVIATIONS.md, every deviation is a switch.

    Example:
        >>> SevaBenchmark(protocol="paper_code", interval="jackknife").protocol.interval
        'jackknife'
    """

    identifier = "seva"
    version = "1"
    bibtex = """@inproceedings{mukherjee2023seva,
  title     = {{SEVA}: Leveraging sketches to evaluate alignment between human and machine visual abstraction},
  author    = {Mukherjee, Kushin and Huey, Holly and Lu, Xuanchen and Vinker, Yael and Aguina-Kang, Rio and
               Shamir, Ariel and Fan, Judith E.},
  booktitle = {Advances in Neural Information Processing Systems, Datasets and Benchmarks Track},
  year      = {2023}
}"""

    def __init__(
        self,
        protocol: str = "corrected",
        replicates: int = 1000,
        splits: int = 200,
        interval: str | None = None,
        metric: Mapping[str, Any] | None = None,
        on_unknown: str = "raise",
        resample: Resample = "images",
    ) -> None:
        for name, value in (("replicates", replicates), ("splits", splits)):
            if value < 2:
                raise ValueError(f"{name} is {value}; an interval needs 2 or more")
        if on_unknown not in ("raise", "drop"):
            raise ValueError(f"on_unknown is {on_unknown!r}; it can be 'raise' or 'drop'")
        if resample not in RESAMPLES:
            raise ValueError(f"resample is {resample!r}; it can be one of {', '.join(RESAMPLES)}")
        asked = {**(metric or {}), **({} if interval is None else {"interval": interval})}
        self.protocol = preset(protocol).overridden(asked)
        self._cv_asked = asked.get("cv") is not None
        self.replicates, self.splits, self.on_unknown = replicates, splits, on_unknown
        self.resample: Resample = resample
        self._latest_part: tuple[Sketches, ScoredPart] | None = None
        self._latest: tuple[Sketches, bytes, int, SevaStudy] | None = None
        if resample != "images" and self.protocol.interval == "jackknife":
            raise ValueError(
                f"interval=jackknife leaves out one image at a time and cannot be had with resample={resample}; use "
                "resample=images, or another interval"
            )

    def run(self, data: Sketches, features: Features, readout: Readout, seed: int = 0) -> BenchmarkResult:
        """Score the features of one layer of one model.

        Args:
            data: Sketches, with people's answers and a semantic space where there are any. Of a data set with the
                column `judged` the judged ones are scored; `readout.train_on=all` fits the readout on the others too.
            features: Features of the items that could be read.
            readout: Classifier whose out-of-fold answers stand for the model's.
            seed: Global seed of resamples and splits.

        Raises:
            ValueError: When features and data do not fit, an answer is no label, or the readout cannot be trained.
        """
        part = self._scored_part(data)
        readout = part.readout(readout, features)
        data, features = part.data, part.features(features)
        items = used_items(data, features)
        study = self._study(data, items, seed)
        reading = read_out(items, readout, len(data.labels), study.group_N)
        return self._result(data, features, items, study, reading, self._model_side(items, reading, study))

    def _scored_part(self, data: Sketches) -> ScoredPart:
        """What of `data` is scored; the latest is remembered, as people's side hangs on it."""
        if self._latest_part is None or self._latest_part[0] is not data:
            self._latest_part = data, ScoredPart(data)
        return self._latest_part[1]

    def _study(self, data: Sketches, items: SevaItems, seed: int) -> SevaStudy:
        """Everything that does not depend on the model, so that it can be shared by many models and layers.

        The latest is remembered: models that are run one after the other on one data set share people's side.
        """
        rows = items.rows_N.tobytes()
        if self._latest is not None and self._latest[0] is data and self._latest[1:3] == (rows, seed):
            return self._latest[3]
        ranks = neighbour_ranks(data.semantic_space, len(data.labels))
        group_N, fold_flags = groups_for_folds(items, data, self.protocol.cv, self._cv_asked)
        resamples = resample_images(items.design, self.protocol, self.replicates, seed, self.resample)
        estimator = Estimator(items.design, self.protocol, resamples)
        people = self._people(data, items, ranks, resamples, seed)
        study = SevaStudy(ranks, group_N, tuple(fold_flags), estimator, people)
        self._latest = data, rows, seed, study
        return study

    def _result(
        self,
        data: Sketches,
        features: Features,
        items: SevaItems,
        study: SevaStudy,
        reading: ModelReading,
        model: Side,
    ) -> BenchmarkResult:
        """All scores and tables of one reading."""
        ranks, estimator, people = study.ranks, study.estimator, study.people
        cv_used = "stratified" if study.group_N is None else "stratified_group"
        report = Report(flags=[*data.flags, *study.fold_flags, *_data_flags(data, items, reading, ranks, model)])
        report.details = self._details(data, items, reading, ranks)
        add_model_scores(report, estimator, model)
        distance_C = np.full(items.design.num_cells, np.nan)
        if people is None:
            add_absent_people(report)
        else:
            hard_CL = label_counts(
                items.design.cell_N, reading.answers.top1_N, items.design.num_cells, len(data.labels)
            )
            distance_C = cell_distance(hard_CL, people.label_counts_CL)
            correct_N = reading.answers.top1_N == items.target_N
            resamples = study.estimator.resamples
            drawn = (resamples.kind, len(resamples), resamples.seed)
            consistency = consistency_with_people(
                {"model": correct_N}, people.coded.responses, items.target_N, items.design, *drawn
            )["model"]
            add_people_scores(report, estimator, people)
            add_alignment_scores(report, estimator, people, model)
            add_agreement_scores(report, distance_C, people, *consistency)
            report.flags += _people_flags(people, self.protocol.interval)
        return BenchmarkResult(
            scores=report.scores,
            cells=cells_table(items, data.labels, model, distance_C, people),
            items=items_table(data, features, items, reading, ranks, people),
            conditions=conditions_table(items, model, distance_C, people),
            counts=_counts(data, items, model, people),
            flags=tuple(dict.fromkeys(report.flags)),
            protocol={**self.protocol.record(), "cv_used": cv_used},
            details=report.details,
        )

    def _model_side(self, items: SevaItems, reading: ModelReading, study: SevaStudy) -> Side:
        switches = model_switches(self.protocol)
        statistics = model_statistics(reading.answers, items.target_N, study.ranks.ranks_LL, switches)
        return resampled_side(items.design, statistics, study.estimator.resamples)

    def _people(
        self, data: Sketches, items: SevaItems, ranks: NeighbourRanks, resamples: Resamples, seed: int
    ) -> PeopleSide | None:
        """People's side, which does not depend on the model; None where nobody judged a used item."""
        if data.responses is None:
            return None
        coded = code_people(data.responses, items.table["sketch_id"].tolist(), data.labels, self.on_unknown)
        if len(coded.responses) == 0:
            return None
        return people_side(coded, items, len(data.labels), ranks, self.protocol, resamples, self.splits, seed)

    def _details(
        self, data: Sketches, items: SevaItems, reading: ModelReading, ranks: NeighbourRanks
    ) -> dict[str, Any]:
        ranked = ranks.ranks_LL is not None
        return {
            "readout": dict(reading.certificate),
            "interval": {
                "kind": self.protocol.interval,
                "level": 0.95,
                "replicates": self.replicates,
                "resample": self.resample,
            },
            "conditions_unit": data.condition_unit,
            "chance": chance_levels(self.protocol, items.design.num_concepts, ranked),
            "semantic_space": {"matched": ranks.matched, "unmatched": ranks.unmatched} if ranked else None,
        }


def _data_flags(
    data: Sketches, items: SevaItems, reading: ModelReading, ranks: NeighbourRanks, model: Side
) -> list[str]:
    """What has to stand next to the scores whatever people say."""
    failed, empty = len(data) - len(items), int((items.design.items_C == 0).sum())
    told = {
        "readout_not_converged": not reading.converged,
        f"folds_reduced:{reading.certificate.get('n_splits')}": reading.certificate.get("n_splits_reduced_from"),
        f"images_failed:{failed}": failed,
        f"empty_cells:{empty}": empty,
        "single_condition": items.design.num_conditions == 1,
        "no_semantic_space": ranks.ranks_LL is None,
        f"labels_without_embedding:{ranks.unmatched}": ranks.ranks_LL is not None and ranks.unmatched,
        f"answers_not_ranked:{model.statistics.unranked_answers}": model.statistics.unranked_answers,
    }
    return [flag for flag, holds in told.items() if holds]


def _people_flags(people: PeopleSide, interval: str) -> list[str]:
    unjudged, unranked = int((people.by_item["n_responses"] == 0).sum()), people.side.statistics.unranked_answers
    told = {
        f"items_without_judgments:{unjudged}": unjudged,
        f"people_answers_not_ranked:{unranked}": unranked,
        "one_participant": people.coded.num_participants == 1,
        "interval_biased_down": interval == "percentile",
    }
    return [flag for flag, holds in told.items() if holds]


def _counts(data: Sketches, items: SevaItems, model: Side, people: PeopleSide | None) -> dict[str, int]:
    design = items.design
    counts = {
        "items_total": len(data),
        "items_used": len(items),
        "items_failed": len(data) - len(items),
        "concepts": design.num_concepts,
        "conditions": design.num_conditions,
        "cells": design.num_cells,
        "cells_empty": int((design.items_C == 0).sum()),
        "answers_not_ranked": model.statistics.unranked_answers,
    }
    if people is not None:
        counts |= {
            "participants": people.coded.num_participants,
            "judgments": len(people.coded.responses),
            "people_answers_not_ranked": people.side.statistics.unranked_answers,
            **people.coded.dropped,
        }
    return counts
