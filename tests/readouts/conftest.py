from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest


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
