"""From objects to a score: data → features → benchmark → Score. No configuration in here."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from humanlike.backbones.features import extract_features, layer_features
from humanlike.backbones.layer_selection import select_layers
from humanlike.backbones.layers import class_score_layer, layer_shapes
from humanlike.backbones.precision import precision_flags
from humanlike.backbones.recorded import RecordedAnswers
from humanlike.entry.provenance import TABLE, features_of, further_hashes, provenance_table, stored_grams
from humanlike.interfaces import Backbone, Benchmark, LabelledReadout, Readout
from humanlike.reports.run_folder import digest
from humanlike.types import BenchmarkResult, Features, Score, Sketches

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from humanlike.data.object_learning import ObjectLearningData

VERSIONS_OF = (
    "humanlike",
    "torch",
    "torchvision",
    "timm",
    "open_clip_torch",
    "pytorch-lightning",
    "torchmetrics",
    "hydra-core",
    "numpy",
    "scipy",
    "pandas",
    "pillow",
    "numba",
    "pyarrow",
    "resvg-py",
)


@runtime_checkable
class LayersBenchmark(Benchmark, Protocol):
    """A benchmark on many layers at once; see `humanlike.benchmarks.seva_layers`.

    Attributes:
        layers: Which layers; see `select_layers`.
        reduction: Keywords of `extract_features` that say how layers are made small.
    """

    layers: str | list[str]
    reduction: Mapping[str, Any]

    def run_layers(
        self,
        data: Sketches,
        features: Mapping[str, Features],
        depths: Mapping[str, float],
        reference: str,
        readout: Readout,
        seed: int = 0,
    ) -> BenchmarkResult:
        """Compute everything; features are read layer by layer."""


class MeasuredBackbone(Protocol):
    """What a `BackboneBenchmark` gives: a result, the layer that it is of, and facts about the extraction."""

    @property
    def result(self) -> BenchmarkResult:
        """Scores and tables."""

    @property
    def layer(self) -> str:
        """The layer whose tables the result holds."""

    @property
    def hashes(self) -> Mapping[str, str]:
        """`weights`, `transform`, `data`, `features` hex digests."""

    @property
    def info(self) -> Mapping[str, Any]:
        """Facts about the extraction."""


@runtime_checkable
class BackboneBenchmark(Protocol):
    """A benchmark that asks the network itself, in its own way; see `humanlike.benchmarks.object_learning` and `sea`.

    One with an attribute `uses_readout` that is true is given the keyword `readout` too.
    """

    identifier: str
    version: str
    bibtex: str

    def run_backbone(
        self,
        backbone: Backbone,
        data: Any,
        *,
        layer: str | None = None,
        seed: int = 0,
        cache_dir: Path | None = None,
        trainer: Any = None,
        extraction: Mapping[str, Any] | None = None,
        **further: Any,
    ) -> MeasuredBackbone | None:
        """Compute everything; None in every process but the first."""


def run_benchmark(
    backbone: Backbone | RecordedAnswers,
    data: Sketches | ObjectLearningData,
    benchmark: Benchmark | BackboneBenchmark,
    readout: Readout,
    *,
    layer: str | None = None,
    trainer: pl.Trainer | None = None,
    cache_dir: Path | None = None,
    seed: int = 0,
    extraction: Mapping[str, Any] | None = None,
    further: Mapping[str, Any] | None = None,
) -> Score | None:
    """Score a backbone on a benchmark, on one of its layers or on as many as the benchmark asks for.

    Args:
        backbone: The frozen network, or a model's recorded answers.
        data: The data set with people's responses, if it has any.
        benchmark: What is measured.
        readout: Fresh readout; it is fitted here.
        layer: Layer to read out; None = the backbone's default, or its class scores where the readout reads those. In
            a profile of many layers, the one whose tables are the result's.
        trainer: Lightning trainer for the extraction; None = one CPU process.
        cache_dir: Where features are kept; None = a temporary folder.
        seed: Global seed of folds, bootstrap and splits.
        extraction: Further keywords of `extract_features`.
        further: Further keywords of a `BackboneBenchmark`.

    Returns:
        The score, or None in every process but the first of a multi-process run.
    """
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    options = {"trainer": trainer, "cache_dir": cache_dir, **(extraction or {})}
    own = {"trainer": trainer, "cache_dir": cache_dir, "extraction": extraction, **(further or {})}
    if (
        isinstance(data, Sketches)
        and isinstance(readout, LabelledReadout)
        and not isinstance(backbone, RecordedAnswers)
    ):
        readout = readout.for_labels(data.labels)
    if getattr(benchmark, "uses_readout", False):
        own["readout"] = readout
    found: tuple[BenchmarkResult, Features | MeasuredBackbone] | None
    if isinstance(benchmark, BackboneBenchmark):
        found = _whole_backbone(backbone, data, benchmark, layer, seed, own)
    elif not isinstance(data, Sketches):
        raise ValueError(
            f"{data.name} is an experiment of object learning, but benchmark={benchmark.identifier} needs sketches or "
            "labelled images; use benchmark=object_learning"
        )
    else:
        measure = _layer_profile if isinstance(benchmark, LayersBenchmark) else _one_layer
        found = measure(backbone, data, benchmark, readout, layer, seed, options)
    if found is None:
        return None
    result, features = found
    about = _about(data) if isinstance(data, Sketches) else _about_objects(data)
    details = {**result.details, "bibtex": benchmark.bibtex, "extraction": dict(features.info), "dataset": about}
    if grams := stored_grams(cache_dir, features.hashes.get("features")):
        details["stored_grams"] = grams
    f_ND, rows = features_of(features, cache_dir)
    result = replace(
        result,
        details=details,
        flags=(*result.flags, *precision_flags(features.info)),
        tables={**result.tables, TABLE: provenance_table(data, f_ND, rows)},
    )
    return Score(
        benchmark=benchmark.identifier,
        benchmark_version=benchmark.version,
        dataset=data.name,
        backbone=backbone.name,
        layer=features.layer,
        result=result,
        seeds={"seed": seed},
        hashes={**features.hashes, **further_hashes(data)},
        versions=versions(),
        started=started,
        seconds=time.perf_counter() - began,
        digest=digest(result.items, result.counts),
    )


def _whole_backbone(
    backbone: Backbone | RecordedAnswers,
    data: Sketches | ObjectLearningData,
    benchmark: BackboneBenchmark,
    layer: str | None,
    seed: int,
    options: Mapping[str, Any],
) -> tuple[BenchmarkResult, MeasuredBackbone] | None:
    """The result and facts of a benchmark that asks the network itself; None in every process but the first."""
    if isinstance(backbone, RecordedAnswers):
        raise ValueError(f"{benchmark.identifier} needs a network, but recorded answers are no network")
    found = benchmark.run_backbone(backbone, data, layer=layer, seed=seed, **options)
    return None if found is None else (found.result, found)


def _one_layer(
    backbone: Backbone | RecordedAnswers,
    data: Sketches,
    benchmark: Benchmark,
    readout: Readout,
    layer: str | None,
    seed: int,
    options: Mapping[str, Any],
) -> tuple[BenchmarkResult, Features] | None:
    """The result and the features it comes from; None in every process but the first."""
    if isinstance(backbone, RecordedAnswers):
        features = backbone.answers(data)
    else:
        layer = layer or _layer_for(backbone, readout)
        features = extract_features(backbone, data, [layer], **options)[layer]
    if not _is_first(options):
        return None
    return benchmark.run(data, features, readout, seed=seed), features


def _layer_profile(
    backbone: Backbone | RecordedAnswers,
    data: Sketches,
    benchmark: Benchmark,
    readout: Readout,
    layer: str | None,
    seed: int,
    options: Mapping[str, Any],
) -> tuple[BenchmarkResult, Features] | None:
    """The same for many layers from one forward pass; the features are those of the reference layer."""
    assert isinstance(benchmark, LayersBenchmark)
    if isinstance(backbone, RecordedAnswers) or getattr(readout, "reads_class_scores", False):
        what = (
            "recorded answers have" if isinstance(backbone, RecordedAnswers) else "this readout reads class scores of"
        )
        raise ValueError(f"{benchmark.identifier} compares layers, but {what} one layer only; use readout=logistic")
    depth_of = {shape.name: shape.depth for shape in layer_shapes(backbone)}
    reference = layer or backbone.default_layer
    if reference not in depth_of:
        select_layers(tuple(depth_of), reference)  # says which is nearest
    names = select_layers(tuple(depth_of), benchmark.layers)
    names = tuple(name for name in depth_of if name in {*names, reference})
    # What is said for this run goes before the benchmark's own.
    options = {**benchmark.reduction, **{key: value for key, value in options.items() if value is not None}}
    with layer_features(backbone, data, names, **options) as found:
        if not _is_first(options):
            return None
        result = benchmark.run_layers(data, found, {name: depth_of[name] for name in names}, reference, readout, seed)
        return result, found[reference]


def _is_first(options: Mapping[str, Any]) -> bool:
    return options.get("trainer") is None or bool(options["trainer"].is_global_zero)


def _layer_for(backbone: Backbone, readout: Readout) -> str:
    reads_class_scores = getattr(readout, "reads_class_scores", False)
    return class_score_layer(backbone) if reads_class_scores else backbone.default_layer


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that can move a score; absent ones are left out."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in VERSIONS_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _about(data: Sketches) -> dict[str, Any]:
    return {
        "source": data.source,
        "items": len(data),
        "labels": len(data.labels),
        "condition_unit": data.condition_unit,
        "dropped": dict(data.dropped),
        "responses": 0 if data.responses is None else len(data.responses.table),
        "responses_dropped": {} if data.responses is None else dict(data.responses.dropped),
    }


def _about_objects(data: ObjectLearningData) -> dict[str, Any]:
    return {
        "source": data.source,
        "experiment": data.experiment,
        "items": len(data.images),
        "warmup": 0 if data.warmup is None else len(data.warmup),
        "subtasks": len(data.subtasks),
        "trials": data.num_trials,
        "dropped": dict(data.dropped),
        "people": type(data.people).__name__,
    }
