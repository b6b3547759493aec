"""The cross products of a mixed model's design, computed once, from which every fit and every deviance follows.

Legend: N rows, P fixed terms, Q random terms, G groups. Fixed terms stand in the coordinates of an orthonormal basis
(X = Q R, so that Q'Q = I), the outcome as its residual from them (so that Q'y = 0), random terms divided by their root
mean square: no digit is lost to the units or the correlation of regressors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from humanlike.stats.full_rank import orthonormal_columns

_NO_REST = 1e-9


@dataclass(frozen=True)
class MixedDesign:
    """A linear mixed model with one grouping factor: y = X β + Z_g b_g + ε, b_g ~ N(0, σ² T T'), ε ~ N(0, σ²).

    Attributes:
        outcome_N: (N,) y, finite.
        fixed: Name → (N,) column of X, the intercept included if there is to be one.
        random: Name → (N,) column of Z; the coefficients of these columns vary over groups.
        group_N: (N,) group of every row, of any sortable type.
        count_N: (N,) how many observations a row stands for, `outcome_N` being their mean: observations of equal
            regressors and group may be given as one row, and the fit is the same. None: one each.
        within: Sum of squares of those observations about their row's mean.
    """

    outcome_N: np.ndarray
    fixed: Mapping[str, np.ndarray]
    random: Mapping[str, np.ndarray]
    group_N: np.ndarray
    count_N: np.ndarray | None = None
    within: float = 0.0

    def __post_init__(self) -> None:
        n = len(self.outcome_N)
        if not self.fixed or not self.random:
            raise ValueError("a mixed model needs at least one fixed and one random term")
        columns = {"outcome": self.outcome_N, **self.fixed, **self.random, "group": self.group_N}
        for name, column in columns.items():
            if np.shape(column) != (n,):
                raise ValueError(f"column {name!r} must have {n} values as the outcome, got shape {np.shape(column)}")
        for name, column in {"outcome": self.outcome_N, **self.random}.items():
            if not np.isfinite(np.asarray(column, np.float64)).all():
                raise ValueError(
                    f"column {name!r} holds values that are not finite; leave out such rows before the fit"
                )
        if self.count_N is not None and (np.shape(self.count_N) != (n,) or not (np.asarray(self.count_N) > 0).all()):
            raise ValueError(f"counts must be {n} positive numbers as the outcome, got shape {np.shape(self.count_N)}")
        if not (np.isfinite(self.within) and self.within >= 0):
            raise ValueError(f"the sum of squares within rows must be finite and at least 0, got {self.within}")

    def without(self, *terms: str) -> MixedDesign:
        """The same model less some fixed terms, for a likelihood-ratio test."""
        unknown = [term for term in terms if term not in self.fixed]
        if unknown:
            raise ValueError(f"there are no fixed terms {unknown}; there are {list(self.fixed)}")
        kept = {name: column for name, column in self.fixed.items() if name not in terms}
        return replace(self, fixed=kept)


@dataclass(frozen=True)
class CrossProducts:
    """Sufficient statistics of a `MixedDesign` for every value of its covariance parameters.

    Attributes:
        zz_GQQ: Z_g'Z_g of the scaled random terms.
        zx_GQP: Z_g'X_g of the orthonormal fixed terms.
        zy_GQ: Z_g'y_g of the residual outcome.
        yy: Sum of squares of the residual outcome.
        r_PP: R of X = Q R.
        ols_P: Q'y, the least squares estimate that was subtracted, in coordinates of Q.
        scale_Q: Root mean squares that the random terms were divided by.
        n: Observations.
        fixed_names: Names of the fixed terms.
        random_names: Names of the random terms.
        groups: The G groups, sorted.
    """

    zz_GQQ: np.ndarray
    zx_GQP: np.ndarray
    zy_GQ: np.ndarray
    yy: float
    r_PP: np.ndarray
    ols_P: np.ndarray
    scale_Q: np.ndarray
    n: int
    fixed_names: tuple[str, ...]
    random_names: tuple[str, ...]
    groups: np.ndarray


def cross_products(design: MixedDesign) -> CrossProducts:
    """The cross products of a design; cost O(N (P + Q)²), memory O(N P), once per set of fixed terms.

    Raises:
        ValueError: If fixed or random terms are not independent (they are named), there is one group only, there are no
            more rows than random coefficients (groups × random terms), or the terms leave no residual variance.
    """
    groups, code_N = np.unique(np.asarray(design.group_N), return_inverse=True)
    count_N = np.ones(len(code_N)) if design.count_N is None else np.asarray(design.count_N, np.float64)
    n, root_N = round(float(count_N.sum())), np.sqrt(count_N)
    y_N = np.asarray(design.outcome_N, np.float64) * root_N
    z_NQ = np.column_stack([np.asarray(column, np.float64) * root_N for column in design.random.values()])
    x_NP = np.column_stack([np.asarray(column, np.float64) * root_N for column in design.fixed.values()])
    q, p = z_NQ.shape[1], x_NP.shape[1]
    if len(groups) < 2:
        raise ValueError(f"a mixed model needs two groups or more, got {len(groups)} ({groups.tolist()})")
    if n <= len(groups) * q:
        raise ValueError(
            f"{n} observations cannot tell {q} random coefficients for each of {len(groups)} groups from the "
            "residual; give more rows a group or fewer random terms"
        )
    orthonormal_columns(z_NQ, list(design.random))  # only to name dependent random terms
    q_NP, r_PP = orthonormal_columns(x_NP, list(design.fixed))
    ols_P = q_NP.T @ y_N
    rest_N = y_N - q_NP @ ols_P
    rest_N -= q_NP @ (q_NP.T @ rest_N)  # again: the first pass leaves rounding errors of the size of y
    yy = float(rest_N @ rest_N) + design.within
    if yy <= 1e-24 * float(y_N @ y_N):
        raise ValueError("the fixed terms explain the outcome without a rest: there is no variance to model")
    scale_Q = np.sqrt((z_NQ**2).sum(axis=0) / n)
    table = np.column_stack([z_NQ / scale_Q, q_NP, rest_N])[np.argsort(code_N, kind="stable")]
    ends = np.cumsum(np.bincount(code_N))
    products = np.stack([block[:, :q].T @ block for block in np.split(table, ends[:-1])])
    found = CrossProducts(
        zz_GQQ=products[:, :, :q],
        zx_GQP=products[:, :, q : q + p],
        zy_GQ=products[:, :, q + p],
        yy=yy,
        r_PP=r_PP,
        ols_P=ols_P,
        scale_Q=scale_Q,
        n=n,
        fixed_names=tuple(design.fixed),
        random_names=tuple(design.random),
        groups=groups,
    )
    if _unexplained(found) < _NO_REST:
        raise ValueError(
            "fixed terms and a set of random coefficients for each group explain the outcome without a rest: the "
            "residual variance is 0 but for rounding, and the likelihood has no maximum"
        )
    return found


def _unexplained(c: CrossProducts) -> float:
    """Share of the residual sum of squares that is left by least squares with free coefficients for each group."""
    inverse_GQQ = np.linalg.pinv(c.zz_GQQ, rcond=1e-10, hermitian=True)
    fitted_GQP, fitted_GQ = inverse_GQQ @ c.zx_GQP, np.einsum("gij,gj->gi", inverse_GQQ, c.zy_GQ)
    p = c.zx_GQP.shape[2]
    rest_PP = np.eye(p) - np.einsum("gqp,gqr->pr", c.zx_GQP, fitted_GQP)
    right_P = -np.einsum("gqp,gq->p", c.zx_GQP, fitted_GQ)
    by_fixed = float(right_P @ np.linalg.pinv(rest_PP, rcond=1e-8, hermitian=True) @ right_P)
    return 1 - (float((c.zy_GQ * fitted_GQ).sum()) + by_fixed) / c.yy
