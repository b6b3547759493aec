"""Strokes: batches of Béziers, polylines, and every format there and back."""

import numpy as np
import pytest
import torch

from humanlike.data.strokes import Drawing, Stroke, Strokes


@pytest.fixture
def curved() -> Strokes:
    g = torch.Generator().manual_seed(0)
    return Strokes(
        torch.rand(2, 3, 4, 2, generator=g),
        torch.rand(2, 3, generator=g) * 0.02 + 0.01,
        torch.rand(2, 3, generator=g),
        elements=(("ear", "eye", None), ("mane", None, "tail")),
    )


@pytest.fixture
def ragged() -> list[Drawing]:
    rng = np.random.default_rng(1)
    lines = [rng.random((n, 2)).astype(np.float32).astype(np.float64) for n in (5, 1, 3)]
    return [Drawing.from_polylines(lines, elements=["body", None, "leg"]), Drawing.from_polylines(lines[:1])]


def same(a: Drawing, b: Drawing, atol: float = 1e-6) -> bool:
    return a.num_strokes == b.num_strokes and all(
        p.curved == q.curved
        and p.element == q.element
        and p.points.shape == q.points.shape
        and np.allclose(p.points, q.points, atol=atol)
        and np.isclose(p.width, q.width, atol=atol)
        and np.isclose(p.opacity, q.opacity, atol=atol)
        for p, q in zip(a.strokes, b.strokes, strict=True)
    )


def test_curves_survive_svg_and_json(curved):
    for text_round in (Strokes.from_svg(*curved.to_svg()), Strokes.from_json(curved.to_json())):
        torch.testing.assert_close(text_round.points_BK42, curved.points_BK42, atol=1e-6, rtol=0)
        torch.testing.assert_close(text_round.width_BK, curved.width_BK, atol=1e-6, rtol=0)
        torch.testing.assert_close(text_round.opacity_BK, curved.opacity_BK, atol=1e-6, rtol=0)
        assert text_round.elements == curved.elements


def test_polylines_survive_every_format(ragged):
    strokes = Strokes.from_drawings(ragged)
    assert strokes.straight
    assert strokes.points_BK42.shape == (2, 7, 4, 2)
    assert strokes.mask_BK.sum(1).tolist() == [7, 4]
    assert strokes.stroke_BK[1].tolist() == [0, 0, 0, 0, -1, -1, -1]
    for back in (
        strokes.to_drawings(),
        Strokes.from_json(strokes.to_json()).to_drawings(),
        Strokes.from_svg(*strokes.to_svg()).to_drawings(),
    ):
        assert all(same(a, b) for a, b in zip(back, ragged, strict=True))
    offsets = strokes.to_stroke3(scale=100)
    for a, b in zip(Strokes.from_stroke3(*offsets, scale=100).to_drawings(), ragged, strict=True):
        assert [len(s.points) for s in a.strokes] == [len(s.points) for s in b.strokes]
        assert all(np.allclose(p.points, q.points, atol=1e-5) for p, q in zip(a.strokes, b.strokes, strict=True))


def test_polylines_in_the_constructor_carry_gradient_to_their_vertices():
    line = torch.rand(3, 2, requires_grad=True)
    strokes = Strokes([[line, torch.rand(1, 2)], [torch.rand(2, 2)]], torch.tensor([[0.1, 0.2], [0.3, 0.0]]))
    assert strokes.points_BK42.shape == (2, 3, 4, 2)
    torch.testing.assert_close(strokes.width_BK[0], torch.tensor([0.1, 0.1, 0.2]))
    strokes.points_BK42.sum().backward()
    # Every segment's four controls sum to 2(a + b) a coordinate, so inner vertices count twice.
    torch.testing.assert_close(line.grad, torch.tensor([[2.0, 2.0], [4.0, 4.0], [2.0, 2.0]]))


def test_gradient_reaches_points_given_as_a_tensor():
    points = torch.rand(1, 2, 4, 2, requires_grad=True)
    assert Strokes(points).points_BK42 is points


