"""SVG in and out: strokes with pen width, opacity and element names as stroked paths.

Reading follows the SVG rules for geometry (path data, basic shapes, transforms, viewBox, inherited presentation
attributes, style sheets with class and tag rules). Ink is one colour: colours are not kept, a shape that is only filled
becomes its outline. Nothing in a file is ever executed or fetched: scripts, entities and references to other files are
refused by name.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from humanlike.data.drawing import Drawing, EmptyDrawingError, Stroke
from humanlike.data.svg_tree import canvas_matrix, inline_style_sheets, parse_svg

SVG_NAMESPACE = "http://www.w3.org/2000/svg"


def drawing_to_svg(drawing: Drawing, size: float = 224, ink: str = "black") -> str:
    """The drawing as SVG text on a canvas of `size` × `size` units; element names go to `data-element`.

    Coordinates are written with 4 decimals, 2·10⁻⁷ of the canvas at the default size.

    Example:
        >>> text = drawing_to_svg(Drawing.from_polylines([[(0.25, 0.5), (0.75, 0.5)]], elements=["rim"]), size=100)
        >>> 'd="M25 50L75 50"' in text, 'data-element="rim"' in text
        (True, True)
    """
    lines = [
        f'<svg xmlns="{SVG_NAMESPACE}" version="1.1" width="{size:g}" height="{size:g}" '
        f'viewBox="0 0 {size:g} {size:g}">',
        f'<g fill="none" stroke="{ink}" stroke-linecap="round" stroke-linejoin="round">',
    ]
    for stroke in drawing.strokes:
        name = f" data-element={quoteattr(stroke.element)}" if stroke.element is not None else ""
        opacity = f' stroke-opacity="{stroke.opacity:.6g}"' if stroke.opacity != 1 else ""
        lines.append(f'<path d="{_path_data(stroke, size)}" stroke-width="{stroke.width * size:.6g}"{opacity}{name}/>')
    return "\n".join([*lines, "</g>", "</svg>", ""])


def read_svg(source: str | Path, margin: float | None = None) -> Drawing:
    """Strokes of an SVG file (a path) or of SVG text (a string that begins with "<").

    The canvas (viewBox, else width × height) is mapped into [0, 1]², centred where it is not square; a stroke without
    width attributes gets SVG's default of one unit.

    Args:
        source: File or text.
        margin: When given, the drawing is fitted to the canvas with this free border, else it stays where it stands.

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: For text that is not SVG, or that holds what has no strokes or must not be read.
        EmptyDrawingError: When the file draws nothing.
    """
    from humanlike.data.svg_shapes import strokes_of  # its path reader takes over a second to import

    text, where = svg_text(source)
    root = parse_svg(text, where)
    inline_style_sheets(root, where)
    matrix = canvas_matrix(root, where)
    strokes = tuple(strokes_of(root, matrix, where))
    if not strokes:
        raise EmptyDrawingError(f"{where}: the SVG draws nothing (no visible path or shape)")
    drawing = Drawing(strokes)
    return drawing if margin is None else drawing.fitted(margin)


def svg_text(source: str | Path) -> tuple[str, str]:
    """Text of an SVG file or the text itself, and how to name it in messages."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source.lstrip("\ufeff \t\r\n"), "SVG text"
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"no SVG file {path}")
    try:
        return path.read_bytes().decode("utf-8-sig"), str(path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a readable SVG, byte {error.start} is not UTF-8 ({error.reason})") from error


def _path_data(stroke: Stroke, size: float) -> str:
    xy = np.round(stroke.points * size, 4)
    text = [f"{x:.10g} {y:.10g}" for x, y in xy.tolist()]
    if len(text) == 1:
        return f"M{text[0]}L{text[0]}"
    return f"M{text[0]}{'C' if stroke.curved else 'L'}{' '.join(text[1:])}"
