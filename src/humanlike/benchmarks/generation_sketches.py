"""Sets of sketches to be judged: from a folder of SVG, PNG or ndjson files, from strokes in memory, from a data set.

Legend: N sketches, S strokes of a sketch.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from PIL import Image

from humanlike.data.archives import Archive, open_archive
from humanlike.data.drawing import Drawing, EmptyDrawingError
from humanlike.data.images import IMAGE_SUFFIXES, DecodeOptions, decode_image
from humanlike.data.render import Renderer
from humanlike.data.stroke_formats import drawing_from_quickdraw, ndjson_records
from humanlike.data.strokes import Strokes
from humanlike.data.svg import read_svg
from humanlike.types import ImageSource, SelectedImages, Sketches

SUFFIXES = (".svg", ".ndjson", *(s for s in IMAGE_SUFFIXES if s != ".svg"))
_TRAILING_NUMBER = re.compile(r"[\s_\-.@#]*\d[\w.@-]*$")


@dataclass(frozen=True, eq=False)
class SketchSet:
    """N sketches with their concepts; those without strokes are pictures.

    Attributes:
        name: What the set is called in tables ("after").
        ids: N unique names.
        concepts: N concepts.
        drawings: N drawings, None for pictures.
        pictures: N square RGB pictures, None for drawings.
        source: Where the set comes from.
        dropped: Reason → number of files or lines left out.

    Raises:
        ValueError: Lengths differ, an id occurs twice, or a sketch is neither or both.
    """

    name: str
    ids: tuple[str, ...]
    concepts: tuple[str, ...]
    drawings: tuple[Drawing | None, ...]
    pictures: tuple[Image.Image | None, ...]
    source: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {len(x) for x in (self.ids, self.concepts, self.drawings, self.pictures)}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"the set {self.name!r} needs as many ids, concepts, drawings and pictures, 1 or more")
        if len(set(self.ids)) < len(self.ids):
            twice = next(i for i, n in Counter(self.ids).items() if n > 1)
            raise ValueError(f"the set {self.name!r} has the sketch {twice!r} twice")
        both = [i for i, d, p in zip(self.ids, self.drawings, self.pictures, strict=True) if (d is None) == (p is None)]
        if both:
            raise ValueError(f"{both[0]!r} of the set {self.name!r} must be either a drawing or a picture")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def strokes_N(self) -> np.ndarray:
        """(N,) float64 number of strokes, NaN for pictures."""
        return np.array([np.nan if d is None else d.num_strokes for d in self.drawings], dtype=np.float64)

    def canvases(self, size: int) -> torch.Tensor:
        """(N, size, size) uint8, 255 paper: drawings by resvg, pictures resized by Pillow."""
        renderer = Renderer(size=size)
        sheets = [
            renderer(d) if d is not None else _resized(p, size)
            for d, p in zip(self.drawings, self.pictures, strict=True)
        ]
        return torch.from_numpy(np.stack([np.array(sheet.convert("L")) for sheet in sheets]))

    @classmethod
    def of_drawings(
        cls, drawings: Sequence[Drawing], concepts: Sequence[str], name: str, source: str = ""
    ) -> SketchSet:
        """Drawings in order, named by concept and number."""
        return cls(name, numbered(concepts), tuple(concepts), tuple(drawings), (None,) * len(drawings), source)

    @classmethod
    def of_strokes(cls, strokes: Strokes, concepts: Sequence[str], name: str, source: str = "") -> SketchSet:
        """A batch of a generator's strokes; those switched off are left out."""
        return cls.of_drawings(strokes.to_drawings(), concepts, name, source)

    @classmethod
    def of_sketches(cls, data: Sketches, name: str) -> SketchSet:
        """A data set: its strokes where its images are made of strokes, else its pictures."""
        drawings = [_drawing(data.images, i) for i in range(len(data))]
        pictures = [None if d is not None else _square(data.images.load(i)) for i, d in enumerate(drawings)]
        ids, concepts = data.table["sketch_id"].astype(str), data.table["concept"]
        return cls(name, tuple(ids), tuple(concepts), tuple(drawings), tuple(pictures), data.source)

    @classmethod
    def of_folder(cls, root: str | Path, labels: Sequence[str], name: str, margin: float | None = None) -> SketchSet:
        """Anyone's folder (or zip) of sketches.

        The concept is the name of the folder that a file lies in or, where that is no label, of the file up to its
        number ("lion_03.svg", "lion 7.png"); a line of an ndjson file (QuickDraw's format) may say it as `word`.
        Case, blanks, dashes and underscores do not matter. SVG files keep pen widths and place; QuickDraw drawings are
        fitted to the canvas.

        Args:
            root: The folder.
            labels: The concepts that critics know.
            name: Name of the set.
            margin: Fit SVG drawings to the canvas with this free border; None: they stay where they are.

        Raises:
            FileNotFoundError: There is no such folder.
            ValueError: No file is a sketch, or a concept is unknown (the nearest known ones are named).
        """
        archive = open_archive(root)
        known = {_plain(label): label for label in labels}
        dropped: Counter[str] = Counter()
        found = [
            sketch for path in sorted(archive.names()) for sketch in _sketches_of(archive, path, known, margin, dropped)
        ]
        if not found:
            raise ValueError(f"no sketch in {root} ({dict(dropped) or 'nothing is there'}); files are {SUFFIXES}")
        ids, concepts, drawings, pictures = zip(*found, strict=True)
        return cls(name, ids, concepts, drawings, pictures, f"files under {Path(root).name}", dict(dropped))


