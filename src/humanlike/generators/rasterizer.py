"""Strokes → canvas, batched and differentiable: pictures of drawings with gradients to every stroke parameter.

The picture is the one that an SVG renderer draws: round caps and joins, one ink, strokes laid `over` one another. Its
gradients are closed forms. For the point q(u) of a stroke nearest to a pixel the distance has no slope along the
stroke (it is a minimum, or q is an end), so that the gradient of the distance by a control point is that of q at fixed
u; one distance a stroke and pixel is enough, and nothing else is kept for the backward pass.

Legend: B sketches, K curves a sketch, C curves of all sketches, S segments, G groups (a stroke; or a sketch, for the
union), R rows, N pairs of a segment and a pixel, E entries: the pixel of a group with its nearest segment.
"""

from __future__ import annotations

from typing import Any

import torch

from humanlike.data.strokes import Strokes
from humanlike.generators.coverage import REACH, coverage, coverage_slopes
from humanlike.generators.culling import rows_of, turns
from humanlike.generators.flattening import Segments, flatten, pull_back, run_sums
from humanlike.generators.selection import Entries, Settings, strongest

DEFAULT_SOFTNESS = 0.18
DEFAULT_TOLERANCE = 0.05
FURTHEST = 1000.0
"""Canvas sides from the canvas beyond which a point is taken for an accident."""
DARKEST = 1e-30
"""Least light that one stroke lets through: nothing in a picture, but a number to divide by in its gradient."""
MAX_PAIRS = {"cpu": 1 << 17, "cuda": 1 << 24}
"""Pairs of a segment and a pixel handled at once: few enough for a processor's cache, many enough for a GPU."""


def rasterize(
    strokes: Strokes,
    size: int = 224,
    background: float = 1.0,
    *,
    union: bool = False,
    softness: float = DEFAULT_SOFTNESS,
    tolerance: float = DEFAULT_TOLERANCE,
    segments: int | None = None,
    max_pairs: int | None = None,
) -> torch.Tensor:
    """Picture of every sketch, with gradients to points, widths, opacities and on-logits.

    A curve's ink has the opacity opacity · σ(on-logit). A stroke (curves of one number in `stroke_BK`) leaves at a
    pixel what its strongest curve leaves there, opacity · coverage of the pixel by the pen (see `coverage`); strokes
    a_k compose to background · Π (1 - a_k), or with `union` to background · (1 - max a_k). Widths below 0 and opacities
    outside [0, 1] count as the bound they pass.

    Args:
        strokes: B sketches. Points may lie off the canvas, up to 1000 sides away.
        size: Pixels a side.
        background: Brightness of the sheet, in [0, 1]; ink is 0.
        union: The strongest stroke hides the others (opaque black ink) instead of strokes adding up where they cross.
        softness: Of the pen's edge, pixels. The default agrees best with an anti-aliasing renderer; 0.5 to 2 let
            strokes feel an error further away (gradients reach 16 softnesses beyond the edge).
        tolerance: Largest distance between a curve and the chords that stand for it, pixels. Coverage is then off by
            at most tolerance / (4 · softness), and at most there where a curve bends most.
        segments: Use this many chords a curve instead.
        max_pairs: Bound on the pairs of a segment and a pixel handled at once, which bounds memory beyond what the
            result and its gradients need; the picture does not depend on it.

    Returns:
        (B, 1, size, size) in [0, 1], float64 for float64 points, else float32, under autocast too. An empty sketch is
        a blank sheet.

    Raises:
        ValueError: For numbers that are not finite or points too far away, naming sketch and curve, and for settings
            out of range.

    References:
        Li et al., Differentiable Vector Graphics Rasterization for Editing and Learning, SIGGRAPH Asia 2020, pose the
        problem; the culling is explained in `culling`.

    Example:
        >>> points = torch.rand(2, 3, 4, 2, requires_grad=True)
        >>> canvas = rasterize(Strokes(points, 0.02), size=32)
        >>> canvas.mean().backward()
        >>> canvas.shape, points.grad.shape
        (torch.Size([2, 1, 32, 32]), torch.Size([2, 3, 4, 2]))
    """
    device = strokes.points_BK42.device
    limit = MAX_PAIRS.get(device.type, MAX_PAIRS["cuda"]) if max_pairs is None else max_pairs
    settings = Settings(size, softness, tolerance, segments, union, limit)
    _check_settings(settings, background)
    _check_strokes(strokes)
    with torch.autocast(device.type, enabled=False):
        curve_K, sketch_C, stroke_C = _order(strokes)
        dtype = torch.float64 if strokes.points_BK42.dtype == torch.float64 else torch.float32
        points = strokes.points_BK42.to(dtype).flatten(0, 1)[curve_K] * size
        half = strokes.width_BK.to(dtype).flatten()[curve_K] * (size / 2)
        alpha = strokes.opacity_BK.to(dtype).flatten()[curve_K]
        # Unlike clamp, a bound that is met keeps its gradient, so that a pen of no width can still grow.
        half = torch.where(half < 0, 0, half)
        alpha = torch.where((alpha < 0) | (alpha > 1), alpha.detach().clamp(0, 1), alpha)
        if strokes.on_logit_BK is not None:
            alpha = alpha * strokes.on_logit_BK.to(dtype).flatten()[curve_K].sigmoid()
        light = _Light.apply(points, half, alpha, (sketch_C, stroke_C, strokes.batch_size), settings)
        canvas = light.view(-1, 1, size, size)
        return canvas if background == 1 else canvas * background


