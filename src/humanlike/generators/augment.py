"""Random views of a canvas: perspective and crop in one differentiable resampling, the same for every sketch.

A loss on one view alone is met by ink that no person would read as a drawing; averaged over views it asks for what
stays when the sheet is tilted and cropped. Views of a step depend on the seed and the step only. All sketches of a
batch are seen in the same views, so that a sketch is optimised alike alone and in company, and the weights of the
resampling are computed once for all.

Legend: V views, B pictures, C channels. Coordinates are canvas units, [0, 1]², pixel centres at (i + ½)/size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import grid_sample

from humanlike.rng import generator

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


@dataclass(frozen=True)
class Views:
    """How a canvas is seen.

    Attributes:
        num: Random views a step, averaged over; 0 with `plain` for none.
        distortion: How far the corners of the sheet may move inwards, as a share of half the side, in [0, 1).
        crop: Least and greatest share of the side that a view keeps, in (0, 1].
        plain: Also see the canvas as it is, as one more view.

    Raises:
        ValueError: A number is out of its range.
    """

    num: int = 3
    distortion: float = 0.5
    crop: tuple[float, float] = (0.6, 1.0)
    plain: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "crop", tuple(float(share) for share in self.crop))
        if int(self.num) != self.num or self.num < (0 if self.plain else 1):
            raise ValueError(f"views.num must be a whole number, 1 or more (0 with plain=true), got {self.num}")
        if not 0 <= self.distortion < 1:
            raise ValueError(f"views.distortion must lie in [0, 1), got {self.distortion}")
        if len(self.crop) != 2 or not 0 < self.crop[0] <= self.crop[1] <= 1:
            raise ValueError(f"views.crop must be two shares 0 < least ≤ greatest ≤ 1, got {self.crop}")

    def homographies(self, seed: int, step: int) -> torch.Tensor:
        """(V, 3, 3) float64 matrices from a place in the view to the place in the canvas that is seen there."""
        matrices = [np.eye(3)] if self.plain else []
        for view in range(self.num):
            random = generator(seed, "views", step, view)
            moved = CORNERS + (1 - 2 * CORNERS) * random.uniform(0, self.distortion / 2, (4, 2))
            share = random.uniform(*self.crop)
            left, top = random.uniform(0, 1 - share, 2)
            cut = np.array([[share, 0.0, left], [0.0, share, top], [0.0, 0.0, 1.0]])
            matrices.append(homography(moved, CORNERS) @ cut)
        return torch.from_numpy(np.stack(matrices))

    def __call__(self, x_BCHW: torch.Tensor, seed: int, step: int, background: float = 1.0) -> torch.Tensor:
        """(V, B, C, H, W) views of pictures; what lies beyond the sheet is background."""
        if self.plain and not self.num:
            return x_BCHW[None]
        return warped(x_BCHW, self.homographies(seed, step), background)


def homography(from_42: np.ndarray, to_42: np.ndarray) -> np.ndarray:
    """(3, 3) matrix of the projective map that takes four points to four others.

    Example:
        >>> homography(CORNERS, CORNERS * 2).round(6).tolist()
        [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows, right = [], []
    for (x, y), (u, v) in zip(from_42, to_42, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    return np.append(np.linalg.solve(np.array(rows), np.array(right)), 1.0).reshape(3, 3)


def warped(x_BCHW: torch.Tensor, matrix_V33: torch.Tensor, background: float = 1.0) -> torch.Tensor:
    """Pictures seen through projective maps, by bilinear interpolation.

    Args:
        x_BCHW: Pictures.
        matrix_V33: From a place in the view to a place in the picture.
        background: Colour of what lies beyond the picture.

    Returns:
        (V, B, C, H, W), with gradients to the pictures.
    """
    b, c, height, width = x_BCHW.shape
    y, x = ((torch.arange(n, dtype=torch.float64) + 0.5) / n for n in (height, width))
    place = torch.stack(torch.broadcast_tensors(x[None, :], y[:, None], torch.ones(())), dim=-1)
    seen = torch.einsum("vij,hwj->vhwi", matrix_V33.double().cpu(), place.double())
    # grid_sample counts from -1 at one edge of the picture to 1 at the other.
    grid = (2 * seen[..., :2] / seen[..., 2:] - 1).to(x_BCHW)
    # Pictures stand side by side as channels: the weights of the interpolation are the same for all.
    layers = (x_BCHW - background).reshape(1, b * c, height, width).expand(len(grid), -1, -1, -1)
    found = grid_sample(layers, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return found.reshape(len(grid), b, c, height, width) + background
