"""Features and sessions small enough that loops with weight vectors simulate them in a moment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from humanlike.learners import calibrate
from humanlike.rng import generator


@pytest.fixture
def features() -> Callable[..., np.ndarray]:
    """(images, D) calibrated features of two objects that overlap, by seed."""

    def make(seed: int = 0, images: int = 40, dimensions: int = 16, separation: float = 0.5) -> np.ndarray:
        rng = generator(seed, "tests", "features")
        objects_2D = separation * rng.normal(size=(2, dimensions))
        x_ND = rng.normal(size=(images, dimensions)) + np.repeat(objects_2D, images // 2, 0)
        return calibrate(x_ND, rng.normal(size=(60, dimensions)))

    return make


@pytest.fixture
def sessions() -> Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Orders with repeats, correct actions and coins, by seed."""

    def make(
        seed: int = 0, count: int = 20, trials: int = 30, images: int = 40, num_choices: int = 2
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = generator(seed, "tests", "sessions")
        order_ST = rng.integers(images, size=(count, trials))
        label_SN = rng.integers(num_choices, size=(count, images))
        return order_ST, np.take_along_axis(label_SN, order_ST, 1), rng.random((count, trials))

    return make
