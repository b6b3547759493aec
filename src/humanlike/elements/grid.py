"""A layer's map pooled to a small grid: where in the picture something is, without every position of the map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import adaptive_avg_pool2d

from humanlike.backbones.layers import layer_shapes
from humanlike.interfaces import Backbone


class GridPool:
    """Flattened activations of a map or of tokens → means over the cells of a `side` × `side` grid, flattened.

    A map is (C, H, W), or (H, W, C) where the two first axes are equal and the last is another; tokens are (T, C): the
    largest square number of them counts as the plane, those before it (class token, registers) are left out.

    Args:
        shape: Shape of the activation for one image.
        side: Cells a side; 1 is the mean over all positions.

    Raises:
        ValueError: The activation has no positions, or fewer a side than `side`.

    Example:
        >>> GridPool((1, 2, 2), side=1)(torch.arange(4.0)[None]).tolist(), GridPool((5, 3), side=2).num_features
        ([[1.5]], 12)
    """

    def __init__(self, shape: Sequence[int], side: int = 1) -> None:
        self.shape, self.side = tuple(int(s) for s in shape), int(side)
        if len(self.shape) not in (2, 3):
            raise ValueError(f"an activation of shape {self.shape} has no positions to pool; use side=null")
        self._tokens = len(self.shape) == 2
        self._channels_last = len(self.shape) == 3 and self.shape[0] == self.shape[1] != self.shape[2]
        if self._tokens:
            width = math.isqrt(self.shape[0])
            channels, plane = self.shape[1], (width, width)
        else:
            channels = self.shape[2] if self._channels_last else self.shape[0]
            plane = (self.shape[1], self.shape[1] if self._channels_last else self.shape[2])
        if not 1 <= self.side <= min(plane):
            raise ValueError(f"the layer's plane has {plane[0]} × {plane[1]} positions; no grid of side {side} fits")
        self._plane = plane
        self.num_features = channels * self.side**2

    @classmethod
    def of(cls, backbone: Backbone, layer: str | None, side: int | None) -> GridPool | None:
        """The pool of a backbone's layer; None where `side` is None, or the layer is flat already and `side` is 1."""
        if side is None:
            return None
        name = layer or backbone.default_layer
        shape = next((s.shape for s in layer_shapes(backbone) if s.name == name), None)
        if shape is None:
            raise ValueError(f"{backbone.name} has no layer {name!r} with a known shape")
        return None if len(shape) == 1 and side == 1 else cls(shape, side)

    def __call__(self, f_BD: torch.Tensor) -> torch.Tensor:
        """(B, channels · side²) means of the (B, D) flattened activations."""
        a_B = f_BD.reshape(len(f_BD), *self.shape)
        if self._tokens:
            a_B = a_B[:, -self._plane[0] * self._plane[1] :].mT.unflatten(2, self._plane)
        elif self._channels_last:
            a_B = a_B.permute(0, 3, 1, 2)
        return adaptive_avg_pool2d(a_B, self.side).flatten(1)

    def record(self) -> dict[str, Any]:
        """What a file keeps."""
        return {"shape": list(self.shape), "side": self.side}
