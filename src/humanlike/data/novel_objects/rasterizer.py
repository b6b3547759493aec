"""A z-buffer rasteriser of triangle meshes with interpolated normals, compiled on first use.

Array legend: V vertices, F triangles, H × W samples of a window.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def rasterize(
    vertex_V3: np.ndarray, normal_V3: np.ndarray, face_F3: np.ndarray, rows: int, columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest surface at every sample, in parallel projection along z.

    Args:
        vertex_V3: (V, 3) float64: column, row (down) and height towards the viewer; sample (i, j) lies at column
            j + 0.5 and row i + 0.5.
        normal_V3: (V, 3) float64 normals in any axes.
        face_F3: (F, 3) int32; either orientation.
        rows: Height of the window in samples.
        columns: Its width.

    Returns:
        (rows, columns) float64 heights, -inf where there is no surface; (rows, columns, 3) float64 interpolated
        normals, not of unit length, 0 where there is no surface.
    """
    height_HW = np.full((rows, columns), -np.inf)
    normal_HW3 = np.zeros((rows, columns, 3))
    for f in range(face_F3.shape[0]):
        a, b, c = face_F3[f, 0], face_F3[f, 1], face_F3[f, 2]
        ax, ay, az = vertex_V3[a, 0], vertex_V3[a, 1], vertex_V3[a, 2]
        bx, by, bz = vertex_V3[b, 0], vertex_V3[b, 1], vertex_V3[b, 2]
        cx, cy, cz = vertex_V3[c, 0], vertex_V3[c, 1], vertex_V3[c, 2]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0.0:
            continue
        low_j = max(0, int(np.ceil(min(ax, bx, cx) - 0.5)))
        high_j = min(columns - 1, int(np.floor(max(ax, bx, cx) - 0.5)))
        low_i = max(0, int(np.ceil(min(ay, by, cy) - 0.5)))
        high_i = min(rows - 1, int(np.floor(max(ay, by, cy) - 0.5)))
        for i in range(low_i, high_i + 1):
            y = i + 0.5
            for j in range(low_j, high_j + 1):
                x = j + 0.5
                wb = ((x - ax) * (cy - ay) - (y - ay) * (cx - ax)) / area
                wc = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / area
                wa = 1.0 - wb - wc
                if wa < 0.0 or wb < 0.0 or wc < 0.0:
                    continue
                z = wa * az + wb * bz + wc * cz
                if z > height_HW[i, j]:
                    height_HW[i, j] = z
                    for d in range(3):
                        normal_HW3[i, j, d] = wa * normal_V3[a, d] + wb * normal_V3[b, d] + wc * normal_V3[c, d]
    return height_HW, normal_HW3


@njit(cache=True)
def shade(
    height_HW: np.ndarray, normal_HW3: np.ndarray, light_3: np.ndarray, weight_4: np.ndarray, factor: int
) -> tuple[np.ndarray, np.ndarray]:
    """Brightness and coverage of pixels, each the mean over factor × factor samples.

    A sample's brightness is ambient + headlight · n_z + key · max(0, n · light), times 1 - depth · (1 - height) / 2,
    which darkens what lies further behind.

    Args:
        height_HW: (H, W) heights from `rasterize`, in [-1, 1] where there is a surface.
        normal_HW3: (H, W, 3) normals in camera axes.
        light_3: Unit vector towards the key light.
        weight_4: ambient, headlight, key, depth.
        factor: Samples a side of a pixel; divides H and W.

    Returns:
        (H / factor, W / factor) float64: brightness summed over covered samples / all samples (premultiplied), and the
        share of samples that are covered.
    """
    rows, columns = height_HW.shape[0] // factor, height_HW.shape[1] // factor
    bright_hw = np.zeros((rows, columns))
    cover_hw = np.zeros((rows, columns))
    share = 1.0 / (factor * factor)
    for i in range(rows * factor):
        for j in range(columns * factor):
            z = height_HW[i, j]
            if z == -np.inf:
                continue
            nx, ny, nz = normal_HW3[i, j, 0], normal_HW3[i, j, 1], normal_HW3[i, j, 2]
            length = np.sqrt(nx * nx + ny * ny + nz * nz)
            lit, facing = 0.0, 0.0
            if length > 0.0:
                lit = max(0.0, (nx * light_3[0] + ny * light_3[1] + nz * light_3[2]) / length)
                facing = max(0.0, nz / length)
            value = weight_4[0] + weight_4[1] * facing + weight_4[2] * lit
            value *= 1.0 - weight_4[3] * 0.5 * (1.0 - z)
            bright_hw[i // factor, j // factor] += share * min(1.0, max(0.0, value))
            cover_hw[i // factor, j // factor] += share
    return bright_hw, cover_hw
