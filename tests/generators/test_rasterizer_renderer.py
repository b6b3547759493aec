"""Agreement with resvg, an independent renderer, on real optimised sketches and doodles; formats keep the picture."""

import io
import zipfile

import numpy as np
import pytest
import torch
from torchmetrics.functional.image import structural_similarity_index_measure

from humanlike.data.doodles import CONCEPTS, DoodleImages
from humanlike.data.render import rasterize_svg, render_gray
from humanlike.data.stroke_formats import drawing_to_quickdraw
from humanlike.generators import Strokes, rasterize

SIZE = 224


def assert_agrees(canvas: torch.Tensor, reference: np.ndarray) -> None:
    """Mean absolute error below 2% and structural similarity above 0.97."""
    expected = torch.from_numpy(reference)[None, None]
    assert (canvas - expected).abs().mean() < 0.02
    assert structural_similarity_index_measure(canvas, expected, data_range=1.0) > 0.97


@pytest.fixture(scope="module")
def clipasso(shared_data) -> dict[str, str]:
    path = shared_data / "clipasso_svgs" / "svgs.zip"
    if not path.is_file():
        pytest.skip("the shared data has no clipasso_svgs")
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(".svg")]
        return {n: io.TextIOWrapper(archive.open(n), encoding="utf-8").read() for n in sorted(names)}


@pytest.mark.data
def test_optimised_sketches(clipasso):
    assert len(clipasso) == 108
    for text in clipasso.values():
        # The picture is that of the file itself, not of what our writer makes of it.
        reference = np.asarray(rasterize_svg(text, SIZE).convert("L"), dtype=np.float32) / 255
        assert_agrees(rasterize(Strokes.from_svg(text), SIZE), reference)


def doodle(number: int, seconds: float, width: float = 0.0125) -> Strokes:
    images = DoodleImages(tuple(CONCEPTS), ((number, 0, seconds),), stroke_width=width)
    return Strokes.from_drawings([images.drawing(0)])


@pytest.mark.parametrize("width", [0.004, 0.0125, 0.05])
@pytest.mark.parametrize("number", [0, 17, 40])
def test_doodles(number, width):
    strokes = doodle(number, 32.0, width)
    assert_agrees(rasterize(strokes, SIZE), render_gray(strokes.to_drawings()[0], SIZE))


@pytest.mark.parametrize("size", [64, 500])
def test_other_sizes(size):
    strokes = doodle(5, 16.0)
    assert_agrees(rasterize(strokes, size), render_gray(strokes.to_drawings()[0], size))


def optimised() -> tuple[Strokes, torch.Tensor]:
    """A drawing that has been pulled towards another one, translucent, and with strokes that were switched off."""
    g = torch.Generator().manual_seed(0)
    target = rasterize(doodle(3, 8.0), 96)
    points = torch.rand(1, 6, 1, 2, generator=g) * 0.6 + 0.2 + 0.1 * torch.randn(1, 6, 4, 2, generator=g)
    fields = [points, torch.full((1, 6), 0.03), torch.full((1, 6), 0.7), torch.tensor([[9.0, 9, 9, 9, 9, -9]])]
    fields = [x.requires_grad_() for x in fields]
    adam = torch.optim.Adam(fields, lr=0.01)
    losses = []
    for _ in range(15):
        adam.zero_grad()
        loss = (rasterize(Strokes(*fields), 96, softness=1.0) - target).square().mean()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        with torch.no_grad():
            fields[1].clamp_(0.004, 0.1)
            fields[2].clamp_(0, 1)
    assert losses[-1] < 0.9 * losses[0]
    strokes = Strokes(*(x.detach() for x in fields))
    return strokes, rasterize(strokes, SIZE)


def test_written_svg_renders_to_the_optimised_raster():
    strokes, canvas = optimised()
    (text,) = strokes.to_svg()
    reference = np.asarray(rasterize_svg(text, SIZE).convert("L"), dtype=np.float32) / 255
    assert_agrees(canvas, reference)
    assert text.count("<path") == 5


def test_formats_keep_the_picture():
    strokes, canvas = optimised()
    for back in (Strokes.from_svg(*strokes.to_svg()), Strokes.from_json(strokes.to_json())):
        assert (rasterize(back, SIZE) - canvas).abs().max() < 2e-3
    opaque = Strokes(strokes.points_BK42, strokes.width_BK[0, 0])
    canvas = rasterize(opaque, SIZE)
    back = Strokes.from_stroke3(*opaque.to_stroke3(scale=SIZE, per_curve=40), scale=SIZE)
    back = Strokes(back.points_BK42, strokes.width_BK[0, 0].item(), stroke_BK=back.stroke_BK, straight=True)
    assert (rasterize(back, SIZE) - canvas).abs().max() < 0.15
    assert (rasterize(back, SIZE) - canvas).abs().mean() < 1e-3


def test_quickdraw_keeps_the_picture():
    drawing = doodle(8, 16.0).to_drawings()[0].fitted(0.05)
    first = Strokes.from_quickdraw(drawing_to_quickdraw(drawing), margin=0.05)
    again = Strokes.from_quickdraw(drawing_to_quickdraw(first.to_drawings()[0]), margin=0.05)
    torch.testing.assert_close(first.points_BK42, again.points_BK42, atol=1e-6, rtol=0)
    assert torch.equal(first.stroke_BK, again.stroke_BK)
    assert_agrees(rasterize(first, SIZE), render_gray(drawing, SIZE))
