"""Writing any data set as the folder of a study (see `study_folder`): whole or not at all, with what was left out."""

from __future__ import annotations

import logging
import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from humanlike.data.archives import FolderArchive
from humanlike.data.images import BadImageError, DecodeOptions, ImageFiles
from humanlike.data.labels import require_choice
from humanlike.data.study_folder import SCHEMA
from humanlike.data.table_responses import OTHER_SKETCH, UNKNOWN_LATER
from humanlike.files import write_json, write_text
from humanlike.types import ImageSource, SelectedImages, Sketches

logger = logging.getLogger(__name__)

CONVERSION_SCHEMA = "humanlike.conversion/1"
IMAGE_MODES = ("render", "copy", "link")
BAD_IMAGE = "sketch whose image cannot be read"
NAME_LENGTH = 80


@dataclass(frozen=True)
class Conversion:
    """What was written and what was left out.

    Attributes:
        sketches: Sketches written.
        dropped: Reason → files, rows or sketches left out.
        responses: Judgments written, or None where there are no people.
        responses_dropped: Reason → judgments (or later guesses) left out.
        participants: People with a judgment.
        concepts: Concepts that occur.
        conditions: Conditions that occur, increasing.
        labels: Labels in all.
        labels_in_space: Labels that the semantic space knows, or None without one.
    """

    sketches: int
    dropped: Mapping[str, int]
    responses: int | None
    responses_dropped: Mapping[str, int]
    participants: int
    concepts: int
    conditions: tuple[float, ...]
    labels: int
    labels_in_space: int | None

    def lines(self) -> list[str]:
        """The counts, a line each, as they are printed."""
        said = [
            f"sketches   {self.sketches} written, {sum(self.dropped.values())} left out: {self.concepts} concepts, "
            f"conditions {', '.join(f'{c:g}' for c in self.conditions)}"
        ]
        said += [f"  left out {count}: {reason}" for reason, count in self.dropped.items()]
        if self.responses is not None:
            whole = sum(n for reason, n in self.responses_dropped.items() if reason != UNKNOWN_LATER)
            said.append(f"judgments  {self.responses} written, {whole} left out: {self.participants} participants")
            said += [f"  left out {count}: {reason}" for reason, count in self.responses_dropped.items()]
        space = "" if self.labels_in_space is None else f", {self.labels_in_space} of them in the semantic space"
        return [*said, f"labels     {self.labels}{space}"]


