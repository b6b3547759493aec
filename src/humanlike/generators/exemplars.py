"""Which remembered drawings new ones come from: a prior over exemplars, tilted towards those that a critic prefers.

Legend: N exemplars of all concepts, M exemplars of one.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch

from humanlike.generators.drawn import Drawn

STEPS = 60
"""Halvings of the temperature's range, more than float64 can tell apart."""
RANGE = (1e-4, 1e4)
"""Temperatures looked at, in spreads of the loss."""


@runtime_checkable
class Exemplars(Protocol):
    """A generator that draws around remembered drawings and can draw some of these more often than others."""

    def exemplars(self) -> tuple[torch.Tensor, Drawn]:
        """(N,) concept of every exemplar, and the exemplars as they would be drawn without noise."""

    def weigh(self, weight_N: torch.Tensor) -> None:
        """Draw from exemplars with these probabilities, which sum to 1 within every concept."""

    def equally(self, concept_B: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Noise by which a generator with equal weights draws from the very exemplars that this one takes here."""


def tilted(loss_N: torch.Tensor, concept_N: torch.Tensor, share: float) -> torch.Tensor:
    """(N,) probabilities ∝ exp(-loss / τ) within each concept, with τ such that they are as wide as asked.

    Of all priors w over M exemplars of a concept, exp(-loss / τ) has the least E_w[loss] + τ KL(w ‖ uniform): nothing
    gets a lower mean loss without being narrower. How narrow is said by the share of exemplars that are in use: the
    perplexity exp(entropy of w) is `share` · M. Ties at the lowest loss may keep it above.

    Args:
        loss_N: Losses, finite.
        concept_N: (N,) int64.
        share: In (0, 1]; 1 leaves all exemplars equally likely.

    Raises:
        ValueError: The share is out of range, or a loss is not finite.

    Example:
        >>> w = tilted(torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.zeros(4, dtype=torch.int64), 0.5)
        >>> round(perplexity(w), 6), bool((w.diff() < 0).all())
        (2.0, True)
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share of exemplars in use must lie in (0, 1], got {share}")
    if not bool(loss_N.isfinite().all()):
        raise ValueError(f"the loss of exemplar {int((~loss_N.isfinite()).nonzero()[0])} is not finite")
    weight_N = torch.zeros(len(loss_N), dtype=torch.float64, device=loss_N.device)
    for concept in concept_N.unique().tolist():
        own = concept_N == concept
        weight_N[own] = _tilted(loss_N[own].double(), share)
    return weight_N


def _tilted(loss_M: torch.Tensor, share: float) -> torch.Tensor:
    spread = float(loss_M.std(correction=0))
    if share == 1 or spread == 0:
        return torch.full_like(loss_M, 1 / len(loss_M))
    low, high = RANGE
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        if perplexity(torch.softmax(-loss_M / (middle * spread), 0)) < share * len(loss_M):
            low = middle
        else:
            high = middle
    return torch.softmax(-loss_M / (high * spread), 0)


def perplexity(weight_M: torch.Tensor) -> float:
    """Exponential of the entropy: the number of equally likely things that would be as uncertain.

    Example:
        >>> perplexity(torch.tensor([0.25, 0.25, 0.25, 0.25])), perplexity(torch.tensor([1.0, 0.0]))
        (4.0, 1.0)
    """
    return float(torch.special.entr(weight_M).sum().exp())