def _check_settings(settings: Settings, background: float) -> None:
    if not 0 <= background <= 1:
        raise ValueError(f"background must lie in [0, 1], got {background}")
    whole = {"size": settings.size, "max_pairs": settings.max_pairs}
    if settings.per_curve is not None:
        whole["segments"] = settings.per_curve
    for name, number in whole.items():
        if int(number) != number or number < 1:
            raise ValueError(f"{name} must be a whole number, 1 or more, got {number}")
    for name in ("softness", "tolerance"):
        if not 0 < getattr(settings, name) < float("inf"):
            raise ValueError(f"{name} must be a positive number of pixels, got {getattr(settings, name)}")


def _check_strokes(strokes: Strokes) -> None:
    """One look at all numbers; only a fault costs a search for its place."""
    shown = strokes.mask_BK
    far = strokes.points_BK42.detach().abs().amax(dim=(2, 3)) > FURTHEST if strokes.num_curves else ~shown
    faults = {"points_BK42": ~strokes.points_BK42.detach().isfinite().all(dim=3).all(dim=2)}
    faults |= {name: ~getattr(strokes, name).detach().isfinite() for name in ("width_BK", "opacity_BK")}
    if strokes.on_logit_BK is not None:
        faults["on_logit_BK"] = strokes.on_logit_BK.detach().isnan()
    if not bool(((torch.stack(list(faults.values())).any(dim=0) | far) & shown).any()):
        return
    for name, bad_BK in faults.items():
        if bool((bad_BK & shown).any()):
            b, k = (bad_BK & shown).nonzero()[0].tolist()
            value = getattr(strokes, name)[b, k].tolist()
            raise ValueError(f"{name} must hold finite numbers; sketch {b}, curve {k} has {value}")
    b, k = (far & shown).nonzero()[0].tolist()
    raise ValueError(
        f"points_BK42 must lie within {FURTHEST:g} sides of the canvas [0, 1]²; sketch {b}, curve {k} has "
        f"{strokes.points_BK42[b, k].tolist()}; a lower learning rate or clipped gradients keep strokes near"
    )


