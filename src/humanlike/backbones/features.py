"""Features of a whole data set: by item index, cached, resumable, on any number of processes with the same result."""

from __future__ import annotations

import logging
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch

from humanlike.backbones.arithmetic import DTYPES, device_name, reused_memory
from humanlike.backbones.batches import MicroBatches
from humanlike.backbones.cache import FeatureCache, extraction_facts, features_digest
from humanlike.backbones.extractor import FeatureExtractor, home_device
from humanlike.backbones.layers import ModuleBackbone, input_shape
from humanlike.backbones.precision import deviation_from_float32
from humanlike.data.images import BadImageError
from humanlike.files import sha256_value
from humanlike.interfaces import Backbone
from humanlike.types import Features, Sketches

ON_BAD_IMAGE = ("raise", "skip")


@dataclass(frozen=True)
class _Settings:
    """How to extract; see `extract_features`."""

    micro_batch: int
    micro_batches_per_shard: int
    num_workers: int
    on_bad_image: str
    dtype: str
    channels_last: bool
    threads: int
    progress: bool = True

    def __post_init__(self) -> None:
        for name, least in (("micro_batch", 1), ("micro_batches_per_shard", 1), ("threads", 1), ("num_workers", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.on_bad_image not in ON_BAD_IMAGE:
            raise ValueError(f"on_bad_image must be one of {ON_BAD_IMAGE}, got {self.on_bad_image!r}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {sorted(DTYPES)}, got {self.dtype!r}")

    def arithmetic(self, device: torch.device) -> dict[str, Any]:
        """What of the settings can change the last bits of a feature."""
        return {
            "dtype": self.dtype,
            "micro_batch": self.micro_batch,
            "channels_last": self.channels_last,
            "threads": self.threads,
            "device": device_name(device),
        }


def extract_features(
    backbone: Backbone,
    data: Sketches,
    layers: Sequence[str] | None = None,
    *,
    trainer: pl.Trainer | None = None,
    cache_dir: str | Path | None = None,
    micro_batch: int = 32,
    micro_batches_per_shard: int = 8,
    num_workers: int = 0,
    on_bad_image: str = "raise",
    dtype: str = "float32",
    channels_last: bool = True,
    threads: int | None = None,
    progress: bool = True,
) -> dict[str, Features]:
    """Activations of one or several layers for every item of a data set, from one forward pass an image.

    The result depends on neither the number of processes, nor the workers, nor interruptions: every forward pass has
    the same padded shape, thread count and precision, and every row is written under its item index. What was
    computed is kept shard by shard, so a killed run loses at most the shard in work, and a rerun computes only what
    is missing or damaged.

    Args:
        backbone: The frozen network.
        data: The items.
        layers: Layers; the backbone's default one if None.
        trainer: A Lightning trainer that says on which devices and processes; one CPU process if None.
        cache_dir: Folder of feature caches, shared by all processes; a temporary one if None.
        micro_batch: Images B a forward pass.
        micro_batches_per_shard: Micro-batches a shard file.
        num_workers: Processes that decode; 0 decodes in a thread beside the network. Does not change the result.
        on_bad_image: "raise", or "skip": leave unreadable images out and say which (`Features.failed`).
        dtype: "float32"; "bfloat16" and "float16" run products in that type (faster, errors up to some percent); how
            far the first items are from float32 is measured and stands in `info["deviation_from_float32"]`.
        channels_last: Memory layout of the forward pass; faster for convolutions.
        threads: CPU threads inside one operator, fixed so that the result is; None: half of the cores this process may
            use, whatever the number of processes, so that two processes on a machine fill it.
        progress: Show rate and time left.

    Returns:
        Layer → Features; `info` holds seconds, images_per_second (None where all came from the cache), from_cache,
        and more.

    Raises:
        BadImageError: An image cannot be read, and `on_bad_image` is "raise".
        ValueError: A layer is unknown, a feature is NaN or infinite (layer and item are named), an argument is out of
            range.
        OSError: The cache cannot be written: disk full, read-only.
    """
    threads = threads if threads is not None else max(1, _usable_cores() // 2)
    settings = _Settings(
        micro_batch, micro_batches_per_shard, num_workers, on_bad_image, dtype, channels_last, threads, progress
    )
    names = _check_layers(backbone, layers)
    started = time.perf_counter()
    with ExitStack() as stack:
        trainer = trainer if trainer is not None else stack.enter_context(_quiet_trainer())
        _check_trainer(trainer, cache_dir)
        root = Path(cache_dir) if cache_dir is not None else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if channels_last and isinstance(backbone, ModuleBackbone):
            backbone.network.to(memory_format=torch.channels_last)
        input_3HW = input_shape(backbone.transform)
        arithmetic = settings.arithmetic(trainer.strategy.root_device)
        facts = extraction_facts(backbone, data.images, input_3HW, arithmetic)
        cache = FeatureCache(root, facts, micro_batch * micro_batches_per_shard)
        shards = cache.missing(names)
        batches = MicroBatches(data.images, backbone.transform, micro_batch, input_3HW, channels_last)
        if shards or _starts_by_script(trainer):
            _compute(backbone, cache, names, batches, shards, trainer, settings)
        items = sum(stop - start for start, stop in map(cache.bounds, shards))
        seconds = time.perf_counter() - started
        info = {
            **arithmetic,
            "seconds": seconds,
            "images_per_second": items / seconds if items else None,
            "from_cache": not shards,
            "items_computed": items,
            "shards": cache.num_shards,
            "shards_computed": len(shards),
            "shards_damaged": len(cache.corrupt),
            "processes": trainer.world_size,
            "cache_key": cache.key,
        }
        found = {layer: _features(cache, layer, data, on_bad_image, info) for layer in names}
        return found if dtype == "float32" else _with_deviation(backbone, cache, batches, found, trainer, settings)


def _with_deviation(
    backbone: Backbone,
    cache: FeatureCache,
    batches: MicroBatches,
    found: Mapping[str, Features],
    trainer: pl.Trainer,
    settings: _Settings,
) -> dict[str, Features]:
    """The same features with the measured effect of the narrower type in their `info`."""
    # A process that forks its workers must not touch the GPU before them; the next extraction may fork again.
    alone = trainer.world_size == 1 or _starts_by_script(trainer)
    device = trainer.strategy.root_device if alone else home_device(backbone) or torch.device("cpu")
    rows = {layer: features.f_ND for layer, features in found.items()}
    deviation = deviation_from_float32(backbone, cache, batches, rows, device, settings.threads)
    return {
        layer: replace(features, info={**features.info, "deviation_from_float32": deviation[layer]})
        for layer, features in found.items()
    }


def _compute(
    backbone: Backbone,
    cache: FeatureCache,
    names: Sequence[str],
    batches: MicroBatches,
    shards: Sequence[int],
    trainer: pl.Trainer,
    settings: _Settings,
) -> None:
    if shards:
        cache.describe()
    extractor = FeatureExtractor(
        backbone,
        cache,
        names,
        batches,
        shards,
        dtype=settings.dtype,
        threads=settings.threads,
        skip_bad_images=settings.on_bad_image == "skip",
        num_workers=settings.num_workers,
        progress=settings.progress,
    )
    device = home_device(backbone)
    threads_before = torch.get_num_threads()
    # Before the launch: a forked process that starts more threads than one hangs after OpenMP work in its parent.
    torch.set_num_threads(settings.threads)
    try:
        with warnings.catch_warnings(), reused_memory():
            warnings.filterwarnings("ignore", message=".*treespec, LeafSpec.*")
            warnings.filterwarnings("ignore", message=".*is available but not used.*")
            trainer.predict(extractor, return_predictions=False)
    finally:
        torch.set_num_threads(threads_before)
        extractor.close()
        if device is not None and isinstance(backbone, torch.nn.Module):
            backbone.to(device)


def _features(cache: FeatureCache, layer: str, data: Sketches, on_bad_image: str, info: dict[str, Any]) -> Features:
    merged = cache.merge(layer)
    if merged.failed and on_bad_image == "raise":
        raise BadImageError(*merged.failed[min(merged.failed)])
    if len(merged.rows) == 0:
        raise ValueError(f"{data.name}: none of the {len(data)} images could be read; first: {merged.failed[0]}")
    return Features(
        f_ND=merged.f_ND,
        rows=merged.rows,
        failed={item: f"{where}: {reason}" for item, (where, reason) in sorted(merged.failed.items())},
        layer=layer,
        hashes={
            "weights": cache.facts["weights"],
            "transform": sha256_value(cache.facts["transform"]),
            "data": cache.facts["data"],
            "features": features_digest(merged.f_ND, merged.rows),
        },
        info=dict(info),
    )


def _check_layers(backbone: Backbone, layers: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(layers, str):
        raise TypeError(f"layers must be a list of names, got the string {layers!r}; write [{layers!r}]")
    names = tuple(dict.fromkeys(layers if layers is not None else [backbone.default_layer]))
    if isinstance(backbone, ModuleBackbone):
        backbone.check_layers(names)
    elif not names or (unknown := [n for n in names if n not in backbone.layers]):
        raise ValueError(f"{backbone.name} has no layer {unknown[0] if names else names!r}; it has {backbone.layers}")
    return names


def _check_trainer(trainer: pl.Trainer, cache_dir: str | Path | None) -> None:
    if str(trainer.precision) not in {"32-true", "32"}:
        raise ValueError(
            f"feature extraction fixes its own precision, but the trainer has precision={trainer.precision!r}; "
            "leave it at 32-true and set dtype=bfloat16"
        )
    limit = trainer.limit_predict_batches
    if limit is not None and not (isinstance(limit, float) and limit == 1.0):
        raise ValueError(
            f"feature extraction needs every batch, but the trainer has limit_predict_batches={limit} (fast_dev_run "
            "sets it too); shorten the data set instead"
        )
    if trainer.world_size > 1 and cache_dir is None and _starts_by_script(trainer):
        raise ValueError(
            "feature extraction on several processes needs cache_dir (paths.cache), a folder that all of them see"
        )


def _usable_cores() -> int:
    # A cluster's job often may use fewer cores than the machine has; macOS cannot say.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _starts_by_script(trainer: pl.Trainer) -> bool:
    """Whether every process runs the whole script; all of them must then enter the predict loop, or none."""
    launcher = trainer.strategy.launcher
    return trainer.world_size > 1 and not getattr(launcher, "is_interactive_compatible", False)


@contextmanager
def _quiet_trainer() -> Iterator[pl.Trainer]:
    """One CPU process that writes no files and no banners."""
    log = logging.getLogger("pytorch_lightning.utilities.rank_zero")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*(GPU|MPS|TPU) available but not used.*")
            warnings.filterwarnings("ignore", message=".*srun.*")
            trainer = pl.Trainer(
                accelerator="cpu",
                devices=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                use_distributed_sampler=False,
            )
        yield trainer
    finally:
        log.setLevel(level)
