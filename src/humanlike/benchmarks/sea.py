"""SEA: which sketches stay recognisable with few of the elements that people expect, condition by condition.

python evaluate.py benchmark=sea dataset=doodles backbone=tf_efficientnet_lite0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch

from humanlike.backbones.features import extract_features
from humanlike.backbones.layers import class_score_layer
from humanlike.benchmarks.sea_calibration import JudgeCalibration, without_controls
from humanlike.benchmarks.sea_counts import about_sketches, counts, flags
from humanlike.benchmarks.sea_scores import presence_scores, score_values
from humanlike.benchmarks.sea_sketches import JudgedSketches, judged_sketches
from humanlike.benchmarks.sea_tables import (
    cells_table,
    concepts_table,
    conditions_table,
    items_table,
    judgments_table,
    notes,
)
from humanlike.benchmarks.seva_answers import read_out
from humanlike.benchmarks.seva_items import groups_for_folds, used_items
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.extraction import ElementExtractor
from humanlike.elements.extraction_lists import extracted_lists
from humanlike.elements.lists import ElementLists, known_senses, shipped
from humanlike.elements.presence import Presence, PresenceJudge
from humanlike.interfaces import Backbone, Readout
from humanlike.metrics.functional.sea import SEAParameters
from humanlike.stats.sea_sensitivity import sea_sensitivity
from humanlike.types import BenchmarkResult, Features, Sketches

OWN, SHIPPED = "annotation", "shipped"
JudgeMaker = Callable[..., PresenceJudge]


@dataclass(frozen=True)
class Measured:
    """What a run of the benchmark gives.

    Attributes:
        result: Scores and tables.
        layer: The layer that recognition is read from.
        hashes: `weights`, `transform`, `data`, `features` hex digests.
        info: Facts about the extraction.
    """

    result: BenchmarkResult
    layer: str
    hashes: Mapping[str, str]
    info: Mapping[str, Any]


class SeaBenchmark:
    """Sketch abstraction efficiency of sketches, seen by a model that recognises and a judge that sees elements.

    P is the out-of-fold probability of the sketch's concept by the readout on the backbone (or a zero-shot
    probability), v = V/E the share of its concept's elements that the judge sees. Every sketch is scored by itself;
    means are over sketches. A sketch that the judge could not judge is missing, never V = 0.

    Args:
        judge: Who says which elements a sketch shows: a `PresenceJudge`, or what makes one from `backbone=` (in a
            configuration `_partial_: true`). None: the data set's own annotation.
        elements: "annotation": the elements that the data set is annotated for; "shipped": the project's lists; a YAML
            file with lists; or a language model that is asked for them. None: the annotation where there is one, else
            the shipped lists.
        senses: Label → id of the concept that it means (`mouse: mouse1`), for labels of several things and labels under
            another name in the lists; added to what is known of the data set.
        metric: Hyperparameters of SEA by name; None or left out: the published ones (see `SEAParameters`).
        min_judged: Share in (0, 1] of a sketch's elements that must have a judgment.
        replicates: Bootstrap replicates over source images within concepts.
        sensitivity_draws: Joint draws of the hyperparameters, a power of two, for the tables of sensitivity (see
            `humanlike.stats.sea_sensitivity`); 0: no such tables.
        calibration: How the judge's errors are estimated and taken off v and SEA, the settings of `JudgeCalibration` by
            name; None: not at all.

    Raises:
        ValueError: A number is out of range, or a hyperparameter is unknown.
        FileNotFoundError: There is no such file of lists.

    References:
        SEA (CVPR 2026), "Sketch abstraction efficiency". Deviates: see DEVIATIONS.md, "SEA".

    Example:
        >>> SeaBenchmark(metric={"delta": 1e-7}).parameters.delta
        1e-07
    """

    identifier = "sea"
    version = "1"
    bibtex = """@inproceedings{sea2026,
  title     = {Sketch abstraction efficiency},
  booktitle = {IEEE/CVF Conference on Computer Vision and Pattern Recognition},
  year      = {2026}
}"""
    uses_readout = True

    def __init__(
        self,
        judge: PresenceJudge | JudgeMaker | None = None,
        elements: str | Path | ElementExtractor | None = None,
        senses: Mapping[str, str] | None = None,
        metric: Mapping[str, Any] | None = None,
        min_judged: float = 1.0,
        replicates: int = 1000,
        sensitivity_draws: int = 128,
        calibration: Mapping[str, Any] | JudgeCalibration | None = None,
    ) -> None:
        if replicates < 2:
            raise ValueError(f"replicates is {replicates}; an interval needs 2 or more")
        if not 0 < min_judged <= 1:
            raise ValueError(f"min_judged must lie in (0, 1], got {min_judged}")
        if sensitivity_draws and (sensitivity_draws < 2 or sensitivity_draws & (sensitivity_draws - 1)):
            raise ValueError(f"sensitivity_draws must be a power of two, or 0 for none, got {sensitivity_draws}")
        self.parameters = _parameters(metric)
        self.judge = AnnotationJudge() if judge is None else judge
        self.elements, self.senses = elements, dict(senses or {})
        self.calibration = JudgeCalibration.of(calibration)
        self.min_judged, self.replicates, self.sensitivity_draws = min_judged, replicates, sensitivity_draws

    def run_backbone(
        self,
        backbone: Backbone,
        data: Sketches,
        *,
        layer: str | None = None,
        seed: int = 0,
        cache_dir: str | Path | None = None,
        trainer: Any = None,
        extraction: Mapping[str, Any] | None = None,
        readout: Readout,
    ) -> Measured | None:
        """Score the sketches of a data set.

        Args:
            backbone: The frozen network that recognition is read from.
            data: Sketches; people's answers are not looked at.
            layer: Layer for recognition; the backbone's default one, or its class scores where the readout reads those.
            seed: Global seed of folds and resamples.
            cache_dir: Where features are kept; a temporary folder if None.
            trainer: Lightning trainer of the extraction.
            extraction: Keywords of `extract_features`.
            readout: What turns features into probabilities.

        Returns:
            The result; None in every process but the first.

        Raises:
            TypeError: `data` are no sketches.
            ValueError: A concept has no list of elements, or data, readout and judge do not fit each other.
        """
        if not isinstance(data, Sketches):
            raise TypeError(
                f"benchmark=sea needs sketches, got {type(data).__name__}; use dataset=doodles, for example"
            )
        elements = self.element_lists(data)
        judge = self.judge if isinstance(self.judge, PresenceJudge) else self.judge(backbone=backbone)
        options = {**(extraction or {}), "trainer": trainer, "cache_dir": cache_dir}
        read = class_score_layer(backbone) if getattr(readout, "reads_class_scores", False) else None
        layer = layer or read or backbone.default_layer
        seen = layer_seen(judge, backbone)
        found = extract_features(backbone, data, [layer, seen] if seen not in (None, layer) else [layer], **options)
        if trainer is not None and not trainer.is_global_zero:
            return None
        features = found[layer]
        presence, controls = self.judgments(judge, data, elements, None if seen is None else found[seen])
        result = self.scored(data, features, readout, presence, elements, seed, controls)
        return Measured(result, layer, features.hashes, features.info)

    def judgments(
        self, judge: PresenceJudge, data: Sketches, elements: ElementLists, features: Features | None
    ) -> tuple[Presence, Presence | None]:
        """What a judge says of the elements, and of absent-element controls where a calibration asks them.

        Args:
            judge: The judge.
            data: The sketches.
            elements: Their lists.
            features: Features for judges that read them.

        Returns:
            The judgments; and those of controls, None where none were asked.
        """
        asked, controls = (elements, {}) if self.calibration is None else self.calibration.questions(judge, elements)
        with one_thread():
            presence = judge.judge(data, asked, features)
        return without_controls(presence, data, controls) if controls else (presence, None)

    def element_lists(self, data: Sketches) -> ElementLists:
        """The elements of every concept that occurs, keyed by label.

        Raises:
            ValueError: Concepts without a list, each named with the way out.
            EndpointError: A language model is asked, and cannot be.
        """
        if isinstance(self.elements, ElementExtractor):
            return extracted_lists(self.elements, data, self.senses)
        wanted = OWN if self.elements is None and data.elements is not None else str(self.elements or SHIPPED)
        occurring = sorted(set(data.table["concept"]))
        senses = {**known_senses(data.name), **self.senses}
        if wanted == OWN:
            own = ElementLists.from_annotation(data)
            absent = [concept for concept in occurring if concept not in own.elements]
            return own.completed_by(shipped().for_labels(absent, senses)) if absent else own
        lists = shipped() if wanted == SHIPPED else ElementLists.from_yaml(wanted)
        return lists.for_labels(occurring, senses)

    def scored(
        self,
        data: Sketches,
        features: Features,
        readout: Readout,
        presence: Presence,
        elements: ElementLists,
        seed: int = 0,
        controls: Presence | None = None,
    ) -> BenchmarkResult:
        """Everything that follows from features and judgments; nothing is written.

        Args:
            data: The sketches.
            features: Features of the items that could be read.
            readout: What turns them into probabilities.
            presence: Judgments.
            elements: The lists that were judged.
            seed: Global seed.
            controls: Judgments of absent-element controls; None: none were asked.
        """
        items = used_items(data, features)
        group_N, fold_flags = groups_for_folds(items, data, "stratified_group", asked=False)
        reading = read_out(items, readout, len(data.labels), group_N)
        sketches = judged_sketches(items, reading.probability_target_N, presence, self.parameters, self.min_judged)
        truth = _annotated(data, elements, presence)
        correct_N = reading.answers.top1_N == items.target_N
        scores = score_values(sketches, correct_N, self.replicates, seed)
        judged, judge_facts = presence_scores(presence, truth, data, sketches, self.replicates, seed)
        conditions = conditions_table(sketches, correct_N)
        tables = {
            "concepts": concepts_table(sketches, data.labels, correct_N, elements),
            "judgments": judgments_table(presence, truth),
        }
        if self.sensitivity_draws and sketches.scored_N.sum() > 1:
            tables |= _sensitivity(sketches, self.sensitivity_draws, seed)
        result = BenchmarkResult(
            scores={**scores, **judged},
            cells=cells_table(sketches, data.labels, correct_N),
            items=items_table(data, features, sketches, reading),
            conditions=conditions,
            counts=counts(data, features, sketches, presence),
            flags=tuple(
                dict.fromkeys([*about_sketches(data), *fold_flags, *flags(features, sketches, reading, presence)])
            ),
            protocol={"preset": _preset(self.parameters), **asdict(self.parameters), "min_judged": self.min_judged},
            details={
                "readout": dict(reading.certificate),
                "elements": {"source": elements.source, "concepts": len(elements)},
                "judge": {"source": presence.source, "threshold": presence.threshold, **presence.facts, **judge_facts},
                "interval": {"kind": "basic", "level": 0.95, "replicates": self.replicates, "over": "images"},
                "conditions_unit": data.condition_unit,
                "notes": notes(conditions, data.condition_unit),
                "chance": {"accuracy": 1 / len(data.labels)},
            },
            tables=tables,
        )
        if self.calibration is None:
            return result
        known = self.calibration.truth(data, elements)
        return self.calibration.applied(result, sketches, presence, known, controls, self.replicates, seed)


@contextmanager
def one_thread() -> Iterator[None]:
    """For thousands of small products: on a machine in use, threads wait for each other longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def layer_seen(judge: PresenceJudge, backbone: Backbone) -> str | None:
    """The layer of this backbone that a judge reads, so that one forward pass serves recognition and judge, or None.

    Args:
        judge: The judge.
        backbone: The run's network.
    """
    if getattr(judge, "backbone", None) is not backbone:
        return None  # it reads no network, or looks through one of its own
    return getattr(judge, "layer", None) or backbone.default_layer