def test_off_strokes_and_padding_are_not_drawn(curved):
    logits = torch.tensor([[5.0, -5.0, 5.0], [-5.0, -5.0, 5.0]])
    strokes = Strokes(curved.points_BK42, 0.02, 1.0, logits, elements=curved.elements)
    first, second = strokes.to_drawings()
    assert [s.element for s in first.strokes] == ["ear", None]
    assert [s.element for s in second.strokes] == ["tail"]


def test_chained_cubics_come_back_as_one_stroke():
    stroke = Stroke(np.random.default_rng(2).random((10, 2)), curved=True, element="tail")
    (back,) = Strokes.from_drawings([Drawing((stroke,))], dtype=torch.float64).to_drawings()
    assert back.num_strokes == 1
    np.testing.assert_array_equal(back.strokes[0].points, stroke.points)


def test_quickdraw_is_fitted():
    strokes = Strokes.from_quickdraw([[[0, 200], [50, 50]], [[100], [0]]], margin=0.1)
    (drawing,) = strokes.to_drawings()
    np.testing.assert_allclose(drawing.strokes[0].points, [[0.1, 0.6], [0.9, 0.6]], atol=1e-6)
    np.testing.assert_allclose(drawing.strokes[1].points, [[0.5, 0.4]], atol=1e-6)


def test_quickdraw_out_and_in_is_the_same_drawing(curved):
    for row, drawing in zip(curved.to_quickdraw(scale=100.0), curved.to_drawings(), strict=True):
        assert len(row) == drawing.num_strokes
        for (x, y), stroke in zip(row, drawing.strokes, strict=True):
            np.testing.assert_allclose(np.column_stack([x, y]), stroke.flattened() * 100, atol=1e-9)
    lines = Strokes([[[(0.0, 0.5), (1.0, 0.5), (1.0, 0.0)], [(0.0, 0.0), (1.0, 1.0)]]])
    (again,) = Strokes.from_quickdraw(*lines.to_quickdraw(), margin=0.0).to_drawings()
    (drawing,) = lines.to_drawings()
    for found, expected in zip(again.strokes, drawing.strokes, strict=True):
        np.testing.assert_allclose(found.points, expected.points, atol=1e-6)


def test_a_pen_of_no_width_draws_nothing(curved):
    width = torch.tensor([[0.02, 0.0, -0.01], [0.02, 0.02, 0.02]])
    strokes = Strokes(curved.points_BK42, width, elements=curved.elements)
    assert [d.num_strokes for d in strokes.to_drawings()] == [1, 3]
    assert [svg.count("<path") for svg in strokes.to_svg()] == [1, 3]


@pytest.mark.parametrize(("logit", "paths"), [(0.0, 1), (1e-3, 1), (-1e-3, 0)])
def test_a_gate_opens_at_one_half_and_then_draws_with_the_whole_opacity(logit, paths):
    points = torch.tensor([[[[0.1, 0.1], [0.3, 0.2], [0.6, 0.2], [0.9, 0.1]]]])
    (svg,) = Strokes(points, 0.02, 1.0, torch.tensor([[logit]])).to_svg()
    assert svg.count("<path") == paths
    assert "opacity" not in svg


def test_bad_shapes_are_sentences():
    with pytest.raises(ValueError, match=r"points_BK42 must have shape \(B, K, 4, 2\), got \(3, 4, 2\)"):
        Strokes(torch.zeros(3, 4, 2))
    with pytest.raises(ValueError, match=r"width_BK must be a number or have shape \(1, 3\), got \(1, 2\)"):
        Strokes(torch.zeros(1, 3, 4, 2), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="at least one sketch"):
        Strokes([])
    with pytest.raises(ValueError, match=r"one value a polyline, shape \(1, 2\), got \(1, 3\)"):
        Strokes([[np.zeros((2, 2)), np.zeros((2, 2))]], np.ones((1, 3)))
    with pytest.raises(ValueError, match="one tuple a sketch: 1 sketches, 2"):
        Strokes(torch.zeros(1, 3, 4, 2), elements=((), ()))
