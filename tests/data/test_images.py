"""One decoder for every kind of file, against pixel values known beforehand."""

import io
import pickle
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from humanlike.data.archives import FolderArchive
from humanlike.data.drawing import Drawing
from humanlike.data.images import BadImageError, DecodeOptions, ImageFiles, decode_image, load_image
from humanlike.data.svg import drawing_to_svg

WHITE, BLACK = (255, 255, 255), (0, 0, 0)


def encoded(image: Image.Image, kind: str = "png", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def drawn(mode: str, ground, ink) -> Image.Image:
    """A 20 × 20 picture with a thick upright bar of ink at columns 8-11."""
    image = Image.new(mode, (20, 20), ground)
    ImageDraw.Draw(image).rectangle((8, 3, 11, 16), fill=ink)
    return image


def palette_with_transparency() -> bytes:
    image = drawn("P", 0, 1)
    image.putpalette([10, 20, 30, 0, 0, 0])
    return encoded(image, transparency=0)


def sixteen_bit(ground: int, ink: int, **options) -> bytes:
    values = np.full((20, 20), ground, np.uint16)
    values[3:17, 8:12] = ink
    return encoded(Image.fromarray(values), **options)


BLACK_ON_WHITE = {
    "RGB": lambda: encoded(drawn("RGB", WHITE, BLACK)),
    "RGBA on transparent black": lambda: encoded(drawn("RGBA", (0, 0, 0, 0), (0, 0, 0, 255))),
    "LA": lambda: encoded(drawn("LA", (0, 0), (0, 255))),
    "L": lambda: encoded(drawn("L", 255, 0)),
    "L + tRNS": lambda: encoded(drawn("L", 7, 0), transparency=7),
    "RGB + tRNS": lambda: encoded(drawn("RGB", (9, 9, 9), BLACK), transparency=(9, 9, 9)),
    "1": lambda: encoded(drawn("1", 1, 0)),
    "1 bit tiff": lambda: encoded(drawn("1", 1, 0), "tiff"),
    "P + tRNS": palette_with_transparency,
    "16 bit": lambda: sixteen_bit(65535, 0),
    "16 bit + tRNS": lambda: sixteen_bit(300, 0, transparency=300),
    "16 bit tiff": lambda: sixteen_bit(65535, 0) and encoded(Image.open(io.BytesIO(sixteen_bit(65535, 0))), "tiff"),
    "float tiff": lambda: encoded(drawn("F", 1.0, 0.0), "tiff"),
    "CMYK tiff": lambda: encoded(drawn("CMYK", (0, 0, 0, 0), (0, 0, 0, 255)), "tiff"),
    "gif": lambda: encoded(drawn("L", 255, 0), "gif"),
    "bmp": lambda: encoded(drawn("RGB", WHITE, BLACK), "bmp"),
    "lossless webp": lambda: encoded(drawn("RGBA", (0, 0, 0, 0), (0, 0, 0, 255)), "webp", lossless=True, exact=True),
}


@pytest.mark.parametrize("kind", BLACK_ON_WHITE)
def test_every_mode_becomes_black_on_white(kind):
    image = load_image(BLACK_ON_WHITE[kind](), name=kind)
    expected = np.full((20, 20, 3), 255, np.uint8)
    expected[3:17, 8:12] = 0
    assert image.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(image), expected)


def test_sixteen_bit_is_scaled_not_clipped():
    pixels = np.asarray(load_image(sixteen_bit(40000, 20000)))
    assert pixels[0, 0, 0] == round(40000 / 257)
    assert pixels[10, 10, 0] == round(20000 / 257)


def test_half_transparency_is_blended_on_the_stated_colour():
    image = load_image(encoded(drawn("RGBA", (0, 0, 0, 0), (0, 0, 0, 128))), background="#ff8000")
    assert image.getpixel((0, 0)) == (255, 128, 0)
    np.testing.assert_allclose(image.getpixel((9, 9)), np.array([255, 128, 0]) * (127 / 255), atol=1)


def test_cmyk_jpeg_and_exif_rotation():
    jpeg = encoded(drawn("CMYK", (0, 0, 0, 0), (0, 0, 0, 255)), "jpeg", quality=100, subsampling=0)
    assert np.abs(np.asarray(load_image(jpeg)).astype(int)[0, 0] - 255).max() < 6
    upright = Image.new("RGB", (30, 20), WHITE)
    upright.paste(BLACK, (0, 0, 10, 10))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 270° to view
    turned = encoded(upright.transpose(Image.Transpose.ROTATE_90), "png", exif=exif)
    np.testing.assert_array_equal(np.asarray(load_image(turned)), np.asarray(upright))


@pytest.mark.parametrize(
    ("data", "inverted"),
    [
        (lambda: encoded(drawn("RGB", BLACK, WHITE)), True),
        (lambda: encoded(drawn("1", 0, 1)), True),
        (lambda: encoded(drawn("RGBA", (0, 0, 0, 0), (255, 255, 255, 255))), True),
        (lambda: encoded(drawn("RGB", WHITE, BLACK)), False),
        (lambda: encoded(drawn("RGBA", (0, 0, 0, 0), (0, 0, 0, 255))), False),
        (lambda: encoded(drawn("RGB", (128, 128, 128), WHITE)), False),
    ],
)
def test_polarity_auto_inverts_and_reports(data, inverted):
    decoded = decode_image(data(), DecodeOptions(polarity="auto"))
    assert decoded.inverted is inverted
    ground, ink = decoded.image.getpixel((0, 0)), decoded.image.getpixel((9, 9))
    if inverted:
        assert (ground, ink) == (WHITE, BLACK)
    kept = load_image(encoded(drawn("RGB", BLACK, WHITE)))
    assert kept.getpixel((0, 0)) == BLACK
    assert load_image(encoded(drawn("RGB", BLACK, WHITE)), polarity="invert").getpixel((0, 0)) == WHITE


