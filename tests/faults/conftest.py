"""Data, networks and processes to break."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from PIL import Image

from humanlike.backbones.features import extract_features
from humanlike.backbones.vision import TimmBackbone
from humanlike.types import Sketches

SETTINGS = {"micro_batch": 4, "micro_batches_per_shard": 1, "progress": False, "threads": 1}


@dataclass(frozen=True)
class NoiseImages:
    """Seeded noise."""

    num: int

    def __len__(self) -> int:
        return self.num

    def load(self, index: int) -> Image.Image:
        random = np.random.default_rng(index)
        return Image.fromarray(random.integers(0, 256, (32, 32, 3), dtype=np.uint8))

    def content_hash(self, index: int) -> str:
        return f"noise{index}"

    def describe(self, index: int) -> str:
        return f"noise_{index}.png"


@pytest.fixture
def noise():
    """`noise(N)`: a data set of N noise images."""

    def make(num: int) -> Sketches:
        table = pd.DataFrame({"sketch_id": [f"s{i}" for i in range(num)], "concept": "noise", "condition": 0.0})
        return Sketches("noise", table.assign(image_id=table["sketch_id"]), ("noise",), NoiseImages(num))

    return make


@pytest.fixture
def network() -> TimmBackbone:
    """A tiny random convolutional network."""
    return TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})


@pytest.fixture
def forked():
    """`forked(W)`: a trainer that forks W processes."""

    def make(processes: int) -> pl.Trainer:
        return pl.Trainer(
            accelerator="cpu",
            devices=processes,
            strategy="ddp_fork" if processes > 1 else "auto",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )

    return make


@pytest.fixture
def extract(network, forked):
    """`extract(data, processes, cache_dir)` → features of the network's default layer."""

    def run(data, processes=1, cache_dir=None, **options):
        trainer = forked(processes) if processes > 1 else None
        return extract_features(network, data, trainer=trainer, cache_dir=cache_dir, **{**SETTINGS, **options})[
            network.default_layer
        ]

    return run


@pytest.fixture
def start():
    """`start(function, *arguments)`: a forked process; what still runs at the end of a test is killed."""
    context, started = multiprocessing.get_context("fork"), []

    def run(function, *arguments):
        def child():
            os.setsid()
            torch.set_num_threads(1)
            function(*arguments)

        process = context.Process(target=child)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
            process.start()
        started.append(process)
        return process

    yield run
    for process in started:
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


@pytest.fixture
def within():
    """`with within(S)`: fail where the block took longer than S seconds."""

    @contextmanager
    def limit(seconds: float):
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        assert took < seconds, f"it took {took:.1f} s, allowed were {seconds} s"

    return limit


@pytest.fixture
def until():
    """`until(condition, seconds)`: wait for a condition, or fail."""

    def wait(condition, seconds: float = 30.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"nothing happened within {seconds} s"
            time.sleep(0.01)

    return wait
