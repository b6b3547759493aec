"""Learning of novel objects: how people learn them trial by trial, and how near a network with an update rule comes.

python evaluate.py benchmark=object_learning dataset=novel_objects backbone=tf_efficientnet_lite0
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from humanlike.benchmarks.object_learning_conventions import CONVENTIONS, convention
from humanlike.benchmarks.object_learning_encoding import EncodedLayers, Encoding, encode
from humanlike.benchmarks.object_learning_one_shot import OneShotSide, one_shot_layer, one_shot_people
from humanlike.benchmarks.object_learning_people import (
    HighVariationPeople,
    high_variation_people,
    with_known_people,
)
from humanlike.benchmarks.object_learning_scores import LayerResult, layer_result
from humanlike.benchmarks.object_learning_sessions import ModelSessions, has_enough_images
from humanlike.benchmarks.object_learning_tables import Study, assembled
from humanlike.data.object_learning import HIGH_VARIATION, ObjectLearningData, SimulatedPeople
from humanlike.files import sha256_value, write_json
from humanlike.interfaces import Backbone, Learner
from humanlike.learners import PAPER_RULES, resolve_rule
from humanlike.stats.learning_resampling import SessionDraws, draw_sessions
from humanlike.types import BenchmarkResult

PAPER_RULE_NAMES = tuple(rule.name for rule in PAPER_RULES)
TABLES = 2
"""Of the tables that are kept of a finished layer: another number makes them anew."""
TRUTH = Encoding(layers=())
"""Simulated people see images in this way, whatever way the model is asked to (but for the size)."""


@dataclass(frozen=True)
class Measured:
    """A result with the layer whose tables it holds.

    Attributes:
        result: Scores and tables.
        layer: The reference layer.
        hashes: `weights`, `transform`, `data`, `features`.
        info: Facts about the extraction.
    """

    result: BenchmarkResult
    layer: str
    hashes: Mapping[str, str]
    info: Mapping[str, Any]


class ObjectLearningBenchmark:
    """MSE_n between learning curves of people and of simulated learners on a network's layers.

    All layers come from one pass over the images; every layer is simulated with every update rule, and scored under
    every convention. The run's own scores are those of one reference layer and rule, fixed beforehand; all others stand
    in the table `models`. What has been computed is kept, so that a killed run redoes only what is missing.

    Args:
        layers: Which layers; the reference layer is always among them.
        rules: Update rules: names of `humanlike.learners.RULES`; None for the paper's seven.
        rule: The reference rule, one of `rules`.
        convention: "paper", "v2" or "paper_text": whose learning curves, replicates and lapse rate are the run's.
        sessions: Simulated sessions of each subtask.
        replicates: Bootstrap replicates.
        alpha: Learning rate in [0, 1].
        projection: This and the next five: see `humanlike.benchmarks.object_learning_encoding.Encoding`.
        num_features: See there.
        transform: See there.
        size: See there.
        widest: See there.
        store: See there.
        learners: Name → learner of the user's own (`humanlike.interfaces.Learner`).
        device: None: compiled simulation on the CPU; "cuda": batched on a GPU.
        compat: Repeat a fault of the authors' current code in the one-shot experiment under `v2`: only the last session
            of each participant enters people's accuracy on catch trials.

    Raises:
        ValueError: On an unknown rule, convention or word, or a number out of range.
        TypeError: When a learner lacks a method.

    References:
        Lee and DiCarlo, "An empirical assay of visual object learning in humans and baseline image-computable models".

    Example:
        >>> ObjectLearningBenchmark(rules=["square", "hinge"]).rules
        ('square', 'hinge')
    """

    identifier = "object_learning"
    version = "1"
    bibtex = """@article{lee2023objectlearning,
  title   = {An empirical assay of visual object learning in humans and baseline image-computable models},
  author  = {Lee, Michael J. and DiCarlo, James J.},
  journal = {bioRxiv},
  year    = {2023},
  doi     = {10.1101/2022.12.31.522402}
}
@article{lee2023plasticity,
  title   = {How well do rudimentary plasticity rules predict adult visual object learning?},
  author  = {Lee, Michael J. and DiCarlo, James J.},
  journal = {PLOS Computational Biology},
  volume  = {19},
  number  = {12},
  pages   = {e1011713},
  year    = {2023},
  doi     = {10.1371/journal.pcbi.1011713}
}"""

    def __init__(
        self,
        layers: str | list[str] = "spread:6",
        rules: list[str] | None = None,
        rule: str = "square",
        convention: str = "paper",
        sessions: int = 500,
        replicates: int = 1000,
        alpha: float = 1.0,
        projection: str = "gaussian",
        num_features: int = 2048,
        transform: str = "whole",
        size: int = 224,
        widest: int | None = 65_536,
        store: str = "gram",
        learners: Mapping[str, Learner] | None = None,
        device: str | None = None,
        compat: bool = False,
    ) -> None:
        self.rules = tuple(dict.fromkeys(PAPER_RULE_NAMES if rules is None else rules))
        self.learners = dict(learners or {})
        for name in self.rules:
            resolve_rule(name)
        for name, learner in self.learners.items():
            if not isinstance(learner, Learner):
                raise TypeError(
                    f"learner {name!r} is a {type(learner).__name__}; a learner has the methods reset(seed), "
                    "respond(x_D) and give_feedback(reward)"
                )
            if name in self.rules:
                raise ValueError(
                    f"{name!r} is both a learner of your own and an update rule; call the learner otherwise"
                )
        if rule not in (*self.rules, *self.learners):
            raise ValueError(f"rule={rule!r} is not among the rules that are run: {', '.join(self.rules)}")
        for name, value in (("sessions", sessions), ("replicates", replicates)):
            if value < 2:
                raise ValueError(f"{name} is {value}; a variance needs 2 or more")
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha must lie in [0, 1], got {alpha}")
        self.convention = _convention_name(convention)
        self.rule, self.sessions, self.replicates, self.alpha, self.device = rule, sessions, replicates, alpha, device
        self.compat = compat
        self.encoding = Encoding(layers, projection, num_features, transform, size, widest, store)

    def run_backbone(
        self,
        backbone: Backbone,
        data: ObjectLearningData,
        *,
        layer: str | None = None,
        seed: int = 0,
        cache_dir: str | Path | None = None,
        trainer: Any = None,
        extraction: Mapping[str, Any] | None = None,
        people_backbone: Backbone | None = None,
    ) -> Measured | None:
        """Score layers × rules of one network.

        Args:
            backbone: The frozen network.
            data: The experiment.
            layer: The reference layer; the backbone's default one if None.
            seed: Global seed of projections, sessions and resamples.
            cache_dir: Where inner products and finished layers are kept; a temporary folder if None.
            trainer: Lightning trainer of the extraction.
            extraction: Keywords of `extract_features`.
            people_backbone: The network that simulated people see with, where it is not `backbone`.

        Returns:
            The result; None in every process but the first.

        Raises:
            TypeError: When `data` is no experiment of object learning.
            ValueError: When data, layers or rules do not fit each other.
        """
        if not isinstance(data, ObjectLearningData):
            raise TypeError(
                f"benchmark=object_learning needs an experiment of object learning, got {type(data).__name__}; use "
                "dataset=novel_objects, for example"
            )
        if not has_enough_images(data, CONVENTIONS[self.convention].simulation.trial_order):
            raise ValueError(
                f"{data.name}: under convention={self.convention} all {data.num_trials} trials of a session may show "
                "one object, no image twice, and some objects have fewer; use convention=paper"
            )
        reference = layer or backbone.default_layer
        with TemporaryDirectory() as temporary:
            root = Path(cache_dir if cache_dir is not None else temporary)
            options: dict[str, Any] = {"cache_dir": root, "trainer": trainer, "extraction": extraction}
            shared = self._sees_as_people(backbone, data, seed)
            always = (reference, *((data.people.layer,) if shared else ()))  # type: ignore[union-attr]
            encoded = encode(backbone, data, self.encoding, always=always, seed=seed, **options)
            truth = encoded if shared else _truth(backbone, people_backbone, data, self.encoding.size, options)
            if encoded is None:
                return None
            return self._measured(encoded, truth, data, reference, seed, root)

    def _sees_as_people(self, backbone: Backbone, data: ObjectLearningData, seed: int) -> bool:
        """Whether the pass over the images that scores the model also gives what simulated people see."""
        people = data.people
        return (
            isinstance(people, SimulatedPeople)
            and people.backbone == backbone.name
            and people.seed == seed
            and replace(self.encoding, layers=(), widest=None, store=TRUTH.store)
            == replace(TRUTH, widest=None, size=self.encoding.size)
        )

    def _measured(
        self,
        encoded: EncodedLayers,
        truth: EncodedLayers | None,
        data: ObjectLearningData,
        reference: str,
        seed: int,
        root: Path,
    ) -> Measured:
        recipe = data.people if isinstance(data.people, SimulatedPeople) else None
        data = _resolved(data, truth)
        sessions = ModelSessions(data, self.sessions, seed, self.rules, self.learners, self.alpha, self.device)
        asked = (data, self.sessions, self.replicates, seed)
        people: HighVariationPeople | OneShotSide | None
        if data.experiment == HIGH_VARIATION:
            people = high_variation_people(*asked)
        else:
            people = one_shot_people(*asked, compat=self.compat)
        results = self._layers(encoded, sessions, people, data, seed, root)
        record = {
            "preset": self.convention,
            "overridden": ["compat"] if self.compat else [],
            "convention": self.convention,
            "compat": self.compat,
            "conventions": {name: c.record() for name, c in CONVENTIONS.items()},
            "encoding": self.encoding.record(),
            "sessions": self.sessions,
            "replicates": self.replicates,
            "alpha": self.alpha,
            "rules": list(sessions.names),
            "experiment": data.experiment,
        }
        study = Study(data, sessions, people, encoded, reference, self.rule, self.convention, record, recipe)
        result = assembled(study, results)
        digest = None if people is None else people.digest
        hashes = {**encoded.hashes, "data": sha256_value([encoded.hashes["data"], digest])}
        return Measured(result, reference, hashes, encoded.info)

    def _layers(
        self,
        encoded: EncodedLayers,
        sessions: ModelSessions,
        people: HighVariationPeople | OneShotSide | None,
        data: ObjectLearningData,
        seed: int,
        root: Path,
    ) -> dict[str, LayerResult]:
        """Layer → result; finished ones are read, others are computed and kept."""
        facts = {
            "version": self.version,
            "tables": TABLES,
            "features": encoded.store.key,
            "people": None if people is None else people.digest,
            "subtasks": data.subtask_names,
            "rules": [_rule_record(name) for name in self.rules],
            "conventions": {name: c.record() for name, c in CONVENTIONS.items()},
            "settings": [self.convention, self.sessions, self.replicates, self.alpha, seed],
        }
        draws = _model_draws(len(data.subtasks), self.sessions, self.replicates, seed) if people is not None else None
        results: dict[str, LayerResult] = {}
        for layer in encoded.layers:
            path = root / "object_learning" / f"{sha256_value({**facts, 'layer': layer})[:32]}.json"
            kept = None if self.learners else _read(path)  # a learner of the user's own may have changed
            if kept is None:
                gram = encoded.read(layer)
                try:
                    if isinstance(people, OneShotSide) or data.experiment != HIGH_VARIATION:
                        side = people if isinstance(people, OneShotSide) else None
                        kept = one_shot_layer(gram, sessions, side, self.convention)
                    else:
                        kept = layer_result(gram, sessions, people, draws, self.convention)
                except ValueError as error:
                    raise ValueError(f"{encoded.backbone}, layer {layer}: {error} (benchmark.layers)") from error
                write_json(path, kept.to_json())
            results[layer] = kept
        return results


@functools.lru_cache(maxsize=1)
def _model_draws(subtasks: int, sessions: int, replicates: int, seed: int) -> SessionDraws:
    """How often a model's sessions are drawn in the bootstrap: the same for all models, drawn once in a process."""
    return draw_sessions(np.full(subtasks, sessions), replicates, seed, "model")


