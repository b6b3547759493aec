"""Quick, Draw! as 28 × 28 bitmaps: `<class>.npy`, one row of 784 gray values a drawing, white ink on black."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from humanlike.data.concepts import SemanticSpace, join_semantic_space
from humanlike.data.images import BadImageError
from humanlike.data.labels import label_order
from humanlike.data.quickdraw import SOURCE, named_classes
from humanlike.data.quickdraw_files import check_limits, class_files
from humanlike.data.quickdraw_stroke3 import class_folder
from humanlike.types import Sketches

SIDE = 28
POLARITIES = ("invert", "keep")
HOW_TO_GET = (
    "expected a folder of files <class>.npy; fetch them with: "
    "gsutil -m cp 'gs://quickdraw_dataset/full/numpy_bitmap/*.npy' FOLDER (CC BY 4.0)"
)


def quickdraw_bitmaps(
    root: str | Path,
    classes: Sequence[str] | str | int | None = None,
    max_per_class: int | None = 1000,
    polarity: str = "invert",
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
) -> Sketches:
    """Quick, Draw! drawings of 28 × 28 pixels, as black ink on white; one condition (0).

    The published bitmaps are white on black and small: a network sees them blown up by its own transform, so they are
    no match for the drawings in `quickdraw`. Of a file only the rows asked for are read.

    Args:
        root: Folder of `<class>.npy` (also `full_numpy_bitmap_<class>.npy`).
        classes: None for all, names, "seva", or a number for the first n in alphabetical order.
        max_per_class: Only the first so many drawings of a class; None for all (over 100,000).
        polarity: "invert" for white ink on black, as published; "keep" for files that were inverted before.
        labels: Label order; default: the classes read, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.

    Returns:
        The data set. The files have no ids: `sketch_id` and `image_id` are "<class>/<row>". Blank bitmaps are left out
        and counted.

    Raises:
        FileNotFoundError: When there are no files at `root`, with where to get them.
        ValueError: For unknown classes, wrong arguments, and files that are no such bitmaps or cut short.
    """
    check_limits(max_per_class)
    if polarity not in POLARITIES:
        raise ValueError(f"polarity must be one of {POLARITIES}, got {polarity!r}")
    folder = class_folder(root, ".npy", f"quickdraw_bitmaps: {HOW_TO_GET}")
    dropped, rows, files = Counter[str](), [], []
    for concept, file in class_files(folder, named_classes(classes), ".npy").items():
        path = str(folder.root / file)
        pixels = mapped_bitmaps(path)[:max_per_class]
        blank_N = pixels.min(axis=1) == pixels.max(axis=1) if len(pixels) else np.zeros(0, bool)
        if blank_N.any():
            dropped["drawing without ink"] += int(blank_N.sum())
        kept = np.flatnonzero(~blank_N)
        if not len(kept):
            raise ValueError(f"{path}: no drawing of class {concept!r} is left ({len(pixels)} rows, all blank)")
        rows += [(concept, path, int(row)) for row in kept]
        files.append(path)
    names = [f"{concept}/{row}" for concept, _, row in rows]
    table = pd.DataFrame({"sketch_id": names, "concept": [c for c, _, _ in rows], "condition": 0.0, "image_id": names})
    order = label_order("quickdraw_bitmaps", table["concept"], labels)
    rows_LD, flags = join_semantic_space(semantic_space, order)
    return Sketches(
        name="quickdraw_bitmaps",
        table=table,
        labels=order,
        images=BitmapImages(tuple(p for _, p, _ in rows), np.array([r for _, _, r in rows]), polarity),
        semantic_space=rows_LD,
        dropped=dict(dropped),
        flags=flags,
        source=SOURCE,
    )


@dataclass(frozen=True, eq=False)
class BitmapImages:
    """Rows of bitmap files as images; safe to hand to other processes.

    Attributes:
        files: (N,) file of every item.
        row_N: (N,) its row.
        polarity: "invert" or "keep".
    """

    files: Sequence[str]
    row_N: np.ndarray
    polarity: str = "invert"

    def __len__(self) -> int:
        return len(self.files)

    def load(self, index: int) -> Image.Image:
        """See ImageSource; raises BadImageError for a blank bitmap."""
        pixels = self._pixels(index)
        if pixels.min() == pixels.max():
            raise BadImageError(self.describe(index), f"blank, every pixel has the value {int(pixels[0])}")
        gray = 255 - pixels if self.polarity == "invert" else pixels
        return Image.fromarray(gray.reshape(SIDE, SIDE), "L").convert("RGB")

    def content_hash(self, index: int) -> str:
        """Hex SHA-256 of the pixels and of the polarity."""
        return hashlib.sha256(self.polarity.encode() + self._pixels(index).tobytes()).hexdigest()

    def describe(self, index: int) -> str:
        """File and row."""
        return f"{self.files[index]}[{int(self.row_N[index])}]"

    def _pixels(self, index: int) -> np.ndarray:
        return np.array(mapped_bitmaps(self.files[index])[int(self.row_N[index])])


@lru_cache(maxsize=512)
def mapped_bitmaps(path: str) -> np.ndarray:
    """(N, 784) uint8 rows of a bitmap file, mapped and not read.

    Raises:
        ValueError: Naming the file when it is no such array or cut short.
    """
    try:
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: not a whole .npy array of numbers ({error}); {HOW_TO_GET}") from error
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or int(np.prod(pixels.shape[1:])) != SIDE * SIDE:
        raise ValueError(
            f"{path}: expected (N, 784) or (N, 28, 28) gray values of type uint8, got {pixels.shape} {pixels.dtype}"
        )
    return pixels.reshape(len(pixels), SIDE * SIDE)
