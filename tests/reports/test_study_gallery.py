from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from PIL import Image

from humanlike.reports.study_gallery import study_gallery
from humanlike.types import Responses, Sketches

CONCEPTS = ("ant", "bee", "cat")


class _Shade:
    """Every item is one shade of gray: `first` + its index."""

    def __init__(self, count: int, first: int) -> None:
        self.count, self.first = count, first

    def __len__(self) -> int:
        return self.count

    def load(self, index: int) -> Image.Image:
        return Image.new("RGB", (20, 20), (self.first + index,) * 3)

    def content_hash(self, index: int) -> str:
        return str(index)

    def describe(self, index: int) -> str:
        return f"gray {index}"


def _sketches(name: str, unit: str, first: int, photographs: int) -> Sketches:
    rows = [(f"{name}_{c}{p}_{t:g}", c, t, f"{c}{p}") for c in CONCEPTS for p in range(photographs) for t in (4.0, 8.0)]
    table = pd.DataFrame(rows, columns=["sketch_id", "concept", "condition", "image_id"])
    empty = {f"guess_{k}": None for k in range(2, 6)}
    said = [{"participant": "p", "sketch_id": s, "guess_1": "bee", **empty} for s in table["sketch_id"]]
    return Sketches(name, table, CONCEPTS, _Shade(len(table), first), unit, responses=Responses(pd.DataFrame(said)))


@pytest.fixture
def human() -> Sketches:
    return _sketches("human", "s", 0, 3)


def test_people_and_machine_drew_the_same_photograph(human):
    machine = _sketches("machine", "strokes", 100, 3)
    answers = pd.DataFrame(
        [(o, s, int(o == "a" or s.endswith("_8"))) for o in ("a", "b", "people") for s in human.table["sketch_id"]],
        columns=["observer", "sketch_id", "accuracy"],
    )
    rows = study_gallery(human, machine, sketch_rows=answers, count=2, seed=3)
    assert [r.origin for r in rows] == ["drawn by people", "drawn by machine"] * 2
    assert len({r.concept for r in rows}) == 2
    for own, other in zip(rows[::2], rows[1::2], strict=True):
        assert {e.image_id for e in own.examples} == {e.image_id for e in other.examples}
        assert [e.condition for e in own.examples] == [e.condition for e in other.examples] == [4.0, 8.0]
        assert (own.models_right, own.models, own.unit) == ((1, 2), 2, "s")
        assert (other.models_right, other.unit) == ((None, None), "strokes")
        assert other.examples[0].image.getpixel((0, 0))[0] >= 100
        assert other.examples[0].people_answer == "bee"


def test_another_photograph_of_the_concept_stands_in_and_absent_concepts_are_left_out(human):
    machine = _sketches("machine", "strokes", 100, 1)
    ant_only = machine.table["concept"] == "ant"
    part = Sketches(
        "machine", machine.table[ant_only].reset_index(drop=True), CONCEPTS, _Shade(int(ant_only.sum()), 100)
    )
    rows = study_gallery(human, part, count=3)
    assert sorted(r.concept for r in rows if r.origin == "drawn by machine") == ["ant"]
    assert [r.origin for r in rows].count("drawn by people") == 3
    assert rows[0].models_right == (None, None)


def test_sketches_of_simulated_people_are_not_called_peoples(human):
    answers = replace(human.responses, simulated=True)
    (row,) = study_gallery(replace(human, responses=answers), count=1)
    assert row.origin == "from the data set human"
    (row,) = study_gallery(human, origin="drawn by hand", count=1)
    assert row.origin == "drawn by hand"
