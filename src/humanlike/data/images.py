"""The one way from a file to an RGB image on a stated background.

Every bitmap mode goes through `decode_image`: transparency in all its forms, 16 bit, 1 bit, gray, CMYK, palettes, EXIF
rotation, inverted polarity; SVG files are rasterised by resvg. The image keeps its size: a backbone's own transform
does the only resize. Of animations and multi-page files the first frame is taken.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import logging
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import PIL
import resvg_py
from PIL import Image, ImageChops, ImageColor, ImageOps, UnidentifiedImageError

from humanlike.data.archives import Archive, FolderArchive
from humanlike.data.render import rasterize_svg
from humanlike.data.svg_tree import parse_svg
from humanlike.files import sha256_value

logger = logging.getLogger(__name__)

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm", ".svg")
POLARITIES = ("keep", "auto", "invert")
_UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, IndexError, OverflowError, struct.error, zlib.error)
_DECODER_VERSION = 1


class BadImageError(ValueError):
    """An image that cannot be used; the message names the file and the reason.

    Attributes:
        where: The file.
        reason: Why it cannot be used.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason

    def __reduce__(self) -> tuple[type[BadImageError], tuple[str, str]]:
        return type(self), (self.where, self.reason)


@dataclass(frozen=True)
class DecodeOptions:
    """What the decoder does to an image.

    Attributes:
        background: Colour under transparent pixels and around padding (CSS name or #rrggbb).
        polarity: "keep"; "invert" (colours are inverted before they are composited, so white strokes on black or on a
            transparent ground become black strokes on white); "auto" inverts exactly the images that look inverted.
        pad_to_square: Pad the shorter side with the background, centred.
        allow_blank: Accept images of one single colour.
        max_pixels: Images with more pixels are refused as decompression bombs.
        svg_size: Side in pixels at which SVG files are rasterised.
    """

    background: str = "white"
    polarity: str = "keep"
    pad_to_square: bool = False
    allow_blank: bool = False
    max_pixels: int = 50_000_000
    svg_size: int = 256

    def __post_init__(self) -> None:
        try:
            ImageColor.getrgb(self.background)
        except (ValueError, AttributeError) as error:
            near = difflib.get_close_matches(str(self.background).lower(), ImageColor.colormap, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"background must be a colour's name or #rrggbb, got {self.background!r}{hint}") from error
        if self.polarity not in POLARITIES:
            raise ValueError(f"polarity must be one of {POLARITIES}, got {self.polarity!r}")
        if self.max_pixels < 1 or self.svg_size < 1:
            raise ValueError(f"max_pixels and svg_size must be positive, got {self.max_pixels}, {self.svg_size}")

    @property
    def rgb(self) -> tuple[int, int, int]:
        """The background as red, green, blue."""
        red, green, blue = ImageColor.getrgb(self.background)[:3]
        return red, green, blue


@dataclass(frozen=True)
class DecodedImage:
    """A decoded image and what was done.

    Attributes:
        image: RGB on the background.
        mode: Mode of the file ("RGBA", "P", "I;16", "svg", …).
        inverted: True when the colours were inverted.
        has_alpha_ink: True when some pixels are transparent and others are not.
    """

    image: Image.Image
    mode: str
    inverted: bool
    has_alpha_ink: bool = False


def load_image(
    source: str | Path | bytes,
    background: str = "white",
    polarity: str = "keep",
    pad_to_square: bool = False,
    name: str | None = None,
) -> Image.Image:
    """A file or its bytes as an RGB image composited on `background`; see `DecodeOptions`.

    Raises:
        BadImageError: Naming the file: missing, unreadable, truncated, blank, or too large.

    Example:
        >>> buffer = io.BytesIO()
        >>> Image.new("LA", (4, 2), (0, 0)).save(buffer, "png")
        >>> load_image(buffer.getvalue(), name="a.png")
        Traceback (most recent call last):
        ...
        humanlike.data.images.BadImageError: a.png: blank, every pixel has the colour (255, 255, 255)
    """
    options = DecodeOptions(background=background, polarity=polarity, pad_to_square=pad_to_square)
    return decode_image(source, options, name).image


def decode_image(
    source: str | Path | bytes, options: DecodeOptions = DecodeOptions(), name: str | None = None
) -> DecodedImage:
    """Like `load_image`, and what was done.

    Args:
        source: Path or bytes of the file.
        options: What to do.
        name: How messages call the image; default: the path.

    Raises:
        BadImageError: See `load_image`.
    """
    where = name or ("image" if isinstance(source, bytes) else str(source))
    data = source if isinstance(source, bytes) else _read(Path(source), where)
    if not data:
        raise BadImageError(where, "the file is empty")
    if is_svg(data):
        decoded = DecodedImage(_svg_image(data, options, where), "svg", options.polarity == "invert")
    else:
        decoded = _bitmap(data, options, where)
    image = decoded.image
    pixels = np.asarray(image)
    if not options.allow_blank and (pixels == pixels[0, 0]).all():
        colour = tuple(int(v) for v in pixels[0, 0])
        hint = "; its ink has the colour of the background: try polarity=auto" if decoded.has_alpha_ink else ""
        raise BadImageError(where, f"blank, every pixel has the colour {colour}{hint}")
    if options.pad_to_square and image.width != image.height:
        side = max(image.size)
        sheet = Image.new("RGB", (side, side), options.rgb)
        sheet.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
        image = sheet
    return replace(decoded, image=image)


def is_svg(data: bytes) -> bool:
    """True when the bytes begin like an XML or SVG text."""
    head = data[:256].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith((b"<?xml", b"<svg", b"<!--", b"<!DOCTYPE svg"))


