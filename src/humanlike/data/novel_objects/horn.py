"""One horn: a tube swept along a coiling axis, with ribs, a bulge, and a lobed or flat cross-section.

Array legend: R rings along the axis, K points around, V vertices, F triangles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Mesh(NamedTuple):
    """A triangle mesh with smooth normals.

    Attributes:
        vertex_V3: (V, 3) float64 positions.
        normal_V3: (V, 3) float64 unit normals, outwards.
        face_F3: (F, 3) int32 vertex indices.
    """

    vertex_V3: np.ndarray
    normal_V3: np.ndarray
    face_F3: np.ndarray


class Frame(NamedTuple):
    """Where a horn starts: its base, and axes whose third column is the direction in which it grows."""

    origin_3: np.ndarray
    axes_33: np.ndarray
    scale: float = 1.0


@dataclass(frozen=True)
class Horn:
    """Genes of a horn. Lengths are in units of the object before it is normalised, angles in degrees.

    Attributes:
        length: Length of the axis.
        radius: Radius at the base.
        taper: Radius at the tip over radius at the base; step lengths shrink alike, so that a bent horn is a spiral.
        bend: Total turn of the axis.
        twist: Total turn of the plane of the bend and of the cross-section.
        ribs: Number of swellings along the axis.
        rib_depth: Their height as a fraction of the radius, 0 to 0.6.
        bulge: Swelling at the tip as a fraction of the base radius.
        waist: Swelling (or narrowing, below 0) in the middle, as a fraction of the radius.
        lobes: Number of ridges around the cross-section; 0 is round.
        lobe_depth: Their height as a fraction of the radius.
        flat: Thickness over width of the cross-section, 0.2 to 1.
    """

    length: float = 1.0
    radius: float = 0.2
    taper: float = 0.5
    bend: float = 0.0
    twist: float = 0.0
    ribs: int = 0
    rib_depth: float = 0.0
    bulge: float = 0.0
    waist: float = 0.0
    lobes: int = 0
    lobe_depth: float = 0.0
    flat: float = 1.0

    def axis(self, t_R: np.ndarray, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        """Points (R, 3) of the axis and frames (R, 3, 3) along it, at t in [0, 1] of its length.

        The axis turns at a rate that grows as the radius shrinks: equal steps of a logarithmic helix.
        """
        dense = np.linspace(0.0, 1.0, 129)
        shrink = self.taper**dense
        step = shrink / np.trapezoid(shrink, dense)
        angle = np.deg2rad(self.bend) * dense
        roll = np.deg2rad(self.twist) * dense
        # The direction bends in a plane that itself turns about the first direction.
        local = np.stack([np.sin(angle) * np.cos(roll), np.sin(angle) * np.sin(roll), np.cos(angle)], axis=1)
        moves = 0.5 * (local[1:] * step[1:, None] + local[:-1] * step[:-1, None]) / 128 * self.length
        path = np.concatenate([np.zeros((1, 3)), np.cumsum(moves, axis=0)])
        points = np.stack([np.interp(t_R, dense, path[:, i]) for i in range(3)], axis=1)
        a, b = np.interp(t_R, dense, angle), np.interp(t_R, dense, roll)
        z = np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], axis=1)
        x = np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), -np.sin(a)], axis=1)
        frames = np.stack([x, np.cross(z, x), z], axis=2)
        return frame.origin_3 + frame.scale * points @ frame.axes_33.T, frame.axes_33 @ frames

    def mesh(self, frame: Frame, fineness: float = 1.0) -> Mesh:
        """The surface of the horn, closed by round ends.

        Args:
            frame: Where it starts.
            fineness: Multiplies the number of rings and of points around.
        """
        rings = round(fineness * max(14, 5 * self.ribs, abs(self.bend) / 9, abs(self.twist) / 12))
        around = round(fineness * max(12, 6 * self.lobes))
        cap = min(0.45, self.radius / self.length)
        inner = np.linspace(0.0, 1.0, rings)
        ends = 1 - np.cos(np.linspace(0, np.pi / 2, 5)[:-1])
        t = np.unique(np.concatenate([cap * ends, cap + (1 - 2 * cap) * inner, 1 - cap * ends]))
        round_R = np.sqrt(1 - np.clip(np.maximum(1 - t / cap, 1 - (1 - t) / cap), 0, 1) ** 2)
        radius_R = self._profile(t) * round_R
        points, frames = self.axis(t, frame)
        phi = np.linspace(0, 2 * np.pi, around, endpoint=False)
        lobed = 1 + self.lobe_depth * np.cos(self.lobes * phi) if self.lobes else np.ones_like(phi)
        circle = np.stack([self.flat * lobed * np.cos(phi), lobed * np.sin(phi)])
        offset = np.einsum("rij,jk->rki", frames[:, :, :2], circle) * (frame.scale * radius_R)[:, None, None]
        grid_RK3 = points[:, None] + offset
        return Mesh(grid_RK3.reshape(-1, 3), _normals(grid_RK3, frames[:, :, 2]), _faces(len(t), around))

    def _profile(self, t: np.ndarray) -> np.ndarray:
        radius = self.radius * self.taper**t
        radius = radius * (1 + self.waist * np.sin(np.pi * t))
        radius = radius + self.bulge * self.radius * np.exp(-(((t - 0.86) / 0.13) ** 2))
        if not self.ribs:
            return radius
        return radius * (1 + self.rib_depth * (np.abs(np.sin(np.pi * self.ribs * t)) ** 0.7 - 0.6))


def merged(meshes: list[Mesh]) -> Mesh:
    """Several meshes as one."""
    starts = np.cumsum([0, *(len(m.vertex_V3) for m in meshes[:-1])])
    faces = [m.face_F3 + start for m, start in zip(meshes, starts, strict=True)]
    return Mesh(
        np.concatenate([m.vertex_V3 for m in meshes]),
        np.concatenate([m.normal_V3 for m in meshes]),
        np.concatenate(faces).astype(np.int32),
    )


def normalised(mesh: Mesh) -> Mesh:
    """The mesh moved and scaled into the unit ball about the middle of its bounding box, touching its surface."""
    middle = (mesh.vertex_V3.min(axis=0) + mesh.vertex_V3.max(axis=0)) / 2
    centred = mesh.vertex_V3 - middle
    return mesh._replace(vertex_V3=centred / np.linalg.norm(centred, axis=1).max())


def _normals(grid_RK3: np.ndarray, tangent_R3: np.ndarray) -> np.ndarray:
    """Outward unit normals of a tube's grid, from central differences along and around; ends point along the axis."""
    along = np.gradient(grid_RK3, axis=0)
    round_about = np.roll(grid_RK3, -1, axis=1) - np.roll(grid_RK3, 1, axis=1)
    normal = np.cross(round_about, along)
    normal[0], normal[-1] = -tangent_R3[0], tangent_R3[-1]
    length = np.linalg.norm(normal, axis=2, keepdims=True)
    return (normal / np.maximum(length, 1e-12)).reshape(-1, 3)


def _faces(rings: int, around: int) -> np.ndarray:
    ring, k = np.meshgrid(np.arange(rings - 1), np.arange(around), indexing="ij")
    a, b = ring * around + k, ring * around + (k + 1) % around
    c, d = a + around, b + around
    return np.concatenate([np.stack([a, b, d], -1), np.stack([a, d, c], -1)]).reshape(-1, 3).astype(np.int32)
