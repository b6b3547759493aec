"""A backbone's preprocessing of canvases that are tensors already, with a gradient to the pixels.

`ImageTransform` reads bytes through Pillow. Here the same resize, crop and normalisation are two matrix products with
Pillow's own weights, so that a picture in memory reaches the network as its file would, but for the rounding to bytes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import pad

from humanlike.backbones.transforms import RESAMPLING, ImageTransform, _scaled
from humanlike.interfaces import Transform


class PixelTransform:
    """`ImageTransform` for (B, 3, H, W) tensors in [0, 1], differentiable.

    Pillow resizes along one axis, rounds and clips to bytes, and then along the other; here is the same order and the
    same clipping to [0, 1], without rounding, so that values differ from those of the file's by up to a byte's step.

    Args:
        transform: The backbone's transform.

    Raises:
        TypeError: The transform is a function of a user's own, whose derivative nobody knows.

    Example:
        >>> PixelTransform(ImageTransform(size=8))(torch.ones(1, 3, 20, 10)).shape
        torch.Size([1, 3, 8, 8])
    """

    def __init__(self, transform: Transform) -> None:
        if not isinstance(transform, ImageTransform):
            raise TypeError(
                f"a gradient to the pixels needs a transform that is known, an ImageTransform, got "
                f"{type(transform).__name__}; give the backbone transform={{size: …, mean: …, std: …}}"
            )
        self.transform = transform

    def __call__(self, x_B3HW: torch.Tensor) -> torch.Tensor:
        """The network's input; float32 or wider.

        Raises:
            ValueError: Not three channels.
        """
        if x_B3HW.ndim != 4 or x_B3HW.shape[1] != 3:
            raise ValueError(f"x_B3HW must be (B, 3, H, W), got {tuple(x_B3HW.shape)}; canvas.expand(-1, 3, -1, -1)")
        t = self.transform
        x = x_B3HW if x_B3HW.dtype == torch.float64 else x_B3HW.float()
        if x.stride(1) == 0:  # a grey canvas, expanded: until they are coloured, its channels are one
            x = x[:, :1]
        size, fill = _resized(t, x.shape[2], x.shape[3])
        for axis in _order(tuple(x.shape[2:]), size, t.interpolation):
            x = _resize(x, axis, size[axis], t.interpolation)
        mean, std = (x.new_tensor(v).view(3, 1, 1) for v in (t.mean, t.std))
        return (_cropped(x, t.height_width, fill) - mean) / std


def _resized(t: ImageTransform, height: int, width: int) -> tuple[tuple[int, int], tuple[float, float, float]]:
    """(height, width) after the resize, and the colour of what lies outside; `transforms._FRAMINGS` in numbers."""
    goal = _scaled(t.height_width, t.crop_pct)
    if t.crop_mode == "squash":
        return goal, (0, 0, 0)
    if t.crop_mode == "center" and goal[0] == goal[1]:
        long = int(goal[0] * max(height, width) / min(height, width))
        return ((long, goal[1]) if width <= height else (goal[0], long)), (0, 0, 0)
    ratios = (height / goal[0], width / goal[1])
    ratio = max(ratios) if t.crop_mode == "border" else min(ratios)
    edge = tuple(round(255 * m) / 255 for m in t.mean) if t.crop_mode == "border" else (0, 0, 0)
    return (round(height / ratio), round(width / ratio)), (edge[0], edge[1], edge[2])


def _cropped(x_B3HW: torch.Tensor, height_width: tuple[int, int], fill: tuple[float, ...]) -> torch.Tensor:
    """The middle, padded where there is less."""
    height, width = height_width
    short = (max(0, height - x_B3HW.shape[2]), max(0, width - x_B3HW.shape[3]))
    if any(short):
        top, left = short[0] // 2, short[1] // 2
        sides = (left, short[1] - left, top, short[0] - top)
        colour = x_B3HW.new_tensor(fill).view(3, 1, 1)
        x_B3HW = pad(x_B3HW - colour, sides) + colour
    top, left = round((x_B3HW.shape[2] - height) / 2), round((x_B3HW.shape[3] - width) / 2)
    return x_B3HW[:, :, top : top + height, left : left + width]


def _resize(x_BCHW: torch.Tensor, axis: int, resized: int, interpolation: str) -> torch.Tensor:
    """Along one axis (0: down the columns, 1: along the rows), clipped as bytes are."""
    size = x_BCHW.shape[2 + axis]
    if size == resized:
        return x_BCHW
    weights = _weights(size, resized, interpolation).to(x_BCHW)
    return (x_BCHW @ weights if axis else weights.T @ x_BCHW).clamp(0, 1)


@lru_cache(maxsize=64)
def _order(size: tuple[int, int], resized: tuple[int, int], interpolation: str) -> tuple[int, int]:
    """Which axis Pillow resizes first: seen on an image, because versions differ.

    It matters where a filter overshoots, since what is clipped after the first axis is not there for the second.
    """
    noise = np.random.Generator(np.random.Philox(key=0)).integers(0, 256, size, dtype=np.uint8)
    theirs = np.array(Image.fromarray(noise).resize(resized[::-1], RESAMPLING[interpolation]), dtype=np.float64) / 255
    x_BCHW = torch.from_numpy(noise / 255)[None, None]

    def distance(order: tuple[int, int]) -> float:
        x = x_BCHW
        for axis in order:
            x = _resize(x, axis, resized[axis], interpolation)
        return float((x[0, 0] - torch.from_numpy(theirs)).abs().max())

    return min(((1, 0), (0, 1)), key=distance)


@lru_cache(maxsize=64)
def _weights(size: int, resized: int, interpolation: str) -> torch.Tensor:
    """(size, resized) weights of every source pixel in every pixel of the result: Pillow's, of one lit pixel a row."""
    lit = Image.fromarray(np.eye(size, dtype=np.float32))
    return torch.from_numpy(np.array(lit.resize((resized, size), RESAMPLING[interpolation])))