def _read(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadImageError(where, "the file is missing") from error
    except OSError as error:
        raise BadImageError(where, f"cannot be read ({error.strerror or error})") from error


def _svg_image(data: bytes, options: DecodeOptions, where: str) -> Image.Image:
    try:
        text = data.decode("utf-8-sig")
        parse_svg(text, where)
        image = rasterize_svg(text, options.svg_size, options.background)
    except ValueError as error:
        raise BadImageError(where, str(error).removeprefix(f"{where}: ")) from error
    return ImageChops.invert(image) if options.polarity == "invert" else image


def _bitmap(data: bytes, options: DecodeOptions, where: str) -> DecodedImage:
    try:
        with Image.open(io.BytesIO(data)) as opened:
            if opened.width * opened.height > options.max_pixels:
                raise BadImageError(
                    where, f"refused, {opened.width} × {opened.height} pixels exceed max_pixels={options.max_pixels}"
                )
            mode = opened.mode
            opened.load()
            upright = ImageOps.exif_transpose(opened)
            rgb, alpha = _rgb_and_alpha(upright, where)
    except BadImageError:
        raise
    except UnidentifiedImageError as error:
        raise BadImageError(where, "not an image in a known format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadImageError(where, f"refused as a decompression bomb ({error})") from error
    except _UNREADABLE as error:
        raise BadImageError(where, f"truncated or damaged ({error})") from error
    inverted = options.polarity == "invert" or (options.polarity == "auto" and looks_inverted(rgb, alpha))
    rgb = ImageChops.invert(rgb) if inverted else rgb
    if alpha is None:
        return DecodedImage(rgb, mode, inverted)
    sheet = Image.new("RGB", rgb.size, options.rgb)
    sheet.paste(rgb, (0, 0), alpha)
    return DecodedImage(sheet, mode, inverted, has_alpha_ink=np.ptp(np.asarray(alpha)) > 0)


def _rgb_and_alpha(image: Image.Image, where: str) -> tuple[Image.Image, Image.Image | None]:
    """Colours of any mode as 8-bit RGB, and the alpha channel where the image has one."""
    if image.mode.startswith("I") or image.mode == "F":
        return _deep_gray(image, where)
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        return rgba.convert("RGB"), rgba.getchannel("A")
    return image.convert("RGB"), None


def _deep_gray(image: Image.Image, where: str) -> tuple[Image.Image, Image.Image | None]:
    """16-bit, 32-bit and float gray scaled to 8 bit; a plain convert would clip all above 255 to white."""
    values = np.asarray(image).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(low) and np.isfinite(high)) or low < 0 or high > 65535:
        raise BadImageError(where, f"gray values from {low:g} to {high:g} have no known white point")
    white = 65535.0
    if image.mode == "F":
        white = 1.0 if high <= 1 else 255.0 if high <= 255 else 65535.0
    gray = Image.fromarray(np.round(values * (255.0 / white)).astype(np.uint8), "L").convert("RGB")
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        return gray, Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8), "L")
    return gray, None


def looks_inverted(rgb: Image.Image, alpha: Image.Image | None = None) -> bool:
    """True when an image seems to show light ink on a dark or a transparent ground.

    With a transparent ground (at least 5% of pixels more than half transparent) the mean luminance of the opaque pixels
    decides: above 191 is light ink. Otherwise the ground is the border (the outermost pixels): its median luminance
    below 64, and a mean luminance of the whole image below 128, mean light ink on a dark ground.
    """
    gray = np.asarray(rgb.convert("L"), dtype=np.float64)
    if alpha is not None:
        opaque = np.asarray(alpha) >= 128
        if opaque.mean() < 0.95:
            return bool(opaque.any() and gray[opaque].mean() > 191)
    border = np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]])
    return bool(np.median(border) < 64 and gray.mean() < 128)


@dataclass(frozen=True)
class ImageFiles:
    """Image files as an ImageSource.

    Attributes:
        names: File names below the archive, one an item.
        archive: The folder or zip that holds them.
        options: What the decoder does.
    """

    names: Sequence[str]
    archive: Archive = field(default_factory=lambda: FolderArchive(Path()))
    options: DecodeOptions = DecodeOptions()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(str(n) for n in self.names))

    def __len__(self) -> int:
        return len(self.names)

    def decode(self, index: int) -> DecodedImage:
        """Item `index` and what the decoder did to it."""
        return decode_image(self._bytes(index), self.options, self.describe(index))

    def load(self, index: int) -> Image.Image:
        """See ImageSource; raises BadImageError. Images inverted by polarity="auto" are logged (level info)."""
        decoded = self.decode(index)
        if decoded.inverted and self.options.polarity == "auto":
            logger.info("%s: light ink on a dark or transparent ground, inverted", self.describe(index))
        return decoded.image

    def content_hash(self, index: int) -> str:
        """SHA-256 of the file's bytes, the decode options and the decoders' versions."""
        data = self._bytes(index)
        decoder = f"resvg {resvg_py.__resvg_version__}" if is_svg(data) else f"pillow {PIL.__version__}"
        digest = hashlib.sha256(data).hexdigest()
        return sha256_value([digest, asdict(self.options), decoder, _DECODER_VERSION])

    def describe(self, index: int) -> str:
        """The file's path."""
        return self.archive.describe(self.names[index])

    def _bytes(self, index: int) -> bytes:
        try:
            return self.archive.read(self.names[index])
        except FileNotFoundError as error:
            raise BadImageError(self.describe(index), "the file is missing") from error
        except (OSError, ValueError) as error:
            raise BadImageError(self.describe(index), f"cannot be read ({error})") from error
