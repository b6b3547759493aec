"""Geometry of SVG nodes: path data and basic shapes as polylines and chained cubics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

import numpy as np
from svgpathtools import Arc, CubicBezier, Line, Path, QuadraticBezier, parse_path
from svgpathtools.parser import parse_transform

from humanlike.data.drawing import Stroke
from humanlike.data.svg_tree import Style, length, local_name

Piece = tuple[np.ndarray, bool]
CONTAINERS = frozenset({"svg", "g", "a", "switch"})


def strokes_of(root: Element, matrix: np.ndarray, where: str) -> Iterator[Stroke]:
    """Strokes of all visible shapes below `root`, in drawing order.

    Args:
        root: The SVG's root element.
        matrix: (3, 3) map from its user units to canvas units.
        where: Name of the file for messages.
    """
    stack: list[tuple[Element, np.ndarray, Style]] = [(root, matrix, Style())]
    while stack:
        node, parent_matrix, parent_style = stack.pop()
        style = parent_style.inherit(node, where)
        if style.hidden:
            continue
        local = parent_matrix @ transform_of(node, where)
        scale = float(np.sqrt(abs(np.linalg.det(local[:2, :2]))))
        if style.visible and scale > 0:
            for points, curved in pieces(node, where):
                yield Stroke(
                    points @ local[:2, :2].T + local[:2, 2],
                    width=max(style.stroke_width * scale, 1e-6),
                    opacity=style.ink_opacity,
                    curved=curved,
                    element=style.element,
                )
        stack.extend((child, local, style) for child in reversed(drawn_children(node)))


def transform_of(node: Element, where: str) -> np.ndarray:
    """(3, 3) matrix of the node's `transform`, in user units.

    Raises:
        ValueError: For a transform that cannot be read.
    """
    text = node.get("transform")
    if text is None:
        return np.identity(3)
    try:
        return np.asarray(parse_transform(text, strict=True), dtype=np.float64)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{where}: cannot read transform {text!r} of <{local_name(node)}>: {error}") from error


def drawn_children(node: Element) -> list[Element]:
    """Children that can leave ink; definitions, clip paths, markers and metadata do not."""
    if local_name(node) not in CONTAINERS:
        return []
    return [child for child in node if local_name(child) in CONTAINERS or local_name(child) in SHAPES]


def pieces(node: Element, where: str) -> Iterator[Piece]:
    """(points, curved) of every connected piece of a shape, in the node's own units; nothing for containers."""
    shape = SHAPES.get(local_name(node))
    if shape is None:
        return
    data = shape(node, where)
    try:
        path = parse_path(data)
    except (ValueError, IndexError, TypeError, AssertionError) as error:
        raise ValueError(f"{where}: cannot read the geometry {data[:60]!r} of <{local_name(node)}>: {error}") from error
    if len(path):
        for part in path.continuous_subpaths():
            yield _piece(part)


def _piece(part: Path) -> Piece:
    start = np.array([[part[0].start.real, part[0].start.imag]])
    if all(isinstance(segment, Line) for segment in part):
        ends = np.array([[s.end.real, s.end.imag] for s in part])
        return (start if np.array_equal(ends, start) else np.concatenate([start, ends])), False
    rows = [control for segment in part for control in _cubics(segment)]
    controls = np.array([[c.real, c.imag] for c in rows])
    return np.concatenate([start, controls]), True


def _cubics(segment: Line | CubicBezier | QuadraticBezier | Arc) -> list[complex]:
    """The three control points after the start of every cubic of a segment, as x + iy."""
    a, b = segment.start, segment.end
    if isinstance(segment, CubicBezier):
        return [segment.control1, segment.control2, b]
    if isinstance(segment, QuadraticBezier):
        q = segment.control
        return [a + 2 * (q - a) / 3, b + 2 * (q - b) / 3, b]
    if isinstance(segment, Line):
        return [(2 * a + b) / 3, (a + 2 * b) / 3, b]
    return _arc_cubics(segment)


def _arc_cubics(arc: Arc) -> list[complex]:
    """Cubics for an elliptical arc, one per at most 45°, which leaves an error below 10⁻⁶ of the radius."""
    count = max(1, math.ceil(abs(arc.delta) / 45 - 1e-9))
    step = math.radians(arc.delta) / count
    theta = math.radians(arc.theta)
    reach = 4 / 3 * math.tan(step / 4)
    turn = complex(math.cos(math.radians(arc.rotation)), math.sin(math.radians(arc.rotation)))

    def at(angle: float, tangent: float = 0.0) -> complex:
        x = arc.radius.real * (math.cos(angle) - tangent * math.sin(angle))
        y = arc.radius.imag * (math.sin(angle) + tangent * math.cos(angle))
        return arc.center + turn * complex(x, y)

    rows = []
    for i in range(count):
        first, last = theta + i * step, theta + (i + 1) * step
        rows += [at(first, reach), at(last, -reach), at(last)]
    rows[-1] = arc.end
    return rows


def _number(node: Element, name: str, where: str) -> float:
    return length(node.get(name, "0"), where)


def _path(node: Element, where: str) -> str:
    return node.get("d", "")


def _line(node: Element, where: str) -> str:
    x1, y1, x2, y2 = (_number(node, k, where) for k in ("x1", "y1", "x2", "y2"))
    return f"M{x1} {y1}L{x2} {y2}"


def _polyline(node: Element, where: str) -> str:
    points = node.get("points", "").strip()
    return f"M{points}" if points else ""


def _polygon(node: Element, where: str) -> str:
    return f"{_polyline(node, where)}Z" if node.get("points", "").strip() else ""


def _rect(node: Element, where: str) -> str:
    x, y, w, h = (_number(node, k, where) for k in ("x", "y", "width", "height"))
    rx, ry = node.get("rx", node.get("ry", "0")), node.get("ry", node.get("rx", "0"))
    a, b = min(length(rx, where), w / 2), min(length(ry, where), h / 2)
    if w <= 0 or h <= 0:
        return ""
    if a <= 0 or b <= 0:
        return f"M{x} {y}h{w}v{h}h{-w}z"
    corner = f"a{a} {b} 0 0 1 "
    return (
        f"M{x + a} {y}h{w - 2 * a}{corner}{a} {b}v{h - 2 * b}{corner}{-a} {b}"
        f"h{2 * a - w}{corner}{-a} {-b}v{2 * b - h}{corner}{a} {-b}"
    )


def _ellipse(node: Element, where: str) -> str:
    rx, ry = (_number(node, k, where) for k in ("rx", "ry"))
    return _oval(node, rx, ry, where)


def _circle(node: Element, where: str) -> str:
    r = _number(node, "r", where)
    return _oval(node, r, r, where)


def _oval(node: Element, rx: float, ry: float, where: str) -> str:
    cx, cy = (_number(node, k, where) for k in ("cx", "cy"))
    if rx <= 0 or ry <= 0:
        return ""
    return f"M{cx + rx} {cy}a{rx} {ry} 0 0 1 {-2 * rx} 0a{rx} {ry} 0 0 1 {2 * rx} 0"


SHAPES: dict[str, Callable[[Element, str], str]] = {
    "path": _path,
    "line": _line,
    "polyline": _polyline,
    "polygon": _polygon,
    "rect": _rect,
    "circle": _circle,
    "ellipse": _ellipse,
}
