"""The presence head's optimum by Newton's method on the rows: exact in a few steps where there are few items a concept.

Pairs with one element name that share weights (ρ > 0) form one problem, every other pair is a problem of its own, for
the loss and the penalty couple nothing else. A problem has R rows, one for every known (item, pair), and m pairs. With
the representer theorem w_p = C Σ_{i of p} α_i z_i and u = C √ρ Σ_i α_i z_i, so that the logits are K α + b with

    K_ij = C (1[same pair] + ρ) z_i · z_j,      F = Σ_i BCE_i + ½ αᵀ K α + Σ_p ½ (softplus(b_p) + softplus(-b_p)).

A step solves the R × R system in the form I + W½ K W½, which is well conditioned whatever the curvatures W = σ (1 - σ)
are (Rasmussen and Williams 2006, Algorithm 3.1), and eliminates the intercepts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

STEPS = 100
HALVINGS = 30


class RowProblem(NamedTuple):
    """R rows of m pairs that share weights.

    Attributes:
        kernel_RR: K.
        target_R: 0 or 1.
        pair_R: Pair of every row, 0 … m-1.
        num_pairs: m.
    """

    kernel_RR: torch.Tensor
    target_R: torch.Tensor
    pair_R: torch.Tensor
    num_pairs: int

    def value(self, alpha_R: torch.Tensor, b_m: torch.Tensor) -> tuple[float, torch.Tensor]:
        """F and the (R,) logits."""
        g_R = self.kernel_RR @ alpha_R
        logit_R = g_R + b_m[self.pair_R]
        loss = binary_cross_entropy_with_logits(logit_R, self.target_R, reduction="sum")
        prior = 0.5 * (softplus(b_m) + softplus(-b_m)).sum()
        return float(loss + 0.5 * alpha_R @ g_R + prior), logit_R


def newton(problem: RowProblem, tol: float) -> tuple[torch.Tensor, torch.Tensor, float]:
    """The optimum.

    Args:
        problem: float64 tensors.
        tol: Relative decrease of F, predicted by the quadratic model, at which to stop.

    Returns:
        (R,) α, (m,) b, and the predicted relative decrease that was left: an estimate of the gap to the optimum.
    """
    alpha_R = torch.zeros_like(problem.target_R)
    b_m = alpha_R.new_zeros(problem.num_pairs)
    value, logit_R = problem.value(alpha_R, b_m)
    gap = float("inf")
    for _ in range(STEPS):
        to_alpha_R, to_b_m = _target(problem, logit_R, b_m)
        step_R, step_m = to_alpha_R - alpha_R, to_b_m - b_m
        residual_R = torch.sigmoid(logit_R) - problem.target_R
        slope_m = torch.zeros_like(b_m).index_add_(0, problem.pair_R, residual_R) + torch.sigmoid(b_m) - 0.5
        slope = float((problem.kernel_RR @ (residual_R + alpha_R)) @ step_R + slope_m @ step_m)
        gap = max(-slope, 0.0) / 2 / max(value, 1e-300)
        if gap <= tol:
            break
        size = 1.0
        for _ in range(HALVINGS):
            new, new_logit_R = problem.value(alpha_R + size * step_R, b_m + size * step_m)
            if new <= value + 1e-4 * size * slope or abs(new - value) <= 1e-14 * value:
                break
            size /= 2
        else:
            break
        alpha_R, b_m = alpha_R + size * step_R, b_m + size * step_m
        value, logit_R = new, new_logit_R
    return alpha_R, b_m, gap


def _target(problem: RowProblem, logit_R: torch.Tensor, b_m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(α, b) at the minimum of the quadratic model around the present logits and intercepts."""
    sigma_R, sigma_m = torch.sigmoid(logit_R), torch.sigmoid(b_m)
    weight_R, prior_m = sigma_R * (1 - sigma_R), sigma_m * (1 - sigma_m)
    root_R = weight_R.sqrt()
    K = problem.kernel_RR
    factor = torch.linalg.cholesky(torch.eye(len(root_R), dtype=K.dtype) + root_R[:, None] * K * root_R)
    pulled_R = weight_R * logit_R + problem.target_R - sigma_R
    indicator_Rm = torch.nn.functional.one_hot(problem.pair_R, problem.num_pairs).to(K.dtype)
    # A t = v - W½ B⁻¹ W½ K v for v = W t, without dividing by W; the same for the columns of the indicator.
    stacked = torch.cat([pulled_R[:, None], weight_R[:, None] * indicator_Rm], 1)
    solved = stacked - root_R[:, None] * torch.cholesky_solve(root_R[:, None] * (K @ stacked), factor)
    hessian_mm = indicator_Rm.T @ solved[:, 1:] + torch.diag(prior_m)
    new_b_m = torch.linalg.solve(hessian_mm, indicator_Rm.T @ solved[:, 0] + prior_m * b_m - (sigma_m - 0.5))
    return solved[:, 0] - solved[:, 1:] @ new_b_m, new_b_m
