"""The strokes of a batch of sketches as parameters of an optimiser.

Legend: B sketches, K strokes a sketch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from humanlike.data.strokes import Strokes

BEYOND = 0.2
"""How far control points may leave the canvas, in sides: beyond, a stroke leaves no ink and gets no gradient back."""


@dataclass(frozen=True)
class Rates:
    """Learning rates of the groups of parameters at the start; a group with rate 0 stays as it begins.

    Attributes:
        points: Canvas units a step.
        width: Canvas units a step.
        opacity: A step, on [0, 1].
        on_logit: Logits a step; takes part where the number of strokes is learned.
        final: What the rates are multiplied by at the last step, in (0, 1], along a half cosine; 1: constant.

    Raises:
        ValueError: A rate is negative, none is above 0, or `final` is out of range.
    """

    points: float = 0.02
    width: float = 0.0
    opacity: float = 0.0
    on_logit: float = 0.1
    final: float = 0.05

    def __post_init__(self) -> None:
        rates = (self.points, self.width, self.opacity, self.on_logit)
        if not all(0 <= rate < math.inf for rate in rates) or not max(rates) > 0:
            raise ValueError(f"rates must be finite, ≥ 0 and one of them above 0, got {self}")
        if not 0 < self.final <= 1:
            raise ValueError(f"rates.final must lie in (0, 1], got {self.final}")

    def factor(self, step: int, steps: int) -> float:
        """What the rates are multiplied by at a step of 0 … steps - 1.

        Example:
            >>> [round(Rates(final=0.1).factor(step, 11), 3) for step in (0, 5, 10)]
            [1.0, 0.55, 0.1]
        """
        share = step / max(steps - 1, 1)
        return self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * share))


class StrokeParameters(nn.Module):
    """Points, widths, opacities and on-logits of B sketches of K strokes, each one cubic Bézier.

    Args:
        points_BK42: Control points to begin with.
        width: Pen width to begin with, a fraction of the canvas side.
        on_logit: On-logit to begin with; None: every stroke is drawn, and the number of strokes is K.
        width_range: Least and greatest width.

    Raises:
        ValueError: The width lies outside its range.
    """

    def __init__(
        self,
        points_BK42: torch.Tensor,
        width: float = 0.0125,
        on_logit: float | None = None,
        width_range: tuple[float, float] = (0.004, 0.05),
    ) -> None:
        super().__init__()
        if not 0 < width_range[0] <= width <= width_range[1]:
            raise ValueError(f"width must lie in width_range={tuple(width_range)}, got {width}")
        points = points_BK42.detach().clone()
        shape = points.shape[:2]
        self.points = nn.Parameter(points)
        self.width = nn.Parameter(points.new_full(shape, width))
        self.opacity = nn.Parameter(points.new_ones(shape))
        self.on_logit = None if on_logit is None else nn.Parameter(points.new_full(shape, on_logit))
        self.width_range = (float(width_range[0]), float(width_range[1]))

    def strokes(self, temperature: float = 1.0) -> Strokes:
        """The strokes as they are; on-logits over `temperature`, so that at a low one a stroke is on or off."""
        on = None if self.on_logit is None else self.on_logit / temperature
        return Strokes(self.points, self.width, self.opacity, on)

    def drawn(self) -> Strokes:
        """The strokes that count as on, without gradient: what is written to files and judged."""
        strokes = Strokes(self.points.detach().clone(), self.width.detach().clone(), self.opacity.detach().clone())
        if self.on_logit is None:
            return strokes
        number = torch.arange(strokes.num_curves, device=self.points.device).expand(strokes.batch_size, -1)
        shown = torch.where(self.on_logit.detach() >= 0, number, -1)
        return Strokes(strokes.points_BK42, strokes.width_BK, strokes.opacity_BK, stroke_BK=shown)

    def groups(self, rates: Rates) -> list[dict[str, object]]:
        """Groups for an optimiser, each with its rate as `lr` and `base`; a rate of 0 freezes its parameter."""
        found: list[dict[str, object]] = []
        for name, parameter in self.named_parameters():
            rate = getattr(rates, name)
            parameter.requires_grad_(rate > 0)
            if rate > 0:
                found.append({"params": [parameter], "lr": rate, "base": rate, "name": name})
        if not found:
            raise ValueError(
                f"no parameter has a rate above 0 (rates.on_logit is idle without learned numbers): {rates}"
            )
        return found

    @torch.no_grad()
    def project(self) -> None:
        """Put every parameter back into its range."""
        self.points.clamp_(-BEYOND, 1 + BEYOND)
        self.width.clamp_(*self.width_range)
        self.opacity.clamp_(0, 1)
