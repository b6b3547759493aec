"""Tiny data sets and backbones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from humanlike.backbones.vision import TimmBackbone
from humanlike.data.images import BadImageError
from humanlike.types import Sketches


@dataclass
class NoiseImages:
    """Seeded noise of differing sizes; `broken` items cannot be read; `loads` counts every decoded item."""

    num: int
    broken: frozenset[int] = frozenset()
    salt: str = ""
    loads: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return self.num

    def load(self, index: int) -> Image.Image:
        self.loads.append(index)
        if index in self.broken:
            raise BadImageError(f"noise_{index}.png", "truncated")
        random = np.random.default_rng(index)
        height, width = random.integers(20, 60, 2)
        return Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))

    def content_hash(self, index: int) -> str:
        return f"{self.salt}{index}"

    def describe(self, index: int) -> str:
        return f"noise_{index}.png"


@pytest.fixture(scope="session")
def noise() -> Callable[..., Sketches]:
    """Makes a data set of noise images."""

    def make(num: int, broken: tuple[int, ...] = (), salt: str = "") -> Sketches:
        table = pd.DataFrame({"sketch_id": [f"s{i}" for i in range(num)], "concept": "noise", "condition": 0.0})
        images = NoiseImages(num, frozenset(broken), salt)
        return Sketches("noise", table.assign(image_id=table["sketch_id"]), ("noise",), images)

    return make


@pytest.fixture(scope="session")
def convolutional() -> TimmBackbone:
    """A tiny random network with BatchNorm, at 32 pixels."""
    return TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})


@pytest.fixture
def own() -> TimmBackbone:
    """The same network for a test to change."""
    return TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})


@pytest.fixture(scope="session")
def counting() -> Callable[[TimmBackbone], Callable[[], int]]:
    """Counts forward passes of a network from now on."""

    def start(backbone: TimmBackbone) -> Callable[[], int]:
        calls = []
        backbone.network.conv_stem.register_forward_hook(lambda *_: calls.append(1))
        return lambda: len(calls)

    return start


@pytest.fixture
def plain_features() -> Callable[..., np.ndarray]:
    """The referee: one image after the other through the network, no batches, no hooks, no cache."""

    def run(backbone: TimmBackbone, data: Sketches, rows: list[int] | None = None) -> np.ndarray:
        network = backbone.network
        with torch.no_grad():
            return np.concatenate(
                [
                    network.forward_head(
                        network.forward_features(backbone.transform(data.images.load(i))[None]), pre_logits=True
                    ).numpy()
                    for i in (rows if rows is not None else range(len(data)))
                ]
            )

    return run
