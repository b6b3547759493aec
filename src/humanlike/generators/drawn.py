"""What a generator draws: strokes to train through, the same strokes to keep, and the interface that fine-tuning needs.

Legend: B sketches, K curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch

from humanlike.data.strokes import Strokes

TEMPERATURE = 2.0
"""Of the gates' slope: curves that are surely on or off feel a loss as well."""


def straight_through(logit: torch.Tensor, temperature: float = TEMPERATURE) -> torch.Tensor:
    """1 where the logit is positive, else 0, with the gradient of σ(logit / temperature).

    A curve is drawn or not: with its probability as opacity, training would end in grey ghosts that a critic sees and a
    pen cannot draw. The temperature lets curves that are surely on or off feel the loss as well.

    Example:
        >>> logit = torch.tensor([-1.0, 2.0], requires_grad=True)
        >>> gate = straight_through(logit)
        >>> gate.sum().backward()
        >>> gate.tolist(), [round(g, 3) for g in logit.grad.tolist()]
        ([0.0, 1.0], [0.118, 0.098])
    """
    soft = (logit / temperature).sigmoid()
    return (logit > 0).to(soft.dtype) + soft - soft.detach()


def different_names(concepts: Sequence[str]) -> tuple[str, ...]:
    """What a generator can draw, in its order.

    Raises:
        ValueError: There is no concept, or one stands twice.
    """
    if not concepts or len(set(concepts)) < len(concepts):
        raise ValueError(f"concepts must be one or more different names, got {list(concepts)}")
    return tuple(concepts)


@dataclass(frozen=True, eq=False)
class Drawn:
    """B sketches from a generator.

    Attributes:
        points_BK42: (B, K, 4, 2) control points with a gradient.
        width_BK: (B, K) pen widths.
        on_logit_BK: (B, K) logits of a curve being drawn.
        stroke_BK: (B, K) int64 stroke of every curve, or None: every curve is a stroke.
        extra: What the generator itself needs to compare drawings, see `Generator.distance`.
    """

    points_BK42: torch.Tensor
    width_BK: torch.Tensor
    on_logit_BK: torch.Tensor
    stroke_BK: torch.Tensor | None = None
    extra: Any = None

    def for_training(self, through: bool = True) -> Strokes:
        """Strokes as they would be kept, with gradients to points and widths.

        Args:
            through: With gradients to on-logits too, see `straight_through`.
        """
        gate = straight_through(self.on_logit_BK) if through else (self.on_logit_BK > 0).to(self.width_BK.dtype)
        return Strokes(self.points_BK42, self.width_BK, gate, stroke_BK=self.stroke_BK)

    def strokes(self) -> Strokes:
        """Strokes to keep, without a gradient; on-logits included, so that `to_drawings` leaves out what is off."""
        stroke = None if self.stroke_BK is None else self.stroke_BK.detach()
        return Strokes(
            self.points_BK42.detach(), self.width_BK.detach(), 1.0, self.on_logit_BK.detach(), stroke_BK=stroke
        )

    def at(self, rows: torch.Tensor) -> Drawn:
        """Some of the sketches."""
        stroke = None if self.stroke_BK is None else self.stroke_BK[rows]
        return Drawn(self.points_BK42[rows], self.width_BK[rows], self.on_logit_BK[rows], stroke)


@runtime_checkable
class Generator(Protocol):
    """A network that draws concepts from noise: what fine-tuning, sampling and saving need to know of it."""

    concepts: tuple[str, ...]

    def noise(self, index_B: Sequence[int], seed: int, *address: str | int) -> torch.Tensor:
        """(B, …) noise of B drawings; that of an index depends on seed, address and index only."""

    def draw(self, concept_B: torch.Tensor, noise: torch.Tensor) -> Drawn:
        """One drawing for each concept (index into `concepts`) and noise."""

    def distance(self, drawn: Drawn, reference: Drawn) -> torch.Tensor:
        """(B,) how far drawings moved away from those of a reference network from the same noise, ≥ 0."""
