"""Calibration of features on warm-up images: centred, scaled, of norm at most 1.

The warm-up mean becomes the origin, a high quantile of the warm-up norms the unit of length, and what is longer is
scaled to norm 1. The same can be done on inner products alone, where features were never kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK_ROWS = 512


@dataclass(frozen=True)
class Calibration:
    """Origin and unit of a feature space.

    Attributes:
        mean_D: (D,) mean of the warm-up features.
        radius: Quantile of the warm-up norms after centring, > 0.
    """

    mean_D: np.ndarray
    radius: float

    def __call__(self, features_ND: Any) -> np.ndarray:
        """(N, D) float64 calibrated features; rows longer than 1 get norm 1, a row equal to the mean becomes zero.

        Raises:
            ValueError: On NaN, infinite values or another number of features.
        """
        x_ND = finite_rows(features_ND, "features_ND", np.array)
        if x_ND.shape[1] != len(self.mean_D):
            raise ValueError(f"features_ND has {x_ND.shape[1]} features, the warm-up images {len(self.mean_D)}")
        x_ND -= self.mean_D
        x_ND /= self.radius
        norm_N = np.sqrt(np.einsum("nd,nd->n", x_ND, x_ND))
        x_ND /= np.maximum(norm_N, 1.0)[:, None]
        return x_ND


def fit_calibration(warmup_MD: Any, norm_quantile: float = 0.99) -> Calibration:
    """The calibration by (M, D) warm-up features.

    Args:
        warmup_MD: Features of the warm-up images, M ≥ 2.
        norm_quantile: Quantile of the warm-up norms that becomes 1: the paper's text has 0.99, the authors' current
            code 0.999.

    Raises:
        ValueError: On NaN or infinite values, fewer than two rows, a quantile outside (0, 1], or features that are the
            same for all warm-up images (norm 0: nothing to scale by).
    """
    w_MD = finite_rows(warmup_MD, "warmup_MD", np.asarray)
    _check_quantile(norm_quantile, len(w_MD))
    mean_D = w_MD.mean(0)
    norm_M = np.concatenate(
        [np.linalg.norm(w_MD[m : m + BLOCK_ROWS] - mean_D, axis=1) for m in range(0, len(w_MD), BLOCK_ROWS)]
    )
    # Rounding of the mean alone leaves norms of this size where all rows are equal.
    rounding = 1e-12 * float(np.linalg.norm(mean_D))
    return Calibration(mean_D, _radius(norm_M, norm_quantile, rounding))


def calibrate(features_ND: Any, warmup_MD: Any, norm_quantile: float = 0.99) -> np.ndarray:
    """(N, D) float64 features centred on the warm-up mean, divided by the quantile of warm-up norms, of norm ≤ 1.

    Args:
        features_ND: (N, D) features.
        warmup_MD: (M, D) features of the warm-up images.
        norm_quantile: See `fit_calibration`.

    Raises:
        ValueError: See `fit_calibration` and `Calibration`.

    References:
        Lee and DiCarlo, "Feature normalization".

    Example:
        >>> calibrate([[3.0, 0.0], [9.0, 0.0]], [[0.0, 0.0], [2.0, 0.0]], norm_quantile=1.0).tolist()
        [[1.0, 0.0], [1.0, 0.0]]
    """
    return fit_calibration(warmup_MD, norm_quantile)(features_ND)


def calibrate_gram(gram_NN: Any, cross_NM: Any, warmup_gram_MM: Any, norm_quantile: float = 0.99) -> np.ndarray:
    """(N, N) inner products of calibrated features, from inner products of the raw ones.

    With k_i the mean of row i of `cross_NM` and k the mean of `warmup_gram_MM`, centred inner products are
    K_ij - k_i - k_j + k. Agrees with `calibrate` up to rounding, which grows with the ratio of the mean's norm to the
    features' spread: give float64.

    Args:
        gram_NN: (N, N) inner products of the images.
        cross_NM: (N, M) of the images with the warm-up images.
        warmup_gram_MM: (M, M) of the warm-up images.
        norm_quantile: See `fit_calibration`.

    Raises:
        ValueError: On values that are not finite, shapes that do not fit, or warm-up images that are all the same.
    """
    K_NN, cross_NM = finite_rows(gram_NN, "gram_NN", np.asarray), finite_rows(cross_NM, "cross_NM", np.asarray)
    warmup_MM = finite_rows(warmup_gram_MM, "warmup_gram_MM", np.asarray)
    N, M = cross_NM.shape
    if K_NN.shape != (N, N) or warmup_MM.shape != (M, M):
        raise ValueError(
            f"gram_NN {K_NN.shape}, cross_NM {cross_NM.shape} and warmup_gram_MM {warmup_MM.shape} must be of shapes "
            "(N, N), (N, M) and (M, M)"
        )
    _check_quantile(norm_quantile, M)
    mean, mean_M, mean_N = warmup_MM.mean(), warmup_MM.mean(1), cross_NM.mean(1)
    norm_M = np.sqrt(np.maximum(warmup_MM.diagonal() - 2 * mean_M + mean, 0))
    rounding = 1e-7 * float(np.sqrt(np.abs(mean)))
    radius = _radius(norm_M, norm_quantile, rounding)
    centred_NN = (K_NN - mean_N[:, None] - mean_N[None, :] + mean) / radius**2
    longer_N = np.maximum(np.sqrt(np.maximum(centred_NN.diagonal(), 0)), 1.0)
    centred_NN /= longer_N[:, None] * longer_N[None, :]
    np.fill_diagonal(centred_NN, np.maximum(centred_NN.diagonal(), 0))
    return centred_NN


def finite_rows(values: Any, name: str, convert: Any) -> np.ndarray:
    """A filled (rows, columns) float64 array without NaN or infinite values.

    Raises:
        ValueError: When it is something else.
    """
    array = convert(values, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"{name} must be a filled array with two axes, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(1))
    if len(bad):
        raise ValueError(f"{name} holds NaN or infinite values in {len(bad)} row(s), first in row {bad[0]}")
    return array


def _check_quantile(norm_quantile: float, rows: int) -> None:
    if not 0 < norm_quantile <= 1:
        raise ValueError(f"norm_quantile must lie in (0, 1], got {norm_quantile}")
    if rows < 2:
        raise ValueError(f"calibration needs at least two warm-up images, got {rows}")


def _radius(norm_M: np.ndarray, norm_quantile: float, rounding: float) -> float:
    radius = float(np.quantile(norm_M, norm_quantile))
    if radius <= rounding:
        raise ValueError(
            "the features of the warm-up images have zero norm after centring (they are all the same), so that there "
            "is nothing to scale by; take another layer, or warm-up images that differ"
        )
    return radius
