from __future__ import annotations

import base64
import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.reports.gallery import gallery_examples
from humanlike.types import Responses, Sketches


class _Gray:
    """Every item is one shade of gray, its index."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def load(self, index: int) -> Image.Image:
        return Image.new("RGB", (300, 150), (index, index, index))

    def content_hash(self, index: int) -> str:
        return str(index)

    def describe(self, index: int) -> str:
        return f"gray {index}"


def _guesses(sketch_id: str, answers: list[str]) -> list[dict]:
    return [
        {"participant": f"p{i}", "sketch_id": sketch_id, "guess_1": a, **{f"guess_{k}": None for k in range(2, 6)}}
        for i, a in enumerate(answers)
    ]


@pytest.fixture
def data(score) -> Sketches:
    items = score.result.items
    table = items[["sketch_id", "concept", "condition", "image_id"]]
    rows = [g for s in table["sketch_id"] for g in _guesses(s, ["tree", "lion", "lion", "tree", "bear"])]
    labels = tuple(sorted(set(table["concept"])))
    return Sketches("gray", table, labels, _Gray(len(table)), responses=Responses(pd.DataFrame(rows)))


def test_each_example_is_its_item(data, score):
    items = score.result.items.set_index("sketch_id")
    examples = gallery_examples(data, score.result.items.sample(frac=1, random_state=0), count=8, side=60)
    assert len(examples) == 8 * 4
    assert len({e.concept for e in examples}) == 8
    for e in examples:
        row = items.loc[e.sketch_id]
        assert (e.concept, e.condition, e.answer) == (row["concept"], row["condition"], row["top1"])
        assert e.correct == bool(row["correct"])
        assert e.image.size == (60, 30)
        assert e.image.getpixel((0, 0))[0] == items.index.get_loc(e.sketch_id)
        assert (e.people_answer, e.people_share) == ("lion", 0.4)
    assert [e.condition for e in examples[:4]] == [4, 8, 16, 32]


def test_sources_with_a_failed_item_are_passed_over_and_the_draw_is_fixed(data, score):
    every = gallery_examples(data, score.result.items, count=99)
    assert len(every) == (32 - 1) * 4
    assert "airplane_1" not in {e.image_id for e in every}
    twice = [[e.sketch_id for e in gallery_examples(data, score.result.items, count=3, seed=5)] for _ in range(2)]
    assert twice[0] == twice[1]
    assert twice[0] != [e.sketch_id for e in gallery_examples(data, score.result.items, count=3, seed=6)]


def test_data_uri_is_a_png_of_the_picture(data, score):
    example = gallery_examples(data, score.result.items, count=1)[0]
    head, _, body = example.data_uri.partition(",")
    assert head == "data:image/png;base64"
    picture = Image.open(io.BytesIO(base64.b64decode(body)))
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(example.image))
