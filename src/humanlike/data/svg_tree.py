"""The parts of SVG that are not geometry: harmless parsing, inherited style, the canvas."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml import DefusedXmlException, EntitiesForbidden, ExternalReferenceForbidden
from defusedxml.ElementTree import fromstring

REFUSED = {
    "script": "a script",
    "foreignObject": "foreign content",
    "image": "an embedded or linked bitmap",
    "use": "a reference (<use>)",
    "text": "text",
    "animate": "animation",
    "animateTransform": "animation",
    "animateMotion": "animation",
    "set": "animation",
}
UNITS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
_NUMBER = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-z%]*)\s*$")
_EXTERNAL = re.compile(r"(?:@import|url\(\s*['\"]?\s*(?!#)[^)\s])", re.IGNORECASE)


def local_name(node: Element) -> str:
    """Tag without its namespace; "" for comments and processing instructions."""
    return node.tag.rsplit("}", 1)[-1] if isinstance(node.tag, str) else ""


def parse_svg(text: str, where: str) -> Element:
    """The root element of SVG text that holds nothing but drawable content.

    Raises:
        ValueError: When the text is not XML or not SVG; when it declares entities (an "entity bomb" or a way to read
            other files), refers to anything outside itself, or holds scripts, event handlers, bitmaps, text,
            references or animation, which have no strokes.
    """
    try:
        root = fromstring(text)
    except EntitiesForbidden as error:
        raise ValueError(f"{where}: refused, the SVG declares the XML entity {error.name!r}; remove its DTD") from error
    except ExternalReferenceForbidden as error:
        raise ValueError(f"{where}: refused, the SVG refers to the external {error.sysid!r}; remove it") from error
    except DefusedXmlException as error:
        raise ValueError(f"{where}: refused, unsafe XML ({error})") from error
    except (ParseError, ValueError) as error:
        raise ValueError(f"{where}: not well-formed XML ({error}); the file may be cut short") from error
    if local_name(root) != "svg":
        raise ValueError(f"{where}: the root element is <{local_name(root)}>, expected <svg>")
    for node in root.iter():
        _refuse(node, where)
    return root


def _refuse(node: Element, where: str) -> None:
    name = local_name(node)
    if name in REFUSED:
        raise ValueError(f"{where}: refused, the SVG holds {REFUSED[name]}; only strokes can be read, remove it")
    for key, value in node.attrib.items():
        plain = key.rsplit("}", 1)[-1]
        if plain.lower().startswith("on"):
            raise ValueError(f"{where}: refused, <{name}> carries the event handler {plain!r}; remove it")
        if plain == "href" and not value.startswith("#"):
            raise ValueError(f"{where}: refused, <{name}> refers to the external {value[:60]!r}; remove it")
        if _EXTERNAL.search(value):
            raise ValueError(f"{where}: refused, {plain!r} of <{name}> refers outside the file; remove it")
    if name == "style" and _EXTERNAL.search(node.text or ""):
        raise ValueError(f"{where}: refused, the style sheet refers outside the file; remove it")


def length(text: str, where: str) -> float:
    """An SVG length in user units.

    Raises:
        ValueError: For percentages, font units and what is no number.
    """
    match = _NUMBER.match(text)
    if match is None or match[2] not in UNITS:
        raise ValueError(f"{where}: cannot read the length {text!r}; use plain numbers or {[u for u in UNITS if u]}")
    return float(match[1]) * UNITS[match[2]]


def canvas_matrix(root: Element, where: str) -> np.ndarray:
    """(3, 3) map from the root's user units to canvas units, centred where the canvas is not square."""
    box = root.get("viewBox")
    if box is not None:
        values = [float(v) for v in re.split(r"[\s,]+", box.strip()) if _NUMBER.match(v)]
        if len(values) != 4 or min(values[2:]) <= 0:
            raise ValueError(f"{where}: viewBox must be four numbers with positive width and height, got {box!r}")
        x, y, w, h = values
    else:
        if root.get("width") is None or root.get("height") is None:
            raise ValueError(f"{where}: the SVG has neither a viewBox nor width and height, so its canvas is unknown")
        x, y = 0.0, 0.0
        w, h = length(root.get("width", ""), where), length(root.get("height", ""), where)
        if min(w, h) <= 0:
            raise ValueError(f"{where}: width and height must be positive, got {w} and {h}")
    side = max(w, h)
    return np.array([[1 / side, 0, 0.5 - (x + w / 2) / side], [0, 1 / side, 0.5 - (y + h / 2) / side], [0, 0, 1]])


