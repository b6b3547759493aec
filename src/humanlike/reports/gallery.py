"""Example sketches with the answers that a model and people gave, for reports and dashboards."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import pandas as pd
from PIL import Image

from humanlike.data.trials import AbsentImages
from humanlike.reports.sea_wording import sketch_caption
from humanlike.types import Sketches


@dataclass(frozen=True)
class Example:
    """One sketch of the gallery.

    Attributes:
        sketch_id: Its id.
        image_id: What it was drawn from; the sketches of one source form a row.
        concept: What it shows.
        condition: Its condition.
        image: A small picture.
        answer: The model's label.
        correct: Whether that is the concept.
        people_answer: The label most people gave first (the first in the alphabet on a tie), or None.
        people_share: Share of people who gave it, in (0, 1], or None.
        caption: What a benchmark says of the sketch, or None.
    """

    sketch_id: str
    image_id: str
    concept: str
    condition: float
    image: Image.Image
    answer: str
    correct: bool
    people_answer: str | None = None
    people_share: float | None = None
    caption: str | None = None

    @property
    def data_uri(self) -> str:
        """The picture as a PNG in a `data:` address."""
        buffer = io.BytesIO()
        self.image.save(buffer, format="PNG", optimize=True)
        return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def gallery_examples(
    data: Sketches, items: pd.DataFrame, *, count: int = 4, side: int = 112, seed: int = 0
) -> tuple[Example, ...]:
    """Draw `count` sources at random, of different concepts while there are any, with all their conditions.

    Sources are drawn, not chosen, so that the gallery shows typical sketches and not the best ones. Sources
    with an item that failed, or that lack a condition, are passed over.

    Args:
        data: The data set the items come from.
        items: The run's items table (`sketch_id, condition, image_id, concept, top1, correct, error`); those of no
            sketch in `data` are left out.
        count: Number of sources; fewer where the data set has fewer.
        side: Longer side of the pictures, in pixels.
        seed: Global seed.

    Returns:
        Examples, source by source, conditions in order; empty where nothing is eligible or there are no images.
    """
    if isinstance(data.images, AbsentImages) or "top1" not in items:  # no images, or no answers to show
        return ()
    from humanlike.rng import generator  # brings torch, which showing finished runs does not need

    usable = items[(items["error"].isna() | (items["error"] == "")) & items["sketch_id"].isin(data.table["sketch_id"])]
    conditions = sorted(usable["condition"].unique())
    per_source = usable.groupby("image_id", sort=True)["condition"]
    complete = per_source.nunique().eq(len(conditions)) & per_source.size().eq(len(conditions))
    sources = complete.index[complete].tolist()
    concept_of = usable.drop_duplicates("image_id").set_index("image_id")["concept"].to_dict()
    order = [sources[i] for i in generator(seed, "reports", "gallery").permutation(len(sources))]
    seen: dict[str, int] = {}
    rank = {}
    for source in order:
        rank[source] = seen.get(concept_of[source], 0)
        seen[concept_of[source]] = rank[source] + 1
    chosen = sorted(order, key=rank.__getitem__)[:count]
    position = {sketch_id: i for i, sketch_id in enumerate(data.table["sketch_id"])}
    return tuple(
        _example(data, row, position[row["sketch_id"]], side)
        for source in chosen
        for row in usable[usable["image_id"] == source].sort_values("condition").to_dict(orient="records")
    )


def _example(data: Sketches, row: dict, index: int, side: int) -> Example:
    image = data.images.load(index).convert("RGB")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    caption = sketch_caption(row)
    # SEA does not ask people: their guesses beside its scores would say that it did.
    answer, share = _first_guess(data, row["sketch_id"]) if caption is None else (None, None)
    return Example(
        sketch_id=str(row["sketch_id"]),
        image_id=str(row["image_id"]),
        concept=str(row["concept"]),
        condition=float(row["condition"]),
        image=image,
        answer=str(row["top1"]),
        correct=bool(row["correct"]),
        people_answer=answer,
        people_share=share,
        caption=caption,
    )


def _first_guess(data: Sketches, sketch_id: str) -> tuple[str | None, float | None]:
    if data.responses is None:
        return None, None
    table = data.responses.table
    counts = table.loc[table["sketch_id"] == sketch_id, "guess_1"].value_counts()
    if counts.empty:
        return None, None
    most = int(counts.max())
    return min(str(label) for label in counts.index[counts == most]), most / int(counts.sum())
