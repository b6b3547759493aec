"""Stroke formats that are not SVG: stroke-3, QuickDraw (raw and simplified), JSON; and ndjson files line by line.

* stroke-3: (n, 3) rows dx, dy, pen lifted after this point (0 or 1); the first row is the offset from the origin.
* QuickDraw: one list a stroke, `[[x …], [y …]]` (simplified) or `[[x …], [y …], [t …]]` with milliseconds (raw).
* JSON: schema "humanlike.drawings/1", everything a `Drawing` holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from humanlike.data.drawing import DEFAULT_WIDTH, Drawing, EmptyDrawingError, Stroke

JSON_SCHEMA = "humanlike.drawings/1"


def drawing_from_stroke3(
    array: np.ndarray, scale: float | None = None, margin: float = 0.05, width: float = DEFAULT_WIDTH
) -> Drawing:
    """A drawing from a stroke-3 array.

    Args:
        array: (n, 3) dx, dy, pen lifted after the point.
        scale: Units a canvas side, as given to `drawing_to_stroke3`; None fits the drawing to the canvas.
        margin: Free border where the drawing is fitted.
        width: Pen width.

    Raises:
        ValueError: For a wrong shape, values that are not finite, or pen states other than 0 and 1.
        EmptyDrawingError: For no rows.
    """
    lines = stroke3_polylines(array)
    if not lines:
        raise EmptyDrawingError("the stroke-3 array has no rows, so the drawing has no ink")
    drawing = Drawing.from_polylines(lines, width=width)
    return drawing.fitted(margin) if scale is None else drawing.transformed(1.0 / scale)


def stroke3_polylines(array: np.ndarray) -> list[np.ndarray]:
    """(n, 2) float64 points of every stroke of a stroke-3 array, in the array's units; no rows give no stroke.

    Raises:
        ValueError: For a wrong shape, values that are not finite, or pen states other than 0 and 1.

    Example:
        >>> [line.tolist() for line in stroke3_polylines(np.array([[1, 0, 0], [2, 0, 1], [0, 5, 1]]))]
        [[[1.0, 0.0], [3.0, 0.0]], [[3.0, 5.0]]]
    """
    rows = np.asarray(array, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ValueError(f"a stroke-3 array must have shape (n, 3), got {rows.shape}")
    bad = np.flatnonzero(~np.isin(rows[:, 2], (0, 1)))
    if len(bad):
        raise ValueError(f"row {bad[0]} of the stroke-3 array has pen state {rows[bad[0], 2]}; it must be 0 or 1")
    if not np.isfinite(rows).all():
        raise ValueError("a stroke-3 array must hold finite numbers, found NaN or infinity")
    xy = np.cumsum(rows[:, :2], axis=0)
    ends = np.flatnonzero(rows[:, 2] == 1) + 1
    return [line for line in np.split(xy, ends) if len(line)]


def drawing_to_stroke3(drawing: Drawing, scale: float = 255.0, per_curve: int = 16) -> np.ndarray:
    """(n, 3) float64 stroke-3 array in units of `scale` a canvas side; curves become `per_curve` segments a cubic.

    Raises:
        EmptyDrawingError: For a drawing without strokes.

    Example:
        >>> drawing_to_stroke3(Drawing.from_polylines([[(0, 0), (0.5, 0)], [(1, 1)]]), scale=10).tolist()
        [[0.0, 0.0, 0.0], [5.0, 0.0, 1.0], [5.0, 10.0, 1.0]]
    """
    if not drawing.strokes:
        raise EmptyDrawingError("an empty drawing has no stroke-3 form")
    lines = [s.flattened(per_curve) * scale for s in drawing.strokes]
    offsets = np.diff(np.concatenate([np.zeros((1, 2)), *lines]), axis=0)
    lifted = np.zeros(len(offsets))
    lifted[np.cumsum([len(line) for line in lines]) - 1] = 1
    return np.column_stack([offsets, lifted])


def drawing_from_quickdraw(
    strokes: Sequence[Sequence[Sequence[float]]],
    margin: float | None = 0.05,
    width: float = DEFAULT_WIDTH,
    where: str = "QuickDraw drawing",
) -> Drawing:
    """A drawing from QuickDraw's `drawing` field, raw (with times) or simplified.

    Args:
        strokes: One `[xs, ys]` or `[xs, ys, milliseconds]` a stroke; strokes without a point are left out.
        margin: Free border after fitting the full drawing to the canvas; None keeps the file's units.
        width: Pen width.
        where: Name of the source for messages.

    Raises:
        ValueError: For rows of unequal length or values that are not finite numbers.
        EmptyDrawingError: When no stroke has a point.

    Example:
        >>> d = drawing_from_quickdraw([[[0, 255], [0, 0], [0, 1500]], [[9], [9], [2000]]])
        >>> d.until(1.0).num_points, d.until(1.5).num_points, d.num_points
        (1, 2, 3)
    """
    kept = []
    clock_ms = -np.inf
    for number, stroke in enumerate(strokes):
        xyt = quickdraw_stroke(stroke, f"{where}, stroke {number}")
        if xyt.shape[1]:
            time_s = None
            if len(xyt) == 3:
                # A few drawings run back by some milliseconds where a clock was set.
                times_ms = np.maximum.accumulate(np.maximum(xyt[2], clock_ms))
                clock_ms, time_s = times_ms[-1], times_ms / 1000
            kept.append(Stroke(xyt[:2].T, width=width, time_s=time_s))
    if not kept:
        raise EmptyDrawingError(f"{where}: the drawing has no ink")
    drawing = Drawing(tuple(kept))
    return drawing if margin is None else drawing.fitted(margin)


def quickdraw_stroke(stroke: Sequence[Sequence[float]], where: str) -> np.ndarray:
    """(2, n) or (3, n) float64 array x, y and milliseconds of one QuickDraw stroke, checked."""
    try:
        xyt = np.array(stroke, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}: a stroke is [[x …], [y …]] or [[x …], [y …], [t …]] of equal lengths and numbers; {error}"
        ) from error
    if xyt.ndim != 2 or len(xyt) not in (2, 3):
        raise ValueError(f"{where}: a stroke has rows x, y and perhaps t; got an array of shape {xyt.shape}")
    if not np.isfinite(xyt).all():
        raise ValueError(f"{where}: coordinates and times must be finite numbers")
    return xyt


def drawing_to_quickdraw(drawing: Drawing, scale: float = 255.0) -> list[list[list[float]]]:
    """QuickDraw's `drawing` field in units of `scale` a canvas side; with milliseconds where strokes have times."""
    rows = []
    for stroke in drawing.strokes:
        x, y = (stroke.flattened() * scale).T.tolist()
        rows.append([x, y] if stroke.time_s is None else [x, y, (stroke.time_s * 1000).tolist()])
    return rows


