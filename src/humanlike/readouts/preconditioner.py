"""One fixed approximation of the inverse Hessian, shared by all folds.

At W = 0 the Hessian of the mean cross-entropy is (class part) ⊗ XᵀX/n, the class part of scale w̄ = (1/K)(1 - 1/K):

    H₀ = (w̄ XᵀX/n + λ I)⁻¹ for the weights, 1/w̄ for the intercept.

It takes the correlation of the features out of the problem, which is what makes plain L-BFGS slow, and costs one
Cholesky factor. It only shapes the path to the optimum; the optimum, and the certificate of it, do not depend on it.
"""

from __future__ import annotations

from typing import Protocol

import torch

from humanlike.readouts.objective import FoldedProblem

MAX_DENSE_FEATURES = 8192
MAX_ROWS = 4096


class Preconditioner(Protocol):
    """A symmetric positive definite operator on (D+1, K) arrays."""

    def __call__(self, gradient_EK: torch.Tensor) -> torch.Tensor:
        """H₀ times the gradient."""


def build_preconditioner(problem: FoldedProblem) -> Preconditioner:
    """The dense inverse where D is moderate, else the Woodbury form on a subset of rows."""
    n, d = problem.z_ND.shape
    scale_D = problem.scale_MD.mean(0)
    curvature = (1 / problem.num_classes) * (1 - 1 / problem.num_classes)
    lam = sum(problem.penalty(m) for m in range(problem.num_models)) / problem.num_models
    if d <= min(n, MAX_DENSE_FEATURES):
        return DensePreconditioner(_strided(problem.z_ND, 8 * d), scale_D, curvature, lam)
    return WoodburyPreconditioner(_strided(problem.z_ND, MAX_ROWS), scale_D, curvature, lam)


def _strided(z_ND: torch.Tensor, rows: int) -> torch.Tensor:
    """About `rows` rows spread evenly over all folds: enough for a covariance."""
    return z_ND[:: max(1, len(z_ND) // rows)]


class DensePreconditioner:
    """(w̄ S⁻¹ZᵀZS⁻¹/R + λ I)⁻¹ as an explicit D × D matrix.

    Args:
        z_RD: Standardised rows.
        scale_D: Mean scale S of the models.
        curvature: w̄.
        lam: λ.
    """

    def __init__(self, z_RD: torch.Tensor, scale_D: torch.Tensor, curvature: float, lam: float) -> None:
        gram_DD = (z_RD.T @ z_RD).double() * (curvature / len(z_RD))
        gram_DD /= scale_D[:, None] * scale_D[None, :]
        gram_DD.diagonal().add_(lam)
        factor_DD, failed = torch.linalg.cholesky_ex(gram_DD)
        if int(failed):  # float32 products can lose definiteness where λ is tiny
            gram_DD.diagonal().add_(1e-5 * float(gram_DD.diagonal().mean()))
            factor_DD = torch.linalg.cholesky(gram_DD)
        self._inverse_DD = torch.cholesky_inverse(factor_DD)
        self._single_DD = self._inverse_DD.float()
        self._bias = 1.0 / curvature

    def __call__(self, gradient_EK: torch.Tensor) -> torch.Tensor:
        """H₀ times the gradient."""
        inverse_DD = self._single_DD if gradient_EK.dtype == torch.float32 else self._inverse_DD
        return torch.cat([inverse_DD @ gradient_EK[:-1], self._bias * gradient_EK[-1:]])


class WoodburyPreconditioner:
    """The same inverse for more features than rows: (I - Xᵀ(XXᵀ + λR/w̄ I)⁻¹X)/λ, with an R × R matrix only.

    Args:
        z_RD: Standardised rows; R of them.
        scale_D: Mean scale S of the models; X = ZS⁻¹.
        curvature: w̄.
        lam: λ.
    """

    def __init__(self, z_RD: torch.Tensor, scale_D: torch.Tensor, curvature: float, lam: float) -> None:
        self._x_RD = z_RD / scale_D.float()
        gram_RR = (self._x_RD @ self._x_RD.T).double()
        gram_RR.diagonal().add_(lam * len(z_RD) / curvature + 1e-6 * float(gram_RR.diagonal().mean()))
        self._inverse_RR = torch.cholesky_inverse(torch.linalg.cholesky(gram_RR))
        self._lam, self._bias = lam, 1.0 / curvature

    def __call__(self, gradient_EK: torch.Tensor) -> torch.Tensor:
        """H₀ times the gradient."""
        x_RD = self._x_RD.to(gradient_EK.dtype)
        inside_RK = self._inverse_RR.to(gradient_EK.dtype) @ (x_RD @ gradient_EK[:-1])
        weight_DK = (gradient_EK[:-1] - x_RD.T @ inside_RK) / self._lam
        return torch.cat([weight_DK, self._bias * gradient_EK[-1:]])