def inline_style_sheets(root: Element, where: str) -> None:
    """Copy the rules of the file's style sheets onto the nodes they select, in place.

    Raises:
        ValueError: For selectors other than `.class` and `tag`, which decide how strokes look but cannot be followed.
    """
    rules: list[tuple[str, str]] = []
    for sheet in (n for n in root.iter() if local_name(n) == "style"):
        text = re.sub(r"/\*.*?\*/|<!--|-->", "", sheet.text or "", flags=re.DOTALL)
        for selectors, declarations in re.findall(r"([^{}]*)\{([^{}]*)\}", text):
            for selector in (s.strip() for s in selectors.split(",")):
                if not re.fullmatch(r"\.?[A-Za-z_][\w-]*", selector):
                    raise ValueError(f"{where}: cannot follow the style rule {selector!r}; write styles on the nodes")
                rules.append((selector, declarations))
    # A class goes before a tag, a later rule before an earlier one.
    rules.sort(key=lambda rule: rule[0].startswith("."))
    for node in root.iter() if rules else ():
        names = {local_name(node), *(f".{c}" for c in node.get("class", "").split())}
        chosen = [declarations for selector, declarations in rules if selector in names]
        if chosen:
            node.set("style", ";".join([*chosen, node.get("style", "")]))


@dataclass(frozen=True)
class Style:
    """Inherited presentation of a node.

    Attributes:
        stroke: Paint of the outline ("none" draws no outline).
        fill: Paint of the inside.
        stroke_width: User units.
        stroke_opacity: 0 to 1.
        fill_opacity: 0 to 1.
        opacity: Product of the opacities of the node and of what it stands in.
        visibility: "visible" or not.
        hidden: True where the node and its children are not displayed at all.
        element: `data-element` of the node or of what it stands in.
    """

    stroke: str = "none"
    fill: str = "black"
    stroke_width: float = 1.0
    stroke_opacity: float = 1.0
    fill_opacity: float = 1.0
    opacity: float = 1.0
    visibility: str = "visible"
    hidden: bool = False
    element: str | None = None

    def inherit(self, node: Element, where: str) -> Style:
        """The style of `node`, a child of what this style belongs to."""
        given = {k: v for k, v in node.attrib.items() if "}" not in k}
        for declaration in given.pop("style", "").split(";"):
            key, _, value = declaration.partition(":")
            given[key.strip()] = value.replace("!important", "").strip()
        given = {k: v for k, v in given.items() if v != "inherit"}
        numbers = {
            "stroke_opacity": _share(given.get("stroke-opacity"), self.stroke_opacity, where),
            "fill_opacity": _share(given.get("fill-opacity"), self.fill_opacity, where),
            "opacity": self.opacity * _share(given.get("opacity"), 1.0, where),
        }
        width = given.get("stroke-width")
        return replace(
            self,
            **numbers,
            stroke=given.get("stroke", self.stroke),
            fill=given.get("fill", self.fill),
            stroke_width=self.stroke_width if width is None else length(width, where),
            visibility=given.get("visibility", self.visibility),
            hidden=given.get("display") == "none",
            element=given.get("data-element", self.element),
        )

    @property
    def outlined(self) -> bool:
        """True when the outline is painted."""
        return self.stroke not in ("none", "transparent") and self.stroke_width > 0

    @property
    def ink_opacity(self) -> float:
        """Opacity of the outline, or of the inside where only that is painted."""
        own = self.stroke_opacity if self.outlined else self.fill_opacity
        return min(max(self.opacity * own, 0.0), 1.0)

    @property
    def visible(self) -> bool:
        """True when the node leaves ink."""
        painted = self.outlined or self.fill not in ("none", "transparent")
        return painted and self.visibility == "visible" and self.ink_opacity > 0


def _share(text: str | None, default: float, where: str) -> float:
    if text is None:
        return default
    if text.strip().endswith("%"):
        return length(text.strip()[:-1], where) / 100
    return length(text, where)