def write_study(
    data: Sketches,
    folder: str | Path,
    *,
    images: str = "render",
    on_bad_image: str = "raise",
    record: Mapping[str, Any] | None = None,
    watch: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Conversion:
    """Write a data set as the folder of a study.

    Args:
        data: The data set.
        folder: Where it goes; must not exist, or be empty. It appears when everything is written.
        images: "render" writes every image as a PNG, as a network would see it before its own transform; "copy" takes
            the files as they are; "link" makes symbolic links to them. The last two need a data set of image files,
            whose decode settings are then written into study.json; files are not looked into.
        on_bad_image: With "render": "raise", or "skip" images that cannot be read, and count them.
        record: Further facts for conversion.json.
        watch: Wraps the item numbers, to show progress.

    Raises:
        FileExistsError: When `folder` holds something.
        ValueError: For unknown modes, images that cannot be copied, or labels that do not fit on a line.
        BadImageError: Naming the image, with `on_bad_image="raise"`.
    """
    if images not in IMAGE_MODES:
        raise ValueError(f"images must be one of {IMAGE_MODES}, got {images!r}")
    require_choice(on_bad_image, "on_bad_image", ("raise", "skip"))
    unfit = [label for label in data.labels if label != label.strip() or not label or len(label.splitlines()) != 1]
    if unfit:
        raise ValueError(f"{data.name}: label {unfit[0]!r} is empty, has blanks around it or a line break; rename it")
    with new_folder(folder) as partial:
        paths, kept, bad = _write_images(data, partial, images, on_bad_image, watch)
        chosen = data if len(kept) == len(data) else data.select(kept)
        conversion = _counted(data, chosen, bad)
        _write_tables(chosen, partial, paths)
        _write_facts(chosen, partial, _file_options(data.images) if images != "render" else None)
        value = {"schema": CONVERSION_SCHEMA, **dict(record or {}), "images": images, **asdict(conversion)}
        write_json(partial / "conversion.json", value)
    return conversion


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder beside `path` that becomes `path` when the block ends without an error.

    Raises:
        FileExistsError: When `path` is a file, or a folder that holds something.
    """
    path = Path(path).expanduser()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} exists and is not empty; remove it, or name another folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.partial")
    partial.mkdir()
    try:
        yield partial
        os.replace(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_images(
    data: Sketches, folder: Path, mode: str, on_bad: str, watch: Callable[[Iterable[int]], Iterable[int]]
) -> tuple[list[str], list[int], int]:
    """Paths of the images written, the items they belong to, and how many could not be read."""
    files = None if mode == "render" else _image_files(data, mode)
    taken: set[str] = set()
    paths, kept, bad = [], [], 0
    for item in watch(range(len(data))):
        row = data.table.iloc[item]
        suffix = ".png" if files is None else PurePosixPath(files[item][1]).suffix.lower()
        path = _path_of(str(row["concept"]), str(row["sketch_id"]), suffix, taken)
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if files is None:
            try:
                image = data.images.load(item)
            except BadImageError as error:
                if on_bad == "raise":
                    raise
                logger.warning("left out: %s", error)
                bad += 1
                continue
            image.save(target)
        elif mode == "copy":
            source, name = files[item]
            target.write_bytes(source.archive.read(name))
        else:
            source, name = files[item]
            target.symlink_to(Path(source.archive.describe(name)).resolve())
        paths.append(path)
        kept.append(item)
    if not kept:
        raise ValueError(f"{data.name}: none of the {len(data)} images can be read, so nothing was written")
    return paths, kept, bad


def _path_of(concept: str, sketch_id: str, suffix: str, taken: set[str]) -> str:
    """A file name that every file system takes, not used before."""
    folder, stem = (re.sub(r"[^\w@()-]+", "_", part)[:NAME_LENGTH].strip("_") or "_" for part in (concept, sketch_id))
    stem = stem.removeprefix(f"{folder}_") or stem
    path, number = f"images/{folder}/{stem}{suffix}", 2
    while path.casefold() in taken:  # also where a file system does not tell capitals
        path, number = f"images/{folder}/{stem}-{number}{suffix}", number + 1
    taken.add(path.casefold())
    return path


def _image_files(data: Sketches, mode: str) -> list[tuple[ImageFiles, str]]:
    """The image file of every item."""
    found = []
    for item in range(len(data)):
        source, index = _resolved(data.images, item)
        if not isinstance(source, ImageFiles):
            raise ValueError(
                f"{data.name}: its images are made by code, there are no files to {mode}; use images=render"
            )
        if mode == "link" and not isinstance(source.archive, FolderArchive):
            raise ValueError(f"{data.name}: its images lie in a zip and cannot be linked; use images=copy or render")
        found.append((source, source.names[index]))
    return found


def _resolved(source: ImageSource, index: int) -> tuple[ImageSource, int]:
    """The source behind selections, and the item's index there."""
    if isinstance(source, SelectedImages):
        selected: SelectedImages = source
        return _resolved(selected.base, selected.rows[index])
    return source, index


def _file_options(source: ImageSource) -> dict[str, Any]:
    """Decode settings of image files that differ from the defaults."""
    files, _ = _resolved(source, 0)
    assert isinstance(files, ImageFiles)  # checked when the images were written
    default = DecodeOptions()
    own = {f.name: getattr(files.options, f.name) for f in fields(DecodeOptions)}
    return {name: value for name, value in own.items() if value != getattr(default, name)}


def _write_tables(data: Sketches, folder: Path, paths: list[str]) -> None:
    table = data.table.rename(columns={"path": "source_path"})
    table.insert(4, "path", paths)
    table.to_parquet(folder / "sketches.parquet", index=False)
    write_text(folder / "labels.txt", "".join(f"{label}\n" for label in data.labels))
    if data.responses is not None:
        data.responses.table.to_parquet(folder / "responses.parquet", index=False)
    if data.elements is not None:
        data.elements.to_parquet(folder / "elements.parquet", index=False)
    if data.semantic_space is not None:
        space = pd.DataFrame(data.semantic_space, columns=[f"d{i:03d}" for i in range(data.semantic_space.shape[1])])
        space.insert(0, "label", list(data.labels))
        space[_in_space(data)].to_parquet(folder / "semantic_space.parquet", index=False)


def _write_facts(data: Sketches, folder: Path, decode: Mapping[str, Any] | None) -> None:
    facts = {
        "schema": SCHEMA,
        "name": data.name,
        "condition_unit": data.condition_unit,
        "source": data.source,
        # What the space did not match is found again by whoever reads the folder.
        "flags": [flag for flag in data.flags if not flag.startswith("semantic space: ")],
        "simulated_responses": data.responses is not None and data.responses.simulated,
        "decode": dict(decode or {}),
    }
    write_json(folder / "study.json", facts)


def _in_space(data: Sketches) -> np.ndarray:
    assert data.semantic_space is not None
    return np.isfinite(data.semantic_space).all(axis=1)


def _counted(data: Sketches, chosen: Sketches, bad: int) -> Conversion:
    dropped = Counter(data.dropped) + Counter({BAD_IMAGE: bad})
    responses_dropped: Counter[str] = Counter()
    if data.responses is not None and chosen.responses is not None:
        lost = len(data.responses.table) - len(chosen.responses.table)
        responses_dropped = Counter(data.responses.dropped) + Counter({OTHER_SKETCH: lost})
    answers = None if chosen.responses is None else chosen.responses.table
    return Conversion(
        sketches=len(chosen),
        dropped=dict(dropped),
        responses=None if answers is None else len(answers),
        responses_dropped=dict(responses_dropped),
        participants=0 if answers is None else int(answers["participant"].nunique()),
        concepts=int(chosen.table["concept"].nunique()),
        conditions=tuple(sorted(float(c) for c in pd.to_numeric(chosen.table["condition"]).unique())),
        labels=len(chosen.labels),
        labels_in_space=None if chosen.semantic_space is None else int(_in_space(chosen).sum()),
    )
