"""Cubic Bézier curves as straight segments with a stated error, and gradients of the segments back to the curves.

Legend: C curves, V vertices, S segments (V = S + C: a curve of n segments has n + 1 vertices). Units are pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

MAX_SEGMENTS = 256


@dataclass(frozen=True)
class Segments:
    """The segments of C curves, curve after curve.

    Attributes:
        x_S: (S,) where a segment starts.
        y_S: (S,) likewise.
        tx_S: (S,) unit direction; (1, 0) where a segment has no length.
        ty_S: (S,) likewise.
        length_S: (S,) pixels, 0 for a dot.
        curve_S: (S,) int64, the curve that a segment belongs to, not decreasing.
        count_C: (C,) int64 segments of every curve, 1 or more.
        weight_V4: (V, 4) Bernstein weights of the four control points at every vertex.
    """

    x_S: torch.Tensor
    y_S: torch.Tensor
    tx_S: torch.Tensor
    ty_S: torch.Tensor
    length_S: torch.Tensor
    curve_S: torch.Tensor
    count_C: torch.Tensor
    weight_V4: torch.Tensor

    def __len__(self) -> int:
        return len(self.curve_S)


def segments_needed(points_C42: torch.Tensor, tolerance: float) -> torch.Tensor:
    """(C,) int64: how many chords, even in the curve's parameter, stay within `tolerance` pixels of the curve.

    A chord over an interval 1/n of the parameter is off by at most max |B''| / (8 n²), and B'' is a mean of the second
    differences of the control points times 6, so n = √(0.75 · largest second difference / tolerance) suffices; one
    segment for straight lines. No curve gets more than 256, which is enough for second differences of
    `tolerance` · 87,000 pixels.

    Example:
        >>> segments_needed(torch.tensor([[[0., 0.], [10., 0.], [20., 0.], [30., 0.]], [[0., 0.], [0., 80.], [80., 80.],
        ... [80., 0.]]]), 0.05).tolist()
        [1, 42]
    """
    bend = (points_C42[:, :2] - 2 * points_C42[:, 1:3] + points_C42[:, 2:]).norm(dim=2).amax(dim=1)
    # Rounding bends a straight line by some 1e-6 of its place; less than a thousandth of the tolerance is straight.
    return (0.75 * bend / tolerance).sqrt().sub(1e-3).ceil().clamp(1, MAX_SEGMENTS).long()


def flatten(points_C42: torch.Tensor, tolerance: float, per_curve: int | None = None) -> Segments:
    """The curves as segments.

    Args:
        points_C42: (C, 4, 2) control points in pixels.
        tolerance: Largest distance of a segment from its curve, pixels.
        per_curve: Use this many segments a curve instead.
    """
    device, dtype = points_C42.device, points_C42.dtype
    if per_curve is None:
        count_C = segments_needed(points_C42, tolerance)
    else:
        count_C = torch.full((len(points_C42),), per_curve, dtype=torch.int64, device=device)
    curve_V, place_V = ranges(count_C + 1)
    curve_S = torch.repeat_interleave(count_C)
    t = place_V.to(dtype) / count_C[curve_V]
    r = 1 - t
    weight_V4 = torch.stack([r * r * r, 3 * r * r * t, 3 * r * t * t, t * t * t], dim=1)
    vertex_V2 = (weight_V4[:, :, None] * points_C42[curve_V]).sum(dim=1)
    vertex_S = torch.arange(len(curve_S), device=device) + curve_S
    start_S2 = vertex_V2[vertex_S]
    side_S2 = vertex_V2[vertex_S + 1] - start_S2
    length_S = side_S2.norm(dim=1)
    longer = length_S > 0
    direction_S2 = side_S2 / torch.where(longer, length_S, 1)[:, None]
    tx_S = torch.where(longer, direction_S2[:, 0], 1)
    x_S, y_S = start_S2.T.contiguous()
    return Segments(x_S, y_S, tx_S, direction_S2[:, 1].contiguous(), length_S, curve_S, count_C, weight_V4)


def pull_back(segments: Segments, grad_start_S2: torch.Tensor, grad_end_S2: torch.Tensor) -> torch.Tensor:
    """(C, 4, 2) gradient of the control points from the gradients of the segments' two ends."""
    vertex_S = torch.arange(len(segments), device=grad_start_S2.device) + segments.curve_S
    grad_V2 = grad_start_S2.new_zeros(len(segments.weight_V4), 2)
    grad_V2[vertex_S] = grad_start_S2
    grad_V2[vertex_S + 1] += grad_end_S2
    spread_V8 = (segments.weight_V4[:, :, None] * grad_V2[:, None, :]).flatten(1)
    return run_sums(spread_V8, segments.count_C + 1).view(-1, 4, 2)


def ranges(count_N: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Run number and place within the run for runs of given lengths, one after the other.

    Example:
        >>> [x.tolist() for x in ranges(torch.tensor([2, 0, 3]))]
        [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    run = torch.repeat_interleave(count_N)
    start_N = count_N.cumsum(0) - count_N
    return run, torch.arange(len(run), device=run.device) - start_N.index_select(0, run)


def run_sums(values_ND: torch.Tensor, count_M: torch.Tensor) -> torch.Tensor:
    """(M, D) sums of the rows of runs of given lengths, in a fixed order on every device.

    Example:
        >>> run_sums(torch.tensor([[1.], [2.], [4.]]), torch.tensor([2, 0, 1])).tolist()
        [[3.0], [0.0], [4.0]]
    """
    if not len(values_ND):
        return values_ND.new_zeros(len(count_M), values_ND.shape[1])
    # A bag of consecutive rows is a run; scatter_add would add in an order that differs from call to call on a GPU.
    rows = torch.arange(len(values_ND), device=values_ND.device)
    return torch.nn.functional.embedding_bag(rows, values_ND, count_M.cumsum(0) - count_M, mode="sum")