def test_pad_to_square_centres():
    image = Image.new("RGB", (10, 4), BLACK)
    image.putpixel((0, 0), (9, 9, 9))
    padded = np.asarray(load_image(encoded(image), pad_to_square=True))
    assert padded.shape == (10, 10, 3)
    assert padded[:3].min() == padded[7:].min() == 255
    assert padded[3:7].max() == 9


def test_svg_goes_the_same_way():
    text = drawing_to_svg(Drawing.from_polylines([[(0.2, 0.5), (0.8, 0.5)]], width=0.1))
    image = decode_image(text.encode(), DecodeOptions(svg_size=64))
    assert (image.image.size, image.mode) == ((64, 64), "svg")
    assert image.image.getpixel((32, 32)) == BLACK
    assert image.image.getpixel((2, 2)) == WHITE
    with pytest.raises(BadImageError, match=r"^a\.svg: refused, the SVG holds a script"):
        load_image(text.replace("<g ", "<script/><g ").encode(), name="a.svg")


def noise(size: int = 64) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (size, size, 3), dtype=np.uint8)
    return encoded(Image.fromarray(pixels))


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "bmp", "tiff", "webp"])
def test_truncated_files_are_named(kind):
    data = encoded(Image.open(io.BytesIO(noise())).convert("RGB"), kind)
    for part in (0.3, 0.6, 0.9):
        with pytest.raises(BadImageError, match=r"^x\.img: (truncated or damaged|not an image)"):
            load_image(data[: int(len(data) * part)], name="x.img")


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow remarks on damaged metadata
def test_damage_never_escapes_as_another_error():
    rng = random.Random(0)
    sources = [noise(16), encoded(drawn("P", 0, 1)), encoded(drawn("RGB", WHITE, BLACK), "tiff")]
    for _ in range(150):
        data = bytearray(rng.choice(sources))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            image = load_image(bytes(data))
        except BadImageError:
            continue
        assert image.mode == "RGB"


def huge_png() -> bytes:
    """A PNG header that promises 60,000 × 60,000 pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_bad_files_are_sentences(tmp_path):
    cases = {
        "text": (b"hello world", "not an image in a known format"),
        "empty": (b"", "the file is empty"),
        "blank": (encoded(Image.new("RGB", (9, 9), WHITE)), r"blank, every pixel has the colour \(255, 255, 255\)$"),
        "light": (encoded(drawn("RGBA", (0, 0, 0, 0), (255,) * 4)), "blank, .*try polarity=auto"),
        "bomb": (huge_png(), "refused as a decompression bomb"),
        "deep": (encoded(drawn("I", 70000, 0), "tiff"), "gray values from 0 to 70000 have no known white point"),
    }
    for name, (data, message) in cases.items():
        path = tmp_path / f"{name}.png"
        path.write_bytes(data)
        with pytest.raises(BadImageError, match=message) as caught:
            load_image(path)
        assert str(caught.value).startswith(str(path))
    with pytest.raises(BadImageError, match="none.png: the file is missing".replace(".", r"\.")):
        load_image(tmp_path / "none.png")
    with pytest.raises(BadImageError, match="64 × 64 pixels exceed max_pixels=100"):
        decode_image(noise(), DecodeOptions(max_pixels=100))
    assert decode_image(cases["blank"][0], DecodeOptions(allow_blank=True)).image.size == (9, 9)
    with pytest.raises(ValueError, match="polarity must be one of"):
        DecodeOptions(polarity="flip")
    error = BadImageError("a.png", "blank")
    assert str(pickle.loads(pickle.dumps(error))) == "a.png: blank"


def test_automatic_inversion_is_logged(tmp_path, caplog):
    (tmp_path / "a.png").write_bytes(encoded(drawn("L", 0, 255)))
    with caplog.at_level("INFO"):
        ImageFiles(("a.png",), FolderArchive(tmp_path), DecodeOptions(polarity="auto")).load(0)
    assert "a.png: light ink on a dark" in caplog.text


def test_image_files_hash_bytes_and_options(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded(drawn("L", 255, 0)))
    (tmp_path / "b.png").write_bytes(encoded(drawn("L", 255, 1)))
    archive = FolderArchive(Path(tmp_path))
    files = ImageFiles(("a.png", "b.png", "c.png"), archive)
    assert len(files) == 3
    assert files.describe(0) == str(tmp_path / "a.png")
    other = ImageFiles(("a.png",), archive, DecodeOptions(pad_to_square=True))
    assert len({files.content_hash(0), files.content_hash(1), other.content_hash(0)}) == 3
    assert pickle.loads(pickle.dumps(files)).content_hash(0) == files.content_hash(0)
    for method in (files.load, files.content_hash):
        with pytest.raises(BadImageError, match=r"c\.png: the file is missing"):
            method(2)
