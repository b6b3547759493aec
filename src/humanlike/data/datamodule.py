"""Sketches as Lightning batches: split by source, exact under several processes, resumable within an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from PIL import Image
from pytorch_lightning.overrides.distributed import UnrepeatedDistributedSampler
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from humanlike.rng import address_seed
from humanlike.types import Features, Sketches

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class ItemDataset(Dataset):
    """Input, label index and item index of chosen items.

    Args:
        data: The data set.
        rows: Item indices, in order.
        transform: RGB image → (3, H, W); unused where features are given.
        features: Features to serve instead of images; every one of `rows` must have them.
    """

    def __init__(
        self,
        data: Sketches,
        rows: np.ndarray,
        transform: Callable[[Image.Image], torch.Tensor] | None,
        features: Features | None = None,
    ) -> None:
        self.data, self.transform, self.features = data, transform, features
        self.rows = np.asarray(rows, dtype=np.int64)
        self._target_N = data.target_N
        self._position: dict[int, int] = {}
        if features is not None:
            self._position = {int(row): i for i, row in enumerate(features.rows)}
            absent = [row for row in self.rows.tolist() if row not in self._position]
            if absent:
                raise ValueError(f"{len(absent)} items have no features, the first is item {absent[0]}; leave them out")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, item: int) -> tuple[torch.Tensor, int, int]:
        row = int(self.rows[item])
        if self.features is not None:
            x = torch.from_numpy(np.array(self.features.f_ND[self._position[row]], dtype=np.float32))
        else:
            assert self.transform is not None  # SketchDataModule sees to it
            x = self.transform(self.data.images.load(row))
        return x, int(self._target_N[row]), row


class EpochOrder(DistributedSampler):
    """Training order of an epoch: items sorted by a hash of seed, epoch and sketch id, dealt to the processes in turn.

    The order does not depend on the number of processes or workers. The last items are filled up from the front, so
    that every process has equally many. (It is a DistributedSampler so that Lightning leaves it in place.)

    Args:
        dataset: The training items.
        seed: Global seed.
        num_replicas: Number of processes.
        rank: This process.
    """

    def __init__(self, dataset: ItemDataset, seed: int, num_replicas: int, rank: int) -> None:
        super().__init__(dataset, num_replicas=num_replicas, rank=rank, shuffle=True, seed=seed, drop_last=False)
        self._ids = [str(dataset.data.table["sketch_id"].iloc[row]) for row in dataset.rows]
        self.skip = 0

    def __iter__(self) -> Iterator[int]:
        keys = [address_seed(self.seed, "epoch", self.epoch, name) for name in self._ids]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        filled = [order[i % len(order)] for i in range(self.total_size)]
        return iter(filled[self.rank : self.total_size : self.num_replicas][self.skip :])


@dataclass
class Position:
    """How far training has come: batches served in all, and whether the next pass goes on inside an epoch."""

    batches: int = 0
    restored: bool = False


class ResumableLoader(DataLoader):
    """A DataLoader over an EpochOrder that counts what it serves, and goes on from there when it is restored.

    The epoch of the order is counted here, because Lightning counts an epoch that `max_steps` cuts short as a whole
    one.

    Args:
        position: Where training stands; shared with the data module, which stores it in checkpoints.
        order: The sampler.
        keywords: Of DataLoader.
    """

    def __init__(self, position: Position, order: EpochOrder, **keywords: Any) -> None:
        super().__init__(order.dataset, sampler=order, **keywords)
        self._position, self._order = position, order

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        position, batches_an_epoch = self._position, len(self)
        if not position.restored:  # a pass that was left early is not gone on with
            position.batches = -(-position.batches // batches_an_epoch) * batches_an_epoch
        position.restored = False
        epoch, skip = divmod(position.batches, batches_an_epoch)
        self._order.set_epoch(epoch)
        self._order.skip = skip * (self.batch_size or 1)
        for batch in super().__iter__():
            position.batches += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """The batches served; having these two methods tells Lightning that the loader can go on inside an epoch."""
        return {"batches": self._position.batches}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Go on after the batches that `state_dict` counts."""
        self._position.batches, self._position.restored = int(state_dict["batches"]), True


