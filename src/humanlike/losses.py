"""Losses of generators of sketches.

Legend: B sketches, E element columns; P probability of the true class, v visual ratio, Z and SEA as in
`humanlike.metrics.functional.sea`.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Literal

import torch
from torch import Tensor, nn

from humanlike.metrics.functional.arguments import require_choice, require_tensor
from humanlike.metrics.functional.sea import SEAParameters, SEATerms, terms_from_logs

Objective = Literal["z", "sea"]
Floor = Literal["half_element", "none"]
Reduction = Literal["mean", "sum", "none"]

# The smooth maximum of v and v₀ = 1/(2E) has this power: at one element, v = 2 v₀, it exceeds v by 0.05%.
_POWER = 8
# log P above this is no rounding: somebody gave logits, or probabilities.
_LOG_P_ROUNDING = 1e-3


class _FiniteLog(torch.autograd.Function):
    """log 0 as the logarithm of the smallest number, with the gradient passed through, so that P = 0 is not dead."""

    generate_vmap_rule = True

    @staticmethod
    def forward(log_p_B: Tensor) -> Tensor:
        floor = math.log(torch.finfo(log_p_B.dtype).tiny)
        return torch.where(log_p_B == -torch.inf, floor, log_p_B)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Nothing is needed for the backward pass."""

    @staticmethod
    def backward(ctx: Any, gradient_B: Tensor) -> Tensor:
        return gradient_B


class SEALoss(nn.Module):
    """Sketch abstraction efficiency as something that a generator can be trained on.

    loss = -Z(P, v_f) + w · relu(log ½ - log P), or with `objective="sea"` -tanh(α Z) in place of -Z. It is the metric's
    own formula (δ too) with three changes, without which training ends with a blank page:

    * v is floored smoothly, v_f = v₀ (1 + (v/v₀)⁸)^(1/8) with v₀ = 1/(2E): an empty drawing is scored as one with half
      an element, and the gradient at v = 0 is finite, where those of v^η and of log v are not. For one element present
      or more Z changes by less than 5·10⁻⁴ (5.3·10⁻⁴ for one of two elements).
    * Z itself is the objective: tanh saturates, and its gradient is gone for |Z| above 4.
    * The recognition term pulls while P is below ½, where the reward's pull, ∝ P^γ, is hundreds of times weaker than
      that towards fewer elements. Its weight w may be annealed by setting `recognition_weight` (0: pure Z).

    Gradients with respect to (log P, v) are finite for 0 ≤ P ≤ 1, 0 ≤ v ≤ 1, corners included. With respect to presence
    logits they vanish where the sigmoid saturates. Under autocast all is computed in float32; float64 stays float64.

    Args:
        objective: "z" or "sea".
        floor: "half_element", or "none" for the raw formula (to show that it fails).
        recognition_weight: w ≥ 0.
        delta: δ > 0, as in the metric.
        reduction: "mean", "sum" or "none" over sketches.
        **parameters: The other hyperparameters of SEA by name. Exponents of P and 1 - P (gamma, k, r) must be ≥ 1, or
            the gradient at the corners is infinite.

    Raises:
        ValueError: If a name is unknown or a number out of range.

    References:
        SEA (CVPR 2026) proposes the score as a training objective; the changes are this project's.

    Example:
        >>> loss = SEALoss(recognition_weight=0.0)
        >>> log_p, logits = torch.tensor([0.75]).log(), torch.tensor([[40.0, -40.0]])
        >>> round(loss(log_p, logits).item(), 4)  # SEA's own Z for P = .75, v = .5 is .3315
        -0.3311
    """

    def __init__(
        self,
        objective: Objective = "z",
        floor: Floor = "half_element",
        recognition_weight: float = 1.0,
        delta: float = 1e-6,
        reduction: Reduction = "mean",
        **parameters: float,
    ) -> None:
        super().__init__()
        require_choice(objective, "objective", Objective)
        require_choice(floor, "floor", Floor)
        require_choice(reduction, "reduction", Reduction)
        self.hyperparameters = SEAParameters(delta=delta, **parameters)
        for name in ("gamma", "k", "r"):
            if getattr(self.hyperparameters, name) < 1:
                raise ValueError(f"{name} must be ≥ 1 in a loss, or its gradient is infinite; got {parameters}")
        self.objective = objective
        self.floor = floor
        self.recognition_weight = recognition_weight
        self.reduction = reduction

    @property
    def recognition_weight(self) -> float:
        """w, the weight of the recognition term; may be set between steps."""
        return self._recognition_weight

    @recognition_weight.setter
    def recognition_weight(self, weight: float) -> None:
        if not 0 <= weight < math.inf:
            raise ValueError(f"recognition_weight must be a finite number ≥ 0, got {weight!r}")
        self._recognition_weight = float(weight)

    def forward(self, log_p_B: Tensor, presence_logits_BE: Tensor, mask_BE: Tensor | None = None) -> Tensor:
        """The loss; lower is better.

        Args:
            log_p_B: (B,) log probability of each sketch's class (of a log-softmax, ≤ 0).
            presence_logits_BE: (B, E) logits of "this element is present".
            mask_BE: (B, E) bool, True for columns that are elements of the sketch's class; all by default. What stands
                outside takes no part, whatever it is.

        Returns:
            A scalar, or (B,) with `reduction="none"`; float32 or float64.

        Raises:
            TypeError: If an argument is no floating-point tensor, or the mask not bool.
            ValueError: If shapes do not fit, log P is above 0, or a sketch has no element (it is named).
        """
        mask_BE = _checked(log_p_B, presence_logits_BE, mask_BE)
        with torch.autocast(log_p_B.device.type, enabled=False):
            dtype = torch.promote_types(torch.promote_types(log_p_B.dtype, presence_logits_BE.dtype), torch.float32)
            log_p_B = log_p_B.to(dtype)
            elements_B = mask_BE.sum(dim=1).to(dtype)
            # Masked logits are replaced before the sigmoid, not after: 0 · NaN is NaN, in the gradient too.
            presence_BE = torch.sigmoid(torch.where(mask_BE, presence_logits_BE.to(dtype), 0.0))
            v_B = torch.where(mask_BE, presence_BE, 0.0).sum(dim=1) / elements_B
            if self.floor == "half_element":
                v_B = floored_ratio(v_B, elements_B)
            terms = self._terms(log_p_B, v_B)
            gain_B = terms.z if self.objective == "z" else terms.sea
            shortfall_B = torch.relu(math.log(0.5) - _FiniteLog.apply(log_p_B))
            loss_B = self.recognition_weight * shortfall_B - gain_B
            if self.reduction == "none":
                return loss_B
            return loss_B.mean() if self.reduction == "mean" else loss_B.sum()

    def extra_repr(self) -> str:
        """Settings and hyperparameters, for `repr`."""
        told = ", ".join(f"{name}={value:g}" for name, value in asdict(self.hyperparameters).items())
        return (
            f"objective={self.objective!r}, floor={self.floor!r}, recognition_weight={self.recognition_weight:g}, "
            f"reduction={self.reduction!r}, {told}"
        )

    def _terms(self, log_p_B: Tensor, v_B: Tensor) -> SEATerms:
        delta = self.hyperparameters.delta
        P_B = log_p_B.exp()
        # log P can exceed 0 by rounding, and a negative base has no power; the branch not taken must be finite as well.
        q_B = torch.where(log_p_B < 0, -torch.expm1(torch.where(log_p_B < 0, log_p_B, 0.0)), 0.0)
        log_P_B = torch.logaddexp(log_p_B, log_p_B.new_tensor(math.log(delta))) - math.log1p(delta)
        log_v_B = torch.log((v_B + delta) / (1 + delta))
        return terms_from_logs(P_B, q_B, log_P_B, v_B, log_v_B, self.hyperparameters)


