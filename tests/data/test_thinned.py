"""Drawings with strokes missing: what is kept, what still counts as drawn, and which pixels follow."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.data.doodles import doodles
from humanlike.data.drawing import Drawing
from humanlike.data.render import Renderer
from humanlike.data.thinned import thinned


@pytest.fixture(scope="module")
def whole():
    return doodles(["lion", "taxi", "mouse"], instances=3, judgments=12, size=48)


def test_a_part_of_the_strokes_is_left_and_drawn(whole):
    less = thinned(whole, least=0.4, seed=2)
    assert less.responses is None
    for i in range(len(whole)):
        drawing, rest = whole.images.drawing(i), less.images.drawing(i)
        kept = less.images.kept_N[i]
        assert 1 <= len(kept) <= drawing.num_strokes
        assert len(kept) >= round(0.4 * drawing.num_strokes)
        assert rest.digest() == Drawing(tuple(drawing.strokes[s] for s in kept)).digest()
        np.testing.assert_array_equal(np.asarray(less.images.load(i)), np.asarray(Renderer(size=48)(rest)))
        assert less.table["num_strokes"][i] == len(kept)
    shares = np.array([len(less.images.kept_N[i]) for i in range(len(less))]) / whole.table["num_strokes"].to_numpy()
    assert shares.min() < 0.7 < shares.max()


def test_elements_are_drawn_while_half_of_their_strokes_are(whole):
    less = thinned(whole, seed=1)
    place = {s: i for i, s in enumerate(whole.table["sketch_id"])}
    pairs = less.elements.merge(whole.elements, on=["sketch_id", "element"], suffixes=("", "_before"))
    assert len(pairs) == len(whole.elements)
    for row in pairs.itertuples():
        i = place[row.sketch_id]
        strokes = [s for s, x in enumerate(whole.images.drawing(i).strokes) if x.element == row.element]
        left = len(set(strokes) & set(less.images.kept_N[i]))
        assert row.drawn == (row.drawn_before and bool(strokes) and left >= len(strokes) / 2)
    assert 0 < pairs["drawn"].sum() < pairs["drawn_before"].sum()


def test_the_choice_has_an_address(whole):
    a, b, c = thinned(whole, seed=1), thinned(whole, seed=1), thinned(whole, seed=2)
    hashes = [[t.images.content_hash(i) for i in range(len(whole))] for t in (a, b, c)]
    assert hashes[0] == hashes[1] != hashes[2]
    everything = thinned(whole, least=1.0)
    assert [everything.images.drawing(i).digest() for i in range(6)] == [
        whole.images.drawing(i).digest() for i in range(6)
    ]
    assert "strokes [" in a.images.describe(0)


def test_what_cannot_be_thinned_is_said(whole):
    with pytest.raises(ValueError, match="least must be a share"):
        thinned(whole, least=0.0)
    with pytest.raises(ValueError, match="pictures without strokes"):
        thinned(whole.select([0, 1]))
