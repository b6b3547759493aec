"""From a mesh and a view of it to gray pixels: parallel projection, smooth shading, anti-aliased edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from humanlike.data.novel_objects.horn import Mesh
from humanlike.data.novel_objects.rotations import Angles, pose_matrix, turn

RENDERER_VERSION = 1
REFERENCE_SHARE = 0.5
"""Size 1 means that the ball around the object spans this share of the image, as `s` in the published metadata."""


@dataclass(frozen=True)
class View:
    """How an object stands in an image.

    Attributes:
        pose: (3, 3) rotation from the object's axes to the camera's; or see `of_angles`.
        s: Size; the ball around the object spans s/2 of the image's side.
        u: Position of the ball's centre right of the image's centre, as a fraction of the side.
        v: Position below the image's centre, as a fraction of the side.
        roll: Counterclockwise turn of the finished picture of the object in degrees; its shading turns along.
    """

    pose: np.ndarray = field(default_factory=lambda: np.eye(3))
    s: float = 1.0
    u: float = 0.0
    v: float = 0.0
    roll: float = 0.0

    @classmethod
    def of_angles(cls, angles: Angles, s: float = 1.0, u: float = 0.0, v: float = 0.0) -> View:
        """A view by the three angles of the metadata."""
        return cls(pose_matrix(angles), s, u, v)


class Layer(NamedTuple):
    """The picture of an object without a background.

    Attributes:
        bright_HW: (H, W) float64 brightness in [0, 1], premultiplied by coverage.
        cover_HW: (H, W) float64 coverage in [0, 1].
    """

    bright_HW: np.ndarray
    cover_HW: np.ndarray

    def over(self, background_HW: np.ndarray) -> np.ndarray:
        """(H, W) float64 image: the object on a background."""
        return self.bright_HW + (1 - self.cover_HW) * background_HW


@dataclass(frozen=True)
class Renderer:
    """How meshes become pixels.

    Attributes:
        size: Side of the images in pixels.
        samples: Samples a side of a pixel.
        light: Direction towards the key light in camera axes.
        ambient, headlight, key: Brightness that does not depend on the surface's direction, that of a lamp at the
            camera, and that of the key light.
        depth: How much darker the furthest point of the ball is than the nearest.
    """

    size: int = 256
    samples: int = 3
    light: tuple[float, float, float] = (-0.45, 0.65, 0.6)
    ambient: float = 0.04
    headlight: float = 0.4
    key: float = 0.62
    depth: float = 0.4

    def __post_init__(self) -> None:
        if self.size < 8 or not 1 <= self.samples <= 8:
            raise ValueError(f"size must be 8 or more and samples 1 to 8, got {self.size} and {self.samples}")

    def __call__(self, mesh: Mesh, view: View) -> Layer:
        """The picture of a mesh in the unit ball; parts outside the image are cut off."""
        from humanlike.data.novel_objects.rasterizer import rasterize, shade

        turned = mesh.vertex_V3 @ view.pose.T
        normal = mesh.normal_V3 @ view.pose.T
        flat = turned @ turn("z", view.roll).T
        radius = view.s * REFERENCE_SHARE / 2 * self.size
        column = self.size * (0.5 + view.u) + radius * flat[:, 0]
        row = self.size * (0.5 + view.v) - radius * flat[:, 1]
        left, right = self._span(column)
        top, bottom = self._span(row)
        layer = Layer(np.zeros((self.size, self.size)), np.zeros((self.size, self.size)))
        if left >= right or top >= bottom:
            return layer
        placed = np.stack([(column - left) * self.samples, (row - top) * self.samples, flat[:, 2]], axis=1)
        shape = ((bottom - top) * self.samples, (right - left) * self.samples)
        height, normals = rasterize(placed, np.ascontiguousarray(normal), mesh.face_F3, *shape)
        light = np.array(self.light) / np.linalg.norm(self.light)
        weights = np.array([self.ambient, self.headlight, self.key, self.depth])
        bright, cover = shade(height, normals, light, weights, self.samples)
        layer.bright_HW[top:bottom, left:right] = bright
        layer.cover_HW[top:bottom, left:right] = cover
        return layer

    def _span(self, position: np.ndarray) -> tuple[int, int]:
        """First and one past the last pixel that the object can touch."""
        low, high = int(np.floor(position.min())), int(np.ceil(position.max()))
        return min(max(low, 0), self.size), min(max(high, 0), self.size)


def to_bytes(image_HW: np.ndarray) -> np.ndarray:
    """(H, W) uint8 gray of an image in [0, 1]; values outside are clipped.

    Example:
        >>> to_bytes(np.array([[-1.0, 0.5, 2.0]])).tolist()
        [[0, 128, 255]]
    """
    return np.floor(np.clip(image_HW, 0, 1) * 255 + 0.5).astype(np.uint8)
