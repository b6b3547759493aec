"""One pass of a network over the images of an experiment, block by block of subtasks, that ends in inner products."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from humanlike.backbones.features import layer_features
from humanlike.backbones.gram import GramStore, LayerGram, centred_gram, warmup_statistics
from humanlike.data.object_learning import ImageSet, ObjectLearningData
from humanlike.interfaces import Backbone
from humanlike.types import Features

WARMUP_BLOCK = 64
"""Warm-up images whose activations are held at a time where nothing is projected."""
Statistics = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class ImagePass:
    """What computes the inner products that a store lacks.

    Attributes:
        backbone: The frozen network.
        data: The experiment.
        warmup: Images on which features are calibrated.
        trainer: A Lightning trainer, or None.
        options: Keywords of `layer_features`.
        store: Where inner products go.
        folder: Where features go, shard by shard, so that a killed pass goes on where it stopped.
        keep: Whether features stay there.
    """

    backbone: Backbone
    data: ObjectLearningData
    warmup: ImageSet
    trainer: Any
    options: Mapping[str, Any]
    store: GramStore
    folder: Path
    keep: bool

    @property
    def is_first(self) -> bool:
        """Whether this is the process that computes more than features."""
        return self.trainer is None or bool(self.trainer.is_global_zero)

    def run(self, names: Sequence[str]) -> dict[str, Any]:
        """Compute what the store lacks of the layers; facts about the work."""
        with ExitStack() as stack:
            if self.trainer is None or self.trainer.world_size == 1:
                self.store.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(FileLock(self.store.folder / "lock"))  # another job may want the same layers
            missing = self.store.missing(names)
            layers = tuple(dict.fromkeys(layer for layer, _ in missing))
            infos: list[Mapping[str, Any]] = []
            if missing:
                self.store.describe()
                statistics = self._warmup(layers, infos)
                gc.collect()  # the trainer and what it ran hold each other, and with them the projections' matrices
            for block in sorted({block for _, block in missing}):
                own = tuple(layer for layer in layers if (layer, block) in missing)
                self._block(block, own, statistics, infos)
            if not self.keep and self.is_first:
                shutil.rmtree(self.folder, ignore_errors=True)
        items = sum(int(info["items_computed"]) for info in infos)
        seconds = sum(float(info["seconds"]) for info in infos)
        return {
            "from_cache": not items,
            "items_computed": items,
            "seconds": seconds,
            "images_per_second": items / seconds if items else None,
            "layers_computed": len(layers),
            "processes": 1 if self.trainer is None else self.trainer.world_size,
        }

    def _warmup(
        self, layers: Sequence[str], infos: list[Mapping[str, Any]]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Layer → mean and norms of the warm-up images."""
        step = WARMUP_BLOCK if len(self.store.blocks) > 1 else len(self.warmup)
        starts = range(0, len(self.warmup), step)
        with ExitStack() as stack:
            parts = [
                stack.enter_context(
                    self._features(self.warmup.select(range(s, min(s + step, len(self.warmup)))), layers)
                )
                for s in starts
            ]
            infos += [part[layers[0]].info for part in parts]
            return {layer: warmup_statistics(_WhenAsked(parts, layer)) for layer in layers if self.is_first}

    def _block(
        self,
        block: int,
        layers: Sequence[str],
        statistics: Mapping[str, Statistics],
        infos: list[Mapping[str, Any]],
    ) -> None:
        rows = [self.data.subtask_rows(subtask)[0] for subtask in self.store.blocks[block]]
        used = np.unique(np.concatenate(rows))
        with self._features(self.data.images.select(used), layers) as found:
            for layer in layers if self.is_first else ():
                mean_D, norm_M = statistics[layer]
                features = found[layer]
                grams = tuple(centred_gram(features.f_ND[np.searchsorted(used, r)], mean_D) for r in rows)
                self.store.write(layer, block, LayerGram(grams, norm_M, len(mean_D)))
            infos.append(features.info if self.is_first else {"seconds": 0.0, "items_computed": 0})

    def _features(self, items: ImageSet, layers: Sequence[str]) -> AbstractContextManager[Mapping[str, Features]]:
        return layer_features(self.backbone, items, layers, trainer=self.trainer, cache_dir=self.folder, **self.options)


class _WhenAsked(Sequence[np.ndarray]):
    """Rows of one layer, part by part; a part is read from disk whenever it is asked for."""

    def __init__(self, parts: Sequence[Mapping[str, Features]], layer: str) -> None:
        self.parts, self.layer = parts, layer

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: Any) -> Any:
        return self.parts[index][self.layer].f_ND
