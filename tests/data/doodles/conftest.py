from __future__ import annotations

import pytest

from humanlike.data.doodles import doodles
from humanlike.types import Sketches


@pytest.fixture(scope="session")
def demo() -> Sketches:
    """The whole demo with its simulated people."""
    return doodles()


@pytest.fixture(scope="session")
def small() -> Sketches:
    """Six concepts, three instances."""
    return doodles(concepts=["cow", "lion", "taxi", "train", "vase", "hat"], instances=3, judgments=12)