def _order(strokes: Strokes) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Curves that are no padding, stroke by stroke: place in (B·K), sketch, and stroke counted over the batch."""
    stroke_BK = strokes.stroke_BK
    kept = (stroke_BK.flatten() >= 0).nonzero().squeeze(1)
    sketch = kept // max(strokes.num_curves, 1)
    most = stroke_BK.max() + 1 if len(kept) else 1
    name = sketch * most + stroke_BK.flatten()[kept]
    order = name.argsort(stable=True)
    stroke = torch.unique_consecutive(name[order], return_inverse=True)[1]
    return kept[order], sketch[order], stroke


class _Light(torch.autograd.Function):
    """(B · size²) share of the sheet's light that the ink lets through."""

    @staticmethod
    def forward(
        ctx: Any,
        points_C42: torch.Tensor,
        half_C: torch.Tensor,
        alpha_C: torch.Tensor,
        owners: tuple[torch.Tensor, torch.Tensor, int],
        settings: Settings,
    ) -> torch.Tensor:
        sketch_C, stroke_C, batch = owners
        pixels = batch * settings.size**2
        ctx.settings, ctx.shape = settings, points_C42.shape
        light = points_C42.new_ones(pixels)
        ctx.empty = not len(points_C42)
        if ctx.empty:
            return light
        segments = flatten(points_C42, settings.tolerance, settings.per_curve)
        half_S, alpha_S = half_C[segments.curve_S], alpha_C[segments.curve_S]
        turn = turns(segments, torch.stack([stroke_C.to(half_C.dtype), half_C, alpha_C], dim=1))
        rows = rows_of(segments, half_S + REACH * settings.softness, turn, settings.size)
        entries = strongest(segments, rows, half_S, alpha_S, sketch_C, stroke_C, pixels, settings)
        distance = (entries.du_E.square() + entries.v_E.square()).sqrt()
        half, alpha = (x.index_select(0, entries.segment_E) for x in (half_S, alpha_S))
        share = 1 - alpha * coverage(distance, half, settings.softness)
        if settings.union:
            light[entries.pixel_E] = share
        else:
            light.scatter_reduce_(0, entries.pixel_E, share.clamp_(min=DARKEST), "prod")
        ctx.save_for_backward(half_S, alpha_S, *vars(entries).values(), light)
        ctx.segments = segments
        return light

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        settings: Settings = ctx.settings
        if ctx.empty:
            zero = grad.new_zeros(ctx.shape)
            return zero, zero.new_zeros(len(zero)), zero.new_zeros(len(zero)), None, None
        half_S, alpha_S, *columns, light = ctx.saved_tensors
        segments: Segments = ctx.segments
        e = Entries(*columns)
        distance = (e.du_E.square() + e.v_E.square()).sqrt()
        half, alpha = (x.index_select(0, e.segment_E) for x in (half_S, alpha_S))
        cover, by_distance, by_half = coverage_slopes(distance, half, settings.softness)
        upstream = -grad.index_select(0, e.pixel_E)
        if not settings.union:
            others = light.index_select(0, e.pixel_E) / (1 - alpha * cover).clamp_(min=DARKEST)
            upstream = upstream * others
        strength = upstream * alpha
        # The slope by distance vanishes with the distance, so that a pixel on the middle line pulls nowhere.
        pull = -strength * by_distance / distance.clamp(min=1e-12)
        du, v = pull * e.du_E, pull * e.v_E
        before, after = 1 - e.along_E, e.along_E
        table = torch.stack([du * before, v * before, du * after, v * after, strength * by_half, upstream * cover], 1)
        sums_S6 = run_sums(table, torch.bincount(e.segment_E, minlength=len(segments)))
        start_u, start_v, end_u, end_v = sums_S6[:, :4].unbind(1)
        tx, ty = segments.tx_S, segments.ty_S
        grad_start = torch.stack([start_u * tx - start_v * ty, start_u * ty + start_v * tx], dim=1)
        grad_end = torch.stack([end_u * tx - end_v * ty, end_u * ty + end_v * tx], dim=1)
        pen_C2 = run_sums(sums_S6[:, 4:].contiguous(), segments.count_C)
        return pull_back(segments, grad_start, grad_end), pen_C2[:, 0], pen_C2[:, 1], None, None
