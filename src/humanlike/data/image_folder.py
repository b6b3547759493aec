"""Data sets that are folders of images: a folder a concept, and perhaps a folder a condition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from humanlike.data.archives import Archive, open_archive
from humanlike.data.concepts import SemanticSpace, join_semantic_space
from humanlike.data.images import IMAGE_SUFFIXES, DecodeOptions, ImageFiles
from humanlike.data.labels import label_order, require_conditions
from humanlike.types import Sketches

LEVELS = ("concept", "condition", "image_id", "ignore")
_LEADING_NUMBER = re.compile(r"[^\d+-]*([+-]?\d+(?:\.\d+)?)")


def image_folder(
    root: str | Path,
    layout: str = "concept",
    pattern: str | None = None,
    condition_values: Mapping[str, float] | None = None,
    condition_unit: str = "",
    conditions: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    background: str = "white",
    polarity: str = "keep",
    pad_to_square: bool = False,
    svg_size: int = 256,
    name: str = "image_folder",
    source: str = "",
) -> Sketches:
    """A folder (or a zip, read in place) of images as a data set.

    Args:
        root: Folder or zip.
        layout: What the folder levels above a file mean, joined by "/": `concept`, `condition`, `image_id` or `ignore`.
            "concept" is root/lion/1.png; "condition/concept" is root/8s/lion/1.png.
        pattern: Instead of `layout`, a regular expression that the whole relative path must match, with the named group
            `concept` and perhaps `condition` and `image_id`.
        condition_values: Name of a condition → its number. Without it the first number in the name counts ("8s" is 8).
        condition_unit: Unit of the conditions, "s" or "strokes" for example.
        conditions: Conditions that must be there; others are dropped and counted.
        labels: Label order; default: the concepts found, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        background: See `DecodeOptions`.
        polarity: See `DecodeOptions`.
        pad_to_square: See `DecodeOptions`.
        svg_size: See `DecodeOptions`.
        name: Name of the data set in results.
        source: Where the data came from and its licence.

    Returns:
        The data set. `sketch_id` is the relative path; `image_id` is the path's stem below its concept, so that files
        of the same name in several conditions count as one source and share a fold.

    Raises:
        FileNotFoundError: When `root` is missing, with what is expected there.
        ValueError: When no file fits the layout, there is one concept only, labels are unknown, or a condition is
            empty.
    """
    archive = _opened(root, layout, pattern)
    return sketches_from_archive(
        archive,
        _matcher(layout, pattern),
        options=DecodeOptions(background, polarity, pad_to_square, svg_size=svg_size),
        condition_values=condition_values,
        condition_unit=condition_unit,
        conditions=conditions,
        labels=labels,
        semantic_space=semantic_space,
        name=name,
        source=source or f"images under {root}",
    )


def sketches_from_archive(
    archive: Archive,
    matcher: re.Pattern[str],
    *,
    options: DecodeOptions,
    name: str,
    source: str,
    condition_values: Mapping[str, float] | None = None,
    condition_unit: str = "",
    conditions: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
) -> Sketches:
    """The images of an archive whose names match `matcher`; see `image_folder`."""
    dropped: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    outside: list[str] = []
    for path in archive.names():
        if PurePosixPath(path).suffix.lower() not in IMAGE_SUFFIXES:
            dropped["not an image file"] += 1
            continue
        match = matcher.fullmatch(path)
        if match is None:
            dropped["outside the layout"] += 1
            outside.append(path)
            continue
        rows.append(_row(path, match.groupdict(), condition_values, name))
    if not rows:
        raise ValueError(f"{name}: {_nothing_fits(archive, matcher, dropped, outside)}")
    table = pd.DataFrame(rows)
    if conditions is not None:
        wanted = [float(c) for c in conditions]
        kept = table["condition"].isin(wanted)
        if (~kept).any():
            dropped["condition not asked for"] += int((~kept).sum())
        table = table[kept].reset_index(drop=True)
        require_conditions(name, wanted, table["condition"])
    order = label_order(name, table["concept"], labels)
    rows_LD, flags = join_semantic_space(semantic_space, order)
    return Sketches(
        name=name,
        table=table,
        labels=order,
        images=ImageFiles(tuple(table["path"]), archive, options),
        condition_unit=condition_unit,
        semantic_space=rows_LD,
        dropped=dict(dropped),
        flags=flags,
        source=source,
    )


def _nothing_fits(archive: Archive, matcher: re.Pattern[str], dropped: Counter[str], outside: list[str]) -> str:
    where = archive.describe("").rstrip("/")
    if outside:
        depth = outside[0].count("/")
        hint = {
            0: "put the images into one folder a concept",
            1: "the layout for one folder a concept is 'concept'",
            2: "folders in folders need layout=condition/concept or concept/condition",
        }.get(depth, "say what every folder level is with layout, for example ignore/condition/concept")
        return f"none of the {len(outside)} images in {where} fits {matcher.pattern!r}, first {outside[0]!r}; {hint}"
    found = f"{dropped['not an image file']} other files are there" if dropped else "nothing is there"
    return f"no image in {where} ({found}); image suffixes are {', '.join(IMAGE_SUFFIXES)}"


def _row(path: str, groups: Mapping[str, str | None], values: Mapping[str, float] | None, name: str) -> dict[str, Any]:
    concept = groups["concept"]
    condition = groups.get("condition")
    image_id = groups.get("image_id") or PurePosixPath(path).stem
    return {
        "sketch_id": path,
        "concept": concept,
        "condition": 0.0 if condition is None else _condition(condition, values, f"{name}: {path}"),
        "image_id": f"{concept}/{image_id}",
        "path": path,
    }


def _condition(text: str, values: Mapping[str, float] | None, where: str) -> float:
    if values is not None:
        if text not in values:
            raise ValueError(f"{where}: condition {text!r} is not in condition_values {sorted(values)}")
        return float(values[text])
    match = _LEADING_NUMBER.match(text)
    if match is None:
        raise ValueError(
            f"{where}: condition {text!r} holds no number; give condition_values, for example {{{text}: 1}}"
        )
    return float(match[1])


def _matcher(layout: str, pattern: str | None) -> re.Pattern[str]:
    if pattern is not None:
        try:
            matcher = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"pattern {pattern!r} is no regular expression: {error}") from error
        if "concept" not in matcher.groupindex:
            raise ValueError(f"pattern {pattern!r} needs a named group (?P<concept>…)")
        return matcher
    levels = layout.split("/")
    named = [v for v in levels if v != "ignore"]
    if set(levels) - set(LEVELS) or "concept" not in levels or len(set(named)) != len(named):
        raise ValueError(
            f"layout must join {LEVELS} by '/' with concept once, for example 'condition/concept'; got {layout!r}"
        )
    parts = [r"[^/]+" if v == "ignore" else f"(?P<{v}>[^/]+)" for v in levels]
    return re.compile("/".join([*parts, r"[^/]+"]))


def _opened(root: str | Path, layout: str, pattern: str | None) -> Archive:
    try:
        return open_archive(root)
    except FileNotFoundError as error:
        expected = pattern if pattern is not None else "/".join(f"<{v}>" for v in layout.split("/")) + "/<image>.png"
        raise FileNotFoundError(f"image folder: {error}; expected images there as {expected}") from error
