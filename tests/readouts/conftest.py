from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from humanlike.types import Sketches


class Sample(NamedTuple):
    f_ND: np.ndarray
    label_N: np.ndarray
    group_N: np.ndarray
    num_labels: int


def _sample(n=600, d=24, labels=(2, 3, 7, 8, 11), num_labels=14, items_a_group=3, signal=1.0, seed=0):
    """ReLU-like features with a power-law spectrum; every group holds items of one label."""
    rng = np.random.default_rng(seed)
    position_N = np.arange(n) // items_a_group % len(labels)
    spread_D = np.arange(1, d + 1) ** -0.5
    centre_KD = rng.normal(size=(len(labels), d))
    f_ND = np.maximum((rng.normal(size=(n, d)) + signal * centre_KD[position_N]) * spread_D + 0.3, 0)
    return Sample(f_ND.astype(np.float32), np.asarray(labels)[position_N], np.arange(n) // items_a_group, num_labels)


@pytest.fixture(scope="session")
def make_sample():
    return _sample


@pytest.fixture(scope="session")
def sample():
    return _sample()


class NoiseImages:
    """Small coloured noise images; the mean colour tells the concept a little."""

    def __init__(self, target_N):
        self.target_N = target_N

    def __len__(self):
        return len(self.target_N)

    def load(self, index):
        rng = np.random.default_rng(index)
        pixels = rng.integers(0, 120, (8, 8, 3))
        pixels[..., self.target_N[index] % 3] += 50
        return Image.fromarray(pixels.astype(np.uint8))

    def content_hash(self, index):
        return f"noise {index} {self.target_N[index]}"

    def describe(self, index):
        return f"noise image {index}"


class TinyTransform:
    """Pixels / 255."""

    fingerprint: ClassVar[dict] = {"size": 8}
    size = (8, 8)

    def __call__(self, image):
        image = image.resize(self.size)
        return torch.from_numpy(np.array(image, dtype=np.float32) / 255).permute(2, 0, 1)


class TinyBackbone(torch.nn.Module):
    """A random convolution with BatchNorm, which drifts if anything calls `train()` on it."""

    name = "tiny"
    default_layer = "pooled"
    layers = ("pooled",)

    def __init__(self, width=6):
        super().__init__()
        self.transform = TinyTransform()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.network = torch.nn.Sequential(
                torch.nn.Conv2d(3, width, 3), torch.nn.BatchNorm2d(width), torch.nn.ReLU(), torch.nn.Flatten()
            )

    @property
    def weights_hash(self):
        return f"tiny {sum(float(p.sum()) for p in self.state_dict().values()):.6f}"

    def features(self, x_B3HW, layers):
        return dict.fromkeys(layers, self.network(x_B3HW))


@pytest.fixture
def tiny_backbone():
    return TinyBackbone()


def make_noise_sketches(n=90):
    concept_N = [("ant", "bee", "cat")[i // 2 % 3] for i in range(n)]
    table = pd.DataFrame(
        {
            "sketch_id": [f"s{i}" for i in range(n)],
            "concept": concept_N,
            "condition": [float(i % 2) for i in range(n)],
            "image_id": [f"photo{i // 2}" for i in range(n)],
        }
    )
    labels = ("ant", "asp", "bee", "cat")
    target_N = np.array([labels.index(c) for c in concept_N])
    return Sketches("noise", table, labels, NoiseImages(target_N))


@pytest.fixture(scope="session")
def noise_sketches():
    return make_noise_sketches()
