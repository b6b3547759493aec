"""SketchMixer, a small network for line drawings whose layers look either at places or at channels, never at both.

It is made to disagree with `SketchNet` where a picture leaves room for it: patches instead of a first convolution, wide
kernels on every channel alone with residual paths, and no pooling on the way but one step from 16 to 8 cells.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from humanlike.backbones.architectures.sketch_net import Ink

PATCH = 4
"""Side of a patch in pixels."""


class Mix(nn.Module):
    """x + depthwise convolution over places, then a layer over channels; each with GELU and BatchNorm."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.places = nn.Sequential(
            nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=channels),
            nn.GELU(),
            nn.BatchNorm2d(channels),
        )
        self.channels = nn.Sequential(nn.Conv2d(channels, channels, 1), nn.GELU(), nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) → the same shape."""
        return self.channels(x + self.places(x))


class SketchMixer(nn.Module):
    """Patches of 4 × 4 pixels, two stages of mixing, means over a 2 × 2 grid, a linear classifier.

    Pictures are RGB in [0, 1] as they are, 64 pixels a side or another multiple of 8.

    Args:
        num_classes: Classes of the classifier.
        width: Channels of the first stage; the second has twice as many.
        depth: Layers of mixing in each stage.
        kernel: Side of the kernels over places, odd.

    References:
        Trockman and Kolter, Patches Are All You Need?, TMLR 2023, for layers of this kind.

    Example:
        >>> SketchMixer(num_classes=5).eval()(torch.ones(2, 3, 64, 64)).shape
        torch.Size([2, 5])
    """

    def __init__(self, num_classes: int = 48, width: int = 64, depth: int = 2, kernel: int = 5) -> None:
        super().__init__()
        self.num_features = 4 * 2 * width
        self.trunk = nn.Sequential(
            OrderedDict(
                ink=Ink(),
                patches=nn.Sequential(nn.Conv2d(1, width, PATCH, stride=PATCH), nn.GELU(), nn.BatchNorm2d(width)),
                stage1=nn.Sequential(*(Mix(width, kernel) for _ in range(depth))),
                step=nn.Sequential(nn.Conv2d(width, 2 * width, 2, stride=2), nn.GELU(), nn.BatchNorm2d(2 * width)),
                stage2=nn.Sequential(*(Mix(2 * width, kernel) for _ in range(depth))),
                pool=nn.AdaptiveAvgPool2d(2),
                flatten=nn.Flatten(),
            )
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.num_features, num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) in [0, 1] → (B, num_classes) logits."""
        return self.classifier(self.trunk(x))
