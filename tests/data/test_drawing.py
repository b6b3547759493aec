"""Drawings: geometry against scipy's Bernstein polynomials and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.interpolate import BPoly

from humanlike.data.drawing import Drawing, EmptyDrawingError, Stroke

points = hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.just(2)), elements=st.floats(-2, 2))


def test_flattened_is_the_bernstein_polynomial():
    controls = np.random.default_rng(0).random((7, 2))
    flat = Stroke(controls, curved=True).flattened(per_curve=10)
    for m in range(2):
        for axis in range(2):
            curve = BPoly(controls[3 * m : 3 * m + 4, axis][:, None], [0, 1])
            np.testing.assert_allclose(flat[10 * m : 10 * m + 11, axis], curve(np.linspace(0, 1, 11)), atol=1e-12)


def test_cubics_of_a_polyline_stay_on_its_segments():
    line = np.array([[0.0, 0.0], [1.0, 0.5], [0.2, 0.9]])
    cubics = Stroke(line).cubics()
    assert cubics.shape == (2, 4, 2)
    for a, b, cubic in zip(line, line[1:], cubics, strict=False):
        np.testing.assert_allclose(cubic, a + np.linspace(0, 1, 4)[:, None] * (b - a), atol=1e-15)


@settings(deadline=None, max_examples=30)
@given(points, st.floats(0, 0.45))
def test_fitted_fills_the_canvas_and_keeps_proportions(line, margin):
    drawing = Drawing.from_polylines([line])
    x0, y0, x1, y1 = drawing.fitted(margin).box()
    old = drawing.box()
    side = max(old[2] - old[0], old[3] - old[1])
    assert (x0 + x1) / 2 == pytest.approx(0.5, abs=1e-6)
    assert (y0 + y1) / 2 == pytest.approx(0.5, abs=1e-6)
    if side > 1e-6:
        assert max(x1 - x0, y1 - y0) == pytest.approx(1 - 2 * margin, rel=1e-6)
        assert (x1 - x0) * side == pytest.approx((old[2] - old[0]) * (1 - 2 * margin), abs=1e-6)


def test_until_and_first_cut_and_stay_in_register():
    drawing = Drawing.from_polylines(
        [[(0, 0), (1, 0), (1, 1)], [(0, 1)]], times_s=[np.array([0, 1.0, 2.5]), np.array([4.0])]
    )
    assert [drawing.until(t).num_points for t in (0, 1, 2.4, 2.5, 3.9, 4)] == [1, 2, 2, 3, 3, 4]
    assert drawing.until(-1).num_strokes == 0
    assert drawing.first(1).num_points == 3
    assert drawing.first(9).num_strokes == 2
    cut = drawing.until(1.0).fitted(0.1, box=drawing.box())
    np.testing.assert_allclose(cut.strokes[0].points, drawing.fitted(0.1).strokes[0].points[:2])


def test_digest_follows_the_picture_only():
    def make(**changes):
        return Drawing((Stroke(**{"points": [(0.1, 0.2), (0.3, 0.4)], **changes}),)).digest()

    assert make() == make(element="ear") == make(time_s=[0, 1])
    variants = [make(), make(width=0.02), make(opacity=0.5), make(points=[(0.1, 0.2), (0.3, 0.41)])]
    assert len(set(variants)) == len(variants)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"points": np.zeros((0, 2))}, r"n ≥ 1, got \(0, 2\)"),
        ({"points": [(0, np.nan)]}, "finite"),
        ({"points": [(0, 0), (1, 1)], "curved": True}, "3m \\+ 1 control points, got 2"),
        ({"points": [(0, 0)], "width": 0.0}, "stroke width must be a positive"),
        ({"points": [(0, 0)], "opacity": 1.5}, r"opacity must lie in \[0, 1\], got 1.5"),
        ({"points": [(0, 0), (1, 1)], "time_s": [0.0]}, "one finite second value a point"),
        ({"points": [(0, 0), (1, 1)], "time_s": [1.0, 0.0]}, "must not decrease"),
    ],
)
def test_bad_strokes_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Stroke(**fields)


def test_bad_drawings_are_refused():
    with pytest.raises(EmptyDrawingError, match="no bounding box"):
        Drawing(()).box()
    with pytest.raises(ValueError, match=r"elements must have one entry a stroke: 1 strokes, 2 entries"):
        Drawing.from_polylines([[(0, 0)]], elements=["a", "b"])
    with pytest.raises(ValueError, match=r"\(K, 4, 2\), got \(3, 2\)"):
        Drawing.from_cubics(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="stroke 0 has no times; cut by"):
        Drawing.from_polylines([[(0, 0)]]).until(1.0)
    with pytest.raises(ValueError, match=r"margin must lie in \[0, 0.5\)"):
        Drawing.from_polylines([[(0, 0)]]).fitted(0.5)
