"""Sketches of birds, cars, chairs and dogs in which people labelled every stroke with the part it shows."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data.archives import open_archive
from humanlike.data.images import DecodeOptions, ImageFiles
from humanlike.data.labels import label_order
from humanlike.files import sha256_file
from humanlike.types import Features, Sketches

ARCHIVE = "sketches.zip"
ANNOTATIONS = "part_annotations.csv"
PARTS = "parts_by_category.json"
REFERENCE = "reference_features.npz"
REPOSITORIES = "github.com/cogtoolslab/semantic_parts and github.com/kushinm/sketch_triplets"
CONDITIONS: Mapping[str, float] = {"further": 0.0, "closer": 1.0}
NO_PART = "unknown"
COUNT = "_numstrokes"


def sketch_parts(
    root: str | Path, items: str = "images", labels: Sequence[str] | None = None, background: str = "white"
) -> Sketches:
    """Sketches of a communication game, with the parts that people saw in them.

    A drawer had to set one of 32 objects apart from three others: of the same category ("closer", condition 1) or of
    other categories ("further", condition 0). An element is a part that occurs in the sketch's category, and it is
    drawn when at least one stroke was labelled with it; strokes labelled "unknown" show no part.

    Args:
        root: Folder with `part_annotations.csv`, `parts_by_category.json`, and `sketches.zip` or its category folders.
        items: "images": the annotated sketches that have an image; "annotated": all annotated ones, of which most have
            no image (asking for the pixels of those raises BadImageError).
        labels: Label order; default: the categories, sorted.
        background: Colour under the transparent ground.

    Returns:
        The data set. `image_id` is the object that was drawn, so that folds hold out whole objects; columns `target`
        (the same), `context` ("closer" or "further"), `outcome` (the viewer picked the right object) and
        `num_strokes`; `elements` is the annotation.

    Raises:
        FileNotFoundError: A file is missing, with where to get it.
        ValueError: A column or a category is missing, or a context is another one.

    References:
        Fan et al. (2020), "Pragmatic inference and visual abstraction enable contextual flexibility during visual
        communication"; Mukherjee, Hawkins and Fan (2019), "Communicating semantic part information in drawings".
    """
    if items not in ("images", "annotated"):
        raise ValueError(f"items must be images or annotated, got {items!r}")
    folder = Path(root).expanduser()
    for file in (folder / ANNOTATIONS, folder / PARTS):
        if not file.is_file():
            raise FileNotFoundError(
                f"sketch_parts: there is no {file}; root holds {ANNOTATIONS}, {PARTS} and {ARCHIVE} "
                f"(from {REPOSITORIES})"
            )
    archive = open_archive(folder, ARCHIVE)
    annotation = _read(folder / ANNOTATIONS)
    part_names = _parts(folder / PARTS, annotation)
    strokes = annotation[[c for c in annotation.columns if c.endswith(COUNT)]].sum(axis=1)
    table = pd.DataFrame(
        {
            "sketch_id": annotation["sketch_id"],
            "concept": annotation["category"],
            "condition": annotation["condition"].map(CONDITIONS),
            "image_id": annotation["target"],
            "target": annotation["target"],
            "context": annotation["condition"],
            "outcome": annotation["outcome"].astype(bool),
            "num_strokes": strokes,
            "path": annotation["category"] + "/" + annotation["sketch_id"] + ".png",
        }
    )
    kept = np.ones(len(table), dtype=bool)
    if items == "images":
        kept = table["path"].isin(archive.names()).to_numpy()
        if not kept.any():
            raise FileNotFoundError(
                f"sketch_parts: {archive.describe('')} holds no image of the {len(table)} annotated sketches, the "
                f"first is {table['path'].iloc[0]}"
            )
    table, annotation = table[kept].reset_index(drop=True), annotation[kept].reset_index(drop=True)
    return Sketches(
        name="sketch_parts",
        table=table,
        labels=label_order("sketch_parts", table["concept"], labels),
        images=ImageFiles(tuple(table["path"]), archive, DecodeOptions(background=background)),
        elements=_elements(annotation, part_names),
        dropped={} if kept.all() else {"without an image": int((~kept).sum())},
        source=f"{REPOSITORIES}, MIT licence",
    )


def reference_features(root: str | Path, data: Sketches, name: str = "clip_ViT_visual") -> Features:
    """Features of the sketches that the authors published: real vectors of large networks, without the networks.

    Args:
        root: Folder with `reference_features.npz`.
        data: `sketch_parts(root)`, or a selection of it.
        name: "clip_ViT_visual" (D = 512), "resnet18_fc", "alexnet_classifier_6" or "vgg19_classifier_6" (1,000 class
            scores each).

    Returns:
        Features of the items that have them, in item order.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: There are no such features, or none of these sketches.
    """
    file = Path(root).expanduser() / REFERENCE
    if not file.is_file():
        raise FileNotFoundError(f"sketch_parts: there is no {file} (from {REPOSITORIES})")
    try:
        with np.load(file, allow_pickle=False) as content:
            if name not in content.files or name == "sketch_id":
                known = sorted(set(content.files) - {"sketch_id"})
                raise ValueError(f"{file} has no features {name!r}; it has {', '.join(known)}")
            f_ND, ids = content[name].astype(np.float32), content["sketch_id"].tolist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{file} is damaged ({error}); fetch it again") from error
    position = {sketch_id: i for i, sketch_id in enumerate(ids)}
    rows = np.flatnonzero(data.table["sketch_id"].isin(position))
    if len(rows) == 0:
        raise ValueError(f"{file} has features of {len(ids)} sketches, but of none of the {len(data)} of {data.name}")
    order = [position[s] for s in data.table["sketch_id"].iloc[rows]]
    digest = sha256_file(file)
    return Features(f_ND[order], rows, {}, name, {"weights": digest, "data": digest, "features": digest})


def _read(file: Path) -> pd.DataFrame:
    table = pd.read_csv(file, dtype={"sketch_id": str, "target": str})
    missing = [c for c in ("sketch_id", "target", "condition", "category", "outcome") if c not in table.columns]
    if missing:
        raise ValueError(f"{file} lacks the column(s) {missing}; it has {list(table.columns)[:8]} …")
    other = sorted(set(table["condition"]) - set(CONDITIONS))
    if other:
        row = int(np.flatnonzero(table["condition"].isin(other))[0])
        raise ValueError(f"{file}: row {row} has the condition {other[0]!r}; it must be closer or further")
    return table


def _parts(file: Path, annotation: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Category → its parts, each with a column of stroke counts."""
    content = json.loads(file.read_text(encoding="utf-8"))
    parts = {str(category): tuple(p for p in named if p != NO_PART) for category, named in content.items()}
    absent = sorted(set(annotation["category"]) - set(parts))
    if absent:
        raise ValueError(f"{file} lists no parts of {absent[0]!r}, which is annotated; it has {', '.join(parts)}")
    for category in sorted(set(annotation["category"])):
        columns = [p for p in parts[category] if f"{p}{COUNT}" not in annotation.columns]
        if columns:
            raise ValueError(f"{file}: {category!r} has the part {columns[0]!r}, but {columns[0]}{COUNT} is no column")
    return parts


def _elements(annotation: pd.DataFrame, part_names: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    drawn = {c: (annotation[c] > 0).to_numpy() for c in annotation.columns if c.endswith(COUNT)}
    rows = [
        (sketch_id, part, bool(drawn[f"{part}{COUNT}"][i]))
        for i, (sketch_id, category) in enumerate(zip(annotation["sketch_id"], annotation["category"], strict=True))
        for part in part_names[category]
    ]
    return pd.DataFrame(rows, columns=["sketch_id", "element", "drawn"])
