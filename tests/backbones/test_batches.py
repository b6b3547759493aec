from __future__ import annotations

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.backbones.batches import AheadLoader, MicroBatches, ShardSampler
from humanlike.backbones.transforms import ImageTransform

INPUT = (3, 16, 16)


@settings(deadline=None, max_examples=30)
@given(items=st.integers(1, 200), size=st.integers(1, 9), per_shard=st.integers(1, 5), world=st.integers(1, 7))
def test_processes_share_all_micro_batches_without_repetition(items, size, per_shard, world):
    num_batches = -(-items // size)
    num_shards = -(-items // (size * per_shard))
    parts = [list(ShardSampler(range(num_shards), per_shard, num_batches, rank, world)) for rank in range(world)]
    assert sorted(b for part in parts for b in part) == list(range(num_batches))
    for part in parts:
        assert part == sorted(part)
        shards = {b // per_shard for b in part}
        whole = [b for s in sorted(shards) for b in range(s * per_shard, min((s + 1) * per_shard, num_batches))]
        assert part == whole, "a shard belongs to one process as a whole"


def test_who_computes_a_shard_does_not_depend_on_what_is_missing():
    assert list(ShardSampler([1, 2, 5], 1, 6, 1, 2)) == [1, 5]
    assert list(ShardSampler([2], 1, 6, 1, 2)) == []


def test_the_last_micro_batch_is_padded_to_the_same_shape(noise):
    data = noise(5, broken=(1,))
    batches = MicroBatches(data.images, ImageTransform(16), 4, INPUT)
    first, last = batches[0], batches[1]
    assert len(batches) == 2
    assert first["x_B3HW"].shape == last["x_B3HW"].shape == (4, *INPUT)
    assert torch.equal(last["x_B3HW"][0], ImageTransform(16)(data.images.load(4)))
    assert not last["x_B3HW"][1:].any()
    assert not first["x_B3HW"][1].any()
    assert first["failed"] == {1: ("noise_1.png", "truncated")}
    assert first["x_B3HW"].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_loader_keeps_the_order(noise, num_workers):
    data = noise(23)
    batches = MicroBatches(data.images, ImageTransform(16), 4, INPUT)
    loader = AheadLoader(batches, ShardSampler([0, 1, 2], 2, 6), num_workers)
    found = list(loader)
    assert [b["index"] for b in found] == list(range(6))
    assert all(torch.equal(b["x_B3HW"], batches[b["index"]]["x_B3HW"]) for b in found)


def test_an_abandoned_loader_ends_its_thread(noise):
    batches = MicroBatches(noise(40).images, ImageTransform(16), 2, INPUT)
    iterator = iter(AheadLoader(batches, ShardSampler([0], 20, 20)))
    next(iterator)
    iterator.close()
    assert not [t for t in threading.enumerate() if t.name == "humanlike-micro-batches"]


def test_errors_of_the_thread_are_raised(noise):
    batches = MicroBatches(noise(4).images, lambda image: torch.zeros(3, *image.size), 2, INPUT)
    with pytest.raises(ValueError, match=r"noise_0.png.*one fixed size"):
        list(AheadLoader(batches, ShardSampler([0], 2, 2)))
