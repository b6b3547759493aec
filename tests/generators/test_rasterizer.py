"""The rasteriser: brute force as referee of the picture, finite differences as referee of the gradients."""

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree
from scipy.special import expit

from humanlike.generators import Strokes, rasterize

PARAMETERS = ("points_BK42", "width_BK", "opacity_BK", "on_logit_BK")


def made_up(batch=2, curves=3, seed=0, dtype=torch.float64, **fields) -> Strokes:
    g = torch.Generator().manual_seed(seed)
    shape = (batch, curves)
    centre = torch.rand(*shape, 1, 2, generator=g, dtype=torch.float64) * 0.8 + 0.1
    values = {
        "points_BK42": centre + 0.2 * torch.randn(*shape, 4, 2, generator=g, dtype=torch.float64),
        "width_BK": 0.01 + 0.06 * torch.rand(shape, generator=g, dtype=torch.float64),
        "opacity_BK": 0.2 + 0.7 * torch.rand(shape, generator=g, dtype=torch.float64),
        "on_logit_BK": torch.randn(shape, generator=g, dtype=torch.float64),
    }
    tensors = {k: v.to(dtype) for k, v in values.items()}
    return Strokes(**(tensors | fields))


def brute_force(strokes: Strokes, size: int, softness: float, union: bool = False) -> np.ndarray:
    """Nearest of 3,000 points of every curve for every pixel, composed by the words of the definition."""
    points = strokes.points_BK42.detach().double().numpy() * size
    half = strokes.width_BK.detach().double().numpy() * size / 2
    alpha = strokes.opacity_BK.detach().double().numpy()
    if strokes.on_logit_BK is not None:
        alpha = alpha * expit(strokes.on_logit_BK.detach().double().numpy())
    t = np.linspace(0, 1, 3000)[:, None]
    y, x = np.mgrid[:size, :size] + 0.5
    pixels = np.stack([x.ravel(), y.ravel()], 1)
    canvases = []
    for b in range(strokes.batch_size):
        ink: dict[int, np.ndarray] = {}
        for k in range(strokes.num_curves):
            p0, p1, p2, p3 = points[b, k]
            curve = (1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t**2 * p2 + t**3 * p3
            d, h = cKDTree(curve).query(pixels)[0], half[b, k]
            a = alpha[b, k] * (expit((h - d) / softness) - expit((-h - d) / softness))
            owner = int(strokes.stroke_BK[b, k])
            if owner >= 0:
                ink[owner] = np.maximum(ink.get(owner, 0.0), a)
        strokes_a = np.array([*ink.values(), np.zeros(size * size)])
        canvases.append(1 - strokes_a.max(0) if union else np.prod(1 - strokes_a, axis=0))
    return np.stack(canvases).reshape(-1, 1, size, size)


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize("softness", [0.18, 0.5, 3.0])
def test_picture_is_that_of_brute_force(union, softness):
    strokes = made_up(curves=5, stroke_BK=torch.tensor([[0, 1, 0, 2, -1], [3, 3, 0, 1, 2]]))
    canvas = rasterize(strokes, 48, softness=softness, tolerance=1e-4, union=union)
    np.testing.assert_allclose(canvas.numpy(), brute_force(strokes, 48, softness, union), atol=2e-3)


def test_tolerance_bounds_the_error():
    strokes = made_up(batch=4, curves=1, on_logit_BK=None, opacity_BK=1.0)
    exact = rasterize(strokes, 96, softness=0.5, tolerance=1e-4)
    for tolerance in (1.0, 0.3, 0.1, 0.03):
        error = (rasterize(strokes, 96, softness=0.5, tolerance=tolerance) - exact).abs().max()
        assert error <= tolerance / (4 * 0.5)


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize("name", PARAMETERS)
def test_gradient_is_the_finite_difference(name, union):
    strokes = made_up(batch=2, curves=4, seed=3)
    mixing = torch.randn(2, 1, 40, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    fields = {k: getattr(strokes, k).clone().requires_grad_(k == name) for k in PARAMETERS}

    def loss(values: torch.Tensor) -> torch.Tensor:
        return (rasterize(Strokes(**(fields | {name: values})), 40, union=union, softness=0.5) * mixing).sum()

    (grad,) = torch.autograd.grad(loss(fields[name]), fields[name])
    step, differences = 1e-6, torch.zeros_like(grad)
    for index in np.ndindex(*grad.shape):
        shift = torch.zeros_like(grad)
        shift[index] = step
        with torch.no_grad():
            differences[index] = (loss(fields[name] + shift) - loss(fields[name] - shift)) / (2 * step)
    assert grad.abs().min() > 0
    assert (grad - differences).abs().max() < 1e-3 * differences.abs().mean()
    assert (grad - differences).norm() < 1e-4 * differences.norm()


@pytest.mark.parametrize("union", [False, True])
def test_gradcheck(union):
    strokes = made_up(batch=1, curves=3, seed=5)
    inputs = [getattr(strokes, name).requires_grad_() for name in PARAMETERS]

    def canvas(*values: torch.Tensor) -> torch.Tensor:
        return rasterize(Strokes(*values), 12, union=union, softness=1.0, segments=9)

    assert torch.autograd.gradcheck(canvas, inputs, eps=1e-7, atol=1e-5, rtol=1e-3)


def test_polyline_vertices_pens_and_the_strokes_they_form():
    lines = [[torch.tensor([[0.1, 0.2], [0.5, 0.6], [0.8, 0.3]], dtype=torch.float64, requires_grad=True)]]
    strokes = Strokes(lines, 0.05, 1.0)
    canvas = rasterize(strokes, 40)
    as_cubics = Strokes(strokes.points_BK42, 0.05, 1.0)
    # One pen movement is one layer of ink: nothing is darker at the corner, as it is for two strokes that cross.
    np.testing.assert_allclose(canvas.detach(), brute_force(strokes, 40, 0.18), atol=2e-3)
    assert (rasterize(as_cubics, 40) < canvas - 0.1).sum() > 0
    mixing = torch.randn(1, 1, 40, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (canvas * mixing).sum().backward()
    grad, step = lines[0][0].grad, 1e-6
    for index in np.ndindex(3, 2):
        ends = []
        for sign in (1, -1):
            moved = lines[0][0].detach().clone()
            moved[index] += sign * step
            ends.append((rasterize(Strokes([[moved]], 0.05, 1.0), 40) * mixing).sum())
        assert grad[index] == pytest.approx(float((ends[0] - ends[1]) / (2 * step)), rel=1e-3)


def test_single_precision_gives_the_same_gradient():
    mixing = torch.randn(2, 1, 64, 64, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    grads = []
    for dtype in (torch.float64, torch.float32):
        strokes = made_up(dtype=dtype)
        points = strokes.points_BK42.requires_grad_()
        canvas = rasterize(Strokes(points, strokes.width_BK, strokes.opacity_BK, strokes.on_logit_BK), 64)
        assert canvas.dtype == dtype
        (canvas * mixing).sum().backward()
        grads.append(points.grad.double())
    assert (grads[0] - grads[1]).norm() < 1e-3 * grads[0].norm()


@pytest.mark.parametrize("union", [False, True])
def test_portions_and_company_change_nothing(union):
    fields = made_up(batch=3, curves=4)
    fields.points_BK42.requires_grad_()
    whole = rasterize(fields, 32, union=union)
    (expected,) = torch.autograd.grad(whole.square().sum(), fields.points_BK42)
    for max_pairs in (1, 40, 900):
        canvas = rasterize(fields, 32, union=union, max_pairs=max_pairs)
        torch.testing.assert_close(canvas, whole, atol=1e-12, rtol=0)
        (grad,) = torch.autograd.grad(canvas.square().sum(), fields.points_BK42)
        torch.testing.assert_close(grad, expected)
    for b in range(3):
        alone = Strokes(*(getattr(fields, name)[b : b + 1] for name in PARAMETERS))
        torch.testing.assert_close(rasterize(alone, 32, union=union), whole[b : b + 1], atol=1e-12, rtol=0)


def test_order_of_strokes_and_direction_of_curves_change_nothing():
    strokes = made_up(curves=6)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    turned = Strokes(
        strokes.points_BK42[:, order].flip(2), *(getattr(strokes, name)[:, order] for name in PARAMETERS[1:])
    )
    torch.testing.assert_close(rasterize(turned, 48), rasterize(strokes, 48), atol=1e-9, rtol=0)


def test_padding_leaves_no_ink_and_takes_no_gradient():
    strokes = made_up(curves=3, stroke_BK=torch.tensor([[0, 1, -1], [0, -1, -1]]))
    points = strokes.points_BK42.clone()
    points[~strokes.mask_BK] = torch.nan
    points.requires_grad_()
    canvas = rasterize(Strokes(points, 0.03, 1.0, stroke_BK=strokes.stroke_BK), 32)
    canvas.sum().backward()
    assert canvas.isfinite().all()
    assert (points.grad[~strokes.mask_BK] == 0).all()
    assert (points.grad[strokes.mask_BK].abs().sum((1, 2)) > 0).all()


@pytest.mark.parametrize("union", [False, True])
def test_nothing_to_draw_is_a_blank_sheet(union):
    nothing = torch.zeros(2, 0, 4, 2, requires_grad=True)
    padding = torch.rand(2, 3, 4, 2, requires_grad=True)
    away = (torch.rand(2, 3, 4, 2) + 7).requires_grad_()
    for points, stroke in ((nothing, None), (padding, torch.full((2, 3), -1)), (away, None)):
        canvas = rasterize(Strokes(points, 0.05, 1.0, stroke_BK=stroke), 16, background=0.75, union=union)
        assert canvas.shape == (2, 1, 16, 16)
        assert (canvas == 0.75).all()
        canvas.sum().backward()
        assert (points.grad == 0).all()
    assert rasterize(Strokes(torch.zeros(0, 3, 4, 2)), 16).shape == (0, 1, 16, 16)


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize("off", ["width_BK", "opacity_BK"])
def test_pens_without_ink_hide_nothing_and_can_grow(off, union):
    strokes = made_up(curves=4, on_logit_BK=None, opacity_BK=1.0)
    kept = Strokes(strokes.points_BK42[:, 1:], strokes.width_BK[:, 1:])
    pens = {"width_BK": strokes.width_BK.clone(), "opacity_BK": torch.ones(2, 4, dtype=torch.float64)}
    pens[off][:, 0] = 0
    pens[off].requires_grad_()
    canvas = rasterize(Strokes(strokes.points_BK42, **pens), 48, union=union)
    assert (canvas - rasterize(kept, 48, union=union)).abs().max() < 5e-3
    canvas.sum().backward()
    assert pens[off].grad.isfinite().all()
    assert (pens[off].grad[:, 0] < 0).all()


def test_extreme_drawings_have_finite_gradients():
    points = torch.stack(
        [
            torch.full((4, 2), 0.5),  # a dot
            torch.tensor([[0.2, 0.2], [0.8, 0.8], [0.2, 0.2], [0.8, 0.8]]),  # back and forth on one line
            torch.tensor([[-5.0, 0.5], [9.0, -7.0], [-8.0, 9.0], [6.0, 0.5]]),  # far outside
            torch.tensor([[0.0, 0.5], [0.3, 0.5], [0.6, 0.5], [1.0, 0.5]]),  # level, on pixel borders
            torch.tensor([[0.5, 0.0], [0.5, 0.3], [0.5, 0.6], [0.5, 1.0]]),  # upright
            torch.tensor([[900.0, -900.0]] * 4),
        ]
    )[None].requires_grad_()
    width = torch.tensor([[0.1, 0.0, 0.02, 1e-4, 3.0, -1.0]]).requires_grad_()
    logit = torch.tensor([[0.0, 100.0, -100.0, torch.inf, -torch.inf, 0.0]]).requires_grad_()
    for union in (False, True):
        canvas = rasterize(Strokes(points, width, 1.0, logit), 64, union=union)
        assert ((canvas >= 0) & (canvas <= 1)).all()
        grads = torch.autograd.grad(canvas.square().sum(), [points, width, logit])
        assert all(g.isfinite().all() for g in grads)


def test_dot_is_a_disc():
    canvas = rasterize(Strokes(torch.full((1, 1, 4, 2), 0.5, dtype=torch.float64), 0.5), 100)
    assert float((1 - canvas).sum()) == pytest.approx(np.pi * 25**2, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast(dtype):
    strokes = made_up(dtype=dtype)
    points = strokes.points_BK42.requires_grad_()
    pens = [getattr(strokes, name) for name in PARAMETERS[1:]]
    canvas = rasterize(Strokes(points, *pens), 32)
    canvas.sum().backward()
    assert canvas.dtype == torch.float32
    assert points.grad.dtype == dtype
    assert points.grad.isfinite().all()
    single = made_up(dtype=torch.float32)
    expected = rasterize(single, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        leaf = single.points_BK42.clone().requires_grad_()
        under = rasterize(Strokes(leaf, *(getattr(single, name) for name in PARAMETERS[1:])), 32)
        assert torch.equal(under, expected)
        under.sum().backward()
    assert leaf.grad.isfinite().all()


@pytest.mark.parametrize("name", PARAMETERS)
def test_what_is_not_a_number_is_named(name):
    strokes = made_up()
    getattr(strokes, name)[1, 2] = torch.nan
    with pytest.raises(ValueError, match=f"{name} must hold finite numbers; sketch 1, curve 2 has"):
        rasterize(strokes, 16)


def test_points_that_flew_away_are_named():
    strokes = made_up()
    strokes.points_BK42[0, 1] = 1e5
    with pytest.raises(ValueError, match=r"sketch 0, curve 1 has .*learning rate"):
        rasterize(strokes, 16)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size must be a whole number"),
        ({"softness": 0.0}, "softness must be a positive number of pixels"),
        ({"tolerance": float("nan")}, "tolerance must be a positive number"),
        ({"background": 1.5}, r"background must lie in \[0, 1\]"),
        ({"segments": 0}, "segments must be a whole number"),
        ({"max_pairs": -1}, "max_pairs must be a whole number"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        rasterize(made_up(), **settings)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_gives_the_same():
    strokes = made_up(batch=4, curves=8)
    pictures, grads = [], []
    for device in ("cpu", "cuda"):
        fields = [getattr(strokes, name).to(device).requires_grad_() for name in PARAMETERS]
        canvas = rasterize(Strokes(*fields), 64)
        canvas.square().sum().backward()
        pictures.append(canvas.detach().cpu())
        grads.append([x.grad.cpu() for x in fields])
    torch.testing.assert_close(*pictures)
    torch.testing.assert_close(*grads)
