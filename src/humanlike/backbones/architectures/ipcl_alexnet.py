"""AlexNet with group normalisation, as trained by instance-prototype contrastive learning (IPCL).

References:
    Konkle and Alvarez, A self-supervised domain-general learning framework for human ventral stream representation,
    Nature Communications 2022, Methods: five convolutions with group normalisation (32 groups), two linear layers with
    batch normalisation, and an embedding of 128 numbers on the unit sphere.
"""

from __future__ import annotations

import torch
from torch import nn

GROUPS = 32


class AlexNetGN(nn.Module):
    """The network of IPCL; its output is the embedding of length 1.

    Args:
        embedding: Numbers of the embedding.

    Example:
        >>> f = AlexNetGN().eval()(torch.rand(2, 3, 224, 224))
        >>> f.shape, torch.allclose(f.norm(dim=1), torch.ones(2))
        (torch.Size([2, 128]), True)
    """

    def __init__(self, embedding: int = 128) -> None:
        super().__init__()
        self.conv_block_1 = _block(3, 96, 11, stride=4, padding=2, pool=True)
        self.conv_block_2 = _block(96, 256, 5, padding=2, pool=True)
        self.conv_block_3 = _block(256, 384, 3, padding=1)
        self.conv_block_4 = _block(384, 384, 3, padding=1)
        self.conv_block_5 = _block(384, 256, 3, padding=1, pool=True)
        self.ave_pool = nn.AdaptiveAvgPool2d(6)
        self.fc6 = _linear(256 * 6 * 6, 4096)
        self.fc7 = _linear(4096, 4096)
        self.fc8 = nn.Sequential(nn.Linear(4096, embedding))

    def forward(self, x_B3HW: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) → (B, embedding), each row of length 1."""
        x = self.conv_block_2(self.conv_block_1(x_B3HW))
        x = self.conv_block_5(self.conv_block_4(self.conv_block_3(x)))
        x = self.fc7(self.fc6(self.ave_pool(x).flatten(1)))
        return nn.functional.normalize(self.fc8(x), dim=1)


def _block(
    in_channels: int, out_channels: int, kernel: int, stride: int = 1, padding: int = 0, pool: bool = False
) -> nn.Sequential:
    convolution = nn.Conv2d(in_channels, out_channels, kernel, stride, padding, bias=False)
    layers = [convolution, nn.GroupNorm(GROUPS, out_channels), nn.ReLU()]
    return nn.Sequential(*layers, *([nn.MaxPool2d(3, 2)] if pool else []))


def _linear(in_features: int, out_features: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(in_features, out_features), nn.BatchNorm1d(out_features), nn.ReLU())
