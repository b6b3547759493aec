"""SEVA by layer: alignment with people along the depth of a network, and the best layer chosen without looking.

python evaluate.py benchmark=seva_layers benchmark.layers=spread:8
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from humanlike.benchmarks.seva import SevaBenchmark, SevaStudy
from humanlike.benchmarks.seva_answers import ModelReading, read_out
from humanlike.benchmarks.seva_comparison import Side
from humanlike.benchmarks.seva_items import SevaItems, used_items
from humanlike.benchmarks.seva_layer_tables import (
    LayerChoice,
    choice_record,
    choice_score,
    layer_facts,
    layer_rows,
    top1_columns,
)
from humanlike.benchmarks.seva_scores import Report, add_alignment_scores, add_model_scores
from humanlike.interfaces import Readout
from humanlike.stats import METRICS, alignment_r2
from humanlike.stats.crossed import Resample
from humanlike.stats.nested_choice import alignment_within_folds, concept_folds, nested_choice
from humanlike.types import BenchmarkResult, Features, ScoreValue, Sketches


@dataclass(frozen=True)
class _Layer:
    """One layer, read out and compared."""

    reading: ModelReading
    side: Side
    num_features: int
    scores: Mapping[str, ScoreValue]


class SevaLayersBenchmark(SevaBenchmark):
    """SEVA on many layers of one network.

    The result is that of the reference layer, named before anything is measured, with every layer's scores beside it
    (`details["layers"]`) and, for each metric, the alignment of the best layer chosen on other concepts than it is
    measured on (scores `nested_alignment_*`, choices in `details["layer_choice"]`). Such a score is a mean of
    alignments within folds of the concepts; compare it with those of fixed layers within the same folds, which stand
    beside the choices, not with the alignment over all concepts. The best layer on all concepts is recorded as what
    it is, an optimistic number. All readouts share folds, all layers share people's side.

    Args:
        layers: Which layers; see `humanlike.backbones.layer_selection.select_layers`. The reference layer is always
            among them.
        pool: What is done to maps and tokens; see `humanlike.backbones.reduction.Reduction`.
        max_features: Wider layers are projected to so many features; None: never.
        choice_folds: Folds of the concepts; the layer is chosen on all but one and measured on that one.
        choice_repeats: How often the concepts are split anew.
        protocol: This and the rest: see `SevaBenchmark`.
        replicates: See there.
        splits: See there.
        interval: See there.
        metric: See there.
        on_unknown: See there.
        resample: See there.

    Raises:
        ValueError: On fewer than 2 folds or 1 repeat, and as `SevaBenchmark`.
    """

    identifier = "seva_layers"
    version = "1"

    def __init__(
        self,
        layers: str | list[str] = "spread:8",
        pool: str | None = "average",
        max_features: int | None = 4096,
        choice_folds: int = 5,
        choice_repeats: int = 5,
        protocol: str = "corrected",
        replicates: int = 1000,
        splits: int = 200,
        interval: str | None = None,
        metric: Mapping[str, Any] | None = None,
        on_unknown: str = "raise",
        resample: Resample = "images",
    ) -> None:
        super().__init__(protocol, replicates, splits, interval, metric, on_unknown, resample)
        concept_folds(2, choice_folds, choice_repeats, 0)  # checks both
        self.layers, self.choice_folds, self.choice_repeats = layers, choice_folds, choice_repeats
        self.reduction: Mapping[str, Any] = {"pool": pool, "max_features": max_features}

    def run(self, data: Sketches, features: Features, readout: Readout, seed: int = 0) -> BenchmarkResult:
        """The profile of a single layer; see `run_layers`."""
        return self.run_layers(data, {features.layer: features}, {features.layer: 1.0}, features.layer, readout, seed)

    def run_layers(
        self,
        data: Sketches,
        features: Mapping[str, Features],
        depths: Mapping[str, float],
        reference: str,
        readout: Readout,
        seed: int = 0,
    ) -> BenchmarkResult:
        """Score many layers of one model.

        Args:
            data: Sketches, with people's answers and a semantic space where there are any.
            features: Layer → features of the items that could be read, in depth order. Read layer by layer, so that a
                mapping which loads them when asked keeps one in memory at a time.
            depths: Layer → relative depth in (0, 1].
            reference: The layer whose tables and scores are the result's, fixed beforehand.
            readout: Classifier; every layer gets a fresh copy.
            seed: Global seed.

        Raises:
            ValueError: As `SevaBenchmark.run`; also when layers differ in their items, or `reference` is not among
                them.
        """
        if reference not in features:
            raise ValueError(f"the reference layer {reference!r} is not among the layers {', '.join(features)}")
        part, whole = self._scored_part(data), features[reference]
        data, first = part.data, part.features(whole)
        items = used_items(data, first)
        study = self._study(data, items, seed)
        known = {reference: self._read_layer(data, first, items, study, part.readout(readout, whole))}
        for layer in features:
            if layer != reference:
                whole = features[layer]
                own = part.features(whole)
                same = _same_items(data, own, items)
                known[layer] = self._read_layer(data, own, same, study, part.readout(readout, whole))
        own_reading = known[reference]
        result = self._result(data, first, items, study, own_reading.reading, own_reading.side)
        known = {layer: known[layer] for layer in features}
        return self._with_layers(result, items, study, known, depths, reference, seed)

    def _read_layer(
        self, data: Sketches, features: Features, items: SevaItems, study: SevaStudy, readout: Readout
    ) -> _Layer:
        reading = read_out(items, copy.deepcopy(readout), len(data.labels), study.group_N)
        side, report = self._model_side(items, reading, study), Report(details={"interval": {}})
        add_model_scores(report, study.estimator, side)
        if study.people is not None:
            add_alignment_scores(report, study.estimator, study.people, side)
        return _Layer(reading, side, features.f_ND.shape[1], report.scores)

    def _with_layers(
        self,
        result: BenchmarkResult,
        items: SevaItems,
        study: SevaStudy,
        known: Mapping[str, _Layer],
        depths: Mapping[str, float],
        reference: str,
        seed: int,
    ) -> BenchmarkResult:
        """The reference layer's result with the profile and the nested choices."""
        choices = {} if study.people is None else self._choices(study, [k.side for k in known.values()], seed)
        answers = top1_columns({layer: k.reading for layer, k in known.items()}, items, len(result.items))
        scores = {f"nested_alignment_{m}": choice_score(choices.get(m)) for m in METRICS}
        unread = [layer for layer, k in known.items() if not k.reading.converged]
        flags = [*result.flags, f"layer_fixed_beforehand:{reference}"]
        if any(c.folds > 1 for c in choices.values()):
            flags.append(f"layer_nested_over_concepts:{next(iter(choices.values())).folds}")
        elif study.people is not None:
            flags.append("layer_choice_undefined")
        if unread:
            flags.append(f"layers_not_converged:{len(unread)}")
        return replace(
            result,
            scores={**result.scores, **scores},
            items=result.items.assign(**answers),
            counts={**result.counts, "layers": len(known)},
            flags=tuple(flags),
            details={
                **result.details,
                "layers": layer_rows({k: v.scores for k, v in known.items()}, depths, choices),
                "layer_facts": layer_facts({k: (v.num_features, v.reading) for k, v in known.items()}, depths),
                "layer_choice": {m: choice_record(c, list(known), depths) for m, c in choices.items()},
            },
        )

    def _choices(self, study: SevaStudy, sides: Sequence[Side], seed: int) -> dict[str, LayerChoice]:
        """Metric → nested choice of a layer, where both sides have the metric at all."""
        assert study.people is not None
        estimator, people = study.estimator, study.people.side
        design = estimator.design
        fold_RK = concept_folds(design.num_concepts, self.choice_folds, self.choice_repeats, seed)
        fold_RC = np.repeat(fold_RK, design.num_conditions, axis=1)
        condition_C = design.condition_C
        found = {}
        for metric in METRICS:
            full = nested_choice(people.full[metric], [s.full[metric] for s in sides], condition_C, fold_RC)
            cells = [(people.full[metric], s.full[metric], condition_C) for s in sides]
            everything_M = np.array([alignment_r2(*cell)[0] for cell in cells])
            within_M = np.array([alignment_within_folds(*cell, fold_RC)[0] for cell in cells])
            estimate = estimator.estimate(
                lambda people_BC, *layers_BC: nested_choice(people_BC, layers_BC, condition_C, fold_RC).value_B,
                (people, *sides),
                metric,
            )
            judged = int(np.isfinite(people.full[metric]).sum())
            found[metric] = LayerChoice(full, everything_M, within_M, estimate, int(fold_RK.max()) + 1, judged)
        return found


def _same_items(data: Sketches, features: Features, items: SevaItems) -> SevaItems:
    own = used_items(data, features)
    if not np.array_equal(own.rows_N, items.rows_N):
        raise ValueError(
            f"{data.name}: layer {features.layer!r} has {len(own)} items, another layer {len(items)}, or other ones; "
            "layers are compared on the same items, so extract them together"
        )
    return own
