"""Learning which curves to draw: every gate's effect on the loss is measured, not extrapolated from a slope.

Whether a curve is drawn is a yes or no, and a critic's slope at "yes" says little about "no": with gradients passed
straight through, gates moved at random. So some curves of every sketch are flipped, one at a time, and looked at again.
For gates g_k ~ Bernoulli(σ(l_k)) that keep their likelier value except for one,

    ∂E[L]/∂l_k = (L(g_k = 1) - L(g_k = 0)) σ'(l_k)

(a local expectation gradient), which needs no backward pass through critic and rasteriser.

Legend: B sketches, K curves, F curves flipped a sketch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from humanlike.data.strokes import Strokes
from humanlike.generators.drawn import TEMPERATURE, Drawn
from humanlike.rng import generator

LossOf = Callable[[Strokes, list[int]], torch.Tensor]
"""(n,) losses of n sketches as they would be kept, given which sketch of the batch each comes from."""


def flipped(drawn: Drawn, curve_BF: torch.Tensor) -> Strokes:
    """(B · F) sketches, each with one gate turned; sketch b's are b · F … b · F + F - 1."""
    B, F = curve_BF.shape

    def again(x: torch.Tensor) -> torch.Tensor:
        return x.detach().repeat_interleave(F, dim=0)

    row = torch.arange(B * F, device=curve_BF.device)
    gate = again((drawn.on_logit_BK > 0).to(drawn.points_BK42.dtype))
    gate[row, curve_BF.flatten()] = 1 - gate[row, curve_BF.flatten()]
    stroke = None if drawn.stroke_BK is None else again(drawn.stroke_BK)
    return Strokes(again(drawn.points_BK42), again(drawn.width_BK), gate, stroke_BK=stroke)


def chosen_curves(drawn: Drawn, flips: int, seed: int, step: int, numbers: Sequence[int]) -> torch.Tensor:
    """(B, F) different curves of every sketch, at random; a sketch's depend on seed, step and its number only."""
    K = drawn.on_logit_BK.shape[1]
    rows = [generator(seed, "flips", step, number).permutation(K)[: min(flips, K)] for number in numbers]
    return torch.from_numpy(np.stack(rows)).to(drawn.on_logit_BK.device)


def gate_loss(drawn: Drawn, curve_BF: torch.Tensor, loss_of: LossOf) -> torch.Tensor:
    """A number whose gradient by the on-logits is that of the expected loss, a mean over sketches, without bias.

    σ' is that of `straight_through`, so that curves that are surely on or off feel their effect as well.

    Args:
        drawn: The sketches.
        curve_BF: Curves that are looked at, of K in all, each equally likely.
        loss_of: What sketches cost.

    Returns:
        A scalar; its value means nothing.
    """
    B, F = curve_BF.shape
    with torch.no_grad():
        gate = (drawn.on_logit_BK > 0).to(drawn.points_BK42.dtype)
        now_B = loss_of(Strokes(drawn.points_BK42, drawn.width_BK, gate, stroke_BK=drawn.stroke_BK), list(range(B)))
        turned_BF = loss_of(flipped(drawn, curve_BF), [b for b in range(B) for _ in range(F)]).view(B, F)
        was_on_BF = gate.gather(1, curve_BF) > 0
        effect_BF = torch.where(was_on_BF, now_B[:, None] - turned_BF, turned_BF - now_B[:, None])
    chance_BF = (drawn.on_logit_BK / TEMPERATURE).sigmoid().gather(1, curve_BF)
    K = drawn.on_logit_BK.shape[1]
    return (effect_BF * chance_BF).sum() * (K / (F * B))