def drawings_to_json(drawings: Sequence[Drawing]) -> str:
    """JSON text (schema "humanlike.drawings/1") with all that the drawings hold, exact to the last bit."""
    return json.dumps({"schema": JSON_SCHEMA, "drawings": [[_as_json(s) for s in d.strokes] for d in drawings]})


def drawings_from_json(text: str) -> list[Drawing]:
    """Drawings from what `drawings_to_json` wrote.

    Raises:
        ValueError: For text that is no JSON, another schema, or a stroke with unknown or missing fields.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(value, dict) or value.get("schema") != JSON_SCHEMA:
        found = value.get("schema") if isinstance(value, dict) else type(value).__name__
        raise ValueError(f"expected JSON of schema {JSON_SCHEMA!r}, got {found!r}")
    drawings = []
    for number, strokes in enumerate(value.get("drawings", [])):
        try:
            drawings.append(Drawing(tuple(Stroke(**stroke) for stroke in strokes)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"drawing {number}: {error}") from error
    return drawings


def _as_json(stroke: Stroke) -> dict[str, Any]:
    fields: dict[str, Any] = {"points": stroke.points.tolist(), "width": stroke.width, "opacity": stroke.opacity}
    if stroke.curved:
        fields["curved"] = True
    if stroke.element is not None:
        fields["element"] = stroke.element
    if stroke.time_s is not None:
        fields["time_s"] = stroke.time_s.tolist()
    return fields


def ndjson_records(lines: Iterable[bytes], where: str, first: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and record of every line of an ndjson file; empty lines are passed over.

    Args:
        lines: The file's lines.
        where: The file's name for messages.
        first: Number of the first line.

    Raises:
        ValueError: Naming file and line where a line is cut short or no JSON object.
    """
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{where}:{number}: not a whole JSON object ({error}); the file was probably cut short, "
                "fetch it again or delete that line"
            ) from error
        if not isinstance(record, dict):
            raise ValueError(f"{where}:{number}: expected a JSON object, got {type(record).__name__}")
        yield number, record
