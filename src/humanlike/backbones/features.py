"""Features of a whole data set: by item index, cached, resumable, on any number of processes with the same result."""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytorch_lightning as pl
import torch

from humanlike.backbones.arithmetic import reused_memory
from humanlike.backbones.batches import MicroBatches
from humanlike.backbones.cache import FeatureCache, extraction_facts, features_digest
from humanlike.backbones.extraction_settings import ExtractionSettings
from humanlike.backbones.extractor import FeatureExtractor, forks, home_device
from humanlike.backbones.layers import ModuleBackbone, input_shape
from humanlike.backbones.precision import deviation_from_float32
from humanlike.backbones.reduction import ReducedBackbone
from humanlike.backbones.watched_predict import predict_watched
from humanlike.data.images import BadImageError
from humanlike.files import sha256_value
from humanlike.interfaces import Backbone
from humanlike.types import Features, ImageItems


def extract_features(
    backbone: Backbone,
    data: ImageItems,
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
    pool: str | None = None,
    max_features: int | None = None,
    projection_seed: int = 0,
    projection: str = "gaussian",
    projection_by_layer: bool = False,
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
        pool: "average" or "first_token" over the positions of a map or over tokens; None or "none": every activation.
        max_features: Project layers with more features than this to this many; None: never.
        projection_seed: Seed of the projection.
        projection: "gaussian", or "srft" (structured, faster); see `humanlike.backbones.projection`.
        projection_by_layer: Every layer has a projection of its own; otherwise layers of equal width share one.

    Returns:
        Layer → Features; `info` holds seconds, images_per_second (None where all came from the cache), from_cache,
        and more.

    Raises:
        BadImageError: An image cannot be read, and `on_bad_image` is "raise".
        ValueError: A layer is unknown, a feature is NaN or infinite (layer and item are named), an argument is out of
            range.
        OSError: The cache cannot be written: disk full, read-only.
        LostProcessError: One of several processes has died.
    """
    with layer_features(
        backbone,
        data,
        layers,
        trainer=trainer,
        cache_dir=cache_dir,
        micro_batch=micro_batch,
        micro_batches_per_shard=micro_batches_per_shard,
        num_workers=num_workers,
        on_bad_image=on_bad_image,
        dtype=dtype,
        channels_last=channels_last,
        threads=threads,
        progress=progress,
        pool=pool,
        max_features=max_features,
        projection_seed=projection_seed,
        projection=projection,
        projection_by_layer=projection_by_layer,
    ) as found:
        return dict(found)


@contextmanager
def layer_features(
    backbone: Backbone,
    data: ImageItems,
    layers: Sequence[str] | None = None,
    *,
    trainer: pl.Trainer | None = None,
    cache_dir: str | Path | None = None,
    **options: Any,
) -> Iterator[Mapping[str, Features]]:
    """`extract_features` for many layers: computed in one pass, but read one by one, every time one is asked for.

    Within the block one layer's features are in memory at a time, if the caller keeps no more.

    Args:
        backbone: See `extract_features`.
        data: See `extract_features`.
        layers: See `extract_features`.
        trainer: See `extract_features`.
        cache_dir: See `extract_features`.
        options: The other arguments of `extract_features`.

    Yields:
        Layer → Features, in the order of `layers`.
    """
    settings = ExtractionSettings(**options)
    names = _check_layers(backbone, layers)
    started = time.perf_counter()
    with ExitStack() as stack:
        trainer = trainer if trainer is not None else stack.enter_context(_quiet_trainer())
        _check_trainer(trainer, cache_dir)
        root = Path(cache_dir) if cache_dir is not None else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if settings.channels_last and isinstance(backbone, ModuleBackbone):
            backbone.network.to(memory_format=torch.channels_last)
        reduction = settings.reduction
        view_of = {layer: layer if reduction.is_nothing else reduction.view(layer) for layer in names}
        runner = backbone if reduction.is_nothing else ReducedBackbone(backbone, reduction)
        input_3HW = input_shape(backbone.transform)
        arithmetic = settings.arithmetic(trainer.strategy.root_device)
        facts = extraction_facts(backbone, data.images, input_3HW, arithmetic)
        cache = FeatureCache(root, facts, settings.micro_batch * settings.micro_batches_per_shard)
        shards = cache.missing(view_of.values())
        batches = MicroBatches(data.images, backbone.transform, settings.micro_batch, input_3HW, settings.channels_last)
        if shards or _starts_by_script(trainer):
            _compute(runner, cache, tuple(view_of.values()), batches, shards, trainer, settings)
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
        if not reduction.is_nothing:
            info["reduction"] = reduction.record()
        deviation: Mapping[str, Any] = {}
        if settings.dtype != "float32":
            deviation = _deviation(runner, cache, batches, tuple(view_of.values()), trainer, settings)

        def read(layer: str) -> Features:
            view = view_of[layer]
            own = {"deviation_from_float32": deviation[view]} if view in deviation else {}
            return _features(cache, view, layer, data, settings.on_bad_image, {**info, **own})

        yield _ReadWhenAsked(tuple(view_of), read)


Value = TypeVar("Value")


class _ReadWhenAsked(Mapping[str, Value]):
    """A mapping that holds nothing: a value is made whenever it is asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Value]) -> None:
        self.names, self.read = tuple(names), read

    def __getitem__(self, name: str) -> Value:
        if name not in self.names:
            raise KeyError(name)
        return self.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _deviation(
    backbone: Backbone,
    cache: FeatureCache,
    batches: MicroBatches,
    names: Sequence[str],
    trainer: pl.Trainer,
    settings: ExtractionSettings,
) -> dict[str, dict[str, Any]]:
    """The measured effect of the narrower type on every layer."""
    # A process that forks its workers must not touch the GPU before them; the next extraction may fork again.
    alone = trainer.world_size == 1 or _starts_by_script(trainer)
    device = trainer.strategy.root_device if alone else home_device(backbone) or torch.device("cpu")
    rows = _ReadWhenAsked(names, lambda layer: cache.merge(layer).f_ND)
    return deviation_from_float32(backbone, cache, batches, rows, device, settings.cpu_threads)


def _compute(
    backbone: Backbone,
    cache: FeatureCache,
    names: Sequence[str],
    batches: MicroBatches,
    shards: Sequence[int],
    trainer: pl.Trainer,
    settings: ExtractionSettings,
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
        threads=settings.cpu_threads,
        skip_bad_images=settings.on_bad_image == "skip",
        num_workers=settings.num_workers,
        progress=settings.progress,
    )
    device = home_device(backbone)
    threads_before = torch.get_num_threads()
    # Before the launch: a forked process that starts more threads than one hangs after OpenMP work in its parent.
    torch.set_num_threads(settings.cpu_threads)
    try:
        with warnings.catch_warnings(), reused_memory():
            warnings.filterwarnings("ignore", message=".*treespec, LeafSpec.*")
            warnings.filterwarnings("ignore", message=".*available.* but.* not used.*")
            predict_watched(trainer, extractor)
    finally:
        torch.set_num_threads(threads_before)
        extractor.close()
        if device is not None and isinstance(backbone, torch.nn.Module):
            backbone.to(device)


def _features(
    cache: FeatureCache, view: str, layer: str, data: ImageItems, on_bad_image: str, info: Mapping[str, Any]
) -> Features:
    merged = cache.merge(view)
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


def _starts_by_script(trainer: pl.Trainer) -> bool:
    """Whether every process runs the whole script; all of them must then enter the predict loop, or none."""
    return trainer.world_size > 1 and not forks(trainer)


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
