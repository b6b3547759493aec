"""`before_after.html` of optimised sketches: first strokes, last strokes, the way between, numbers, and the picture."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from PIL import Image

from humanlike.data.svg import drawing_to_svg
from humanlike.files import write_text
from humanlike.generators.trajectory import Trajectory, animated_svg
from humanlike.reports.html import leaves, page_template

THUMBNAIL = 160
FLAGS = {
    "judged_by_its_own_critic": "P, v and SEA are those of the network that the strokes were optimised for. They say "
    "how far the optimisation came, not whether anybody else recognises the sketches: score the folder sketches/ with "
    "a judge that was held out.",
}
COLUMNS = {
    "strokes": ("strokes", 0),
    "loss_start": ("loss at first", 3),
    "loss": ("loss", 3),
    "distance": ("distance", 3),
    "P_start": ("P at first", 3),
    "P": ("P", 3),
    "v": ("v", 3),
    "sea": ("SEA", 3),
}


def write_sketch_page(
    path: str | Path,
    table: pd.DataFrame,
    trajectory: Trajectory,
    pictures: Sequence[Image.Image],
    loss_TB: np.ndarray,
    record: Mapping[str, Any],
) -> None:
    """Write the page, which needs nothing outside itself, atomically.

    Args:
        path: The file.
        table: One row a sketch, as in `sketches.parquet`.
        trajectory: Its frames: the first is "before", the last "after".
        pictures: What was drawn from, one a sketch; empty without pictures.
        loss_TB: (T, B) losses.
        record: What `metrics.json` holds.
    """
    columns = [(name, *COLUMNS[name]) for name in COLUMNS if name in table]
    rows = [
        {
            "name": row["sketch_id"],
            "concept": row["concept"],
            "picture": _thumbnail(pictures[b]) if pictures else "",
            "before": _svg(trajectory, 0, b),
            "after": _svg(trajectory, -1, b),
            "values": [(row[name], digits) for name, _, digits in columns],
        }
        for b, (_, row) in enumerate(table.iterrows())
    ]
    moving = animated_svg(trajectory, list(table["sketch_id"]), size=120)
    page = page_template("optimised_sketches.html.j2").render(
        record=record,
        flags=[FLAGS.get(flag, flag) for flag in record["flags"]],
        columns=columns,
        rows=rows,
        moving=Markup(moving),
        curve=Markup(loss_curve(loss_TB)),
        settings=leaves(record["settings"]),
        concept_known=bool(table["concept"].notna().any()),
    )
    write_text(path, page)


def loss_curve(loss_TB: np.ndarray, width: int = 640, height: int = 200) -> str:
    """Mean loss by step, with the range of the middle half of the sketches, as SVG in the page's colours."""
    steps = len(loss_TB)
    finite = np.isfinite(loss_TB).any(axis=1)
    at, known = np.flatnonzero(finite), loss_TB[finite]
    if not len(at):
        return ""
    low, high = np.nanquantile(known, [0.25, 0.75], axis=1)
    mean = np.nanmean(known, axis=1)
    bottom, top = float(min(low.min(), mean.min())), float(max(high.max(), mean.max()))
    span = (top - bottom) or 1.0
    left, base = 52, height - 28

    def places(values: np.ndarray) -> list[str]:
        x = left + at / max(steps - 1, 1) * (width - left - 10)
        y = base - (values - bottom) / span * (base - 12)
        return [f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True)]

    labels = "".join(
        f'<text x="{left - 6}" y="{y + 4:g}" text-anchor="end">{value:.2f}</text>'
        for value, y in ((bottom, base), (top, 12))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="mean loss from {mean[0]:.2f} to {mean[-1]:.2f}" font-size="12" '
        'fill="var(--muted)">'
        f'<path d="M{left} 8V{base}H{width - 10}" fill="none" stroke="var(--line)"/>'
        f'<polygon points="{" ".join(places(high) + places(low)[::-1])}" fill="var(--model)" opacity="0.2"/>'
        f'<polyline points="{" ".join(places(mean))}" fill="none" stroke="var(--model)" stroke-width="2"/>'
        f'{labels}<text x="{left}" y="{height - 8}">0</text>'
        f'<text x="{width - 10}" y="{height - 8}" text-anchor="end">step {steps}</text></svg>'
    )


def _svg(trajectory: Trajectory, frame: int, sketch: int) -> Markup:
    return Markup(drawing_to_svg(trajectory.drawing(frame, sketch), size=THUMBNAIL))


def _thumbnail(picture: Image.Image) -> str:
    small = picture.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    small.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
