"""What a sketch is optimised for: to look like a picture, or to be recognised as something with few of its elements.

Legend: V views, B sketches, C colours, E elements. Canvases are (B, 1, H, W) in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from humanlike.losses import SEALoss
from humanlike.losses_features import FeatureLoss
from humanlike.metrics.functional.sea import sea

Look = Callable[[Tensor], Tensor]
"""(B, C, H, W) → (V, B, C, H, W): the views of this step."""


class DrawingCritic(Protocol):
    """Who says what drawings show; `humanlike.elements.critic.Critic` is one."""

    def __call__(self, x_B3HW: Tensor, concepts: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """(B,) log P of the concept, (B, E) presence logits, (B, E) mask of real elements."""

    def log_p(self, x_B3HW: Tensor, concepts: Sequence[str]) -> Tensor:
        """(B,) log P alone."""


@dataclass(frozen=True)
class Verdict:
    """What an objective says of B sketches.

    Attributes:
        loss_B: (B,) lower is better.
        log_likeness_B: (B,) ≤ 0, log of how well the sketch does what it is for, on the scale of a probability.
        parts: Name → (B,) numbers for tables, without gradient.
    """

    loss_B: Tensor
    log_likeness_B: Tensor
    parts: Mapping[str, Tensor]


class Objective(Protocol):
    """What sketches are optimised for."""

    def __call__(self, canvas_B1HW: Tensor, look: Look) -> Verdict:
        """The verdict on canvases, averaged over the views that `look` gives."""


@dataclass(frozen=True)
class ConceptObjective:
    """To be recognised by a critic as the concept, with few of its elements: SEA, averaged over views.

    Attributes:
        critic: Who recognises.
        concepts: What each of the B sketches is to show.
        loss: SEALoss with `reduction="none"`; None: -log P alone, for critics that know no elements.
        weight: Weight of the loss among objectives.

    Raises:
        ValueError: The loss reduces over sketches.
    """

    critic: DrawingCritic
    concepts: tuple[str, ...]
    loss: SEALoss | None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.loss is not None and self.loss.reduction != "none":
            raise ValueError(f"the objective needs a loss a sketch: SEALoss(reduction='none'), got {self.loss}")

    def __call__(self, canvas_B1HW: Tensor, look: Look) -> Verdict:
        """See `Objective`; parts: P, v (share of elements decided present), v_mean_probability and SEA(P, v)."""
        seen = look(canvas_B1HW)
        views, batch = seen.shape[:2]
        pictures = seen.flatten(0, 1).expand(-1, 3, -1, -1)
        concepts = self.concepts * views
        if self.loss is None:
            log_p = self.critic.log_p(pictures, concepts)
            loss, parts = -log_p, {}
        else:
            log_p, logits, mask = self.critic(pictures, concepts)
            loss = self.loss(log_p, logits, mask)
            parts = _presence(logits.detach(), mask, batch)
        log_p_B = log_p.view(views, batch).mean(dim=0)
        parts["P"] = log_p.detach().view(views, batch).exp().mean(dim=0)
        if "v" in parts:
            parts["sea"] = sea(parts["P"].clamp(0, 1).cpu(), parts["v"].cpu())
        return Verdict(self.weight * loss.view(views, batch).mean(dim=0), log_p_B, parts)


def _presence(logits: Tensor, mask: Tensor, batch: int) -> dict[str, Tensor]:
    """(B,) share of elements decided present (logit ≥ 0) and mean probability, averaged over views."""
    number = mask.sum(dim=1).clamp(min=1)
    shares = {"v": (logits >= 0) & mask, "v_mean_probability": torch.where(mask, logits.sigmoid(), 0.0)}
    return {name: (x.sum(dim=1) / number).view(-1, batch).mean(dim=0) for name, x in shares.items()}


@dataclass(frozen=True)
class PictureObjective:
    """To look like a picture to a network: the distance of features, drawing and picture seen in the same views.

    Its likeness is exp(-distance).

    Attributes:
        loss: FeatureLoss; its reduction does not matter.
        picture_B3HW: (B, 3, H, W) pictures in [0, 1], of the canvas's size or another.
        weight: Weight of the distance among objectives.
    """

    loss: FeatureLoss
    picture_B3HW: Tensor
    weight: float = 1.0

    def __call__(self, canvas_B1HW: Tensor, look: Look) -> Verdict:
        """See `Objective`; parts: `distance` and its parts by layer."""
        seen = look(canvas_B1HW)
        views, batch = seen.shape[:2]
        drawn = self.loss.activations(seen.flatten(0, 1).expand(-1, 3, -1, -1))
        with torch.no_grad():
            pictured = self.loss.activations(look(self.picture_B3HW.to(canvas_B1HW)).flatten(0, 1))
        distance_B = self.loss.between(drawn, pictured).view(views, batch).mean(dim=0)
        parts = {
            f"distance_{name}": x.detach().view(views, batch).mean(dim=0)
            for name, x in self.loss.parts(drawn, pictured).items()
        }
        return Verdict(self.weight * distance_B, -distance_B, {"distance": distance_B.detach(), **parts})


@dataclass(frozen=True)
class StrokeEconomy:
    """SEA with strokes in the place of elements: likeness P with a share v of the strokes drawn, v = mean σ(on-logit).

    As few strokes as the likeness allows: the gate of SEA rewards v below P only.

    Attributes:
        weight: Weight of -Z(P, v); 0: no economy.
        loss: The formula.
    """

    weight: float = 0.0
    loss: SEALoss = SEALoss(recognition_weight=0.0, reduction="none")  # noqa: RUF009 - it holds no state

    def __call__(self, log_likeness_B: Tensor, on_logit_BK: Tensor | None) -> Tensor:
        """(B,) loss; 0 where the number of strokes is not learned."""
        if on_logit_BK is None or self.weight == 0:
            return torch.zeros_like(log_likeness_B)
        return self.weight * self.loss(log_likeness_B.clamp(max=0), on_logit_BK)
