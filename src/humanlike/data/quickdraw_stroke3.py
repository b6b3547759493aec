"""Quick, Draw! in the stroke-3 form of sketch-rnn: `<class>.npz` with the arrays train, valid and test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from humanlike.data.archives import FolderArchive, ZipArchive
from humanlike.data.concepts import SemanticSpace
from humanlike.data.drawing import DEFAULT_WIDTH
from humanlike.data.labels import require_choice
from humanlike.data.object_arrays import read_object_array
from humanlike.data.quickdraw import chosen_cuts, cut_sketches, named_classes
from humanlike.data.quickdraw_files import DrawingPacker, check_limits, class_files
from humanlike.data.render import Renderer
from humanlike.data.stroke_formats import stroke3_polylines
from humanlike.types import Sketches

PARTS = ("train", "valid", "test")
HOW_TO_GET = (
    "expected a folder of files <class>.npz with the arrays train, valid and test; fetch them with: "
    "gsutil -m cp 'gs://quickdraw_dataset/sketchrnn/*.npz' FOLDER (CC BY 4.0)"
)


def quickdraw_stroke3(
    root: str | Path,
    classes: Sequence[str] | str | int | None = None,
    parts: Sequence[str] = ("test",),
    stroke_cuts: Sequence[int] | None = None,
    max_per_class: int | None = None,
    size: int = 256,
    stroke_width: float = DEFAULT_WIDTH,
    margin: float = 0.05,
    background: str = "white",
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    on_bad_drawing: str = "raise",
) -> Sketches:
    """Quick, Draw! drawings from sketch-rnn's `.npz` files; simplified, without times.

    The files hold arrays of arrays, which NumPy stores as a pickle. They are read without unpickling, so that a file
    from anywhere is harmless; one that names anything but NumPy arrays is refused.

    Args:
        root: Folder of `<class>.npz` (also `<class>.full.npz` and `sketchrnn_<class>.npz`).
        classes: None for all, names, "seva", or a number for the first n in alphabetical order.
        parts: Which of the arrays train (70,000 drawings a class), valid and test (2,500 each) to read.
        stroke_cuts: Numbers of strokes, as conditions; None: full drawings, condition 0.
        max_per_class: Read only the first so many drawings of a class.
        size: Side of the rendered images in pixels.
        stroke_width: Pen width as a fraction of the side.
        margin: Free border around the full drawing as a fraction of the side.
        background: Colour of the sheet.
        labels: Label order; default: the classes read, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        on_bad_drawing: "raise", or "skip" to leave out arrays that are no drawing, and count them.

    Returns:
        The data set. The files have no ids: `image_id` is "<class>/<part>/<row>".

    Raises:
        FileNotFoundError: When there are no files at `root`, with where to get them.
        ValueError: For unknown classes or parts, wrong arguments, and damaged or unsafe files, naming file and row.
    """
    cuts, unit = chosen_cuts(None, stroke_cuts)
    check_limits(max_per_class)
    require_choice(on_bad_drawing, "on_bad_drawing", ("raise", "skip"))
    unknown = [p for p in parts if p not in PARTS]
    if unknown or isinstance(parts, str) or not parts or len(set(parts)) < len(parts):
        raise ValueError(f"parts must be a list of some of {list(PARTS)}, got {parts!r}")
    folder = class_folder(root, ".npz", f"quickdraw_stroke3: {HOW_TO_GET}")
    packer, dropped = DrawingPacker(margin), Counter[str]()
    for concept, file in class_files(folder, named_classes(classes), _suffix(folder)).items():
        _read_class(packer, dropped, ZipArchive(folder.root / file), concept, parts, max_per_class, on_bad_drawing)
    return cut_sketches(
        "quickdraw_stroke3",
        packer.packed(),
        cuts,
        unit,
        renderer=Renderer(size=size, stroke_width=stroke_width, background=background),
        dropped=dropped,
        labels=labels,
        semantic_space=semantic_space,
    )


def class_folder(root: str | Path, suffix: str, expected: str) -> FolderArchive:
    """The folder at `root`, which must hold files of a kind.

    Raises:
        FileNotFoundError: With what was expected.
    """
    folder = FolderArchive(Path(root).expanduser())
    if not folder.root.is_dir():
        raise FileNotFoundError(f"no folder {folder.root}; {expected}")
    if not any(name.endswith(suffix) for name in folder.names()):
        raise FileNotFoundError(f"no {suffix} file in {folder.root}; {expected}")
    return folder


def _suffix(folder: FolderArchive) -> str:
    return ".full.npz" if all(n.endswith(".full.npz") for n in folder.names() if n.endswith(".npz")) else ".npz"


def _read_class(
    packer: DrawingPacker,
    dropped: Counter[str],
    archive: ZipArchive,
    concept: str,
    parts: Sequence[str],
    limit: int | None,
    on_bad: str,
) -> None:
    kept = 0
    for key, place, array in _drawings(archive, concept, parts):
        if kept == limit:
            break
        try:
            taken = packer.add_strokes(concept, [line.T for line in stroke3_polylines(array)], key, place)
        except ValueError as error:
            if on_bad == "raise":
                raise ValueError(f"{place}: {error}; set on_bad_drawing=skip to leave such drawings out") from error
            dropped["unreadable drawing"] += 1
            continue
        kept += taken
        if not taken:
            dropped["drawing without ink"] += 1
    if kept == 0:
        raise ValueError(f"{archive.path}: no drawing of class {concept!r} is left in {list(parts)} ({dict(dropped)})")


def _drawings(archive: ZipArchive, concept: str, parts: Sequence[str]) -> Iterator[tuple[str, str, np.ndarray]]:
    for part in parts:
        try:
            data = archive.read(f"{part}.npy")
        except FileNotFoundError as error:
            there = [name.removesuffix(".npy") for name in archive.names()]
            raise ValueError(f"{archive.path}: no array {part!r}, only {there}; {HOW_TO_GET}") from error
        for row, array in enumerate(read_object_array(data, archive.describe(part))):
            yield f"{concept}/{part}/{row}", f"{archive.path}:{part}[{row}]", array
