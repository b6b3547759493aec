"""People on fixed labels: a model and people decide among the same few categories; do they err on the same images?

python evaluate.py benchmark=fixed_labels dataset=line_edges dataset.root=PATH
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from humanlike.backbones.recorded import RECORDED
from humanlike.benchmarks.fixed_labels_people import MISSING, UNSEEN, PeopleAnswers, people_answers
from humanlike.benchmarks.fixed_labels_scores import Study, crossed_bootstrap, score_values, scores_under
from humanlike.benchmarks.fixed_labels_tables import (
    cells_table,
    conditions_table,
    item_values,
    items_table,
    people_record,
)
from humanlike.benchmarks.seva_agreement import MIN_COMMON_ITEMS, distance_between_halves
from humanlike.benchmarks.seva_answers import ModelReading, out_of_fold, reduced
from humanlike.benchmarks.seva_items import SevaItems, groups_for_folds, used_items
from humanlike.interfaces import Readout
from humanlike.metrics.functional.response import EntropyEstimator
from humanlike.readouts.imagenet_head import ImageNetHead
from humanlike.stats import ModelAnswers
from humanlike.types import BenchmarkResult, Features, ScoreValue, Sketches


class FixedLabelsBenchmark:
    """Accuracy, consistency and spread of answers of a model and of people who chose among the same labels.

    The model decides through its own ImageNet head (`readout=imagenet_head`), through a readout trained on the images
    (`readout=logistic`, cross-validated), or its answers are recorded (`backbone=recorded`). Consistency with people is
    a mean over people, within conditions and then over conditions; its ceiling is that of people with each other.

    Args:
        replicates: Bootstrap replicates over source images and people (crossed).
        people_entropy: Estimator of the entropy of people's answers to one image: `chao_shen`, `miller_madow` or
            `pooled` (the plug-in estimate, low for few answers).
        on_unknown: People's answers that are no label and not "na": `raise`, or `drop` and count.

    Raises:
        ValueError: On an unknown setting, or fewer than two replicates.

    References:
        Geirhos, Meding and Wichmann (2020); Geirhos et al. (2021), Section 2. Deviates: the difference of accuracies is
        signed and not squared (the squared one stands in the details), no condition is left out for being easy.

    Example:
        >>> FixedLabelsBenchmark(replicates=100).replicates
        100
    """

    identifier = "fixed_labels"
    version = "1"
    bibtex = """@inproceedings{geirhos2020beyond,
  title     = {Beyond accuracy: quantifying trial-by-trial behaviour of {CNNs} and humans by measuring error
               consistency},
  author    = {Geirhos, Robert and Meding, Kristof and Wichmann, Felix A.},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2020}
}
@inproceedings{geirhos2021partial,
  title     = {Partial success in closing the gap between human and machine vision},
  author    = {Geirhos, Robert and Narayanappa, Kantharaju and Mitzkus, Benjamin and Thieringer, Tizian and
               Bethge, Matthias and Wichmann, Felix A. and Brendel, Wieland},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2021}
}"""

    def __init__(
        self, replicates: int = 1000, people_entropy: EntropyEstimator = "chao_shen", on_unknown: str = "raise"
    ) -> None:
        if replicates < 2:
            raise ValueError(f"replicates is {replicates}; an interval needs 2 or more")
        if people_entropy not in get_args(EntropyEstimator):
            raise ValueError(f"people_entropy is {people_entropy!r}; it can be one of {get_args(EntropyEstimator)}")
        if on_unknown not in ("raise", "drop"):
            raise ValueError(f"on_unknown is {on_unknown!r}; it can be 'raise' or 'drop'")
        self.replicates, self.people_entropy, self.on_unknown = replicates, people_entropy, on_unknown

    def run(self, data: Sketches, features: Features, readout: Readout, seed: int = 0) -> BenchmarkResult:
        """Score one layer of one model, or a model's recorded answers.

        Args:
            data: Images with people's answers; "na" as first guess is a missing answer and counts as wrong.
            features: Class scores for `ImageNetHead`, features for another readout, or answers (layer `RECORDED`).
            readout: What turns features into probabilities; recorded answers need none.
            seed: Global seed of resamples and folds.

        Raises:
            ValueError: When features, data and readout do not fit, or an answer is no label.
        """
        items = used_items(data, features)
        proba_NL, reading = _model(data, features, items, readout)
        people = self._people(data, items)
        study = Study(
            design=items.design,
            correct_N=(reading.answers.top1_N == items.target_N).astype(np.float64),
            proba_NL=proba_NL,
            entropy_N=reading.answers.entropy_N,
            people=people,
            estimator=self.people_entropy,
        )
        full = scores_under(study, np.ones((1, len(items))))
        n = {"items": len(items), "people": 0 if people is None else len(people.participants)}
        scores = score_values(full, crossed_bootstrap(study, self.replicates, seed), n)
        halves_N = _halves(people, len(items), len(data.labels), seed)
        scores["jsd_people"] = _mean_score(halves_N)
        values = item_values(study, halves_N)
        return BenchmarkResult(
            scores=scores,
            cells=cells_table(items, data.labels, study, values),
            items=items_table(data, features, items, reading, values),
            conditions=conditions_table(items, study, values),
            counts=_counts(data, features, items, reading, people),
            flags=tuple(dict.fromkeys([*data.flags, *_flags(data, features, items, reading, people)])),
            protocol={"preset": "default", "people_entropy": self.people_entropy, "interval": "basic"},
            details=self._details(data, study, reading),
        )

    def _details(self, data: Sketches, study: Study, reading: ModelReading) -> dict[str, Any]:
        return {
            "readout": dict(reading.certificate),
            "interval": {"kind": "basic", "level": 0.95, "replicates": self.replicates, "over": "images and people"},
            "conditions_unit": data.condition_unit,
            "condition_names": _condition_names(data),
            "chance": {"accuracy": 1 / len(data.labels), "error_consistency": 0.0},
            "accuracy_difference_squared": _squared_difference(study),
            "people": people_record(study),
        }

    def _people(self, data: Sketches, items: SevaItems) -> PeopleAnswers | None:
        if data.responses is None:
            return None
        ids = items.table["sketch_id"].astype(str).tolist()
        people = people_answers(data.responses, ids, data.labels, items.target_N, self.on_unknown)
        return people if people.participants else None


def _model(data: Sketches, features: Features, items: SevaItems, readout: Readout) -> tuple[np.ndarray, ModelReading]:
    """(N, L) distribution of the model's answers, and its reading."""
    if features.layer == RECORDED:
        return _recorded(items, len(data.labels), data.name)
    if isinstance(readout, ImageNetHead):
        proba_NL, fold_N = out_of_fold(items, readout.for_labels(data.labels), len(data.labels), None)
    else:
        group_N, _ = groups_for_folds(items, data, "stratified_group", asked=False)
        proba_NL, fold_N = out_of_fold(items, readout, len(data.labels), group_N)
    return proba_NL, reduced(proba_NL, fold_N, items.target_N, readout)


