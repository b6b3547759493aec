"""Reading Quick, Draw! ndjson files, raw or simplified, one file a class."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from humanlike.data.archives import Archive, open_archive
from humanlike.data.stroke_formats import ndjson_records, quickdraw_stroke
from humanlike.data.stroke_images import PackedDrawings

ARCHIVE = "raw_ndjson.zip"
PREFIXES = ("full_raw_", "full_simplified_", "full_numpy_bitmap_", "sketchrnn_")
HOW_TO_GET = (
    "expected raw_ndjson.zip or files <class>.ndjson; fetch the raw files with: "
    "gsutil -m cp 'gs://quickdraw_dataset/full/raw/*.ndjson' FOLDER (CC BY 4.0)"
)


def open_quickdraw(root: str | Path) -> Archive:
    """The archive of ndjson files at `root`.

    Raises:
        FileNotFoundError: When there is none, with how to get it.
    """
    try:
        archive = open_archive(root, ARCHIVE)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"quickdraw: {error}; {HOW_TO_GET}") from error
    if not any(name.endswith(".ndjson") for name in archive.names()):
        raise FileNotFoundError(f"quickdraw: no .ndjson file in {root}; {HOW_TO_GET}")
    return archive


def class_files(
    archive: Archive, classes: Sequence[str] | str | int | None = None, suffix: str = ".ndjson"
) -> dict[str, str]:
    """Class → file name, in class order.

    Args:
        archive: Where the files are.
        classes: None for all, a number for the first n, or names.
        suffix: How the files' names end; what is before it, without a prefix of the published folders, is the class.

    Raises:
        ValueError: For unknown names, with the nearest ones, and for two files of one class.
    """
    found: dict[str, str] = {}
    for name in archive.names():
        if not name.endswith(suffix):
            continue
        word = PurePosixPath(name).name.removesuffix(suffix)
        for prefix in PREFIXES:
            word = word.removeprefix(prefix)
        if word in found:
            raise ValueError(f"quickdraw: two files of class {word!r}: {found[word]} and {name}; keep one of them")
        found[word] = name
    order = sorted(found)
    if classes is None:
        return {c: found[c] for c in order}
    if isinstance(classes, int):
        if not 1 <= classes <= len(order):
            raise ValueError(f"quickdraw: classes={classes}, but there are {len(order)} classes")
        return {c: found[c] for c in order[:classes]}
    wanted = [classes] if isinstance(classes, str) else [str(c) for c in classes]
    unknown = [c for c in wanted if c not in found]
    if unknown:
        near = difflib.get_close_matches(unknown[0], [*order, "seva"], n=3)
        nearest = f"nearest to {unknown[0]!r}: {near}" if near else f"there are {', '.join(order[:8])}"
        more = f" … ({len(order)} in all)" if not near and len(order) > 8 else ""
        raise ValueError(f"quickdraw: {len(unknown)} class(es) without a file: {unknown[:5]}; {nearest}{more}")
    return {c: found[c] for c in sorted(set(wanted))}


def read_drawings(
    archive: Archive,
    files: Mapping[str, str],
    *,
    margin: float = 0.05,
    max_per_class: int | None = None,
    recognized_only: bool = False,
    need_times: bool = False,
    skip_bad_lines: bool = False,
) -> tuple[PackedDrawings, Counter[str]]:
    """All drawings of some class files, each fitted into the canvas by the box of the full drawing.

    Args:
        archive: Where the files are.
        files: Class → file name.
        margin: Free border, a fraction of the side.
        max_per_class: Read so many drawings of a class at most.
        recognized_only: Leave out drawings that were not recognised in the game.
        need_times: Refuse drawings without times.
        skip_bad_lines: Leave out and count what cannot be read instead of raising.

    Returns:
        The drawings, and reason → number of what was left out.

    Raises:
        ValueError: Naming file and line.
    """
    check_limits(max_per_class)
    packer, dropped = DrawingPacker(margin, need_times), Counter[str]()
    for concept, file in files.items():
        kept = 0
        for place, record in _records(archive, file, skip_bad_lines, dropped):
            if kept == max_per_class:
                break
            if recognized_only and not record.get("recognized", True):
                dropped["not recognized"] += 1
                continue
            try:
                taken = packer.add(concept, record, place)
            except ValueError:
                if not skip_bad_lines:
                    raise
                dropped["unreadable line"] += 1
                continue
            kept += taken
            if not taken:
                dropped["drawing without ink"] += 1
        if kept == 0:
            raise ValueError(f"{archive.describe(file)}: no drawing of class {concept!r} is left ({_why(dropped)})")
    return packer.packed(), dropped


def check_limits(max_per_class: int | None) -> None:
    """Refuse a limit on drawings a class that leaves none."""
    if max_per_class is not None and max_per_class < 1:
        raise ValueError(f"max_per_class must be at least 1, got {max_per_class}")


def _why(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {reason}" for reason, count in dropped.items()) or "the file is empty"


def _records(archive: Archive, file: str, skip: bool, dropped: Counter[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    where = archive.describe(file)
    for number, line in enumerate(archive.lines(file), start=1):
        try:
            for _, record in ndjson_records([line], where, first=number):
                yield f"{where}:{number}", record
        except ValueError:
            if not skip:
                raise
            dropped["unreadable line"] += 1


class DrawingPacker:
    """Collects drawings into flat arrays, each fitted into the canvas by the box of the full drawing.

    Args:
        margin: Free border, a fraction of the side, in [0, 0.5).
        need_times: Refuse drawings without times.
    """

    def __init__(self, margin: float, need_times: bool = False) -> None:
        if not 0 <= margin < 0.5:
            raise ValueError(f"margin must lie in [0, 0.5), got {margin}")
        self.margin = margin
        self.need_times = need_times
        self.points: list[np.ndarray] = []
        self.times: list[np.ndarray] = []
        self.lengths: list[int] = []
        self.strokes_D: list[int] = []
        self.where: dict[str, str] = {}
        self.concepts: list[str] = []

    def add(self, concept: str, record: Mapping[str, Any], place: str) -> bool:
        """Take one ndjson record; False for a drawing without ink."""
        missing = [k for k in ("word", "key_id", "drawing") if k not in record]
        if missing:
            raise ValueError(f"{place}: the record lacks {missing}; QuickDraw records have word, key_id, drawing")
        if not isinstance(record["drawing"], list):
            raise ValueError(f"{place}: drawing must be a list of strokes, got {type(record['drawing']).__name__}")
        if record["word"] != concept:
            raise ValueError(f"{place}: word {record['word']!r} in the file of class {concept!r}")
        key = str(record["key_id"])
        if key in self.where:
            raise ValueError(f"{place}: key_id {key} occurs before in {self.where[key]}; ids must be unique")
        strokes = [quickdraw_stroke(s, f"{place}, stroke {i}") for i, s in enumerate(record["drawing"])]
        return self.add_strokes(concept, strokes, key, place)

    def add_strokes(self, concept: str, strokes: Sequence[np.ndarray], key: str, place: str) -> bool:
        """Take one drawing of (2, n) or (3, n) strokes x, y and milliseconds; False for a drawing without ink."""
        strokes = [s for s in strokes if s.shape[1]]
        if not strokes:
            return False
        if self.need_times and any(len(s) < 3 for s in strokes):
            raise ValueError(f"{place}: no times (a simplified drawing); use the raw files, or stroke_cuts")
        xy = np.concatenate([s[:2].T for s in strokes])
        low, high = xy.min(axis=0), xy.max(axis=0)
        side = float((high - low).max())
        scale = (1 - 2 * self.margin) / side if side > 0 else 1.0
        self.points.append((0.5 + (xy - (low + high) / 2) * scale).astype(np.float32))
        if self.need_times:
            # A few drawings run back by some milliseconds where the clock was set; ink never comes off the sheet.
            time_s = np.maximum.accumulate(np.concatenate([s[2] for s in strokes])) / 1000
            self.times.append(time_s.astype(np.float32))
        self.lengths += [s.shape[1] for s in strokes]
        self.strokes_D.append(len(strokes))
        self.where[key] = place
        self.concepts.append(concept)
        return True

    def packed(self) -> PackedDrawings:
        """Everything taken so far."""
        return PackedDrawings(
            points_P2=np.concatenate(self.points),
            time_P=np.concatenate(self.times) if self.need_times else None,
            stroke_start_S=np.cumsum([0, *self.lengths]),
            drawing_start_D=np.cumsum([0, *self.strokes_D]),
            keys=tuple(self.where),
            concepts=tuple(self.concepts),
            where=tuple(self.where.values()),
        )
