"""SVG: what is read is what resvg draws from the original file; what is not harmless is refused by name."""

import zipfile

import numpy as np
import pytest
from svgpathtools import Arc

from humanlike.data.drawing import Drawing, EmptyDrawingError, Stroke
from humanlike.data.render import rasterize_svg, render
from humanlike.data.strokes import Strokes
from humanlike.data.svg import drawing_to_svg, read_svg
from humanlike.data.svg_shapes import _arc_cubics
from humanlike.data.svg_tree import parse_svg

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
ROUND = 'fill="none" stroke="black" stroke-linecap="round" stroke-linejoin="round"'


def sheet(body: str, attributes: str = 'viewBox="0 0 100 100" width="100" height="100"', style: str = ROUND) -> str:
    return f"{HEAD}{attributes}><g {style}>{body}</g></svg>"


def difference(text: str) -> float:
    """Mean absolute difference of the original by resvg and of the strokes read from it, in [0, 1]."""
    original = np.asarray(rasterize_svg(text, 224).convert("L"), dtype=float)
    assert original.min() < 128, "the original draws nothing"
    read = np.asarray(render(read_svg(text), 224).convert("L"), dtype=float)
    return float(np.abs(original - read).mean() / 255)


@pytest.mark.parametrize(
    "body",
    [
        '<path d="M10 10 C 20 90, 80 90, 90 10 S 50 0 50 50"/>',
        '<path d="m10,10 l20,0 0,20z m40 40 h30 v30 H50 V50" stroke-width="3"/>',
        '<path d="M10 80 Q 50 -20 90 80 T 90 20"/>',
        '<path d="M10 50 A 40 20 30 0 1 90 50 A 10 10 0 1 0 50 80"/>',
        '<line x1="10" y1="20" x2="90" y2="70" stroke-width="5"/>',
        '<polyline points="10,10 50,90 90,10"/><polygon points="20 20 40 20 30 40"/>',
        '<rect x="10" y="20" width="60" height="30"/><rect x="20" y="60" width="60" height="30" rx="8"/>',
        '<circle cx="50" cy="50" r="30"/><ellipse cx="50" cy="50" rx="40" ry="10"/>',
        '<g transform="translate(50 20) rotate(30)"><g transform="scale(0.5)"><path d="M0 0H60V60"/></g></g>',
        '<path transform="matrix(0 1 -1 0 100 0)" d="M10 10L90 40"/>',
        '<path style="stroke-width:4;stroke-opacity:0.5" d="M10 10L90 40"/><path opacity=".5" d="M10 50L90 90"/>',
        '<g stroke-width="2mm"><path d="M10 10L90 40"/><path display="none" d="M0 99H99"/></g>',
        '<path visibility="hidden" d="M0 99H99"/><path stroke="none" d="M0 9H99"/><path d="M10 10L90 40"/>',
        "<style>/* a */ .s,.t{stroke-width:4} path{stroke-width:1;stroke-opacity:.5}</style>"
        '<path class="x s" d="M10 10L90 40" stroke-width="9"/><path style="stroke-opacity:1" d="M10 50L90 90"/>',
        '<defs><path d="M0 99H99"/></defs><title>x</title><!-- c --><path d="M10 10L90 40"/>',
    ],
)
def test_geometry_is_what_resvg_draws(body):
    assert difference(sheet(body)) < 2e-3


@pytest.mark.parametrize(
    "attributes",
    ['width="100" height="100"', 'viewBox="-20 -20 140 140"', 'viewBox="0 0 200 100"', 'width="50mm" height="30mm"'],
)
def test_canvas_is_what_resvg_draws(attributes):
    assert difference(sheet('<path d="M10 10 C 20 90, 80 90, 90 10" stroke-width="2"/>', attributes)) < 1e-3


def test_arcs_against_svgpathtools():
    for arc in (
        Arc(0j, 3 + 1j, 20, True, False, 4 + 1j),
        Arc(1j, 2 + 2j, 0, False, True, 3 + 3j),
        Arc(0j, 1 + 1j, 0, False, True, 9 + 0j),
    ):
        rows = _arc_cubics(arc)
        controls = np.array([arc.start, *rows])
        flat = Stroke(np.stack([controls.real, controls.imag], 1), curved=True).flattened(32)
        on_arc = np.array([arc.point(t) for t in np.linspace(0, 1, 20001)])
        gap = np.abs(flat @ [1, 1j] - on_arc[:, None]).min(axis=0)
        assert gap.max() < 1e-3 * abs(arc.radius)
        assert flat[-1] @ [1, 1j] == arc.end


