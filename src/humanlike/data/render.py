"""Hard, anti-aliased rendering of drawings by resvg: strokes → SVG → RGB image.

resvg is a renderer that stands outside this project, needs no system library, and gives the same pixels on every
platform, so its pictures also referee the differentiable rasteriser.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import resvg_py
from PIL import Image, ImageColor

from humanlike.data.drawing import Drawing
from humanlike.data.svg import drawing_to_svg
from humanlike.files import sha256_value


@dataclass(frozen=True)
class Renderer:
    """How strokes become pixels.

    Attributes:
        size: Side of the square image in pixels. Backbones resize by their own transform afterwards.
        stroke_width: Pen width of all strokes as a fraction of the side, or None to keep each stroke's own.
        margin: Free border after fitting the drawing into the canvas, or None to draw it where it stands.
        background: Colour of the sheet (any CSS colour name or #rrggbb).
        ink: Colour of the strokes.

    Example:
        >>> image = Renderer(size=64)(Drawing.from_polylines([[(0.2, 0.5), (0.8, 0.5)]]))
        >>> image.size, image.mode, image.getpixel((0, 0))
        ((64, 64), 'RGB', (255, 255, 255))
    """

    size: int = 256
    stroke_width: float | None = None
    margin: float | None = None
    background: str = "white"
    ink: str = "black"

    def __post_init__(self) -> None:
        if not 1 <= int(self.size) <= 8192:
            raise ValueError(f"size must be a number of pixels in [1, 8192], got {self.size}")
        if self.stroke_width is not None and not 0 < self.stroke_width <= 1:
            raise ValueError(f"stroke_width must be a fraction of the side in (0, 1], got {self.stroke_width}")
        for name in ("background", "ink"):
            ImageColor.getrgb(getattr(self, name))

    def __call__(self, drawing: Drawing) -> Image.Image:
        """The drawing as an RGB image of `size` × `size` pixels; an empty drawing is a blank sheet."""
        if self.margin is not None and drawing.num_strokes:
            drawing = drawing.fitted(self.margin)
        if self.stroke_width is not None:
            drawing = Drawing(tuple(replace(s, width=self.stroke_width) for s in drawing.strokes))
        ink = "#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(self.ink)[:3])
        return rasterize_svg(drawing_to_svg(drawing, ink=ink), self.size, background=self.background)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """JSON-like facts that fix the pixels: the settings and the renderer with its version."""
        return {**asdict(self), "renderer": f"resvg {resvg_py.__resvg_version__}", "writer": 1}

    def content_hash(self, drawing: Drawing) -> str:
        """Hex digest of the drawing and of everything that fixes its pixels."""
        return sha256_value([drawing.digest(), self.fingerprint])


def render(drawing: Drawing, size: int = 256, **settings: Any) -> Image.Image:
    """The drawing as an RGB image; `settings` are those of `Renderer`."""
    return Renderer(size=size, **settings)(drawing)


def render_gray(drawing: Drawing, size: int = 256, **settings: Any) -> np.ndarray:
    """(size, size) float32 in [0, 1], 1 the white sheet and 0 full ink; `settings` are those of `Renderer`."""
    return np.asarray(render(drawing, size, **settings).convert("L"), dtype=np.float32) / 255.0


def rasterize_svg(text: str, size: int, background: str = "white") -> Image.Image:
    """SVG text as an RGB image of `size` × `size` pixels, a picture that is not square being centred on the background.

    The text must be known to be harmless: `svg.parse_svg` refuses what is not.

    Raises:
        ValueError: When resvg cannot read the text.
    """
    colour = "#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(background)[:3])
    # dpi: this binding's own default of 0 makes every length in mm or pt vanish.
    png = resvg_py.svg_to_bytes(
        svg_string=text, background=colour, skip_system_fonts=True, width=size, height=size, dpi=96
    )
    with Image.open(io.BytesIO(bytes(png))) as image:
        rgb = image.convert("RGB")
    if rgb.size == (size, size):
        return rgb
    sheet = Image.new("RGB", (size, size), colour)
    sheet.paste(rgb, ((size - rgb.width) // 2, (size - rgb.height) // 2))
    return sheet