class SketchDataModule(pl.LightningDataModule):
    """Training and validation items of a data set; a batch is (x, label index, item index).

    Validation, test and prediction visit every item exactly once, also when their number is no multiple of the number
    of processes. All loaders are exact by item index, whatever the Trainer's `use_distributed_sampler` says.

    Args:
        data: The data set.
        transform: The backbone's preprocessing; None where `features` are given.
        fold_N: (N,) fold of every item (see `humanlike.readouts.folds`), -1 for items that are left out. No source
            (`image_id`) may stand in several folds.
        val_fold: The fold to validate on; all others are trained on.
        batch_size: Items a batch and process.
        num_workers: Processes that load items.
        seed: Global seed of the training order.
        features: Features of the items, to be served instead of images.

    Raises:
        ValueError: When a source stands on both sides, or a side is empty.
    """

    def __init__(
        self,
        data: Sketches,
        transform: Callable[[Image.Image], torch.Tensor] | None,
        fold_N: np.ndarray,
        val_fold: int = 0,
        batch_size: int = 64,
        num_workers: int = 0,
        seed: int = 0,
        features: Features | None = None,
    ) -> None:
        super().__init__()
        if transform is None and features is None:
            raise ValueError("SketchDataModule needs a transform (to serve images) or features")
        fold_N = np.asarray(fold_N)
        if fold_N.shape != (len(data),):
            raise ValueError(f"fold_N must hold the fold of each of the {len(data)} items, got shape {fold_N.shape}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        _check_sources(data, fold_N, val_fold)
        self.batch_size, self.num_workers, self.seed = batch_size, num_workers, seed
        self._position = Position()
        self.train_items = ItemDataset(data, np.flatnonzero((fold_N >= 0) & (fold_N != val_fold)), transform, features)
        self.val_items = ItemDataset(data, np.flatnonzero(fold_N == val_fold), transform, features)
        for name, items in (("training", self.train_items), ("validation", self.val_items)):
            if len(items) == 0:
                raise ValueError(
                    f"{data.name}: there are no {name} items (val_fold={val_fold}, folds {np.unique(fold_N).tolist()})"
                )

    @property
    def present_labels(self) -> tuple[int, ...]:
        """Label indices that occur in training, increasing."""
        return tuple(int(k) for k in np.unique(self.train_items.data.target_N[self.train_items.rows]))

    def train_dataloader(self) -> ResumableLoader:
        """Shuffled anew each epoch; see EpochOrder."""
        if not self._position.restored and (self.trainer is None or self.trainer.global_step == 0):
            self._position.batches = 0
        order = EpochOrder(self.train_items, self.seed, *self._processes())
        return ResumableLoader(self._position, order, **self._loading())

    def state_dict(self) -> dict[str, int]:
        """What a checkpoint keeps: the number of training batches served."""
        return {"batches": self._position.batches}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Go on after the batches that the checkpoint counts, in the middle of an epoch too."""
        self._position.batches, self._position.restored = int(state_dict["batches"]), True

    def val_dataloader(self) -> DataLoader:
        """Every validation item once, in item order."""
        return self._once(self.val_items)

    def test_dataloader(self) -> DataLoader:
        """The validation items."""
        return self._once(self.val_items)

    def predict_dataloader(self) -> DataLoader:
        """The validation items."""
        return self._once(self.val_items)

    def statistics_dataloader(self) -> DataLoader:
        """Every training item once, in item order: for statistics that must not depend on the order or repeat items."""
        return self._once(self.train_items)

    def _processes(self) -> tuple[int, int]:
        return (self.trainer.world_size, self.trainer.global_rank) if self.trainer is not None else (1, 0)

    def _once(self, items: ItemDataset) -> DataLoader:
        world_size, rank = self._processes()
        if len(items) < world_size:
            raise ValueError(f"{len(items)} items cannot be shared by {world_size} processes; use fewer devices")
        once = UnrepeatedDistributedSampler(items, num_replicas=world_size, rank=rank, shuffle=False)
        return DataLoader(items, sampler=once, **self._loading())

    def _loading(self) -> dict[str, Any]:
        return {
            "batch_size": self.batch_size,
            "num_workers": self.num_workers,
            "persistent_workers": self.num_workers > 0,
            # A generator of its own: iterating must not draw from (or depend on) the global one.
            "generator": torch.Generator().manual_seed(address_seed(self.seed, "loader") % 2**63),
        }


def _check_sources(data: Sketches, fold_N: np.ndarray, val_fold: int) -> None:
    source_N = data.table["image_id"].to_numpy()
    shared = set(source_N[fold_N == val_fold]) & set(source_N[(fold_N >= 0) & (fold_N != val_fold)])
    if shared:
        raise ValueError(
            f"{data.name}: {len(shared)} sources stand in training and in validation, for example image_id "
            f"{min(map(str, shared))!r}; make folds with stratified_group_folds(label_N, group_N=image_id, …)"
        )