def test_filled_shapes_become_their_outline():
    text = sheet('<path d="M10 10H90V90H10Z" fill-opacity="0.5"/>', style="")
    (stroke,) = read_svg(text).strokes
    np.testing.assert_allclose(stroke.points, np.array([[10, 10], [90, 10], [90, 90], [10, 90], [10, 10]]) / 100)
    assert stroke.opacity == 0.5


def test_elements_are_inherited_and_written():
    text = sheet('<g data-element="mane"><path d="M1 1L2 2"/><path data-element="a&quot;b" d="M1 1L2 2"/></g>')
    drawing = read_svg(text)
    assert [s.element for s in drawing.strokes] == ["mane", 'a"b']
    assert [s.element for s in read_svg(drawing_to_svg(drawing)).strokes] == ["mane", 'a"b']


def test_clipasso_svgs_read_and_render_as_resvg_does(shared_data):
    with zipfile.ZipFile(shared_data / "clipasso_svgs" / "svgs.zip") as archive:
        texts = [archive.read(n).decode() for n in archive.namelist() if n.endswith(".svg") and "/" not in n]
    assert len(texts) == 48
    for text in texts:
        drawing = read_svg(text)
        assert drawing.num_strokes in (16, 32)
        assert all(s.curved for s in drawing.strokes)
    assert max(difference(text) for text in texts[::6]) < 1e-4
    strokes = Strokes.from_svg(*texts[:2])
    assert strokes.points_BK42.shape == (2, 16, 4, 2)


BOMB = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
EXTERNAL = '<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB + sheet("<path d='M1 1L2 2'/>"), "declares the XML entity 'a'"),
        (EXTERNAL + sheet("<path d='M1 1L2 2'/>"), "declares the XML entity 'a'"),
        (sheet("<script>alert(1)</script>"), "holds a script"),
        (sheet("<path d='M1 1L2 2' onclick='x()'/>"), "event handler 'onclick'"),
        (sheet("<image href='a.png'/>"), "bitmap"),
        (sheet("<use xlink:href='#a'/>"), "a reference"),
        (sheet("<a xlink:href='http://x.org/'><path d='M1 1L2 2'/></a>"), "refers to the external 'http://x.org/'"),
        (sheet("<path style='fill:url(http://x.org/#a)' d='M1 1L2 2'/>"), "refers outside"),
        (sheet("<style>@import 'x.css';</style>"), "style sheet refers outside"),
        (sheet("<style>g > path{stroke:red}</style>"), "cannot follow the style rule 'g > path'"),
        (sheet("<text>cat</text>"), "holds text"),
        (sheet("<path d='M1 1L2 2'/>")[:-9], "not well-formed XML"),
        ("<html/>", "root element is <html>, expected <svg>"),
        (sheet("<path d='M1 1 L 2'/>"), "cannot read the geometry 'M1 1 L 2' of <path>"),
        (sheet("<path transform='rotate(' d='M1 1L2 2'/>"), "cannot read transform"),
        (sheet("<path d='M1 1L2 2' stroke-width='10%'/>"), "cannot read the length '10%'"),
        (sheet("<path d='M1 1L2 2'/>", attributes=""), "neither a viewBox nor width and height"),
        (sheet("<path d='M1 1L2 2'/>", attributes='viewBox="0 0 0 9"'), "viewBox must be four numbers"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(text, message):
    with pytest.raises(ValueError, match=message):
        read_svg(text)


def test_a_public_doctype_is_harmless():
    doctype = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">'
    assert parse_svg(doctype + sheet("<path d='M1 1L2 2'/>"), "x").tag.endswith("svg")


def test_missing_empty_and_undecodable_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no SVG file"):
        read_svg(tmp_path / "none.svg")
    with pytest.raises(EmptyDrawingError, match="draws nothing"):
        read_svg(sheet(""))
    path = tmp_path / "a.svg"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"a\.svg: not a readable SVG, byte 0"):
        read_svg(path)
    path.write_text("\ufeff" + sheet("<path d='M1 1L2 2'/>"), encoding="utf-8")
    assert read_svg(path, margin=0.1).box() == pytest.approx((0.1, 0.1, 0.9, 0.9))


def test_writer_is_exact_to_its_decimals():
    drawing = Drawing((Stroke(np.random.default_rng(0).random((13, 2)) * 3 - 1, curved=True, width=0.123456),))
    back = read_svg(drawing_to_svg(drawing))
    np.testing.assert_allclose(back.strokes[0].points, drawing.strokes[0].points, atol=2.3e-7)
    assert back.strokes[0].width == pytest.approx(0.123456, rel=1e-5)
