"""Approximations of the inverse Hessian. They shape the path only: no optimum and no certificate depends on them.

The Hessian of the mean cross-entropy is Σ_i (diag p_i - p_i p_iᵀ) ⊗ x_i x_iᵀ / n, plus λ on the weights.

*At the start*, W = 0, every row counts the same: the class part is about w̄ = (1/K)(1 - 1/K) times the identity, and

    H₀ = (w̄ XᵀX/n + λ I)⁻¹ for the weights, 1/w̄ for the intercept,

one for all folds, takes the correlation of the features out of the problem, which is what makes plain L-BFGS slow.

*Near the optimum* that is far off. A row adds to the block of class k with curvature v = p_k(1 - p_k), and a fitted
model is sure of most rows. With features that separate the classes w̄ is a hundred times too large, and the curvature
left to a class comes from a few rows hard for *it*. `HardRows` holds those, class by class and fold by fold:
X_k, the R rows with the largest v, and as a diagonal what the others add,

    H_k = (X_kᵀ diag(v) X_k / n + B_k)⁻¹,   B_k = λ I + (Σ_others v / n) diag(mean square of the features),

by Woodbury's identity with R × R matrices. From there on, on features of a convolutional network, a dense matrix of
rows weighted by the mean of v over the classes took three times as many steps, and one shared by the folds, so that it
also holds the rows left out, four times.

With *many rows* the curvature of a class is spread over far more than R of them, and H_k loses to H₀. Then the whole
D × D block of every class is affordable, and one set of blocks does for all folds: `class_blocks.ClassBlocks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import torch

from humanlike.readouts.objective import FoldedProblem

MAX_DENSE_FEATURES = 8192
MAX_ROWS = 4096
SMALLEST_CURVATURE = 1e-12
HARD_ROWS = 24  # a class and model
HARD_ROWS_BYTES = 2**29  # for all of them
SINGLE_CONDITION = 1e4  # beyond it the identity cancels too much in float32


class Preconditioner(Protocol):
    """A symmetric positive operator on (D+1, K) arrays.

    Attributes:
        intercept_curvature_K: (K,) or (1,) float64: about the second derivatives by the intercepts.
    """

    intercept_curvature_K: torch.Tensor

    def __call__(self, gradient_EK: torch.Tensor) -> torch.Tensor:
        """H₀ times the gradient."""


def starting_preconditioner(problem: FoldedProblem) -> Preconditioner:
    """H₀ for W = 0: the dense inverse where D is moderate, else the Woodbury form on a subset of rows."""
    n, d = problem.z_ND.shape
    scale_D = problem.scale_MD.mean(0)
    curvature = (1 / problem.num_classes) * (1 - 1 / problem.num_classes)
    lam = sum(problem.penalty(m) for m in range(problem.num_models)) / problem.num_models
    if d <= min(n, MAX_DENSE_FEATURES):
        return DensePreconditioner(strided_rows(problem.z_ND, 8 * d), scale_D, curvature, lam)
    return WoodburyPreconditioner(strided_rows(problem.z_ND, MAX_ROWS), scale_D, curvature, lam)


def strided_rows(z_ND: torch.Tensor, rows: int) -> torch.Tensor:
    """About `rows` rows spread evenly over all folds: enough for a covariance."""
    return z_ND[:: max(1, len(z_ND) // rows)]


def definite_inverse(matrix_DD: torch.Tensor) -> torch.Tensor:
    """Inverse of a symmetric matrix of float32 products, of which the lower triangle counts.

    Products of float32 can lose definiteness where λ is tiny; the diagonal is then raised, in place, by 10⁻⁵ of its
    mean.
    """
    factor_DD, failed = torch.linalg.cholesky_ex(matrix_DD)
    if int(failed):
        matrix_DD.diagonal().add_(1e-5 * float(matrix_DD.diagonal().mean()))
        factor_DD = torch.linalg.cholesky(matrix_DD)
    return torch.cholesky_inverse(factor_DD)


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
        self._inverse_DD = definite_inverse(gram_DD)
        self._single_DD = self._inverse_DD.float()
        self._bias = 1.0 / curvature
        self.intercept_curvature_K = gram_DD.new_tensor([curvature])

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
        self.intercept_curvature_K = gram_RR.new_tensor([curvature])

    def __call__(self, gradient_EK: torch.Tensor) -> torch.Tensor:
        """H₀ times the gradient."""
        x_RD = self._x_RD.to(gradient_EK.dtype)
        inside_RK = self._inverse_RR.to(gradient_EK.dtype) @ (x_RD @ gradient_EK[:-1])
        weight_DK = (gradient_EK[:-1] - x_RD.T @ inside_RK) / self._lam
        return torch.cat([weight_DK, self._bias * gradient_EK[-1:]])


class ClassCurvature(ABC):
    """An inverse Hessian made of one block a class, (A_k)⁻¹, with what its blocks leave out.

    The intercept is eliminated exactly, which centres the rows of a class on their weighted mean μ_k. The loss does not
    change with the mean of W over the classes, of which the blocks know nothing: there the inverse Hessian is 1/λ, and
    the blocks are kept to the rest.

    Args:
        centre_DK: (D, K) μ_k; its dtype is the precision of the products.
        intercept_curvature_K: (K,) mean of v over the rows.
        lam: λ.
    """

    def __init__(self, centre_DK: torch.Tensor, intercept_curvature_K: torch.Tensor, lam: float) -> None:
        self._centre_DK, self._lam = centre_DK, lam
        self.intercept_curvature_K = intercept_curvature_K.double()

    @abstractmethod
    def _solve(self, centred_KD: torch.Tensor) -> torch.Tensor:
        """(K, D) A_k⁻¹ times the row of class k."""

    def __call__(self, gradient_EK: torch.Tensor) -> torch.Tensor:
        """H₀ times the gradient."""
        mean_E1 = gradient_EK.mean(1, keepdim=True)
        g_EK = (gradient_EK - mean_E1).to(self._centre_DK.dtype)
        step_KD = self._solve((g_EK[:-1] - self._centre_DK * g_EK[-1]).T)
        bias_K = g_EK[-1] / self.intercept_curvature_K.to(g_EK.dtype) - (self._centre_DK * step_KD.T).sum(0)
        step_EK = torch.cat([step_KD.T, bias_K[None]])
        step_EK -= step_EK.mean(1, keepdim=True)
        step_EK[:-1] += mean_E1[:-1] / self._lam
        return step_EK.to(gradient_EK.dtype)


class HardRows(ClassCurvature):
    """H_k of every class of one model at θ; see the module's docstring.

    Args:
        problem: Features, labels and folds.
        model: Index of the model.
        theta: (D+1, K) parameters whose curvature is meant.
    """

    def __init__(self, problem: FoldedProblem, model: int, theta: torch.Tensor) -> None:
        blocks, lam = problem.train_blocks(model), problem.penalty(model)
        p_NK = torch.softmax(problem.logits(model, theta.float(), blocks), 1)
        curvature_NK = p_NK.mul_(1 - p_NK).clamp_(min=SMALLEST_CURVATURE)
        n, mean_K = len(curvature_NK), curvature_NK.mean(0)
        hard_KR, position_KR = curvature_NK.T.contiguous().topk(_hard_rows(problem), dim=1)
        centre_DK = problem.back_project(model, curvature_NK) / mean_K
        x_KRD = problem.training_rows(model, position_KR) - centre_DK.T[:, None]
        rest_K = (mean_K - hard_KR.sum(1) / n).clamp(min=0)
        self._base_KD = lam + rest_K[:, None] * x_KRD.square().mean((0, 1))
        x_KRD *= (hard_KR / n).sqrt()[..., None]
        inside_KRR = (x_KRD / self._base_KD[:, None]).double() @ x_KRD.double().mT
        inside_KRR.diagonal(dim1=1, dim2=2).add_(1)
        single = float(inside_KRR.diagonal(dim1=1, dim2=2).max()) < SINGLE_CONDITION
        self._x_KRD = x_KRD if single else x_KRD.double()
        self._inverse_KRR = torch.cholesky_inverse(torch.linalg.cholesky(inside_KRR)).to(self._x_KRD.dtype)
        super().__init__(centre_DK.to(self._x_KRD.dtype), mean_K, lam)

    def _solve(self, centred_KD: torch.Tensor) -> torch.Tensor:
        step_KD = centred_KD / self._base_KD
        inside_KR1 = self._inverse_KRR @ (self._x_KRD @ step_KD[..., None])
        step_KD -= (self._x_KRD.mT @ inside_KR1)[..., 0] / self._base_KD
        return step_KD


def _hard_rows(problem: FoldedProblem) -> int:
    """R: as many as fit in the memory allowed, 1 … HARD_ROWS."""
    smallest = min(problem.train_size(m) for m in range(problem.num_models))
    one = 4 * problem.num_models * problem.num_classes * problem.z_ND.shape[1]
    return max(1, min(HARD_ROWS, smallest, HARD_ROWS_BYTES // one))
