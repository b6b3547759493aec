"""A backbone that sees whole images: one resize of both sides, nothing cropped, the network's own normalisation."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

from humanlike.backbones.transforms import ImageTransform
from humanlike.interfaces import Backbone

B = TypeVar("B", bound=Backbone)


def whole_image_transform(backbone: Backbone, size: int = 224) -> ImageTransform:
    """Whole image → size × size, bilinear, with the mean and standard deviation that the backbone normalises by.

    Novel objects stand off centre, and the crop of an ImageNet transform would cut some of them off.

    Args:
        backbone: The network; it must have an ImageTransform, whose normalisation is known.
        size: Side of the network's input in pixels.

    Raises:
        ValueError: When the backbone's transform is one of the user's own.
    """
    own = backbone.transform
    if not isinstance(own, ImageTransform):
        raise ValueError(
            f"{backbone.name} has a transform of its own ({type(own).__name__}), whose normalisation is not known; "
            "use benchmark.transform=backbone"
        )
    return ImageTransform(size, 1.0, "squash", "bilinear", own.mean, own.std)


def with_whole_images(backbone: B, size: int = 224) -> B:
    """The same network (its parameters are shared), with `whole_image_transform` in the place of its own.

    Raises:
        ValueError: See `whole_image_transform`.
    """
    transform = whole_image_transform(backbone, size)
    seeing = copy.copy(backbone)
    seeing.transform = transform
    if isinstance(seeing, nn.Module) and hasattr(seeing, "_shapes"):
        seeing._shapes = None  # shapes of activations depend on the size of the input
    return seeing
