from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline

from humanlike.data.doodles import shapes


def evaluated(path: np.ndarray, t: np.ndarray) -> np.ndarray:
    """De Casteljau, the definition of a Bézier curve."""
    points = [path[:, i, None, :] for i in range(4)]
    while len(points) > 1:
        points = [(1 - t)[None, :, None] * a + t[None, :, None] * b for a, b in itertools.pairwise(points)]
    return points[0].reshape(-1, 2)


T = np.linspace(0, 1, 21)


@settings(deadline=None, max_examples=25)
@given(st.floats(-400, 400), st.floats(5, 700), st.booleans())
def test_arc_lies_on_the_ellipse(start: float, length: float, backwards: bool) -> None:
    stop = start - length if backwards else start + length
    path = shapes.arc(50, 40, 20, 10, start, stop)
    x, y = ((evaluated(path, T) - (50, 40)) / (20, 10)).T
    assert np.abs(np.hypot(x, y) - 1).max() < 3e-4
    ends = np.radians([start, stop])
    expected = np.stack([50 + 20 * np.cos(ends), 40 + 10 * np.sin(ends)], axis=1)
    np.testing.assert_allclose([path[0, 0], path[-1, 3]], expected, atol=1e-9)


def test_curve_is_the_catmull_rom_spline() -> None:
    points = np.array([(0, 0), (3, 5), (7, 4), (9, -2), (4, -6)], dtype=float)
    tangents = np.gradient(points, axis=0)
    spline = CubicHermiteSpline(np.arange(5), points, tangents)
    path = shapes.curve(*map(tuple, points))
    got = np.concatenate([evaluated(path[i : i + 1], T) for i in range(4)])
    expected = np.concatenate([spline(i + T) for i in range(4)])
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_closed_curve_is_smooth_where_it_closes() -> None:
    path = shapes.curve((0, 0), (10, 0), (10, 10), (0, 10), closed=True)
    np.testing.assert_allclose(path[-1, 3], path[0, 0])
    np.testing.assert_allclose(path[-1, 3] - path[-1, 2], path[0, 1] - path[0, 0])


@pytest.mark.parametrize(
    "path",
    [
        shapes.rect(0, 0, 4, 3),
        shapes.bumps(0, 0, 10, 8, 7, 3),
        shapes.scallops(0, 0, 10, 0, 4, 2),
        shapes.zigzag(0, 0, 10, 5, 3, 2),
        shapes.wave(0, 0, 10, 5, 3, 2),
        shapes.spiral(0, 0, 9, 2.5),
        shapes.ellipse(1, 2, 3, 4, 30),
        shapes.leg(10, 0, 20, 4),
    ],
)
def test_paths_are_chains(path: np.ndarray) -> None:
    assert path.ndim == 3
    assert path.shape[1:] == (4, 2)
    np.testing.assert_allclose(path[:-1, 3], path[1:, 0], atol=1e-12)


def test_heights() -> None:
    top = evaluated(shapes.scallops(0, 0, 12, 0, 3, 2), T)[:, 1]
    assert top.min() == pytest.approx(-2)
    assert shapes.zigzag(0, 0, 12, 0, 3, 5)[..., 1].min() == pytest.approx(-5)
    wavy = evaluated(shapes.wave(0, 0, 12, 0, 4, 3), T)[:, 1]
    assert (wavy.min(), wavy.max()) == pytest.approx((-3, 3), abs=0.2)


def test_tilted_ellipse_reaches_as_far_as_its_axes_say() -> None:
    x = evaluated(shapes.ellipse(0, 0, 10, 2, 60), np.linspace(0, 1, 201))[:, 0]
    assert x.max() == pytest.approx(np.sqrt(25 + 3), abs=0.01)


def test_rays_of_a_full_turn_do_not_repeat() -> None:
    ends = np.array([path[0, 3] for path in shapes.rays(0, 0, 1, 5, 8)])
    assert len(np.unique(ends.round(9), axis=0)) == 8
    np.testing.assert_allclose(np.hypot(*ends.T), 5)


def test_mirrored_and_turned() -> None:
    one = shapes.line(60, 1, 70, 2)
    both = shapes.mirrored([one])
    np.testing.assert_allclose(both[1][0, [0, 3]], [(40, 1), (30, 2)])
    np.testing.assert_allclose(shapes.turned(shapes.line(0, 0, 1, 0), 90)[0, 3], (0, 1), atol=1e-12)


def test_a_path_needs_two_points() -> None:
    with pytest.raises(ValueError, match="two points or more, got 1"):
        shapes.curve((0, 0))
