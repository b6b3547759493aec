"""From objects to a score: data → features → benchmark → Score. No configuration in here."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.backbones.features import extract_features
from humanlike.backbones.layers import class_score_layer
from humanlike.backbones.precision import precision_flags
from humanlike.backbones.recorded import RecordedAnswers
from humanlike.interfaces import Backbone, Benchmark, Readout
from humanlike.reports.run_folder import digest
from humanlike.types import Score, Sketches

if TYPE_CHECKING:
    import pytorch_lightning as pl

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
    "resvg-py",
)


def run_benchmark(
    backbone: Backbone | RecordedAnswers,
    data: Sketches,
    benchmark: Benchmark,
    readout: Readout,
    *,
    layer: str | None = None,
    trainer: pl.Trainer | None = None,
    cache_dir: Path | None = None,
    seed: int = 0,
    extraction: Mapping[str, Any] | None = None,
) -> Score | None:
    """Score a backbone on a benchmark.

    Args:
        backbone: The frozen network, or a model's recorded answers.
        data: The data set with people's responses, if it has any.
        benchmark: What is measured.
        readout: Fresh readout; it is fitted here.
        layer: Layer to read out; None = the backbone's default, or its class scores where the readout reads those.
        trainer: Lightning trainer for the extraction; None = one CPU process.
        cache_dir: Where features are kept; None = a temporary folder.
        seed: Global seed of folds, bootstrap and splits.
        extraction: Further keywords of `extract_features`.

    Returns:
        The score, or None in every process but the first of a multi-process run.
    """
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    if isinstance(backbone, RecordedAnswers):
        features = backbone.answers(data)
    else:
        layer = layer or _layer_for(backbone, readout)
        keywords = dict(extraction or {})
        features = extract_features(backbone, data, [layer], trainer=trainer, cache_dir=cache_dir, **keywords)[layer]
    if trainer is not None and not trainer.is_global_zero:
        return None
    result = benchmark.run(data, features, readout, seed=seed)
    details = {**result.details, "bibtex": benchmark.bibtex, "extraction": dict(features.info), "dataset": _about(data)}
    result = replace(result, details=details, flags=(*result.flags, *precision_flags(features.info)))
    return Score(
        benchmark=benchmark.identifier,
        benchmark_version=benchmark.version,
        dataset=data.name,
        backbone=backbone.name,
        layer=features.layer,
        result=result,
        seeds={"seed": seed},
        hashes=dict(features.hashes),
        versions=versions(),
        started=started,
        seconds=time.perf_counter() - began,
        digest=digest(result.items, result.counts),
    )


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
