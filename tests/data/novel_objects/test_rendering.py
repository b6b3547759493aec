from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from humanlike.data.novel_objects import NoiseBackgrounds, Renderer, View, genome, object_mesh
from humanlike.data.novel_objects.genome import PLANS
from humanlike.data.novel_objects.horn import Frame, Horn, Mesh, normalised
from humanlike.data.novel_objects.rasterizer import rasterize
from humanlike.data.novel_objects.rendering import to_bytes


def ball(around: int = 96) -> Mesh:
    """A unit ball from latitudes and longitudes, whose normals are its points."""
    theta, phi = np.meshgrid(np.linspace(0, np.pi, around), np.linspace(0, 2 * np.pi, around), indexing="ij")
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1).reshape(-1, 3)
    i, j = (g.ravel() for g in np.meshgrid(np.arange(around - 1), np.arange(around - 1), indexing="ij"))
    a, b = i * around + j, i * around + j + 1
    faces = np.concatenate([np.stack([a, b, b + around], -1), np.stack([a, b + around, a + around], -1)])
    return Mesh(points, points, faces.astype(np.int32))


def test_a_ball_covers_the_area_of_its_disc_and_is_shaded_by_the_formula():
    renderer = Renderer(size=128, samples=4, ambient=0.1, headlight=0.3, key=0.5, depth=0.4, light=(0.6, 0.0, 0.8))
    layer = renderer(ball(), View(s=1.0, u=0.1, v=-0.05))
    assert layer.cover_HW.sum() == pytest.approx(np.pi * 32**2, rel=5e-3)
    rows, columns = np.mgrid[:128, :128] + 0.5
    x, y = (columns - 64 - 12.8) / 32, -(rows - 64 + 6.4) / 32
    inside = x**2 + y**2 < 0.8
    z = np.sqrt(np.where(inside, 1 - x**2 - y**2, 0))
    value = (0.1 + 0.3 * z + 0.5 * np.maximum(0, 0.6 * x + 0.8 * z)) * (1 - 0.2 * (1 - z))
    np.testing.assert_allclose(layer.bright_HW[inside], value[inside], atol=0.01)
    total = layer.cover_HW.sum()
    centre = [(layer.cover_HW * columns).sum() / total, (layer.cover_HW * rows).sum() / total]
    np.testing.assert_allclose(centre, [76.8, 57.6], atol=0.05)


def test_the_nearest_surface_wins_in_any_order():
    square = np.array([[0, 0], [4, 0], [4, 4], [0, 4]], dtype=float)
    vertices = np.concatenate([np.c_[square, np.full(4, z)] for z in (0.5, -0.5)])
    faces = np.array([[0, 1, 2], [0, 2, 3], [6, 5, 4], [4, 7, 6]], np.int32)
    normals = np.repeat([[0, 0, 1.0], [1.0, 0, 0]], 4, axis=0)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        height, normal = rasterize(vertices, normals, faces[order], 5, 6)
        assert (height[:4, :4] == 0.5).all()
        assert np.isneginf(height[4]).all()
        assert np.isneginf(height[:, 4:]).all()
        np.testing.assert_allclose(normal[:4, :4], np.broadcast_to([0, 0, 1.0], (4, 4, 3)))


def test_normals_of_a_straight_round_horn_point_away_from_its_axis():
    mesh = Horn(length=4, radius=0.5, taper=1.0).mesh(Frame(np.zeros(3), np.eye(3)), fineness=2)
    middle = np.abs(mesh.vertex_V3[:, 2] - 2) < 1
    out = mesh.vertex_V3[middle] * [1, 1, 0]
    np.testing.assert_allclose(mesh.normal_V3[middle], out / np.linalg.norm(out, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 0.5, atol=1e-9)


def test_objects_are_closed_smooth_and_fill_the_ball():
    plans = set()
    for number in range(24):
        mesh = object_mesh(3, f"object {number}")
        plans.add(genome(3, f"object {number}").plan)
        assert np.linalg.norm(mesh.vertex_V3, axis=1).max() == pytest.approx(1)
        np.testing.assert_allclose(np.linalg.norm(mesh.normal_V3, axis=1), 1, atol=1e-9)
        assert mesh.face_F3.min() == 0
        assert mesh.face_F3.max() == len(mesh.vertex_V3) - 1
        assert 1000 < len(mesh.face_F3) < 30_000
    assert plans == {plan.__name__ for plan in PLANS}


def test_normalised_moves_the_box_to_the_middle():
    mesh = ball(12)
    moved = normalised(mesh._replace(vertex_V3=mesh.vertex_V3 * 3 + [5, 0, -2]))
    np.testing.assert_allclose(moved.vertex_V3.min(axis=0), -moved.vertex_V3.max(axis=0), atol=1e-12)


def test_an_object_outside_the_image_leaves_it_empty():
    layer = Renderer(size=32)(ball(12), View(u=3.0))
    assert not layer.cover_HW.any()
    with pytest.raises(ValueError, match="samples 1 to 8, got 256 and 9"):
        Renderer(samples=9)


def test_noise_has_the_stated_mean_sd_and_slope():
    field = NoiseBackgrounds(exponent=1.0, mean=0.5, sd=0.05).draw(np.random.default_rng(0), 256)
    assert field.mean() == pytest.approx(0.5, abs=1e-6)
    assert field.std() == pytest.approx(0.05, rel=1e-3)
    power = np.abs(np.fft.fft2(field - field.mean())) ** 2
    frequency = np.hypot(np.fft.fftfreq(256)[:, None], np.fft.fftfreq(256)[None])
    band = (frequency > 0.02) & (frequency < 0.45)
    slope = np.polyfit(np.log(frequency[band]), np.log(power[band]), 1)[0]
    assert slope == pytest.approx(-2.0, abs=0.05)
    with pytest.raises(ValueError, match=r"exponent must lie in \[0, 4\]"):
        NoiseBackgrounds(exponent=9)


def test_bytes_are_rounded_and_clipped():
    np.testing.assert_array_equal(to_bytes(np.array([[-0.1, 0.1, 1.2]])), [[0, 26, 255]])


def test_numba_is_imported_only_to_render():
    code = (
        "import sys; from humanlike.data.novel_objects import high_variation_images; high_variation_images(2, 2); "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
