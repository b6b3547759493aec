"""Fitting drawings with a given number of cubics, and giving every curve its slot."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from humanlike.data.doodles.dataset import doodles
from humanlike.data.drawing import Drawing
from humanlike.data.render import render_gray
from humanlike.generators.datamodule import pen_movements
from humanlike.generators.pretrain_alignment import aligned, curve_distances
from humanlike.generators.pretrain_curves import Curves, _even, _fit, fit_curves
from humanlike.generators.pretrain_table import CurveBatch, CurveTable


def random_drawing(seed: int, strokes: int) -> Drawing:
    random = np.random.default_rng(seed)
    return Drawing.from_polylines([random.random((int(random.integers(1, 9)), 2)) for _ in range(strokes)])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 12), st.integers(1, 16))
def test_there_are_never_more_curves_than_asked_for(seed, strokes, most):
    curves = fit_curves(random_drawing(seed, strokes), most)
    assert min(strokes, most) <= len(curves.width_M) <= most
    assert np.isfinite(curves.points_M42).all()
    assert (np.diff(curves.stroke_M) >= 0).all()
    for a, b in zip(range(len(curves.stroke_M)), range(1, len(curves.stroke_M)), strict=False):
        if curves.stroke_M[a] == curves.stroke_M[b]:
            np.testing.assert_array_equal(curves.points_M42[a, 3], curves.points_M42[b, 0])


def test_the_inner_points_are_the_best_ones():
    points = _even(np.random.default_rng(4).random((6, 2)))
    fitted, _ = _fit(points, 1)
    t = np.linspace(0, 1, 49)[:, None]

    def rest(x):
        b, c = x.reshape(2, 2)
        curve = (1 - t) ** 3 * points[0] + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * points[-1]
        return (curve - points).ravel()

    best = least_squares(rest, np.full(4, 0.5)).x.reshape(2, 2)
    np.testing.assert_allclose(fitted[0, 1:3], best, atol=1e-6)


def test_a_cubic_comes_back_as_itself_where_its_speed_is_even():
    line = Drawing.from_cubics(np.array([[[0.1, 0.1], [0.3, 0.2], [0.5, 0.3], [0.7, 0.4]]]))
    np.testing.assert_allclose(fit_curves(line, 4).points_M42[0], line.strokes[0].cubics()[0], atol=1e-9)


def test_fitted_doodles_look_like_the_doodles():
    data = doodles(concepts=4, instances=2, judgments=0)
    gaps = []
    for i in range(len(data)):
        drawing = data.images.drawing(i)
        c = fit_curves(drawing, 64)
        gaps.append(
            np.abs(
                render_gray(Drawing.from_cubics(c.points_M42, width=c.width_M), 96) - render_gray(drawing, 96)
            ).mean()
        )
    assert np.mean(gaps) < 0.01


@pytest.mark.parametrize(("arguments", "sentence"), [((0, 0.1), "max_curves"), ((3, 0.0), "tolerance")])
def test_numbers_out_of_range_are_named(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_curves(Drawing(()), *arguments)


def shuffled(curves: Curves, random: np.random.Generator) -> Curves:
    order = random.permutation(len(curves.width_M))
    points = curves.points_M42[order]
    back = random.random(len(order)) < 0.5
    points = np.where(back[:, None, None], points[:, ::-1], points)
    return Curves(points, curves.width_M[order], curves.stroke_M[order])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31))
def test_slots_do_not_depend_on_order_and_direction_of_later_drawings(seed):
    random = np.random.default_rng(seed)
    curves = [fit_curves(random_drawing(seed % 1000 + i, 5 - i), 8) for i in range(3)]
    mixed = [curves[0], *(shuffled(c, random) for c in curves[1:])]
    # With one round the template is the fullest drawing, which stays as it is here.
    if any(len(c.width_M) >= len(curves[0].width_M) for c in curves[1:]):
        return
    a, b = (aligned(CurveTable.from_curves(c, 8), [0, 0, 0], iterations=1) for c in (curves, mixed))
    used = (a.stroke_NK >= 0).sum(1)
    assert torch.equal(used, (b.stroke_NK >= 0).sum(1))
    assert used.tolist() == [len(c.width_M) for c in curves]
    torch.testing.assert_close(a.points_NK42, b.points_NK42)


def test_equal_drawings_get_equal_slots():
    curves = fit_curves(random_drawing(3, 6), 8)
    backwards = Curves(curves.points_M42[::-1, ::-1], curves.width_M[::-1], curves.stroke_M[::-1])
    table = aligned(CurveTable.from_curves([curves, backwards], 8), [0, 0])
    torch.testing.assert_close(table.points_NK42[0], table.points_NK42[1])


def test_the_distance_of_curves_has_no_direction():
    a, b = torch.rand(3, 4, 2), torch.rand(5, 4, 2)
    torch.testing.assert_close(curve_distances(a, b)[0], curve_distances(a, b.flip(1))[0])
    torch.testing.assert_close(curve_distances(a, b)[0], curve_distances(b, a)[0].T)


def test_pen_movements_go_through_the_ends_of_all_curves():
    drawing = random_drawing(8, 5)
    c = fit_curves(drawing, 16)
    table = CurveTable.from_curves([c], 16)
    batch = CurveBatch(*vars(table).values(), torch.zeros(1).long(), torch.zeros(1).long())
    moves = pen_movements(batch, steps_a_curve=1)
    place = 0.5 + moves.offset_BT2[0].cumsum(0)
    keys = {tuple(round(float(x), 3) for x in p) for p in place}
    for end in c.points_M42[:, [0, 3]].reshape(-1, 2):
        assert tuple(round(float(x), 3) for x in end.astype(np.float32)) in keys or any(
            np.abs(np.array(k) - end).max() < 2e-3 for k in keys
        )
    assert int((moves.pen_BT == 1).sum()) == len(np.unique(c.stroke_M))
    assert moves.pen_BT[0, -1] == 2
