"""Sketches of one object at every budget: people's beside a machine's, with what people saw in them (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from humanlike.reports.gallery import Example, gallery_examples
from humanlike.types import Sketches


@dataclass(frozen=True)
class GalleryRow:
    """The sketches of one object by one hand, budget by budget.

    Attributes:
        concept: What was to be drawn.
        origin: Where the sketches come from, as in "drawn by people".
        unit: Unit of the budget.
        examples: The sketches; `answer` is "" and `correct` False, because no one model is asked here.
        models_right: Number of the study's models that named each sketch rightly, or None where none was asked.
        models: Number of models that were asked.
    """

    concept: str
    origin: str
    unit: str
    examples: tuple[Example, ...]
    models_right: tuple[int | None, ...]
    models: int = 0


def study_gallery(
    data: Sketches,
    machine: Sketches | None = None,
    *,
    sketch_rows: pd.DataFrame | None = None,
    origin: str | None = None,
    count: int = 2,
    side: int = 112,
    seed: int = 0,
) -> list[GalleryRow]:
    """Draw `count` objects at random, with people's sketches of each and the machine's of the same photograph.

    Args:
        data: Sketches by people.
        machine: Sketches by a machine; an object whose photograph it did not draw is shown by another of its concept,
            or by people alone.
        sketch_rows: The study's table of models' answers (`observer, sketch_id, accuracy`), for people's sketches.
        origin: Where `data` comes from; None = "drawn by people", or the data set's name where answers, and so maybe
            sketches, are no people's. The machine's sketches are "drawn by" the name of their data set.
        count: Number of objects.
        side: Longer side of the pictures, in pixels.
        seed: Global seed.

    Returns:
        Rows, object by object; empty where there are no images.
    """
    drawn = gallery_examples(data, _items(data), count=count, side=side, seed=seed)
    right, models = _models_right(sketch_rows)
    rows = []
    simulated = data.responses is not None and data.responses.simulated
    origin = origin or (f"from the data set {data.name}" if simulated else "drawn by people")
    for source in dict.fromkeys(e.image_id for e in drawn):
        own = tuple(e for e in drawn if e.image_id == source)
        known = tuple(right.get(e.sketch_id) for e in own)
        rows.append(GalleryRow(own[0].concept, origin, data.condition_unit, own, known, models))
        if machine is not None:
            rows += _machine_row(machine, own, side, seed)
    return rows


def _machine_row(machine: Sketches, own: Sequence[Example], side: int, seed: int) -> list[GalleryRow]:
    items = _items(machine)
    same = items[items["image_id"].astype(str) == own[0].image_id]
    alike = same if len(same) else items[items["concept"] == own[0].concept]
    if alike.empty:
        return []
    examples = gallery_examples(machine, alike, count=1, side=side, seed=seed)
    unknown = (None,) * len(examples)
    origin = f"drawn by {machine.name}"
    return [GalleryRow(own[0].concept, origin, machine.condition_unit, examples, unknown)] if examples else []


def _items(data: Sketches) -> pd.DataFrame:
    return data.table[["sketch_id", "concept", "condition", "image_id"]].assign(top1="", correct=False, error=None)


def _models_right(sketch_rows: pd.DataFrame | None) -> tuple[dict[str, int], int]:
    if sketch_rows is None:
        return {}, 0
    rows = sketch_rows[sketch_rows["observer"] != "people"]
    right = rows.groupby("sketch_id")["accuracy"].sum().round().astype(int)
    return {str(sketch): int(n) for sketch, n in right.items()}, int(rows["observer"].nunique())