def _read(path: Path) -> LayerResult | None:
    try:
        return LayerResult.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError):
        return None


def _convention_name(name: str) -> str:
    return convention(name).name


def _rule_record(name: str) -> dict[str, Any]:
    return {k: v for k, v in asdict(resolve_rule(name)).items() if isinstance(v, str | int | float)}


def _truth(
    backbone: Backbone,
    people_backbone: Backbone | None,
    data: ObjectLearningData,
    size: int,
    options: Mapping[str, Any],
) -> EncodedLayers | None:
    """What simulated people see; None where people are not simulated."""
    people = data.people
    if not isinstance(people, SimulatedPeople):
        return None
    seeing = backbone if people.backbone == backbone.name else people_backbone
    if seeing is None or seeing.name != people.backbone:
        raise ValueError(
            f"{data.name}: people are simulated with the network {people.backbone!r}; hand it on as people_backbone"
        )
    return encode(seeing, data, replace(TRUTH, size=size), always=[people.layer], seed=people.seed, **options)


def _resolved(data: ObjectLearningData, truth: EncodedLayers | None) -> ObjectLearningData:
    if truth is None or not isinstance(data.people, SimulatedPeople):
        return data
    grams = truth.read(data.people.layer).calibrated(CONVENTIONS["paper"].simulation.norm_quantile)
    return with_known_people(data, grams.__getitem__)
