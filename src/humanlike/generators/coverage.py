"""How dark a pen stroke makes a pixel: a smooth function of distance and pen width, with its slopes.

With σ the logistic function and s the softness, a pixel whose centre lies d from the middle line of a pen of half width
h is covered by

    c(d, h) = σ((h - d) / s) - σ((-h - d) / s),

the band [-h, h] seen through a pixel with a logistic profile of standard deviation 1.8 s. Three things follow from the
second term: a pen without width leaves no ink, hairlines fade in proportion to their width, and c is smooth at d = 0.
All lengths are in pixels.
"""

from __future__ import annotations

import torch

REACH = 16.0
"""Softnesses beyond the pen's edge where coverage, below 1.2·10⁻⁷, counts as none."""


def coverage(distance: torch.Tensor, half_width: torch.Tensor, softness: float) -> torch.Tensor:
    """Covered share of a pixel, in [0, 1].

    Example:
        >>> coverage(torch.tensor([0.0, 1.0, 9.0]), torch.tensor([1.0, 1.0, 0.0]), 0.2)
        tensor([0.9866, 0.5000, 0.0000])
    """
    return ((half_width - distance) / softness).sigmoid() - ((half_width + distance) / -softness).sigmoid()


def coverage_slopes(
    distance: torch.Tensor, half_width: torch.Tensor, softness: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Coverage, its slope by distance (≤ 0, and 0 at distance 0) and its slope by half width (≥ 0)."""
    inner = ((half_width - distance) / softness).sigmoid()
    outer = ((half_width + distance) / -softness).sigmoid()
    near, far = inner * (1 - inner), outer * (1 - outer)
    return inner - outer, (far - near) / softness, (near + far) / softness
