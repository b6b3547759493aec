"""Which of a generator's K slots draws which curve: the same part of a thing in the same slot, drawing after drawing.

A picture does not change when its curves change places or are drawn backwards, but a network that has to learn which of
24! orders is meant learns little else. So every concept gets a template of K curves, and every drawing's curves are
matched with it at the least total distance, each in the direction that fits better; then the template moves to the mean
of what was matched, and again (K-means with one curve a cluster). The result depends on neither order nor direction.

Legend: N drawings, K slots, M curves of a drawing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from scipy.optimize import linear_sum_assignment

from humanlike.generators.pretrain_table import CurveTable


def curve_distances(points_K42: torch.Tensor, target_M42: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(K, M) mean distance of control points in the better of the two directions, and (K, M) whether it is backwards.

    Example:
        >>> line = torch.rand(1, 4, 2)
        >>> [x.item() for x in curve_distances(line, line.flip(1))]
        [0.0, True]
    """
    forward, backward = (
        (points_K42[:, None] - target[None]).norm(dim=-1).mean(-1) for target in (target_M42, target_M42.flip(1))
    )
    return torch.minimum(forward, backward), backward < forward


def aligned(table: CurveTable, concept_N: Sequence[int], iterations: int = 4) -> CurveTable:
    """The same drawings with every curve in the slot that it matches; free slots are padding.

    Args:
        table: Drawings as curves.
        concept_N: Concept of every drawing; each concept has a template of its own.
        iterations: Rounds of matching, 1 or more.

    Returns:
        A table of the same shape. `stroke_NK` still says which curves belong to one stroke.

    Raises:
        ValueError: For no iterations.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be 1 or more, got {iterations}")
    concept = torch.as_tensor(concept_N)
    points, width, stroke = (torch.clone(x) for x in vars(table).values())
    for c in torch.unique(concept).tolist():
        row = (concept == c).nonzero().squeeze(1).tolist()
        template = _first_template([table.points_NK42[i][table.stroke_NK[i] >= 0] for i in row], points.shape[1])
        for _ in range(iterations):
            for i in row:
                _place(table, i, template, points, width, stroke)
            shown = stroke[row] >= 0
            count = shown.sum(0)[:, None, None]
            mean = torch.where(shown[..., None, None], points[row], 0).sum(0) / count.clamp(min=1)
            template = torch.where(count > 0, mean, template)
    return CurveTable(points, width, stroke)


def _first_template(drawings: Sequence[torch.Tensor], slots: int) -> torch.Tensor:
    """(K, 4, 2) the curves of the fullest drawing, then those of the next ones, then the middle of the canvas."""
    # Ties go by the sum of coordinates, so that the order of drawings cannot matter.
    fullest = sorted(drawings, key=lambda d: (-len(d), float(d.double().sum())))
    found = torch.cat([*fullest, torch.full((slots, 4, 2), 0.5)])
    return found[:slots]


def _place(
    table: CurveTable,
    row: int,
    template_K42: torch.Tensor,
    points: torch.Tensor,
    width: torch.Tensor,
    stroke: torch.Tensor,
) -> None:
    shown = table.stroke_NK[row] >= 0
    own = table.points_NK42[row][shown]
    distance_KM, backwards_KM = curve_distances(template_K42, own)
    slot, curve = (torch.from_numpy(x) for x in linear_sum_assignment(distance_KM.numpy()))
    turned = backwards_KM[slot, curve]
    points[row], width[row], stroke[row] = 0.0, 0.0, -1
    points[row, slot] = torch.where(turned[:, None, None], own[curve].flip(1), own[curve])
    width[row, slot] = table.width_NK[row][shown][curve]
    stroke[row, slot] = table.stroke_NK[row][shown][curve]
