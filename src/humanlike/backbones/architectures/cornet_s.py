"""CORnet-S, a shallow recurrent network with one block for each of four areas of the ventral stream.

References:
    Kubilius, Schrimpf et al., Brain-like object recognition with high-performing shallow recurrent ANNs, NeurIPS 2019,
    section 2 and figure 1: V1 is two convolutions; V2, V4 and IT run their bottleneck 2, 4 and 2 times with the same
    convolutions and a BatchNorm of each time step's own; the first step halves the map.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

EXPANSION = 4


class RecurrentArea(nn.Module):
    """A cortical area: a bottleneck that is fed its own output.

    h_0 = conv_input(x), h_{t+1} = relu(BN(conv3(relu(BN(conv2(relu(BN(conv1(h_t)))))))) + s_t), where the skip s_t is
    h_t itself, in the first step projected and halved.

    Args:
        in_channels: Channels of the area before.
        out_channels: Channels of this area.
        times: Steps T.
    """

    def __init__(self, in_channels: int, out_channels: int, times: int) -> None:
        super().__init__()
        self.times = times
        wide = EXPANSION * out_channels
        self.conv_input = nn.Conv2d(in_channels, out_channels, 1, bias=False)
        self.skip = nn.Conv2d(out_channels, out_channels, 1, stride=2, bias=False)
        self.norm_skip = nn.BatchNorm2d(out_channels)
        self.conv1 = nn.Conv2d(out_channels, wide, 1, bias=False)
        # The published network halves the map here too, in its first step only; see `forward`.
        self.conv2 = nn.Conv2d(wide, wide, 3, stride=2, padding=1, bias=False)
        self.conv3 = nn.Conv2d(wide, out_channels, 1, bias=False)
        self.output = nn.Identity()
        for t in range(times):
            self.add_module(f"norm1_{t}", nn.BatchNorm2d(wide))
            self.add_module(f"norm2_{t}", nn.BatchNorm2d(wide))
            self.add_module(f"norm3_{t}", nn.BatchNorm2d(out_channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, in_channels, H, W) → (B, out_channels, H/2, W/2)."""
        h = self.conv_input(x)
        for t in range(self.times):
            skip = self.norm_skip(self.skip(h)) if t == 0 else h
            a = torch.relu(self.get_submodule(f"norm1_{t}")(self.conv1(h)))
            stride = 2 if t == 0 else 1
            a = nn.functional.conv2d(a, self.conv2.weight, stride=stride, padding=1)
            a = torch.relu(self.get_submodule(f"norm2_{t}")(a))
            h = torch.relu(self.get_submodule(f"norm3_{t}")(self.conv3(a)) + skip)
        return self.output(h)


class CORnetS(nn.Sequential):
    """CORnet-S: V1, V2, V4, IT and a linear decoder.

    Args:
        num_classes: Classes of the decoder.

    Example:
        >>> CORnetS(num_classes=10).eval()(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 10])
    """

    def __init__(self, num_classes: int = 1000) -> None:
        v1 = OrderedDict(
            conv1=nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            norm1=nn.BatchNorm2d(64),
            nonlin1=nn.ReLU(),
            pool=nn.MaxPool2d(3, stride=2, padding=1),
            conv2=nn.Conv2d(64, 64, 3, padding=1, bias=False),
            norm2=nn.BatchNorm2d(64),
            nonlin2=nn.ReLU(),
        )
        decoder = OrderedDict(avgpool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), linear=nn.Linear(512, num_classes))
        super().__init__(
            OrderedDict(
                V1=nn.Sequential(v1),
                V2=RecurrentArea(64, 128, times=2),
                V4=RecurrentArea(128, 256, times=4),
                IT=RecurrentArea(256, 512, times=2),
                decoder=nn.Sequential(decoder),
            )
        )
