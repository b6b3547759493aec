"""How many of E elements are truly present, given how many a judge with known errors called present.

A mean of a curved function of the true count (SEA) cannot be had from a corrected count: that is noisy, can leave
[0, E], and a function of a noisy number is biased. So the function is averaged over the *posterior* of the true count.

Legend: N sketches, T groups (conditions), R rows of distributions, E elements, X the largest E plus 1 (counts 0 … E).
V true count, W count called present. Se, Sp sensitivity and specificity, J = Se + Sp - 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import comb

GRID = 25
"""Prior means that are tabulated; between them is interpolated."""
_STEPS, _LARGEST = 60, 80.0


def count_likelihood(elements: int, sensitivity: float, specificity: float) -> np.ndarray:
    """(E + 1, E + 1) probability [V, W] that a judge calls W of E elements present when V are.

    W is Binomial(V, Se) + Binomial(E - V, 1 - Sp): errors are independent of each other and of the element.

    Args:
        elements: E ≥ 1.
        sensitivity: Se.
        specificity: Sp.

    Example:
        >>> count_likelihood(1, 0.8, 0.7).round(3).tolist()
        [[0.7, 0.3], [0.2, 0.8]]
    """
    right = [_binomial(v, sensitivity) for v in range(elements + 1)]
    wrong = [_binomial(v, 1 - specificity) for v in range(elements + 1)]
    return np.stack([np.convolve(right[v], wrong[elements - v]) for v in range(elements + 1)])


def _binomial(n: int, p: float) -> np.ndarray:
    """(n + 1,) probabilities of 0 … n hits; a distribution of scipy costs a hundred times as much for so few."""
    k_K = np.arange(n + 1)
    return comb(n, k_K) * p**k_K * (1 - p) ** (n - k_K)


def count_prior(elements: int, mean_R: np.ndarray, variance_R: np.ndarray) -> np.ndarray:
    """(R, E + 1) distributions of V/E with these means and variances, of largest entropy: ∝ exp(a v + b v²).

    Unlike a beta-binomial it can be narrower than a binomial, as counts of unlike elements are (a body is always drawn,
    whiskers seldom). A variance that no distribution with this mean has is brought into reach.

    Args:
        elements: E ≥ 1.
        mean_R: (R,) means of V/E, clipped to [0.01, 0.99].
        variance_R: (R,) variances of V/E.

    Example:
        >>> prior = count_prior(4, np.array([0.5]), np.array([0.05]))
        >>> (prior @ np.arange(5) / 4).round(6).tolist(), bool(prior[0, 0] < prior[0, 2])
        ([0.5], True)
    """
    x_X = np.arange(elements + 1) / elements
    mean_R = np.clip(np.asarray(mean_R, np.float64), 0.01, 0.99)
    place_R = np.mod(mean_R * elements, 1.0)
    least_R, most_R = place_R * (1 - place_R) / elements**2, mean_R * (1 - mean_R)
    # At its bounds a variance leaves two counts alone; the parameters would be infinite there.
    variance_R = np.clip(variance_R, least_R + 0.02 * (most_R - least_R), most_R - 0.02 * (most_R - least_R))
    target_R2 = np.stack([mean_R, variance_R + mean_R**2], axis=1)
    feature_X2 = np.stack([x_X, x_X**2], axis=1)
    if elements == 1:
        return np.stack([1 - mean_R, mean_R], axis=1)
    theta_R2 = np.zeros_like(target_R2)
    for _ in range(_STEPS):
        p_RX = _softmax(theta_R2 @ feature_X2.T)
        fitted_R2 = p_RX @ feature_X2
        gradient_R2 = fitted_R2 - target_R2
        if np.abs(gradient_R2).max(initial=0.0) < 1e-10:
            break
        second_R22 = np.einsum("rx,xi,xj->rij", p_RX, feature_X2, feature_X2)
        hessian_R22 = second_R22 - fitted_R2[:, :, None] * fitted_R2[:, None, :] + 1e-12 * np.eye(2)
        step_R2 = np.linalg.solve(hessian_R22, gradient_R2[:, :, None])[:, :, 0]
        # The dual is convex: steps of bounded length cannot run away.
        step_R2 *= np.minimum(1.0, _LARGEST / np.maximum(np.abs(step_R2).max(axis=1, keepdims=True), 1e-300))
        theta_R2 = _descended(theta_R2, step_R2, gradient_R2, target_R2, feature_X2)
    return _softmax(theta_R2 @ feature_X2.T)


def _descended(
    theta_R2: np.ndarray, step_R2: np.ndarray, gradient_R2: np.ndarray, target_R2: np.ndarray, feature_X2: np.ndarray
) -> np.ndarray:
    """Newton's step of every row, halved until the dual log Z - θ·target falls."""
    size_R = np.ones(len(theta_R2))
    now_R, slope_R = _dual(theta_R2, target_R2, feature_X2), (gradient_R2 * step_R2).sum(axis=1)
    for _ in range(30):
        there_R = _dual(theta_R2 - size_R[:, None] * step_R2, target_R2, feature_X2)
        worse_R = there_R > now_R - 1e-4 * size_R * slope_R + 1e-13
        if not worse_R.any():
            break
        size_R = np.where(worse_R, size_R / 2, size_R)
    return theta_R2 - size_R[:, None] * step_R2