def floored_ratio(v_B: Tensor, elements_B: Tensor) -> Tensor:
    """v_f = v₀ (1 + (v/v₀)⁸)^(1/8), v₀ = 1/(2E), computed from the smaller of the two ratios, which cannot overflow.

    Args:
        v_B: (B,) visual ratios in [0, 1].
        elements_B: (B,) numbers of elements E ≥ 1.

    Example:
        >>> [round(v, 4) for v in floored_ratio(torch.tensor([0.0, 0.125, 0.25]), torch.tensor(4.0)).tolist()]
        [0.125, 0.1363, 0.2501]
    """
    v0_B = 0.5 / elements_B
    above_B = v_B > v0_B
    larger_B = torch.where(above_B, v_B, v0_B)
    smaller_B = torch.where(above_B, v0_B, v_B)
    return larger_B * torch.exp(torch.log1p((smaller_B / larger_B).pow(_POWER)) / _POWER)


def _checked(log_p_B: Tensor, logits_BE: Tensor, mask_BE: Tensor | None) -> Tensor:
    """The mask, after everything has been looked at."""
    for name, x, dimensions in (("log_p_B", log_p_B, 1), ("presence_logits_BE", logits_BE, 2)):
        require_tensor(x, name)
        if not x.is_floating_point():
            raise TypeError(f"{name} must be a floating-point tensor, got {x.dtype}")
        if x.ndim != dimensions or len(x) != len(log_p_B):
            raise ValueError(
                f"log_p_B must be (B,) and presence_logits_BE (B, E), got {tuple(log_p_B.shape)} and "
                f"{tuple(logits_BE.shape)}"
            )
    if mask_BE is None:
        mask_BE = torch.ones_like(logits_BE, dtype=torch.bool)
    require_tensor(mask_BE, "mask_BE")
    if mask_BE.dtype != torch.bool:
        raise TypeError(f"mask_BE must be bool (True: an element of the class), got {mask_BE.dtype}")
    if mask_BE.shape != logits_BE.shape:
        raise ValueError(f"mask_BE must have shape {tuple(logits_BE.shape)}, got {tuple(mask_BE.shape)}")
    without_B = ~mask_BE.any(dim=1)
    above_B = log_p_B.detach() > _LOG_P_ROUNDING
    if bool((without_B | above_B).any()):
        row = int((without_B | above_B).nonzero()[0])
        if bool(without_B[row]):
            raise ValueError(f"every sketch needs an element; sketch {row} has none in mask_BE, leave it out")
        raise ValueError(
            f"log_p_B must be log probabilities ≤ 0; sketch {row} has {log_p_B[row].item()!r}: give "
            "log_softmax(logits), not logits or probabilities"
        )
    return mask_BE
