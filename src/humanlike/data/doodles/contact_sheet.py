"""Contact sheets of the doodles, to look at: `python -m humanlike.data.doodles.contact_sheet docs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from humanlike.data.doodles.dataset import CONDITIONS_S, doodles
from humanlike.files import atomic_path
from humanlike.types import Sketches

CAPTION_PX = 14


def contact_sheet(data: Sketches, rows: Sequence[int] | np.ndarray, columns: int) -> Image.Image:
    """Items of a data set in a grid, row by row, with concept and condition above each.

    Args:
        data: Any data set of square images.
        rows: Positions of the items, 1 or more.
        columns: Images in a line.

    Returns:
        A gray image.
    """
    pictures = [data.images.load(int(row)).convert("L") for row in rows]
    side = pictures[0].width
    lines = -(-len(pictures) // columns)
    sheet = Image.new("L", (columns * side, lines * (side + CAPTION_PX)), 255)
    pen = ImageDraw.Draw(sheet)
    for place, (row, picture) in enumerate(zip(rows, pictures, strict=True)):
        x, y = place % columns * side, place // columns * (side + CAPTION_PX)
        sheet.paste(picture, (x, y + CAPTION_PX))
        item = data.table.iloc[int(row)]
        pen.text((x + 4, y + 1), f"{item['concept']}, {item['condition']:g} {data.condition_unit}", fill=90)
    return sheet


def write_sheets(folder: str | Path) -> list[Path]:
    """Write PNG sheets: all concepts at the longest time, all conditions of each, and all instances of some."""
    data = doodles(judgments=0, size=144)
    number = data.table["image_id"].str.rsplit("-", n=1).str[1].astype(int).to_numpy()
    longest = (data.table["condition"] == max(CONDITIONS_S)).to_numpy()
    half = data.target_N < len(data.labels) // 2
    some = data.table["concept"].isin(["cow", "flower", "guitar", "taxi"]).to_numpy()
    sheets = {
        "doodles_full": (np.flatnonzero(longest & (number == 7)), 8),
        "doodles_conditions_1": (np.flatnonzero((number == 1) & half), 8),
        "doodles_conditions_2": (np.flatnonzero((number == 2) & ~half), 8),
        "doodles_instances": (np.flatnonzero(longest & some), 8),
    }
    paths = []
    for name, (rows, columns) in sheets.items():
        path = Path(folder) / f"{name}.png"
        with atomic_path(path) as temporary:
            contact_sheet(data, rows, columns).quantize(16).save(temporary, optimize=True)
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write_sheets(sys.argv[1] if len(sys.argv) > 1 else "docs"):
        print(written)
