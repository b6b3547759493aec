"""Likelihood of pen movements: a mixture of bivariate normal distributions for the offset, a categorical for the pen.

Legend: … any leading shape, M components.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch.nn.functional import log_softmax


class Mixture(NamedTuple):
    """A mixture of M bivariate normal distributions.

    Attributes:
        log_weight: (…, M) log weights, summing to 1 after exp.
        mean: (…, M, 2).
        log_scale: (…, M, 2) log standard deviations.
        correlation: (…, M) in (-1, 1).
    """

    log_weight: torch.Tensor
    mean: torch.Tensor
    log_scale: torch.Tensor
    correlation: torch.Tensor


SCALES = (math.log(1e-3), math.log(10.0))
"""Bounds of the log standard deviations: without a lower one the likelihood of a repeated offset has no bound."""


def mixture_of(raw: torch.Tensor) -> Mixture:
    """(…, 6M) numbers of a network as a mixture: weight, two means, two log scales, correlation, each M in a row."""
    if raw.shape[-1] % 6:
        raise ValueError(f"a mixture needs 6 numbers a component, got {raw.shape[-1]}")
    weight, mean_x, mean_y, scale_x, scale_y, correlation = raw.float().chunk(6, dim=-1)
    return Mixture(
        log_softmax(weight, dim=-1),
        torch.stack([mean_x, mean_y], -1),
        torch.stack([scale_x, scale_y], -1).clamp(*SCALES),
        0.99 * correlation.tanh(),
    )


def mixture_log_prob(mixture: Mixture, offset: torch.Tensor) -> torch.Tensor:
    """(…) log density of (…, 2) offsets.

    log Σ_m π_m N(x; μ_m, Σ_m), with Σ_m = [[σ_x², ρ σ_x σ_y], [ρ σ_x σ_y, σ_y²]].

    Example:
        >>> one = mixture_of(torch.zeros(6))
        >>> round(mixture_log_prob(one, torch.zeros(2)).item(), 4)  # -log 2π
        -1.8379
    """
    z = (offset[..., None, :] - mixture.mean) * (-mixture.log_scale).exp()
    rest = 1 - mixture.correlation.square()
    square = z.square().sum(-1) - 2 * mixture.correlation * z[..., 0] * z[..., 1]
    log_normal = -math.log(2 * math.pi) - mixture.log_scale.sum(-1) - rest.log() / 2 - square / (2 * rest)
    return torch.logsumexp(mixture.log_weight + log_normal, dim=-1)


def mixture_sample(
    mixture: Mixture, uniform: torch.Tensor, normal: torch.Tensor, temperature: float = 1.0
) -> torch.Tensor:
    """(…, 2) offsets with gradients to means, scales and correlations of the chosen components.

    Args:
        mixture: The distribution.
        uniform: (…) in [0, 1), chooses the component.
        normal: (…, 2) standard normal.
        temperature: τ in (0, 1]: weights to the power 1/τ, variances times τ (Ha and Eck 2018, section 3.3).
    """
    cumulative = torch.softmax(mixture.log_weight.detach() / temperature, -1).cumsum(-1)
    chosen = (uniform[..., None] >= cumulative).sum(-1).clamp(max=cumulative.shape[-1] - 1)
    at = chosen[..., None]
    mean, log_scale = (
        x.gather(-2, at[..., None].expand(*at.shape, 2)).squeeze(-2) for x in (mixture.mean, mixture.log_scale)
    )
    rho = mixture.correlation.gather(-1, at).squeeze(-1)
    a, b = normal.unbind(-1)
    z = torch.stack([a, rho * a + (1 - rho.square()).sqrt() * b], -1)
    return mean + math.sqrt(temperature) * log_scale.exp() * z
