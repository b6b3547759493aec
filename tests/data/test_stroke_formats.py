"""Stroke-3, QuickDraw, JSON and ndjson, against plain loops."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.data.drawing import Drawing, EmptyDrawingError, Stroke
from humanlike.data.stroke_formats import (
    drawing_from_quickdraw,
    drawing_from_stroke3,
    drawing_to_quickdraw,
    drawing_to_stroke3,
    drawings_from_json,
    drawings_to_json,
    ndjson_records,
)

coordinate = st.integers(0, 255)
lines = st.lists(st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=6), min_size=1, max_size=5)


def walk(array):
    """Stroke-3 read one row at a time, as a pen would."""
    x = y = 0.0
    strokes, current = [], []
    for dx, dy, lifted in array:
        x, y = x + dx, y + dy
        current.append((x, y))
        if lifted:
            strokes.append(current)
            current = []
    return strokes + ([current] if current else [])


@settings(deadline=None, max_examples=30)
@given(lines)
def test_stroke3_is_what_a_pen_would_do(strokes):
    drawing = Drawing.from_polylines([np.array(s) / 255 for s in strokes])
    array = drawing_to_stroke3(drawing, scale=255)
    walked = walk(array)
    assert [len(s) for s in walked] == [len(s) for s in strokes]
    np.testing.assert_allclose(np.concatenate(walked), np.concatenate(strokes), atol=1e-9)
    back = drawing_from_stroke3(array, scale=255)
    for a, b in zip(back.strokes, drawing.strokes, strict=True):
        np.testing.assert_allclose(a.points, b.points, atol=1e-9)


def test_stroke3_without_a_final_lift_and_fitted():
    drawing = drawing_from_stroke3(np.array([[10, 10, 0], [20, 0, 1], [0, 5, 0], [-20, 0, 0]]), margin=0.0)
    assert [len(s.points) for s in drawing.strokes] == [2, 2]
    np.testing.assert_allclose(drawing.box(), (0.0, 0.375, 1.0, 0.625))


@settings(deadline=None, max_examples=30)
@given(lines)
def test_quickdraw_simplified_round_trip(strokes):
    field = [[[x for x, _ in s], [y for _, y in s]] for s in strokes]
    drawing = drawing_from_quickdraw(field, margin=None).transformed(1 / 255)
    back = drawing_to_quickdraw(drawing)
    assert all(np.allclose(a, b, atol=1e-9) for a, b in zip(back, field, strict=True))


def test_quickdraw_raw_keeps_times_and_levels_a_clock_that_ran_back():
    field = [[[0, 1, 2], [0, 0, 0], [0, 100, 90]], [[5], [5], [80]]]
    drawing = drawing_from_quickdraw(field, margin=None)
    assert [s.time_s.tolist() for s in drawing.strokes] == [[0, 0.1, 0.1], [0.1]]
    assert drawing_to_quickdraw(drawing, scale=1)[0] == [[0, 1, 2], [0, 0, 0], [0, 100, 100]]


def test_json_keeps_everything_to_the_last_bit():
    rng = np.random.default_rng(0)
    drawing = Drawing(
        (
            Stroke(rng.random((4, 2)), width=1 / 3, opacity=0.1, curved=True, element="Mähne"),
            Stroke(rng.random((2, 2)), time_s=[0.0, 1 / 7]),
        )
    )
    (back,) = drawings_from_json(drawings_to_json([drawing]))
    assert back.digest() == drawing.digest()
    assert back.strokes[0].element == "Mähne"
    assert back.strokes[1].time_s.tolist() == [0.0, 1 / 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "expected JSON of schema 'humanlike.drawings/1', got 'list'"),
        ('{"schema": "other/2"}', "got 'other/2'"),
        ('{"schema": "humanlike.drawings/1", "drawings": [[{"points": [[0, 0]], "colour": 1}]]}', "drawing 0.*colour"),
    ],
)
def test_bad_json_is_a_sentence(text, message):
    with pytest.raises(ValueError, match=message):
        drawings_from_json(text)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ([[[1, 2], [3]]], "stroke 0: a stroke is .* of equal lengths"),
        ([[[1], [1]], [[1]]], r"stroke 1: a stroke has rows x, y and perhaps t"),
        ([[[1], [float("nan")]]], "must be finite"),
    ],
)
def test_bad_quickdraw_is_a_sentence(field, message):
    with pytest.raises(ValueError, match=message):
        drawing_from_quickdraw(field)


@pytest.mark.parametrize("field", [[], [[[], []]], [[[], [], []]]])
def test_empty_quickdraw_is_named(field):
    with pytest.raises(EmptyDrawingError, match=r"x\.ndjson:3: the drawing has no ink"):
        drawing_from_quickdraw(field, where="x.ndjson:3")


def test_bad_stroke3_is_a_sentence():
    with pytest.raises(ValueError, match=r"shape \(n, 3\), got \(2, 2\)"):
        drawing_from_stroke3(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"row 1 .* pen state 2\.0"):
        drawing_from_stroke3(np.array([[0, 0, 0], [0, 0, 2]]))
    with pytest.raises(EmptyDrawingError, match="no rows"):
        drawing_from_stroke3(np.zeros((0, 3)))
    with pytest.raises(EmptyDrawingError, match="no stroke-3 form"):
        drawing_to_stroke3(Drawing(()))


def test_ndjson_names_file_and_line():
    whole = json.dumps({"word": "cat"}).encode() + b"\n"
    assert [n for n, _ in ndjson_records([whole, b"\n", whole], "a.ndjson")] == [1, 3]
    with pytest.raises(ValueError, match=r"a\.ndjson:2: not a whole JSON object .* cut short"):
        list(ndjson_records([whole, whole[:8]], "a.ndjson"))
    with pytest.raises(ValueError, match=r"a\.ndjson:1: expected a JSON object, got list"):
        list(ndjson_records([b"[1]"], "a.ndjson"))
