"""An orthonormal basis of regressors that are known to be independent.

Legend: N rows, P columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr

_TOLERANCE = 1e-8


def orthonormal_columns(x_NP: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Q and R with X = Q R, Q'Q = I; R is square and invertible but not triangular (columns were pivoted).

    Fits in the coordinates of Q lose no digits to the scale or the correlation of the regressors.

    Args:
        x_NP: (N, P) regressors, finite.
        names: Their P names, for the error.

    Returns:
        Q (N, P) and R (P, P).

    Raises:
        ValueError: If a column is a linear combination of others (the sentence names the columns), a value is not
            finite, or there are fewer rows than columns.

    Example:
        >>> q_NP, r_PP = orthonormal_columns(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]]), ["intercept", "t"])
        >>> bool(np.allclose(q_NP @ r_PP, [[1, 0], [1, 1], [1, 3]]))
        True
    """
    x = np.asarray(x_NP, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != len(names):
        raise ValueError(f"regressors need one name a column, got shape {x.shape} and {len(names)} names")
    finite_P = np.atleast_1d(np.isfinite(x).all(axis=0))
    bad = [name for name, finite in zip(names, finite_P, strict=True) if not finite]
    if bad:
        raise ValueError(f"regressors must be finite; these columns are not: {bad}; leave out such rows before the fit")
    if x.shape[0] < x.shape[1]:
        raise ValueError(f"{x.shape[0]} rows cannot carry {x.shape[1]} regressors ({', '.join(names)})")
    scale = np.linalg.norm(x, axis=0)
    scale[scale == 0] = 1.0
    q_NP, r_PP, pivot = qr(x / scale, mode="economic", pivoting=True)
    independent = np.abs(np.diag(r_PP)) > _TOLERANCE * max(abs(r_PP[0, 0]), np.finfo(float).tiny)
    if not independent.all():
        dependent = [names[i] for i in sorted(pivot[~independent])]
        raise ValueError(
            f"the regressors are not independent: {dependent} can be written as linear combination(s) of the others "
            f"({', '.join(n for n in names if n not in dependent)}); leave them out"
        )
    return q_NP, r_PP[:, np.argsort(pivot)] * scale
