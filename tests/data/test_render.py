"""The hard renderer against areas known in closed form."""

import math

import numpy as np
import pytest

from humanlike.data.drawing import Drawing, Stroke
from humanlike.data.render import Renderer, render, render_gray


def ink(drawing, size=256, **settings) -> float:
    """Covered share of the canvas."""
    return float((1 - render_gray(drawing, size, **settings)).mean())


@pytest.mark.parametrize("size", [64, 256])
def test_ink_of_a_line_and_a_dot_is_their_area(size):
    w, length = 0.05, 0.5
    # A slanted line, since the renderer's coverage of level edges comes in quarters of a pixel.
    line = Drawing((Stroke([(0.3, 0.35), (0.7, 0.65)], width=w),))
    assert ink(line, size) == pytest.approx(w * length + math.pi * w**2 / 4, rel=0.01)
    dot = Drawing((Stroke([(0.5, 0.5)], width=0.2),))
    assert ink(dot, size) == pytest.approx(math.pi * 0.01, rel=0.01)
    curved_dot = Drawing((Stroke([(0.5, 0.5)] * 4, width=0.2, curved=True),))
    assert ink(curved_dot, size) == pytest.approx(math.pi * 0.01, rel=0.01)


def test_opacity_scales_ink():
    line = Stroke([(0.25, 0.5), (0.75, 0.5)], width=0.1, opacity=0.4)
    solid = Stroke(line.points, width=0.1)
    assert ink(Drawing((line,))) == pytest.approx(0.4 * ink(Drawing((solid,))), rel=0.01)


def test_orientation_x_right_y_down():
    gray = render_gray(Drawing((Stroke([(0.9, 0.1)], width=0.1),)), 100)
    row, column = np.unravel_index(gray.argmin(), gray.shape)
    assert row < 20
    assert column > 80


def test_cubic_and_its_flattening_draw_the_same():
    stroke = Stroke(np.random.default_rng(3).random((7, 2)), width=0.02, curved=True)
    flat = Stroke(stroke.flattened(64), width=0.02)
    a, b = (render_gray(Drawing((s,)), 224) for s in (stroke, flat))
    assert np.abs(a - b).mean() < 1e-3


def test_colours_margin_and_width_override():
    drawing = Drawing.from_polylines([[(10, 10), (30, 10)]])
    image = np.asarray(render(drawing, 100, margin=0.2, stroke_width=0.1, background="black", ink="#ff0000"))
    assert image[0, 0].tolist() == [0, 0, 0]
    assert image[50, 50].tolist() == [255, 0, 0]
    columns = np.flatnonzero(image[50, :, 0] > 127)
    assert (columns[0], columns[-1]) == (15, 84)


def test_empty_drawing_is_a_blank_sheet():
    assert np.asarray(render(Drawing(()), 32, margin=0.1)).min() == 255


def test_content_hash_follows_strokes_and_settings():
    drawing = Drawing((Stroke([(0.1, 0.2), (0.3, 0.4)]),))
    other = Drawing((Stroke([(0.1, 0.2), (0.3, 0.5)]),))
    hashes = [Renderer(**s).content_hash(drawing) for s in ({}, {"size": 64}, {"ink": "gray"}, {"stroke_width": 0.1})]
    assert len({*hashes, Renderer().content_hash(other)}) == 5
    assert "resvg" in str(Renderer().fingerprint["renderer"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"size": 0}, "size must be"), ({"stroke_width": 0.0}, "stroke_width must be"), ({"ink": "nocolour"}, "nocolour")],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Renderer(**settings)
