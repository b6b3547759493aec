"""Of all segments that reach a pixel, the one that counts: per stroke, or per sketch where the union is drawn.

Legend: C curves, S segments, G groups (a stroke; or a sketch, for the union), R rows, N pairs of a segment and a pixel,
E entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from humanlike.generators.coverage import coverage
from humanlike.generators.culling import Rows, portions
from humanlike.generators.flattening import Segments


@dataclass(frozen=True)
class Settings:
    """What a pass needs besides the strokes; see `rasterize`."""

    size: int
    softness: float
    tolerance: float
    per_curve: int | None
    union: bool
    max_pairs: int


@dataclass(frozen=True)
class Entries:
    """What one group's ink does to one pixel, in the order of the segments.

    Attributes:
        segment_E: (E,) int64 nearest segment.
        pixel_E: (E,) int64 place in the batch of canvases, sketch · size² + y · size + x.
        along_E: (E,) in [0, 1], where on the segment the nearest point lies.
        du_E: (E,) pixels from there to the pixel, along the segment; 0 unless it lies past an end.
        v_E: (E,) pixels across.
        key_E: (E,) coverage that the selection went by.
    """

    segment_E: torch.Tensor
    pixel_E: torch.Tensor
    along_E: torch.Tensor
    du_E: torch.Tensor
    v_E: torch.Tensor
    key_E: torch.Tensor

    def at(self, index: torch.Tensor) -> Entries:
        """Some of the entries."""
        return Entries(*(x.index_select(0, index) for x in vars(self).values()))


def strongest(
    segments: Segments,
    rows: Rows,
    half_S: torch.Tensor,
    alpha_S: torch.Tensor,
    sketch_C: torch.Tensor,
    stroke_C: torch.Tensor,
    pixels: int,
    settings: Settings,
) -> Entries:
    """The strongest segment of every group at every pixel, portion after portion."""
    curve_R = segments.curve_S.index_select(0, rows.segment_R)
    sketch_R = sketch_C.index_select(0, curve_R)
    group_R = sketch_R if settings.union else stroke_C.index_select(0, curve_R)
    first_R = sketch_R * settings.size**2 + rows.y_R * settings.size
    # A pen without width or ink has no strongest point to select; the least that shows nowhere stands in for it.
    pen_S = (half_S.clamp(min=1e-3), alpha_S.clamp(min=1e-6))
    found = []
    parts = portions(rows.count_R, group_R, settings.max_pairs)
    for part in parts:
        found.append(_of_portion(segments, rows.part(part), group_R[part], first_R[part], pen_S, settings))
    if not found:
        return Entries(*(rows.segment_R[:0], rows.segment_R[:0], *(half_S[:0] for _ in range(4))))
    if len(found) == 1:
        return found[0]
    entries = Entries(*(torch.cat(columns) for columns in zip(*(vars(f).values() for f in found), strict=True)))
    split = any(bool(group_R[part.start] == group_R[part.start - 1]) for part in parts[1:])
    if not split:
        return entries
    curve_E = segments.curve_S[entries.segment_E]
    key = entries.pixel_E
    if not settings.union:
        key = torch.unique(stroke_C[curve_E] * pixels + key, return_inverse=True)[1]
    return entries.at(_first_of_largest(key, entries.key_E, int(key.max()) + 1))


def _of_portion(
    segments: Segments,
    rows: Rows,
    group_R: torch.Tensor,
    first_R: torch.Tensor,
    pen_S: tuple[torch.Tensor, torch.Tensor],
    settings: Settings,
) -> Entries:
    """Entries of one portion of the rows."""
    dtype = segments.x_S.dtype
    row = torch.repeat_interleave(rows.count_R)
    seg_R, begin_R = rows.segment_R, rows.count_R.cumsum(0) - rows.count_R
    x = torch.arange(len(row), device=row.device) + (rows.x_R - begin_R).index_select(0, row)
    column = x.to(dtype)
    u = torch.addcmul(rows.u0_R.index_select(0, row), column, rows.tx_R.index_select(0, row))
    v = torch.addcmul(rows.v0_R.index_select(0, row), column, rows.ty_R.index_select(0, row), value=-1)
    length, half, alpha = (x_S.index_select(0, seg_R).index_select(0, row) for x_S in (segments.length_S, *pen_S))
    nearest = torch.minimum(u, length).clamp_(min=0)
    du = u.sub_(nearest)
    distance = torch.addcmul(v * v, du, du).sqrt_()
    key = coverage(distance, half, settings.softness).mul_(alpha)
    place_R, places = _places(rows, group_R)
    chosen = _first_of_largest(place_R.index_select(0, row).add_(x), key, places)
    row, x, nearest, du, v, key = (q.index_select(0, chosen) for q in (row, x, nearest, du, v, key))
    along = nearest / length.index_select(0, chosen).clamp_(min=1e-12)
    return Entries(seg_R.index_select(0, row), first_R.index_select(0, row).add_(x), along, du, v, key)


def _places(rows: Rows, group_R: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Where column 0 of every row lies in one buffer that holds each group's bounding box, and the buffer's length."""
    group = torch.unique_consecutive(group_R, return_inverse=True)[1]
    count = int(group[-1]) + 1
    edges = []
    for low, high in ((rows.x_R, rows.x_R + rows.count_R), (rows.y_R, rows.y_R + 1)):
        least = low.new_full((count,), 1 << 40).scatter_reduce_(0, group, low, "amin")
        edges.append((least, low.new_zeros(count).scatter_reduce_(0, group, high, "amax") - least))
    (left, wide), (top, tall) = edges
    area = wide * tall
    origin = area.cumsum(0) - area - left - top * wide
    place_R = origin.index_select(0, group) + rows.y_R * wide.index_select(0, group)
    return place_R, int(area.sum())


def _first_of_largest(place_N: torch.Tensor, key_N: torch.Tensor, places: int) -> torch.Tensor:
    """Increasing indices: for every place that occurs, the first item there among those with the largest key."""
    largest = key_N.new_full((places,), -1).scatter_reduce_(0, place_N, key_N, "amax")
    order = torch.arange(len(key_N), device=key_N.device)
    last = len(key_N)
    candidate = torch.where(key_N == largest.index_select(0, place_N), order, last)
    first = order.new_full((places,), last).scatter_reduce_(0, place_N, candidate, "amin")
    return (first.index_select(0, place_N) == order).nonzero().squeeze(1)
