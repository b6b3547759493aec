"""Which pixels a segment can be the nearest one for: slabs around segments, cut into rows of pixels.

A pixel needs a segment only if the segment reaches it and no neighbour along the stroke is nearer. Along a smooth
stroke these regions are slices across it: the slab |v| ≤ R, -e₀ ≤ u ≤ L + e₁ in the segment's own coordinates u
(along) and v (across), with R the half width plus the reach of the soft edge. Where the stroke turns by θ, pixels on
the outer side are nearest to the corner, at most R from it and at most θ/2 beyond the normal of one of its two
segments, so that e = R sin(θ/2) leaves no pixel out; a free end takes e = R. The slabs of a stroke hold little more
pixels than the stroke has, whatever the number of its segments.

Legend: S segments, G groups, R rows (one segment on one line of pixels), N pairs of a segment and a pixel.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from humanlike.generators.flattening import Segments, ranges

STEEP = 1e-2
"""Below this slope one of a slab's two pairs of sides runs along the rows and cannot shorten them."""
SLACK = 0.02
"""Pixels added all around, so that rounding loses nothing."""


@dataclass(frozen=True)
class Rows:
    """Runs of pixels, segment after segment.

    Pixel x of a row lies at u = u0 + tx · x and v = v0 - ty · x in its segment's coordinates.

    Attributes:
        segment_R: (R,) int64.
        y_R: (R,) int64 line of the canvas.
        x_R: (R,) int64 first pixel.
        count_R: (R,) int64 pixels, 1 or more.
        u0_R: (R,) pixels.
        v0_R: (R,) pixels.
        tx_R: (R,) direction of the segment.
        ty_R: (R,) likewise.
    """

    segment_R: torch.Tensor
    y_R: torch.Tensor
    x_R: torch.Tensor
    count_R: torch.Tensor
    u0_R: torch.Tensor
    v0_R: torch.Tensor
    tx_R: torch.Tensor
    ty_R: torch.Tensor

    def part(self, rows: slice) -> Rows:
        """Some consecutive rows."""
        return Rows(*(x[rows] for x in vars(self).values()))


def turns(segments: Segments, pen_C: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(S,) sine of half the turn at the start and at the end of every segment, 1 at free ends.

    Args:
        segments: The segments.
        pen_C: (C, P) what must be equal in two curves for them to be drawn as one: stroke, half width, opacity.
    """
    n = len(segments)
    same = (pen_C[1:] == pen_C[:-1]).all(dim=1)
    a, b = slice(None, -1), slice(1, None)
    curve = segments.curve_S
    gap = (segments.x_S + segments.length_S * segments.tx_S)[a] - segments.x_S[b]
    gap_y = (segments.y_S + segments.length_S * segments.ty_S)[a] - segments.y_S[b]
    touching = (gap.abs() + gap_y.abs()) < SLACK / 4
    joined = (curve[a] == curve[b]) | (touching & same[curve[a].clamp(max=len(same) - 1)] if len(same) else False)
    joined &= (segments.length_S[a] > 0) & (segments.length_S[b] > 0)
    cosine = segments.tx_S[a] * segments.tx_S[b] + segments.ty_S[a] * segments.ty_S[b]
    sine = ((1 - cosine) / 2).clamp(0, 1).sqrt()
    corner = torch.where(joined, sine, 1)
    ends = segments.x_S.new_ones(1 if n else 0)
    return torch.cat([ends, corner]), torch.cat([corner, ends])


def rows_of(segments: Segments, radius_S: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], size: int) -> Rows:
    """The slabs of all segments as rows of pixels on a canvas of `size` × `size`; rows without pixels are left out.

    Args:
        segments: The segments.
        radius_S: (S,) half width plus reach, pixels.
        turn: What `turns` says.
        size: Pixels a side.
    """
    tx, ty, length = segments.tx_S, segments.ty_S, segments.length_S
    before, after = radius_S * turn[0] + SLACK, radius_S * turn[1] + SLACK
    across = radius_S + SLACK
    y_from, y_to = segments.y_S - before * ty, segments.y_S + (length + after) * ty
    lean = across * tx.abs()
    first = _pixel(torch.minimum(y_from, y_to) - lean, size, up=True)
    last = _pixel(torch.maximum(y_from, y_to) + lean, size, up=False)
    seg, line = ranges((last - first + 1).clamp(min=0))
    middle, half = (length + after - before) / 2, (length + after + before) / 2
    columns = (first, segments.x_S, segments.y_S, tx, ty, middle, half, across)
    first, x0, y0, tx, ty, middle, half, across = (column.index_select(0, seg) for column in columns)
    y = line + first
    dy = y.to(tx.dtype) + 0.5 - y0
    low_u, high_u = _between(middle - dy * ty, half, tx)
    low_v, high_v = _between(dy * tx, across, ty)
    x = _pixel(x0 + torch.maximum(low_u, low_v), size, up=True)
    count = (_pixel(x0 + torch.minimum(high_u, high_v), size, up=False) - x + 1).clamp(min=0)
    u0, v0 = (0.5 - x0) * tx + dy * ty, (x0 - 0.5) * ty + dy * tx
    kept = (count > 0).nonzero().squeeze(1)
    return Rows(*(column.index_select(0, kept) for column in (seg, y, x, count, u0, v0, tx, ty)))


def _between(centre: torch.Tensor, half: torch.Tensor, slope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where |slope · x - centre| ≤ half; everywhere for a slope near 0, where only the rows' range limits the slab."""
    flat = slope.abs() < STEEP
    safe = torch.where(flat, 1, slope)
    centre, half = centre / safe, torch.where(flat, torch.inf, half / safe.abs())
    return centre - half, centre + half


def _pixel(place: torch.Tensor, size: int, up: bool) -> torch.Tensor:
    """First pixel whose centre lies at or after `place` (up), or last one at or before it, on the canvas or one off."""
    return (place - 0.5).ceil().clamp(0, size).long() if up else (place - 0.5).floor().clamp(-1, size - 1).long()


def portions(count_R: torch.Tensor, group_R: torch.Tensor, limit: int) -> list[slice]:
    """Consecutive rows with at most `limit` pairs, cut between groups wherever one group alone is not too large.

    Example:
        >>> portions(torch.tensor([3, 3, 3, 3, 9]), torch.tensor([0, 0, 1, 1, 2]), 8)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    total = count_R.cumsum(0)
    if not len(total) or int(total[-1]) <= limit:
        return [slice(0, len(total))] if len(total) else []
    total, group = total.cpu(), group_R.cpu()
    parts, start, done = [], 0, 0
    while start < len(total):
        stop = max(int(torch.searchsorted(total, done + limit, right=True)), start + 1)
        if stop < len(total) and group[stop] == group[stop - 1]:
            begin = int(torch.searchsorted(group, group[stop]))
            stop = begin if begin > start else stop
        parts.append(slice(start, stop))
        start, done = stop, int(total[stop - 1])
    return parts
