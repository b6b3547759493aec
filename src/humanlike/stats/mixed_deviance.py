"""The deviance of a linear mixed model, profiled over everything but the relative covariance factor, with its gradient.

Legend as `mixed_products`; K parameters θ, the free entries of the lower triangular T with Cov(b) = σ² T T'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanlike.stats.mixed_products import CrossProducts

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Solution:
    """What is optimal given θ.

    Attributes:
        deviance: -2 log-likelihood (ML) or -2 restricted log-likelihood (REML).
        gradient_K: Its derivative in θ.
        rss_gradient_K: Derivative of the penalised sum of squares in θ.
        beta_P: Fixed effects in coordinates of Q, relative to least squares.
        unscaled_covariance_PP: (X'V⁻¹X)⁻¹ in the same coordinates; times σ² it is their covariance.
        sigma2: Residual variance σ².
    """

    deviance: float
    gradient_K: np.ndarray
    rss_gradient_K: np.ndarray
    beta_P: np.ndarray
    unscaled_covariance_PP: np.ndarray
    sigma2: float


class ProfiledDeviance:
    """θ → deviance, profiled over β and σ.

    With A_g = T'Z_g'Z_g T + I and the penalised sum of squares ρ(θ) = min over β, u of |y - Xβ - ZTu|² + |u|²:
    ML d = Σ log|A_g| + N (1 + log(2πρ/N)); REML adds log|X'V⁻¹X| and has N - P for N. d depends on T through T T'
    alone, so θ needs no bounds here: minima with a negative diagonal are mirror images, and a singular fit is a
    smooth minimum with a zero on the diagonal instead of a corner.

    Args:
        products: Cross products of the design.
        reml: Restricted likelihood instead of likelihood.
        correlated: Full covariance of the random terms; otherwise a variance each (`||` in lme4).

    References:
        Bates, Mächler, Bolker and Walker 2015 (J. Stat. Software 67), Section 3.
    """

    def __init__(self, products: CrossProducts, *, reml: bool, correlated: bool) -> None:
        q = len(products.random_names)
        self.products = products
        self.reml = reml
        self.rows_K, self.columns_K = np.tril_indices(q) if correlated else (np.arange(q), np.arange(q))
        self.df = products.n - (len(products.fixed_names) if reml else 0)
        self._constant = 2 * float(np.linalg.slogdet(products.r_PP)[1]) if reml else 0.0
        self.evaluations = 0

    def factor(self, theta_K: np.ndarray) -> np.ndarray:
        """T (Q, Q) of θ, for scaled random terms."""
        q = len(self.products.random_names)
        t_QQ = np.zeros((q, q))
        t_QQ[self.rows_K, self.columns_K] = theta_K
        return t_QQ

    def solve(self, theta_K: np.ndarray) -> Solution:
        """Deviance, gradient and what is optimal at θ; O(G Q² P) whatever the number of rows."""
        self.evaluations += 1
        c, t_QQ = self.products, self.factor(theta_K)
        zt_GQQ = c.zz_GQQ @ t_QQ
        a_GQQ = t_QQ.T @ zt_GQQ
        a_GQQ[:, range(len(t_QQ)), range(len(t_QQ))] += 1.0
        root_GQQ = np.linalg.cholesky(a_GQQ)
        inverse_GQQ = np.linalg.inv(root_GQQ)
        log_det = 2 * float(np.log(np.diagonal(root_GQQ, axis1=1, axis2=2)).sum())
        half_GQQ = inverse_GQQ @ t_QQ.T
        rzx_GQP = half_GQQ @ c.zx_GQP
        cu_GQ = np.einsum("gij,gj->gi", half_GQQ, c.zy_GQ)
        rzx, cu = rzx_GQP.reshape(-1, rzx_GQP.shape[2]), cu_GQ.ravel()
        information_PP = np.eye(rzx.shape[1]) - rzx.T @ rzx
        covariance_PP = np.linalg.inv(information_PP)
        right_P = -rzx.T @ cu
        beta_P = covariance_PP @ right_P
        # never below rounding error, where a line search may stray to
        rss = max(c.yy - float(cu @ cu) - float(beta_P @ right_P), 1e-15 * c.yy)
        u_GQ = np.einsum("gji,gj->gi", inverse_GQQ, cu_GQ - rzx_GQP @ beta_P)
        zr_GQ = c.zy_GQ - c.zx_GQP @ beta_P - np.einsum("gij,gj->gi", zt_GQQ, u_GQ)
        rss_gradient_QQ = -2 * zr_GQ.T @ u_GQ
        a_inverse_GQQ = np.swapaxes(inverse_GQQ, 1, 2) @ inverse_GQQ
        gradient_QQ = 2 * (zt_GQQ @ a_inverse_GQQ).sum(axis=0) + self.df / rss * rss_gradient_QQ
        deviance = log_det + self.df * (1 + _LOG_2PI + np.log(rss / self.df))
        if self.reml:
            w_GQP = c.zx_GQP - zt_GQQ @ (np.swapaxes(inverse_GQQ, 1, 2) @ rzx_GQP)
            wcw_QQ = ((w_GQP @ covariance_PP) @ np.swapaxes(w_GQP, 1, 2)).sum(axis=0)
            gradient_QQ -= 2 * wcw_QQ @ t_QQ
            deviance += float(np.linalg.slogdet(information_PP)[1]) + self._constant
        return Solution(
            deviance=float(deviance),
            gradient_K=gradient_QQ[self.rows_K, self.columns_K],
            rss_gradient_K=rss_gradient_QQ[self.rows_K, self.columns_K],
            beta_P=beta_P,
            unscaled_covariance_PP=covariance_PP,
            sigma2=rss / self.df,
        )
