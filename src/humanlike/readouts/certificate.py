"""How far from its optimum a fitted readout can be, at most: a bound in float64 that knows nothing of the solver.

Shapes: n training rows of one model, D features, K classes. X holds the rows as the model sees them, centred on their
own mean. P are the fitted probabilities, Y the one-hot labels.

The objective is λ-strongly convex in W but not in the free intercept, so ‖g‖²/2λ alone is no bound. Its dual is

    D(Q) = (1/n) Σ_i H(q_i) - (1/2λ) ‖Xᵀ(Y - Q)/n‖²   for any Q with rows in the simplex and the column sums of Y,

and F - D(Q) bounds the gap. With Q = P the bound would be ‖g_W‖²/2λ + b·g_b, but P has Y's column sums only where the
intercept's gradient g_b vanishes. Q = (1-ε)P + ε·r with a constant row r repairs that with the smallest ε ≥ 0 for which
r = m_P - g_b/ε is a distribution (m_P: mean of P). As entropy is concave,

    F - F* ≤ ‖g_W‖²/2λ + b·g_b + ε[H̄(P) - H(r)] + ε⟨Ŵ, G⟩ + ε²‖G‖²/2λ,   Ŵ = W - g_W/λ,  G = XᵀP/n.

The intercept is first moved to its exact optimum (Newton on K numbers), which makes ε about 10⁻¹⁴.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from humanlike.readouts.objective import FoldedProblem

NEWTON_STEPS = 20


@dataclass(frozen=True)
class Certificate:
    """A fitted model and what is known about it.

    Attributes:
        theta: (D+1, K) float64 parameters, the intercept at its optimum.
        objective: scikit-learn's objective C·Σ CE + ½‖W‖².
        gap: Upper bound of (objective - optimum) / optimum.
        grad_norm: ‖∇F‖₂ of the mean objective F = objective / (C n).
        bias_grad_norm: The intercept's share of it.
    """

    theta: torch.Tensor
    objective: float
    gap: float
    grad_norm: float
    bias_grad_norm: float


def certify(problem: FoldedProblem, model: int, theta: torch.Tensor) -> Certificate:
    """Evaluate one model in float64, move its intercept to the optimum, and bound its gap.

    Args:
        problem: Features, labels and folds.
        model: Index of the model.
        theta: (D+1, K) parameters of any floating dtype.
    """
    theta = theta.double().clone()
    blocks = problem.train_blocks(model)
    y_N = torch.cat([problem.y_N[b.start : b.stop] for b in blocks])
    logit_NK = problem.logits(model, theta, blocks)
    class_share_K = torch.bincount(y_N, minlength=problem.num_classes).double() / len(y_N)
    move_K = optimal_intercept(logit_NK, class_share_K)
    theta[-1] += move_K
    log_p_NK = logit_NK.add_(move_K)
    log_p_NK -= torch.logsumexp(log_p_NK, 1, keepdim=True)
    loss = -float(log_p_NK.gather(1, y_N[:, None]).mean())
    p_NK = log_p_NK.exp()
    entropy = -float(log_p_NK.mul_(p_NK).sum(1).mean())
    del logit_NK, log_p_NK  # large, and several models are certified at once
    lam, weight_DK = problem.penalty(model), theta[:-1]
    pull_DK = problem.back_project(model, p_NK)
    mean_p_K = p_NK.mean(0)
    p_NK[torch.arange(len(y_N), device=y_N.device), y_N] -= 1
    gradient_DK = problem.back_project(model, p_NK) + lam * weight_DK
    bias_K = mean_p_K - class_share_K
    value = loss + 0.5 * lam * float(weight_DK.square().sum())
    gap = float(gradient_DK.square().sum()) / (2 * lam) + float(theta[-1] @ bias_K)
    gap += _intercept_slack(weight_DK - gradient_DK / lam, pull_DK, mean_p_K, bias_K, entropy, lam)
    relative = gap / (value - gap) if gap < value else float("inf")
    bias_norm = float(bias_K.norm())
    norm = (float(gradient_DK.square().sum()) + bias_norm**2) ** 0.5
    return Certificate(theta, problem.C * len(y_N) * value, max(relative, 0.0), norm, bias_norm)


def _intercept_slack(
    dual_DK: torch.Tensor,
    pull_DK: torch.Tensor,
    mean_p_K: torch.Tensor,
    bias_K: torch.Tensor,
    entropy: float,
    lam: float,
) -> float:
    """What the intercept's remaining gradient adds to the bound; see the module's docstring for the formula."""
    epsilon = float((bias_K / mean_p_K).clamp(min=0).max())
    if epsilon == 0.0:
        return 0.0
    if not epsilon < 1.0:
        return float("inf")
    row_K = (mean_p_K - bias_K / epsilon).clamp(min=0)
    row_entropy = float(torch.special.entr(row_K).sum())
    linear = entropy - row_entropy + float((dual_DK * pull_DK).sum())
    return epsilon * linear + epsilon**2 * float(pull_DK.square().sum()) / (2 * lam)


def optimal_intercept(logit_NK: torch.Tensor, class_share_K: torch.Tensor) -> torch.Tensor:
    """(K,) change of the intercept that gives the mean probabilities the shares of the classes, by Newton's method.

    Args:
        logit_NK: Logits with the present intercept, float64.
        class_share_K: Shares of the labels, positive.

    Returns:
        The change with mean 0, as good as float64 allows.
    """
    n, K = logit_NK.shape
    move_K = torch.zeros(K, dtype=logit_NK.dtype, device=logit_NK.device)
    best_K, smallest = move_K, float("inf")
    for _ in range(NEWTON_STEPS):
        p_NK = logit_NK + move_K
        torch.softmax(p_NK, 1, out=p_NK)
        mean_K = p_NK.mean(0)
        error_K = mean_K - class_share_K
        size = float(error_K.norm())
        if not size < 0.9 * smallest:
            break
        best_K, smallest = move_K, size
        hessian_KK = torch.diag(mean_K) - p_NK.T @ p_NK / n + 1.0 / K  # 1/K: a common shift of all classes is no change
        move_K = move_K - torch.linalg.solve(hessian_KK, error_K)
    return best_K - best_K.mean()
