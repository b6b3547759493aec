from __future__ import annotations

import pytest

from humanlike.data.novel_objects import high_variation_images, one_shot_images
from humanlike.data.object_learning import ImageSet


@pytest.fixture(scope="session")
def high_variation() -> ImageSet:
    """Four objects, six images each."""
    return high_variation_images(objects=4, images=6)


@pytest.fixture(scope="session")
def one_shot() -> ImageSet:
    """Two objects with their 61 images."""
    return one_shot_images(objects=2)