def _dual(theta_R2: np.ndarray, target_R2: np.ndarray, feature_X2: np.ndarray) -> np.ndarray:
    score_RX = theta_R2 @ feature_X2.T
    top_R = score_RX.max(axis=1)
    return top_R + np.log(np.exp(score_RX - top_R[:, None]).sum(axis=1)) - (theta_R2 * target_R2).sum(axis=1)


def _softmax(score_RX: np.ndarray) -> np.ndarray:
    raised_RX = np.exp(score_RX - score_RX.max(axis=1, keepdims=True))
    return raised_RX / raised_RX.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class ObservedCounts:
    """What a judge said of N sketches.

    Attributes:
        elements_N: (N,) E ≥ 1, the elements that were judged.
        called_N: (N,) W, those called present.
        group_N: (N,) condition, from 0.
        covariate_N: (N,) what else is known of a sketch and goes with v: its recognition P.
    """

    elements_N: np.ndarray
    called_N: np.ndarray
    group_N: np.ndarray
    covariate_N: np.ndarray

    def prior_moments(
        self, sensitivity: float, specificity: float, weight_N: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(N,) prior mean and (N,) prior variance of v = V/E of every sketch, by moments within its condition.

        With w = W/E: E[w] = 1 - Sp + J E[v]; cov(w, P) = J cov(v, P); var w = J² var v + E[v Se(1 - Se) +
        (1 - v) Sp(1 - Sp)]/E. The mean of v follows P linearly (without that, the mean of a function of P and v would
        be biased); the variance is what P leaves.

        Args:
            sensitivity: Se.
            specificity: Sp.
            weight_N: (N,) weights of the sketches; all 1 by default.
        """
        weight_N = np.ones(len(self.called_N)) if weight_N is None else weight_N
        youden = sensitivity + specificity - 1
        groups = int(self.group_N.max(initial=-1)) + 1
        total_T = np.maximum(np.bincount(self.group_N, weight_N, groups), 1e-300)

        def mean(value_N: np.ndarray) -> np.ndarray:
            return (np.bincount(self.group_N, weight_N * value_N, groups) / total_T)[self.group_N]

        w_N, x_N = self.called_N / self.elements_N, self.covariate_N
        v_N = np.clip((mean(w_N) + specificity - 1) / youden, 0.0, 1.0)
        dw_N, dx_N = w_N - mean(w_N), x_N - mean(x_N)
        spread_N = mean(dx_N**2)
        slope_N = np.where(spread_N > 1e-12, mean(dw_N * dx_N) / np.maximum(spread_N, 1e-12), 0.0) / youden
        noise_N = v_N * sensitivity * (1 - sensitivity) + (1 - v_N) * specificity * (1 - specificity)
        variance_N = (mean(dw_N**2) - mean(noise_N / self.elements_N)) / youden**2
        return v_N + slope_N * dx_N, np.maximum(0.0, variance_N - slope_N**2 * spread_N)

    def posterior(self, sensitivity: float, specificity: float, weight_N: np.ndarray | None = None) -> np.ndarray:
        """(N, X) posterior probability of V = 0 … X - 1 of every sketch; 0 beyond its E.

        A judge without errors gives back what it said.

        Args:
            sensitivity: Se.
            specificity: Sp; Se + Sp > 1.
            weight_N: (N,) weights for the moments of the prior.

        Raises:
            ValueError: If the judge says nothing (Se + Sp ≤ 1).
        """
        if not sensitivity + specificity > 1:
            raise ValueError(f"sensitivity {sensitivity} and specificity {specificity} leave nothing to be learnt")
        mean_N, variance_N = self.prior_moments(sensitivity, specificity, weight_N)
        mean_N = np.clip(mean_N, 0.01, 0.99)
        out_NX = np.zeros((len(mean_N), int(self.elements_N.max(initial=0)) + 1))
        grid_M = np.linspace(0.01, 0.99, GRID)
        place_N = (mean_N - 0.01) / 0.98 * (GRID - 1)
        low_N = np.minimum(place_N.astype(np.int64), GRID - 2)
        share_N = place_N - low_N
        for elements in np.unique(self.elements_N):
            likelihood_XX = count_likelihood(int(elements), sensitivity, specificity)
            rows = np.flatnonzero(self.elements_N == elements)
            _, first_T, place_n = np.unique(self.group_N[rows], return_index=True, return_inverse=True)
            variance_T = variance_N[rows[first_T]]
            prior_MX = count_prior(int(elements), np.tile(grid_M, len(variance_T)), np.repeat(variance_T, GRID))
            low, share = low_N[rows] + GRID * place_n.reshape(-1), share_N[rows, None]
            prior_nX = (1 - share) * prior_MX[low] + share * prior_MX[low + 1]
            joint_nX = prior_nX * likelihood_XX[:, self.called_N[rows]].T
            total_n1 = joint_nX.sum(axis=1, keepdims=True)
            # What cannot happen under these rates (Sp = 1 and W > V) is left as it was said.
            said_nX = np.eye(int(elements) + 1)[self.called_N[rows]]
            good_nX = np.divide(joint_nX, total_n1, out=said_nX, where=total_n1 > 0)
            out_NX[np.ix_(rows, np.arange(elements + 1))] = good_nX
        return out_NX
