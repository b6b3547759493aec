"""The minimum of a mixed model's profiled deviance: starts, Newton steps, and a check of what was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from humanlike.stats.mixed_deviance import ProfiledDeviance

_STARTS = (1.0, 0.1)
_STEP = 1e-4
_SADDLE = -1e-5
_DECREASE = 1e-6
_NEWTON_STEPS = 30


@dataclass(frozen=True)
class Optimum:
    """Where the deviance is least.

    Attributes:
        theta_K: θ with a non-negative diagonal of T.
        hessian_KK: Second derivatives of the profiled deviance there.
        decrease: How much deviance a further Newton step promises; about 0 at a minimum.
        curvature: Least eigenvalue of the Hessian over the largest; clearly negative at a saddle.
        converged: `decrease` is below 1e-6 and `curvature` above -1e-5.
    """

    theta_K: np.ndarray
    hessian_KK: np.ndarray
    decrease: float
    curvature: float
    converged: bool


def minimise(deviance: ProfiledDeviance) -> Optimum:
    """Minimise a profiled deviance.

    L-BFGS from two starts (random effects as large as the residual, and a tenth), Newton's method from the better one.
    At a zero column of T the gradient vanishes by symmetry whether or not the deviance falls beside it: the Hessian
    tells, and a saddle is left along its steepest direction.
    """
    diagonal_K = deviance.rows_K == deviance.columns_K
    found = min((_descend(deviance, np.where(diagonal_K, start, 0.0)) for start in _STARTS), key=lambda pair: pair[1])
    theta_K = found[0]
    for _ in range(3):
        theta_K = _newton(deviance, theta_K)
        hessian_KK = _hessian(deviance, theta_K)
        value_K, vector_KK = np.linalg.eigh(hessian_KK)
        if value_K[0] >= _SADDLE * _largest(value_K):
            break
        theta_K, _ = _descend(deviance, theta_K + 0.1 * vector_KK[:, 0])
    theta_K = _mirrored(deviance, theta_K)
    hessian_KK = _hessian(deviance, theta_K)
    value_K, vector_KK = np.linalg.eigh(hessian_KK)
    gradient_K = vector_KK.T @ deviance.solve(theta_K).gradient_K
    floor = 1e-6 * _largest(value_K)
    decrease = float(0.5 * (gradient_K**2 / np.maximum(np.abs(value_K), floor)).sum())
    curvature = float(value_K[0] / _largest(value_K))
    converged = bool(np.isfinite(decrease) and decrease < _DECREASE and curvature > _SADDLE)
    return Optimum(theta_K, hessian_KK, decrease, curvature, converged)


def _largest(value_K: np.ndarray) -> float:
    return float(max(np.abs(value_K).max(), np.finfo(float).tiny))


def _descend(deviance: ProfiledDeviance, start_K: np.ndarray) -> tuple[np.ndarray, float]:
    def value_and_gradient(theta_K: np.ndarray) -> tuple[float, np.ndarray]:
        solution = deviance.solve(theta_K)
        return solution.deviance, solution.gradient_K

    # the deviance is of the order of the number of rows, so a relative tolerance must be tiny
    options = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-6}
    result = minimize(value_and_gradient, start_K, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(result.x), float(result.fun)


def _newton(deviance: ProfiledDeviance, theta_K: np.ndarray) -> np.ndarray:
    """Newton steps with positive curvatures, halved until the deviance does not rise."""
    for _ in range(_NEWTON_STEPS):
        here = deviance.solve(theta_K)
        value_K, vector_KK = np.linalg.eigh(_hessian(deviance, theta_K))
        curvature_K = np.maximum(np.abs(value_K), 1e-6 * _largest(value_K))
        step_K = -vector_KK @ ((vector_KK.T @ here.gradient_K) / curvature_K)
        promised = float(-0.5 * here.gradient_K @ step_K)
        if promised < 1e-12 * max(1.0, abs(here.deviance)) * 1e-2:
            break
        for _ in range(20):
            if deviance.solve(theta_K + step_K).deviance <= here.deviance:
                break
            step_K = step_K / 2
        else:
            break
        theta_K = theta_K + step_K
    return theta_K


def _hessian(deviance: ProfiledDeviance, theta_K: np.ndarray) -> np.ndarray:
    """Central differences of the exact gradient."""
    columns = []
    for k in range(len(theta_K)):
        step = np.zeros(len(theta_K))
        step[k] = _STEP * max(1.0, abs(theta_K[k]))
        ahead, behind = deviance.solve(theta_K + step), deviance.solve(theta_K - step)
        columns.append((ahead.gradient_K - behind.gradient_K) / (2 * step[k]))
    hessian_KK = np.column_stack(columns)
    return (hessian_KK + hessian_KK.T) / 2


def _mirrored(deviance: ProfiledDeviance, theta_K: np.ndarray) -> np.ndarray:
    """The same T T' with a non-negative diagonal: columns of T may change sign."""
    t_QQ = deviance.factor(theta_K)
    t_QQ = t_QQ * np.where(np.diag(t_QQ) < 0, -1.0, 1.0)
    return t_QQ[deviance.rows_K, deviance.columns_K] + 0.0
