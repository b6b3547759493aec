"""Quick, Draw! drawings, cut in time or in strokes: a real axis of abstraction.

Every cut of a drawing is an item of its own; all cuts share the drawing's `image_id`, so that no fold separates them,
and are scaled by the box of the full drawing, so that they stay in register.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from humanlike.data.concepts import SemanticSpace, join_semantic_space
from humanlike.data.drawing import DEFAULT_WIDTH
from humanlike.data.labels import label_order, require_choice, require_conditions
from humanlike.data.quickdraw_files import class_files, open_quickdraw, read_drawings
from humanlike.data.render import Renderer
from humanlike.data.stroke_images import PackedDrawings, StrokeImages
from humanlike.types import Sketches

CLASS_SETS: Mapping[str, tuple[str, ...]] = {
    # QuickDraw classes that are SEVA concepts too.
    "seva": (
        *("baseball", "bathtub", "bear", "bed", "bench", "bracelet", "bread", "butterfly", "couch", "cow", "flower"),
        *("giraffe", "guitar", "hat", "lion", "mosquito", "mouse", "owl", "parrot", "snail", "snake", "vase"),
    ),
}

SOURCE = "The Quick, Draw! Dataset, Google, CC BY 4.0"


def quickdraw(
    root: str | Path,
    classes: Sequence[str] | str | int | None = None,
    time_cuts: Sequence[float] | None = (1, 2, 4, 8, 16),
    stroke_cuts: Sequence[int] | None = None,
    max_per_class: int | None = None,
    recognized_only: bool = False,
    size: int = 256,
    stroke_width: float = DEFAULT_WIDTH,
    margin: float = 0.05,
    background: str = "white",
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    on_bad_line: str = "raise",
) -> Sketches:
    """QuickDraw ndjson files as a data set of cut drawings.

    A drawing that ended before a cut is shown in full at that cut. A cut before the first ink is dropped and counted.

    Args:
        root: A folder of `<class>.ndjson` files (also `full_raw_<class>.ndjson`), a zip of them, or a folder that holds
            `raw_ndjson.zip`; zips are read in place.
        classes: None for all, a list of names, "seva" for the classes that SEVA has too, or a number for the first n in
            alphabetical order.
        time_cuts: Seconds, as conditions; needs the raw files, which have times. Null for none.
        stroke_cuts: Numbers of strokes, as conditions; set `time_cuts` to null. Both null: full drawings, condition 0.
        max_per_class: Read only the first so many drawings of a class.
        recognized_only: Leave out drawings that the game's network did not recognise.
        size: Side of the rendered images in pixels.
        stroke_width: Pen width as a fraction of the side.
        margin: Free border around the full drawing as a fraction of the side.
        background: Colour of the sheet.
        labels: Label order; default: the classes read, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        on_bad_line: "raise", or "skip" to leave out lines that cannot be read, and count them.

    Returns:
        The data set: `sketch_id` = "<key_id>@<cut>s" (or "@<cut>strokes", or the key), `image_id` = key, `num_strokes`
        and `num_points` of what is shown.

    Raises:
        FileNotFoundError: When there are no files at `root`, with where to get them.
        ValueError: For unknown classes (with the nearest), wrong arguments, damaged lines (file:line), repeated keys,
            one class only, or a condition without items.
    """
    cuts, unit = chosen_cuts(time_cuts, stroke_cuts)
    archive = open_quickdraw(root)
    files = class_files(archive, named_classes(classes))
    require_choice(on_bad_line, "on_bad_line", ("raise", "skip"))
    packed, dropped = read_drawings(
        archive,
        files,
        margin=margin,
        max_per_class=max_per_class,
        recognized_only=recognized_only,
        need_times=unit == "s",
        skip_bad_lines=on_bad_line == "skip",
    )
    return cut_sketches(
        "quickdraw",
        packed,
        cuts,
        unit,
        renderer=Renderer(size=size, stroke_width=stroke_width, background=background),
        dropped=dropped,
        labels=labels,
        semantic_space=semantic_space,
    )


def named_classes(classes: Sequence[str] | str | int | None) -> Sequence[str] | str | int | None:
    """`classes` with the name of a set ("seva") replaced by its members."""
    return CLASS_SETS.get(classes, classes) if isinstance(classes, str) else classes


def cut_sketches(
    name: str,
    packed: PackedDrawings,
    cuts: list[float] | None,
    unit: str,
    *,
    renderer: Renderer,
    dropped: Counter[str],
    labels: Sequence[str] | None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None,
) -> Sketches:
    """Packed QuickDraw drawings as a data set, one item a drawing and cut; see `quickdraw`.

    Args:
        name: Name of the data set.
        packed: The drawings.
        cuts: Seconds or numbers of strokes, or None for full drawings.
        unit: "s", "strokes" or "".
        renderer: How strokes become pixels.
        dropped: Reason → number left out so far; cuts before the first ink are added.
        labels: Label order, or None.
        semantic_space: See `join_semantic_space`.
    """
    table = _cut_table(packed, cuts, unit, dropped)
    if cuts is not None:
        require_conditions(name, cuts, table["condition"])
    order = label_order(name, table["concept"], labels)
    rows_LD, flags = join_semantic_space(semantic_space, order)
    images = StrokeImages(
        packed,
        drawing_N=table.pop("drawing").to_numpy(np.int64),
        num_points_N=table["num_points"].to_numpy(np.int64),
        renderer=renderer,
    )
    return Sketches(
        name=name,
        table=table,
        labels=order,
        images=images,
        condition_unit=unit,
        semantic_space=rows_LD,
        dropped=dict(dropped),
        # Cuts of one drawing are near copies of each other: benchmarks must keep them in one fold.
        flags=flags if cuts is None else (*flags, "derived_conditions"),
        source=SOURCE,
    )


def chosen_cuts(time_cuts: Sequence[float] | None, stroke_cuts: Sequence[int] | None) -> tuple[list[float] | None, str]:
    """The cuts in increasing order (None for full drawings) and their unit.

    Raises:
        ValueError: For both kinds at once, and cuts that are not positive.
    """
    if time_cuts is not None and stroke_cuts is not None:
        raise ValueError("give time_cuts or stroke_cuts, not both; for strokes set dataset.time_cuts=null")
    given = time_cuts if time_cuts is not None else stroke_cuts
    if given is None:
        return None, ""
    cuts = sorted({float(c) for c in given})
    whole = time_cuts is not None or all(c == int(c) for c in cuts)
    if not cuts or cuts[0] <= 0 or not np.isfinite(cuts).all() or not whole:
        kind = "seconds" if time_cuts is not None else "whole numbers of strokes"
        raise ValueError(f"cuts must be positive {kind}, at least one; got {list(given)}")
    return cuts, "s" if time_cuts is not None else "strokes"


def _cut_table(packed: PackedDrawings, cuts: list[float] | None, unit: str, dropped: Counter[str]) -> pd.DataFrame:
    """One row an item, with the drawing's number in `drawing`."""
    shown_DT = packed.points_until(cuts, unit)
    num_drawings, num_cuts = shown_DT.shape
    drawing = np.repeat(np.arange(num_drawings), num_cuts)
    condition = np.tile([0.0] if cuts is None else cuts, num_drawings)
    points = shown_DT.ravel()
    keys = np.asarray(packed.keys, dtype=object)[drawing]
    suffix = np.tile([""] if cuts is None else [f"@{c:g}{unit}" for c in cuts], num_drawings).astype(object)
    table = pd.DataFrame(
        {
            "sketch_id": keys + suffix,
            "concept": np.asarray(packed.concepts, dtype=object)[drawing],
            "condition": condition,
            "image_id": keys,
            "num_strokes": packed.strokes_within(drawing, points),
            "num_points": points,
            "drawing": drawing,
        }
    )
    blank = points == 0
    if blank.any():
        dropped["cut before the first ink"] += int(blank.sum())
    return table[~blank].reset_index(drop=True)