def _parameters(metric: Mapping[str, Any] | None) -> SEAParameters:
    given = {name: value for name, value in (metric or {}).items() if value is not None}
    unknown = sorted(set(given) - set(asdict(SEAParameters())))
    if unknown:
        raise ValueError(f"SEA has no hyperparameter {unknown[0]!r}; it has {', '.join(asdict(SEAParameters()))}")
    return SEAParameters(**given)


def _preset(parameters: SEAParameters) -> Literal["published", "own"]:
    return "published" if replace(parameters, delta=SEAParameters().delta) == SEAParameters() else "own"


def _sensitivity(sketches: JudgedSketches, draws: int, seed: int) -> dict[str, pd.DataFrame]:
    """Does the ranking of conditions and of sketches hold under other hyperparameters?"""
    known_N = sketches.scored_N
    with one_thread():
        found = sea_sensitivity(
            sketches.value_QN["recognition"][known_N],
            sketches.value_QN["visual_ratio"][known_N],
            sketches.items.table["condition"].to_numpy()[known_N],
            draws=draws,
            seed=seed,
            **asdict(sketches.parameters),
        )
    return {
        "sensitivity_one": found.one_at_a_time,
        "sensitivity_joint": found.joint,
        "sensitivity_pairs": found.pairs,
        "sensitivity_importance": found.importance,
    }


def _annotated(data: Sketches, elements: ElementLists, presence: Presence) -> Presence | None:
    """What people (or the program that drew) said about the very elements that were judged, if anybody did."""
    if data.elements is None:
        return None
    truth = AnnotationJudge().judge(data, elements)
    return truth if truth.coverage > 0 and truth.source != presence.source else None
