"""Satterthwaite's degrees of freedom of the fixed effects of a mixed model."""

from __future__ import annotations

import numpy as np

from humanlike.stats.mixed_deviance import ProfiledDeviance
from humanlike.stats.mixed_optimum import Optimum

_STEP = 1e-4
_FLAT = 1e-7


def satterthwaite_df(deviance: ProfiledDeviance, optimum: Optimum, back_PP: np.ndarray) -> np.ndarray:
    """(P,) degrees of freedom 2 v² / (g'A g), v the variance of a coefficient, g its gradient, A = 2 H⁻¹.

    g and the Hessian H of the deviance are in (θ, σ). Directions in which the deviance is flat (singular fits) are
    left out of A.

    Args:
        deviance: The profiled deviance.
        optimum: Its minimum.
        back_PP: Takes coefficients in coordinates of Q back to those of X.

    Returns:
        (P,) at least 0, infinity where the variance of a coefficient does not depend on the parameters.

    References:
        Kuznetsova, Brockhoff and Christensen 2017 (J. Stat. Software 82), Section 2.
    """
    theta_K = optimum.theta_K
    best = deviance.solve(theta_K)
    sigma = float(np.sqrt(best.sigma2))
    unscaled_P = _variances(best.unscaled_covariance_PP, back_PP)
    gradient_P = []
    for k in range(len(theta_K)):
        step = np.zeros(len(theta_K))
        step[k] = _STEP * max(1.0, abs(theta_K[k]))
        ahead, behind = (deviance.solve(t).unscaled_covariance_PP for t in (theta_K + step, theta_K - step))
        gradient_P.append((_variances(ahead, back_PP) - _variances(behind, back_PP)) / (2 * step[k]))
    gradient_PM = np.column_stack([best.sigma2 * np.column_stack(gradient_P), 2 * sigma * unscaled_P])
    # unprofiled deviance: df log σ² + ρ(θ)/σ² + terms in θ; profiling over σ gave the Hessian at hand
    mixed_K = -2 * best.rss_gradient_K / sigma**3
    sigma_sigma = 4 * deviance.df / best.sigma2
    hessian = np.block(
        [
            [optimum.hessian_KK + np.outer(mixed_K, mixed_K) / sigma_sigma, mixed_K[:, None]],
            [mixed_K[None, :], np.array([[sigma_sigma]])],
        ]
    )
    # parameters in units of themselves, so that "flat" depends neither on the unit of the outcome nor on its noise
    unit_M = np.append(np.maximum(1.0, np.abs(theta_K)), sigma)
    value_M, vector_MM = np.linalg.eigh(hessian * np.outer(unit_M, unit_M))
    kept = value_M > _FLAT * value_M.max()
    spread_PM = (gradient_PM * unit_M) @ vector_MM[:, kept] / np.sqrt(value_M[kept])
    noise_P = 2 * (spread_PM**2).sum(axis=1)
    variance_P = best.sigma2 * unscaled_P
    return np.divide(2 * variance_P**2, noise_P, out=np.full(len(variance_P), np.inf), where=noise_P > 0)


def _variances(covariance_PP: np.ndarray, back_PP: np.ndarray) -> np.ndarray:
    return np.einsum("ij,jk,ik->i", back_PP, covariance_PP, back_PP)
