"""Any number of items on any number of processes, in any order: the same bits, and every item computed once."""

from __future__ import annotations

import json
import os
from collections import Counter

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from humanlike.backbones.cache import FeatureCache
from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.features import extract_features
from humanlike.cores import own_cores

TRAINER = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "use_distributed_sampler": False,
}


@pytest.fixture
def backbone(tmp_path):
    """A network whose transform notes, in one file a process, which image it was given."""
    torch.manual_seed(0)
    linear = torch.nn.Linear(12, 5)

    def transform(image):
        pixels = np.asarray(image, dtype=np.float32)
        with open(tmp_path / f"{os.getpid()}.seen", "a") as handle:
            handle.write(f"{image.size}/{pixels.sum():.0f}\n")
        return torch.from_numpy(pixels[:2, :2].transpose(2, 0, 1).copy()) / 255

    return CallableBackbone(lambda x_B3HW: torch.tanh(linear(x_B3HW.flatten(1))), transform, name="linear")


def seen(folder):
    """Image → number of processes that loaded it and times it was loaded, without the probe of the input's shape."""
    by_process = {path: path.read_text().split() for path in folder.glob("*.seen")}
    processes = Counter(image for images in by_process.values() for image in set(images))
    return processes, Counter(image for images in by_process.values() for image in images)


@pytest.mark.parametrize("devices", [2, 3, 7])
@pytest.mark.parametrize("num", [1, 2, 7, 499])
def test_every_item_is_computed_once_and_to_the_same_bits(backbone, noise, tmp_path, monkeypatch, num, devices):
    data = noise(num)
    size = {"micro_batch": 16, "micro_batches_per_shard": 2} if num > 7 else {"micro_batch": 1}
    size |= {"micro_batches_per_shard": size.get("micro_batches_per_shard", 1), "progress": False, "threads": 1}
    alone = extract_features(backbone, data, **size)["output"]
    once = seen(tmp_path)[1]
    for path in tmp_path.glob("*.seen"):
        path.unlink()
    missing = FeatureCache.missing
    order = np.random.default_rng(num * devices).permutation

    def shuffled(self, layers):
        return [int(s) for s in order(np.asarray(missing(self, layers), dtype=int))]

    monkeypatch.setattr(FeatureCache, "missing", shuffled)
    trainer = pl.Trainer(devices=devices, strategy="ddp_fork", **TRAINER)
    found = extract_features(backbone, data, trainer=trainer, cache_dir=tmp_path / "cache", **size)["output"]
    assert found.info["processes"] == devices
    assert np.array_equal(found.f_ND, alone.f_ND)
    assert found.rows.tolist() == list(range(num))
    assert found.hashes == alone.hashes
    _, times = seen(tmp_path)
    assert times == once, "no image is loaded more often than by one process"


@pytest.mark.skipif(len(own_cores()) < 2, reason="one core cannot be shared out")
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot confine a process to cores")
def test_every_process_prepares_and_computes_on_cores_of_its_own(noise, tmp_path):
    """Images are loaded in a thread beside the network; both keep to the share, and this process to nothing."""
    torch.manual_seed(0)
    linear, before = torch.nn.Linear(12, 5), own_cores()

    def note(what):
        (tmp_path / f"{what}.{os.getpid()}").write_text(json.dumps(own_cores()))

    def transform(image):
        note("loads")
        return torch.from_numpy(np.asarray(image, dtype=np.float32)[:2, :2].transpose(2, 0, 1).copy()) / 255

    def network(x_B3HW):
        note("computes")
        return torch.tanh(linear(x_B3HW.flatten(1)))

    trainer = pl.Trainer(devices=2, strategy="ddp_fork", **TRAINER)
    size = {"micro_batch": 2, "micro_batches_per_shard": 1, "progress": False, "threads": 1}
    extract_features(CallableBackbone(network, transform, name="linear"), noise(8), trainer=trainer, **size)
    half = len(before) // 2
    expected = {before[:half], before[half:]}
    for what in ("loads", "computes"):
        noted = {p.name: tuple(json.loads(p.read_text())) for p in tmp_path.glob(f"{what}.*")}
        assert {cores for name, cores in noted.items() if name != f"{what}.{os.getpid()}"} == expected
    assert own_cores() == before