def _recorded(items: SevaItems, num_labels: int, name: str) -> tuple[np.ndarray, ModelReading]:
    proba_NL = items.f_ND.astype(np.float64)
    if proba_NL.shape[1] != num_labels:
        raise ValueError(f"the recorded answers are about {proba_NL.shape[1]} labels, {name} has {num_labels}")
    answered_N = proba_NL.sum(1) > 0
    answers = ModelAnswers.from_proba(proba_NL, answered_N)
    # One answer an item says nothing about the spread of answers.
    silent_N = np.full(len(items), np.nan)
    return proba_NL, ModelReading(
        answers=ModelAnswers(answers.top1_N, silent_N),
        probability_target_N=silent_N,
        fold_N=np.full(len(items), -1),
        certificate={"readout": "recorded answers"},
        converged=True,
    )


def _halves(people: PeopleAnswers | None, num_items: int, num_labels: int, seed: int) -> np.ndarray:
    if people is None or len(people.participants) < 2:
        return np.full(num_items, np.nan)
    return distance_between_halves(people.coded(), np.arange(num_items), num_items, num_labels, seed)


def _mean_score(value_N: np.ndarray) -> ScoreValue:
    known = value_N[np.isfinite(value_N)]
    return ScoreValue(float(known.mean()) if len(known) else None, n=len(known), unit="sqrt(nats)")


def _squared_difference(study: Study) -> float | None:
    """Mean over people and conditions of the squared difference of accuracies, as in Geirhos et al. (2021)."""
    if study.people is None:
        return None
    groups_TN, seen_PN = study.design.in_condition_TN, study.people.seen_PN
    with np.errstate(invalid="ignore"):
        n_TP = groups_TN @ seen_PN.T
        gap_TP = (groups_TN @ study.people.right_PN.T - groups_TN @ (seen_PN * study.correct_N).T) / n_TP
    return float(np.nanmean(gap_TP**2))


def _condition_names(data: Sketches) -> dict[str, float]:
    if "condition_name" not in data.table:
        return {}
    pairs = data.table[["condition_name", "condition"]].drop_duplicates()
    return {str(name): float(value) for name, value in zip(pairs["condition_name"], pairs["condition"], strict=True)}


def _counts(
    data: Sketches, features: Features, items: SevaItems, reading: ModelReading, people: PeopleAnswers | None
) -> dict[str, int]:
    counts: dict[str, Any] = {
        "items_total": len(data),
        "items_used": len(items),
        "items_failed": len(features.failed),
        "items_without_trial": len(data) - len(items) - len(features.failed),
        "concepts": items.design.num_concepts,
        "conditions": items.design.num_conditions,
        "cells": items.design.num_cells,
        "cells_empty": int((items.design.items_C == 0).sum()),
        "answers_missing": int((reading.answers.top1_N < 0).sum()),
    }
    if people is not None:
        counts |= {
            "participants": len(people.participants),
            "judgments": int((people.answer_PN != UNSEEN).sum()),
            "judgments_missing": int((people.answer_PN == MISSING).sum()),
            "judgments_repeated": people.repeated,
            **people.dropped,
        }
    return counts


def _flags(
    data: Sketches, features: Features, items: SevaItems, reading: ModelReading, people: PeopleAnswers | None
) -> list[str]:
    failed, empty = len(features.failed), int((items.design.items_C == 0).sum())
    absent, silent = len(data) - len(items) - failed, int((reading.answers.top1_N < 0).sum())
    told: dict[str, Any] = {
        "readout_not_converged": not reading.converged,
        f"images_failed:{failed}": failed,
        f"items_without_trial:{absent}": absent,
        f"answers_missing:{silent}": silent,
        f"empty_cells:{empty}": empty,
        "recorded_answers": features.layer == RECORDED,
        "no_people": people is None,
    }
    if people is not None:
        unjudged, missing = int((people.seen_PN.sum(0) == 0).sum()), int((people.answer_PN == MISSING).sum())
        common = people.seen_PN @ people.seen_PN.T
        few = len(common) > 1 and np.median(common[np.triu_indices(len(common), 1)]) < MIN_COMMON_ITEMS
        told |= {
            f"items_without_judgments:{unjudged}": unjudged,
            f"people_answers_missing:{missing}": missing,
            "one_participant": len(people.participants) == 1,
            "few_common_items": few,
        }
    return [flag for flag, holds in told.items() if holds]
