"""CommonSketch: sketches with a caption, the elements of their class, and which of them each sketch shows.

The layout of the public release is not known here, so this loader states the layout that it reads:

    classes.json             {"violin": {"superordinate": "instrument", "elements": ["body", "neck", …]}, …}
    annotations.parquet      or .jsonl: sketch_id, class, path, caption, present, perhaps condition and image_id
    …                        the images that `path` names, relative to the folder, or in images.zip

`present` is one of: a list of 0 and 1 (or true and false), one for each element of the class in the order of
classes.json; or a list of the names of the elements that are there. null is a sketch that nobody annotated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from humanlike.data.archives import Archive, open_archive
from humanlike.data.concepts import SemanticSpace, join_semantic_space
from humanlike.data.images import DecodeOptions, ImageFiles
from humanlike.data.labels import label_order, nearest_labels
from humanlike.data.table_files import refuse_empty, refuse_repeated
from humanlike.types import Sketches

CLASSES = "classes.json"
ANNOTATIONS = ("annotations.parquet", "annotations.jsonl")
REQUIRED = ("sketch_id", "class", "path", "present")
PUBLISHED = {"sketches": 23_100, "classes": 300, "superordinate categories": 14}
LAYOUT = (
    f'a folder with {CLASSES} ({{"class": {{"superordinate": …, "elements": […]}}}}), {" or ".join(ANNOTATIONS)} '
    "(sketch_id, class, path, caption, present) and the images; files in another layout have to be brought into this "
    "one first, see the text at the top of humanlike/data/commonsketch.py"
)


@dataclass(frozen=True)
class SketchClass:
    """A class of sketches.

    Attributes:
        superordinate: What kind of thing it is ("instrument").
        elements: Parts that people expect to see.
    """

    superordinate: str
    elements: tuple[str, ...]


def commonsketch(
    root: str | Path,
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    expect_published: bool = False,
    background: str = "white",
) -> Sketches:
    """The CommonSketch data set, or any set in its layout (see the module).

    Args:
        root: The folder.
        labels: Label order; default: all classes of classes.json, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        expect_published: Demand the published numbers of sketches, classes and superordinate categories.
        background: Colour under transparent pixels.

    Returns:
        The data set; `elements` holds the annotation, columns `superordinate` and `caption` come along. Without a
        column `condition` there is one condition (0), without `image_id` every sketch is its own source.

    Raises:
        FileNotFoundError: A file is missing; says what is expected.
        ValueError: Naming file, row and field: a missing column, an unknown class, an annotation of another length than
            the class's elements, an unknown element, an image that is missing, or other counts than published.
    """
    folder = Path(root).expanduser()
    classes = read_classes(folder / CLASSES)
    file, table = _annotations(folder)
    archive = open_archive(folder, "images.zip")
    table = _checked(table, f"commonsketch {file}", classes, archive)
    if expect_published:
        _require_published(table, classes)
    order = label_order("commonsketch", classes, labels)
    rows_LD, flags = join_semantic_space(semantic_space, order)
    paths = table["path"].tolist()
    return Sketches(
        name="commonsketch",
        table=table.drop(columns="present"),
        labels=order,
        images=ImageFiles(paths, archive, DecodeOptions(background=background)),
        semantic_space=rows_LD,
        elements=_elements(table, f"commonsketch {file}", classes),
        flags=tuple(flags),
        source=f"CommonSketch, {folder.name}",
    )


def read_classes(file: Path) -> dict[str, SketchClass]:
    """Class → superordinate category and elements.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: No JSON object, or a class lacks a key, has no elements, or names one twice.
    """
    if not file.is_file():
        raise FileNotFoundError(f"commonsketch: there is no {file}; expected {LAYOUT}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is no JSON: {error}") from error
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{file} must hold an object {{class: {{superordinate, elements}}}}; expected {LAYOUT}")
    found = {}
    for name, value in content.items():
        elements = value.get("elements") if isinstance(value, dict) else None
        if not isinstance(elements, list) or not elements or not all(isinstance(e, str) and e for e in elements):
            raise ValueError(f"{file}: class {name!r} needs `elements`, a list of names, got {elements!r}")
        if len(set(elements)) < len(elements):
            raise ValueError(f"{file}: class {name!r} names an element twice: {elements}")
        if not isinstance(value.get("superordinate"), str):
            raise ValueError(
                f"{file}: class {name!r} needs `superordinate`, a name, got {value.get('superordinate')!r}"
            )
        found[name] = SketchClass(value["superordinate"], tuple(elements))
    return found


def _annotations(folder: Path) -> tuple[Path, pd.DataFrame]:
    there = [folder / name for name in ANNOTATIONS if (folder / name).is_file()]
    if len(there) != 1:
        what = f"both {' and '.join(ANNOTATIONS)}; keep one" if there else f"no {' or '.join(ANNOTATIONS)}"
        raise FileNotFoundError(f"commonsketch: {folder} holds {what}; expected {LAYOUT}")
    file = there[0]
    if file.suffix == ".parquet":
        return file, pd.read_parquet(file)
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise ValueError(f"{file}:{number}: not a whole JSON object ({error})") from error
    return file, pd.DataFrame(rows)


def _checked(table: pd.DataFrame, where: str, classes: Mapping[str, SketchClass], archive: Archive) -> pd.DataFrame:
    missing = [column for column in REQUIRED if column not in table.columns]
    if missing:
        raise ValueError(f"{where} lacks the column(s) {missing}; it has {list(table.columns)}")
    table = table.astype({"sketch_id": str})
    refuse_empty(table, ("sketch_id", "class", "path"), where)
    refuse_repeated(table, "sketch_id", where)
    for row, (name, path) in enumerate(zip(table["class"], table["path"], strict=True), start=1):
        if name not in classes:
            near = nearest_labels(name, tuple(classes))
            raise ValueError(f"{where}: row {row} has the class {name!r}, which {CLASSES} lacks; {near}")
        if not archive.holds(path):
            raise ValueError(f"{where}: row {row} names the image {archive.describe(path)}, which is missing")
    table = table.rename(columns={"class": "concept"})
    table["superordinate"] = table["concept"].map(lambda name: classes[name].superordinate)
    table["condition"] = pd.to_numeric(table["condition"]) if "condition" in table else 0.0
    table["image_id"] = table["image_id"].astype(str) if "image_id" in table else table["sketch_id"]
    first = ["sketch_id", "concept", "condition", "image_id"]
    return table[[*first, *(c for c in table.columns if c not in first)]].reset_index(drop=True)


def _elements(table: pd.DataFrame, where: str, classes: Mapping[str, SketchClass]) -> pd.DataFrame:
    rows: list[tuple[str, str, bool]] = []
    for number, (sketch, name, present) in enumerate(
        zip(table["sketch_id"], table["concept"], table["present"], strict=True), start=1
    ):
        elements = classes[name].elements
        drawn = _drawn(present, elements, f"{where}: row {number} ({sketch})")
        rows += [(sketch, element, shown) for element, shown in zip(elements, drawn, strict=bool(drawn))]
    return pd.DataFrame(rows, columns=["sketch_id", "element", "drawn"])


def _drawn(present: Any, elements: tuple[str, ...], where: str) -> list[bool]:
    """Whether each element is there; empty for a sketch that nobody annotated."""
    if present is None or (isinstance(present, float) and np.isnan(present)):
        return []
    values = list(present) if isinstance(present, list | tuple | np.ndarray) else None
    if values is not None and all(isinstance(v, str) for v in values):
        unknown = [v for v in values if v not in elements]
        if unknown:
            raise ValueError(f"{where} shows {unknown[0]!r}, which is no element of its class: {', '.join(elements)}")
        return [element in values for element in elements]
    if values is None or len(values) != len(elements) or any(v not in (0, 1) for v in values):
        raise ValueError(
            f"{where}: present must be {len(elements)} values of 0 or 1, one for each element of its class, or names "
            f"of elements; got {present!r}"
        )
    return [bool(v) for v in values]


def _require_published(table: pd.DataFrame, classes: Mapping[str, SketchClass]) -> None:
    found = {
        "sketches": len(table),
        "classes": len(classes),
        "superordinate categories": len({c.superordinate for c in classes.values()}),
    }
    other = [f"{found[k]} {k} (published: {PUBLISHED[k]})" for k in PUBLISHED if found[k] != PUBLISHED[k]]
    if other:
        raise ValueError(
            f"commonsketch has {', '.join(other)}; set dataset.expect_published=false if this is a part of it"
        )
