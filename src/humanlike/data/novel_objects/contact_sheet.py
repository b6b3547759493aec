"""Contact sheets of the novel objects, to look at: `python -m humanlike.data.novel_objects.contact_sheet docs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from humanlike.data.novel_objects.dataset import high_variation_images, one_shot_images
from humanlike.data.object_learning import ImageSet
from humanlike.files import atomic_path

CAPTION_PX = 14
OBJECTS, VIEWS = 16, 8


def contact_sheet(images: ImageSet, rows: Sequence[int], columns: int, captions: Sequence[str]) -> Image.Image:
    """Images in a grid, row by row, with a caption above each.

    Args:
        images: Any set of square images.
        rows: Positions of the images, 1 or more.
        columns: Images in a line.
        captions: One an image.

    Returns:
        A gray image.
    """
    pictures = [images.images.load(row).convert("L") for row in rows]
    side = pictures[0].width
    lines = -(-len(pictures) // columns)
    sheet = Image.new("L", (columns * (side + 2), lines * (side + CAPTION_PX)), 255)
    pen = ImageDraw.Draw(sheet)
    for place, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        x, y = place % columns * (side + 2), place // columns * (side + CAPTION_PX)
        sheet.paste(picture, (x, y + CAPTION_PX))
        pen.text((x + 3, y + 1), caption, fill=60)
    return sheet


def objects_sheet(size: int = 128) -> Image.Image:
    """The first 8 images of the 16 objects of the demo."""
    images = high_variation_images(OBJECTS, VIEWS, size=size)
    return contact_sheet(images, range(len(images)), VIEWS, list(images.table["category"]))


def one_shot_sheet(size: int = 128) -> Image.Image:
    """The 61 images of an object of the one-shot experiment."""
    images = one_shot_images(1, size=size)
    names = images.table[["transformation", "transformation_level"]].itertuples(index=False)
    return contact_sheet(images, range(len(images)), 8, [f"{name} {level:g}" for name, level in names])


def write_sheets(folder: str | Path) -> list[Path]:
    """Write both sheets as PNG."""
    paths = []
    for name, sheet in (("novel_objects", objects_sheet()), ("novel_objects_one_shot", one_shot_sheet())):
        path = Path(folder) / f"{name}.png"
        # 32 grays are enough to look at, and the file is half as large.
        coarse = Image.fromarray(np.asarray(sheet) // 8 * 8 + np.asarray(sheet) // 32)
        with atomic_path(path) as temporary:
            coarse.save(temporary, optimize=True)
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write_sheets(sys.argv[1] if len(sys.argv) > 1 else "docs"):
        print(written)
