"""Micro-batches of one fixed shape, so that loader, order and number of processes cannot change a feature.

Item b of the data set is the whole micro-batch b: items [b·B, (b+1)·B), padded with zeros to B rows. Convolutions
choose their algorithm, and with it the last bits of every result, by the shape of the batch; here every forward pass
has the same.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import TypedDict

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from humanlike.data.images import BadImageError
from humanlike.interfaces import Transform
from humanlike.types import ImageSource


class MicroBatch(TypedDict):
    """One forward pass: `index` b, padded images `x_B3HW`, and item index → (where, reason) of unreadable images."""

    index: int
    x_B3HW: torch.Tensor
    failed: dict[int, tuple[str, str]]


class MicroBatches(Dataset[MicroBatch]):
    """Micro-batches of consecutive items.

    Args:
        images: Where images come from.
        transform: RGB image → (3, H, W).
        size: Rows B of every micro-batch.
        input_3HW: Shape that every transformed image must have.
        channels_last: Memory layout of the batch.
    """

    def __init__(
        self,
        images: ImageSource,
        transform: Transform,
        size: int,
        input_3HW: tuple[int, int, int],
        channels_last: bool = True,
    ) -> None:
        self.images = images
        self.transform = transform
        self.size = size
        self.input_3HW = input_3HW
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format

    def __len__(self) -> int:
        return -(-len(self.images) // self.size)

    def items(self, index: int) -> range:
        """Item indices of micro-batch `index`."""
        return range(index * self.size, min((index + 1) * self.size, len(self.images)))

    def __getitem__(self, index: int) -> MicroBatch:
        """Micro-batch `index`; rows of unreadable images and of the padding are zero."""
        x_B3HW = torch.empty((self.size, *self.input_3HW), memory_format=self.memory_format).zero_()
        failed: dict[int, tuple[str, str]] = {}
        for row, item in enumerate(self.items(index)):
            try:
                image = self.images.load(item)
            except BadImageError as error:
                failed[item] = (error.where, error.reason)
                continue
            x_3HW = self.transform(image)
            if tuple(x_3HW.shape) != self.input_3HW:
                raise ValueError(
                    f"the transform gives shape {tuple(x_3HW.shape)} for {self.images.describe(item)} but "
                    f"{self.input_3HW} for others; it must end with a resize or crop to one fixed size"
                )
            x_B3HW[row] = x_3HW
        return {"index": index, "x_B3HW": x_B3HW, "failed": failed}


class ShardSampler(Sampler[int]):
    """Micro-batch indices of the shards that belong to one process; no index is repeated, a process may have none.

    Shard s belongs to process s mod W, whether or not it is still to be computed: processes that look at the cache at
    different moments then never disagree about who computes what.

    Args:
        shards: Shards to compute.
        per_shard: Micro-batches a shard.
        num_batches: Number of all micro-batches.
        rank: This process.
        world_size: Number W of processes.

    Example:
        >>> [list(ShardSampler([0, 1, 2], 2, 5, rank, 2)) for rank in range(2)]
        [[0, 1, 4], [2, 3]]
    """

    def __init__(
        self, shards: Sequence[int], per_shard: int, num_batches: int, rank: int = 0, world_size: int = 1
    ) -> None:
        self.indices = [
            b
            for s in shards
            if s % world_size == rank
            for b in range(s * per_shard, min((s + 1) * per_shard, num_batches))
        ]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class AheadLoader:
    """Micro-batches, prepared in a thread while the network works on the one before.

    Decoding, resizing and the network's operators release Python's lock, so one core stays with the network. A plain
    iterable, not a DataLoader: Lightning would replace the sampler of a DataLoader by one that repeats items. It
    states no length, because Lightning warns of processes without work.

    Args:
        batches: The data set.
        sampler: Which micro-batches, in which order.
        num_workers: Processes that prepare micro-batches; 0 leaves it to the thread.
        depth: Micro-batches held ready.
    """

    def __init__(self, batches: MicroBatches, sampler: ShardSampler, num_workers: int = 0, depth: int = 2) -> None:
        self.loader = DataLoader(batches, batch_size=None, sampler=sampler, num_workers=num_workers)
        self.depth = depth

    def __iter__(self) -> Iterator[MicroBatch]:
        """The micro-batches in the sampler's order; an error of the thread is raised here."""
        if self.loader.num_workers:
            yield from self.loader  # already ahead; forking from a thread is best avoided
            return
        ready: queue.Queue[MicroBatch | BaseException | None] = queue.Queue(maxsize=self.depth)
        stop = threading.Event()

        def put(item: MicroBatch | BaseException | None) -> None:
            while not stop.is_set():
                try:
                    ready.put(item, timeout=0.1)
                    return
                except queue.Full:
                    continue

        def prepare() -> None:
            try:
                for batch in self.loader:
                    if stop.is_set():
                        return
                    put(batch)
                put(None)
            except BaseException as error:  # handed to the consumer, which raises it
                put(error)

        thread = threading.Thread(target=prepare, name="humanlike-micro-batches", daemon=True)
        thread.start()
        try:
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stop.set()
            thread.join()
