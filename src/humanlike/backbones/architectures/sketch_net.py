"""SketchNet, a small convolutional network for line drawings, meant to be trained from scratch in minutes on a CPU.

This project's own design: ink instead of paper is the signal (paper is 0, so that borders need no padding colour),
stride-2 convolutions early, because strokes are sparse, and a coarse grid kept at the end, because which parts a
drawing shows depends on where they are.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn


class Ink(nn.Module):
    """(B, 3, H, W) paper white = 1 → (B, 1, H, W) ink = 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """1 minus the mean over colours."""
        return 1 - x.mean(1, keepdim=True)


class Block(nn.Sequential):
    """3 × 3 convolution, BatchNorm, ReLU."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__(
            OrderedDict(
                conv=nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False),
                norm=nn.BatchNorm2d(out_channels),
                nonlin=nn.ReLU(),
            )
        )


class SketchNet(nn.Module):
    """Six convolutions, means over a 2 × 2 grid, a linear classifier; 0.3 million parameters.

    Pictures are RGB in [0, 1] as they are (mean 0, standard deviation 1), 64 or 96 pixels a side.

    Args:
        num_classes: Classes of the classifier.
        width: Channels of the first convolution; the last has six times as many.

    Example:
        >>> SketchNet(num_classes=5).eval()(torch.ones(2, 3, 64, 64)).shape
        torch.Size([2, 5])
    """

    def __init__(self, num_classes: int = 48, width: int = 24) -> None:
        super().__init__()
        self.num_features = 4 * 6 * width
        self.trunk = nn.Sequential(
            OrderedDict(
                ink=Ink(),
                block1=Block(1, width, stride=2),
                block2=Block(width, 2 * width, stride=2),
                block3=Block(2 * width, 2 * width),
                block4=Block(2 * width, 4 * width, stride=2),
                block5=Block(4 * width, 4 * width),
                block6=Block(4 * width, 6 * width, stride=2),
                pool=nn.AdaptiveAvgPool2d(2),
                flatten=nn.Flatten(),
            )
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.num_features, num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) in [0, 1] → (B, num_classes) logits."""
        return self.classifier(self.trunk(x))