def numbered(concepts: Sequence[str]) -> tuple[str, ...]:
    """Unique names from concepts.

    Example:
        >>> numbered(["lion", "taxi", "lion"])
        ('lion-000', 'taxi-000', 'lion-001')
    """
    seen: Counter[str] = Counter()
    names = []
    for concept in concepts:
        names.append(f"{concept}-{seen[concept]:03d}")
        seen[concept] += 1
    return tuple(names)


def _sketches_of(
    archive: Archive, path: str, known: Mapping[str, str], margin: float | None, dropped: Counter[str]
) -> Iterator[tuple[str, str, Drawing | None, Image.Image | None]]:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix not in SUFFIXES:
        dropped["not a sketch file"] += 1
        return
    content, where = archive.read(path), archive.describe(path)
    if suffix == ".ndjson":
        for number, record in ndjson_records(content.splitlines(keepends=True), where):
            concept = _concept(path, known, where, record.get("word"))
            if "drawing" not in record:
                raise ValueError(f"{where}:{number}: a line of an ndjson file needs a `drawing`, as QuickDraw's have")
            try:
                drawing = drawing_from_quickdraw(record["drawing"], where=f"{where}:{number}")
            except EmptyDrawingError:
                drawing = Drawing(())
            yield f"{path}:{number}", concept, drawing, None
        return
    concept = _concept(path, known, where)
    if suffix == ".svg":
        try:
            yield path, concept, read_svg(content.decode("utf-8-sig"), margin), None
        except EmptyDrawingError:
            yield path, concept, Drawing(()), None
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{where}: {error}") from error
    else:
        decoded = decode_image(content, DecodeOptions(pad_to_square=True, allow_blank=True), where)
        yield path, concept, None, decoded.image


def _concept(path: str, known: Mapping[str, str], where: str, word: Any = None) -> str:
    place = PurePosixPath(path)
    stem = place.stem
    candidates = (
        [str(word)] if word is not None else [*reversed(place.parts[:-1]), stem, _TRAILING_NUMBER.sub("", stem)]
    )
    for candidate in candidates:
        if _plain(candidate) in known:
            return known[_plain(candidate)]
    near = difflib.get_close_matches(_plain(candidates[-1]), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(known[n] for n in near)}?" if near else f"known are {', '.join(known.values())}"
    raise ValueError(
        f"{where}: neither folder nor file name says a known concept (looked at "
        f"{', '.join(map(repr, candidates))}); {hint}"
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().lower()


def _drawing(images: ImageSource, index: int) -> Drawing | None:
    if isinstance(images, SelectedImages):
        return _drawing(images.base, images.rows[index])
    make = getattr(images, "drawing", None)
    return make(index) if make is not None else None


def _square(image: Image.Image) -> Image.Image:
    side = max(image.size)
    if image.size == (side, side):
        return image
    sheet = Image.new("RGB", (side, side), "white")
    sheet.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return sheet


def _resized(picture: Image.Image | None, size: int) -> Image.Image:
    assert picture is not None
    return picture if picture.size == (size, size) else picture.resize((size, size), Image.Resampling.BICUBIC)
