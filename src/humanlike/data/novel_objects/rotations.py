"""Poses in space as rotation matrices and as the three angles of the metadata.

Camera axes: x to the right of the image, y up, z towards the viewer. A pose turns the object's own axes into the
camera's by R = R_z(rz) R_x(rx) R_z(ry): the object is turned by ry about its own z axis, tilted by rx about the
image's horizontal, and rolled by rz about the line of sight, counterclockwise. As in the published metadata rx lies in
[0, 180] and ry, rz in [0, 360) degrees, and a pose is uniform on SO(3) exactly when ry, rz and cos(rx) are uniform.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Angles(NamedTuple):
    """A pose by its three angles in degrees; see the module."""

    rx: float
    ry: float
    rz: float


def turn(axis: str, degrees: float) -> np.ndarray:
    """(3, 3) float64 matrix of a counterclockwise turn about a camera axis, seen from its tip.

    Args:
        axis: "x", "y" or "z".
        degrees: Angle.

    Example:
        >>> np.round(turn("z", 90) @ [1, 0, 0], 12).tolist()
        [0.0, 1.0, 0.0]
    """
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    matrix_33 = np.eye(3)
    matrix_33[first, first] = matrix_33[second, second] = cos
    matrix_33[first, second], matrix_33[second, first] = -sin, sin
    return matrix_33


def pose_matrix(angles: Angles) -> np.ndarray:
    """(3, 3) float64 rotation of a pose, R_z(rz) R_x(rx) R_z(ry); columns are the object's axes in the camera."""
    return turn("z", angles.rz) @ turn("x", angles.rx) @ turn("z", angles.ry)


def pose_angles(matrix_33: np.ndarray) -> Angles:
    """The angles of a rotation; where rx is 0 or 180 degrees, ry is 0 by choice.

    Example:
        >>> [round(a, 6) for a in pose_angles(pose_matrix(Angles(30.0, 200.0, 300.0)))]
        [30.0, 200.0, 300.0]
    """
    sin_rx = float(np.hypot(matrix_33[0, 2], matrix_33[1, 2]))
    rx = float(np.rad2deg(np.arctan2(sin_rx, matrix_33[2, 2])))
    if sin_rx < 1e-9:
        return Angles(rx, 0.0, float(np.rad2deg(np.arctan2(matrix_33[1, 0], matrix_33[0, 0]))) % 360)
    ry = np.arctan2(matrix_33[2, 0], matrix_33[2, 1])
    rz = np.arctan2(matrix_33[0, 2], -matrix_33[1, 2])
    return Angles(rx, float(np.rad2deg(ry)) % 360, float(np.rad2deg(rz)) % 360)


def uniform_pose(rng: np.random.Generator) -> Angles:
    """A pose drawn uniformly from SO(3) (Haar measure)."""
    cos_rx, ry, rz = rng.uniform((-1, 0, 0), (1, 360, 360))
    return Angles(float(np.rad2deg(np.arccos(cos_rx))), float(ry), float(rz))
