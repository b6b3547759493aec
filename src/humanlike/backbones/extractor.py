"""The LightningModule whose predict loop computes feature shards."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from filelock import BaseFileLock, Timeout
from torch import nn

from humanlike.backbones.arithmetic import fixed_arithmetic
from humanlike.backbones.batches import AheadLoader, MicroBatch, MicroBatches, ShardSampler
from humanlike.backbones.cache import FeatureCache, Shard
from humanlike.backbones.progress import Progress
from humanlike.cores import keep_to_share
from humanlike.data.images import BadImageError
from humanlike.interfaces import Backbone
from humanlike.processes import ProcessWatch, clear_signs

LOCK_S = 5.0
"""Seconds of waiting for another job's shard between signs that this process is not stuck."""


class FeatureExtractor(pl.LightningModule):
    """Runs a frozen backbone over micro-batches and writes whole shards; nothing is gathered between processes.

    Args:
        backbone: The backbone.
        cache: Where shards go.
        layers: Layers to compute.
        batches: The micro-batches of the data set.
        shards: Shards to compute, by all processes together.
        dtype: See `fixed_arithmetic`.
        threads: See `fixed_arithmetic`.
        skip_bad_images: Note unreadable images instead of raising.
        num_workers: Processes that prepare images.
        progress: Whether the first process shows progress.
    """

    def __init__(
        self,
        backbone: Backbone,
        cache: FeatureCache,
        layers: Sequence[str],
        batches: MicroBatches,
        shards: Sequence[int],
        *,
        dtype: str = "float32",
        threads: int = 1,
        skip_bad_images: bool = False,
        num_workers: int = 0,
        progress: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = backbone  # a submodule where it is one, so that Lightning moves it to the device
        self.cache = cache
        self.layers = tuple(layers)
        self.batches = batches
        self.shards = tuple(shards)
        self.dtype_name = dtype
        self.threads = threads
        self.skip_bad_images = skip_bad_images
        self.num_workers = num_workers
        self.show_progress = progress
        self.per_shard = cache.shard_items // batches.size
        self._shard: int | None = None
        self._lock: BaseFileLock | None = None
        self._missing: tuple[str, ...] = ()
        self._parts: dict[str, list[np.ndarray]] = {}
        self._rows: list[int] = []
        self._failed: dict[int, tuple[str, str]] = {}
        self._progress = Progress(0, "features", enabled=False)
        self._watch: ProcessWatch | None = None
        # Made before processes are forked, so that the one that forks them finds what they leave.
        self.signs = cache.folder / "processes" / uuid.uuid4().hex[:16]

    def setup(self, stage: str) -> None:
        """Take a share of the cores, in a process that was forked for this work and ends with it."""
        del stage
        if forks(self.trainer) and self.trainer.strategy.root_device.type == "cpu":
            keep_to_share(self.trainer.global_rank, self.trainer.world_size, self.threads)

    def on_predict_start(self) -> None:
        """Begin to watch the other processes, where there are any and the cache can be written."""
        if self.trainer.world_size == 1:
            return
        token = self.trainer.strategy.broadcast(self._announce() if self.trainer.is_global_zero else "")
        if token:
            self.signs = self.signs.with_name(token)
            self._watch = ProcessWatch(self.signs, self.trainer.global_rank, self.trainer.world_size)
            self._watch.__enter__()
            self._goes_on("the first micro-batch")

    def _goes_on(self, at: str) -> None:
        """Tell the watch that the work goes on, and what comes next."""
        if self._watch is not None:
            self._watch.progress(at)

    def _announce(self) -> str:
        """Name of the folder of signs; empty where it cannot be made, so that all processes do without."""
        try:
            clear_signs(self.signs.parent)
            self.signs.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ""
        return self.signs.name

    def predict_dataloader(self) -> _Told:
        """This process's micro-batches; called when its rank is known."""
        rank, world_size = self.trainer.global_rank, self.trainer.world_size
        sampler = ShardSampler(self.shards, self.per_shard, len(self.batches), rank, world_size)
        label = f"features of {self.backbone.name}" + (f" (process 1 of {world_size})" if world_size > 1 else "")
        total = sum(len(self.batches.items(b)) for b in sampler)
        self._progress = Progress(total, label, self.show_progress and rank == 0)
        return _Told(AheadLoader(self.batches, sampler, self.num_workers), self.leave)

    def predict_step(self, batch: MicroBatch, batch_idx: int) -> int:
        """Compute micro-batch b and return b; with the last of a shard, write the shard."""
        del batch_idx
        index = batch["index"]
        try:
            if self._watch is not None:
                self._watch.check()
            self._goes_on(f"micro-batch {index} of {len(self.batches)}")
            self._step(batch)
            self._goes_on(f"loading the images after micro-batch {index} of {len(self.batches)}")
            return index
        except Exception as error:
            self.leave(error)
            raise

    def _step(self, batch: MicroBatch) -> int:
        index = batch["index"]
        if index // self.per_shard != self._shard:
            self._begin(index // self.per_shard)
        if batch["failed"] and not self.skip_bad_images:
            raise BadImageError(*next(iter(batch["failed"].values())))
        if self._missing:
            with fixed_arithmetic(self.device.type, self.dtype_name, self.threads):
                found = self.backbone.features(batch["x_B3HW"], self._missing)
            self._keep(index, found, batch["failed"])
        self._progress.advance(len(self.batches.items(index)))
        if index % self.per_shard == self.per_shard - 1 or index == len(self.batches) - 1:
            self._finish()
        return index

    def on_predict_end(self) -> None:
        """Wait for all processes: their shards are merged next."""
        self.close()
        if self._watch is not None:
            # A collective operation would not notice that one of them is dead.
            try:
                self._watch.wait()
            except Exception as error:
                self.leave(error)
                raise
            self._goes_on("the barrier after the last micro-batch")
        self.trainer.strategy.barrier("humanlike.features")

    def close(self) -> None:
        """Let go of the shard in work, finished or not."""
        if self._lock is not None:
            self._lock.release()
        self._lock, self._shard = None, None
        self._progress.close()

    def leave(self, error: BaseException | None = None) -> None:
        """Stop watching; tell the others what went wrong, if anything did."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.__exit__(None, error, None)

    def tidy(self) -> None:
        """Remove the signs of processes that are done."""
        shutil.rmtree(self.signs, ignore_errors=True)

    def _begin(self, shard: int) -> None:
        self._lock = self.cache.lock(shard)
        while not self._lock.is_locked:
            # Another job may have the shard in work for as long as it likes.
            with suppress(Timeout):
                self._lock.acquire(timeout=LOCK_S)
            self._goes_on(f"shard {shard}")
        self._shard = shard
        # Another job may have written it while this one waited for the lock.
        self._missing = tuple(layer for layer in self.layers if self.cache.read(layer, shard) is None)
        self._parts = {layer: [] for layer in self._missing}
        self._rows, self._failed = [], {}

    def _keep(self, index: int, found: dict[str, torch.Tensor], failed: dict[int, tuple[str, str]]) -> None:
        items = [item for item in self.batches.items(index) if item not in failed]
        first = self.batches.items(index).start
        for layer in self._missing:
            f_BD = found[layer].detach()
            if len(f_BD) != self.batches.size or f_BD.ndim != 2:
                raise ValueError(
                    f"{self.backbone.name}: layer {layer!r} gives shape {tuple(f_BD.shape)} for {self.batches.size} "
                    "images; a backbone returns one flat row an image"
                )
            f_ND = f_BD.to("cpu", torch.float32)[[item - first for item in items]].numpy()
            finite_N = np.isfinite(f_ND).all(axis=1)
            if not finite_N.all():
                item = items[int(np.flatnonzero(~finite_N)[0])]
                raise ValueError(
                    f"{self.backbone.name}: layer {layer.split('|')[0]!r} gives NaN or infinity for item {item} "
                    f"({self.batches.images.describe(item)}) in {self.dtype_name}, and for {int((~finite_N).sum())} "
                    "image(s) of its micro-batch; check the weights and the transform, or use dtype=float32"
                )
            self._parts[layer].append(f_ND)
        self._rows.extend(items)
        self._failed.update(failed)

    def _finish(self) -> None:
        shard, lock = self._shard, self._lock
        if shard is None or lock is None:
            return
        try:
            rows = np.asarray(self._rows, dtype=np.int64)
            for layer in self._missing:
                self.cache.write(layer, shard, Shard(np.concatenate(self._parts[layer]), rows, dict(self._failed)))
        finally:
            lock.release()
            self._shard, self._lock, self._parts = None, None, {}


class _Told(Iterable[MicroBatch]):
    """Micro-batches; an error on the way to one is told to the other processes before it is raised."""

    def __init__(self, loader: AheadLoader, tell: Callable[[BaseException], None]) -> None:
        self.loader, self.tell = loader, tell

    def __iter__(self) -> Iterator[MicroBatch]:
        try:
            yield from self.loader
        except Exception as error:
            self.tell(error)
            raise


def forks(trainer: pl.Trainer) -> bool:
    """Whether the trainer forks several processes while they are needed, instead of running the script in each."""
    return trainer.world_size > 1 and bool(getattr(trainer.strategy.launcher, "is_interactive_compatible", False))


def home_device(module: Any) -> torch.device | None:
    """Where a module's parameters lie, or None where there are none."""
    if not isinstance(module, nn.Module):
        return None
    return next((p.device for p in module.parameters()), None)
