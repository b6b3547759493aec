"""Image sets of novel objects from their published layout: `meta-*.csv` and the PNGs that it names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data.archives import FolderArchive, checked_name
from humanlike.data.images import ImageFiles
from humanlike.data.object_learning import SUPPORT, Condition, ImageSet
from humanlike.data.table_files import read_table, refuse_empty, refuse_repeated, rows_named
from humanlike.rng import generator

COLUMNS = ("image_id", "category", "sha256", "relpath")
ONE_SHOT_COLUMNS = ("transformation", "transformation_level", "base_image_id")
UNSCORED = (SUPPORT, "combinednat")
"""Transformations that belong to no condition: the support image, and all natural ones at once."""
ROTATIONS = ("inplanerotation", "outplanerotation")
"""Rotations are conditions by their absolute angle."""
VERIFY = ("sample", "all", "none")
SAMPLE = 64
LEVEL_DIGITS = 6


def read_image_set(root: Path, meta: str, one_shot: bool = False, verify: str = "sample") -> ImageSet:
    """An image set, sorted by image id.

    Args:
        root: Folder of the experiment.
        meta: Name of the metadata file; the set is named by it.
        one_shot: Whether the columns of transformations must be there.
        verify: Which files are compared with their SHA-256: "all", a "sample" of 64, or "none".

    Returns:
        The set; its table has every column of the file, without `sha256` and `relpath`.

    Raises:
        FileNotFoundError: When the metadata or images are missing, naming how many and the first.
        ValueError: Naming file and rows (from 1) of what cannot be used.
    """
    if verify not in VERIFY:
        raise ValueError(f"verify must be one of {VERIFY}, got {verify!r}")
    where = f"image metadata {root / meta}"
    needed = (*COLUMNS, *(ONE_SHOT_COLUMNS if one_shot else ()))
    text = ("image_id", "category", "sha256", "relpath", "transformation", "base_image_id")
    table = read_table(root / meta, needed, text, "image metadata")
    refuse_empty(table, ("image_id", "category", "relpath", *(("transformation",) if one_shot else ())), where)
    refuse_repeated(table, "image_id", where)
    refuse_repeated(table, "relpath", where)
    table = table.sort_values("image_id", kind="stable")
    archive = FolderArchive(root)
    _check_present(table, archive, where)
    _check_digests(table, archive, where, verify)
    names = tuple(table["relpath"])
    kept = table.drop(columns=["sha256", "relpath"]).reset_index(drop=True)
    return ImageSet(meta.removeprefix("meta-").removesuffix(".csv"), kept, ImageFiles(names, archive))


def _check_present(table: pd.DataFrame, archive: FolderArchive, where: str) -> None:
    try:
        there = np.array([archive.holds(checked_name(name, where)) for name in table["relpath"]])
    except OSError as error:
        raise ValueError(f"{where}: {error}") from error
    if not there.all():
        first = table.iloc[int(np.argmin(there))]
        raise FileNotFoundError(
            f"{where}: {int((~there).sum())} of {len(table)} images are missing, first {first['relpath']} "
            f"({rows_named(np.array([first.name]))}, image {first['image_id']!r}); fetch the images again"
        )


def _check_digests(table: pd.DataFrame, archive: FolderArchive, where: str, verify: str) -> None:
    rows = np.arange(len(table))
    if verify == "none":
        return
    if verify == "sample" and len(rows) > SAMPLE:
        rows = np.sort(generator(0, "object learning", "digests", len(rows)).choice(rows, SAMPLE, replace=False))
    for row in rows:
        name, expected = table["relpath"].iloc[row], table["sha256"].iloc[row]
        if expected is None:
            raise ValueError(f"{where}: sha256 of {name} is empty; fill it in, or set verify=none")
        if hashlib.sha256(archive.read(name)).hexdigest() != str(expected).lower():
            raise ValueError(
                f"{where}: {name} ({rows_named(table.index.to_numpy()[[row]])}) has another SHA-256 than the metadata "
                "say: the image is damaged or another version; fetch it again"
            )


def with_conditions(images: ImageSet, where: str) -> tuple[ImageSet, tuple[Condition, ...]]:
    """A one-shot image set with the column `condition`, and the conditions: scored transformations × levels, sorted.

    Args:
        images: A set with `transformation` and `transformation_level`.
        where: The file, for messages.

    Raises:
        ValueError: Naming the image whose level is no number.
    """
    table = images.table
    scored = ~table["transformation"].isin(UNSCORED)
    level = pd.to_numeric(table["transformation_level"], errors="coerce")
    bad = (scored & ~np.isfinite(level)).to_numpy()
    if bad.any():
        first = table.iloc[int(np.argmax(bad))]
        raise ValueError(
            f"{where}: transformation_level of {first['image_id']!r} is {first['transformation_level']!r}; "
            f"{first['transformation']} needs a number"
        )
    level = level.where(~table["transformation"].isin(ROTATIONS), level.abs()).round(LEVEL_DIGITS)
    pairs = [Condition(t, float(v)) for t, v in zip(table["transformation"][scored], level[scored], strict=True)]
    conditions = tuple(sorted(set(pairs)))
    position = {condition: i for i, condition in enumerate(conditions)}
    index = np.full(len(table), -1, np.int64)
    index[scored.to_numpy()] = [position[pair] for pair in pairs]
    return ImageSet(images.name, table.assign(condition=index), images.images), conditions


def only_categories(images: ImageSet, categories: Sequence[str]) -> tuple[ImageSet, np.ndarray]:
    """The set with only the images of some objects.

    Returns:
        The smaller set, and (images,) int64: the new row of every old one, -1 for those left out.
    """
    keep = images.table["category"].isin(set(categories)).to_numpy()
    rows_N = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int64)
    return (images if keep.all() else images.select(np.flatnonzero(keep))), rows_N
