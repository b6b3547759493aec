"""Adjusted R² of people's cell metrics on a model's, for all bootstrap replicates at once.

Legend: B replicates, C cells. Ordinary least squares by Gram-Schmidt, column after column over all replicates: a column
that adds nothing (a constant model, one condition only) lowers the rank instead of breaking the fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_BLOCK_REPLICATES = 32
_COLUMN_TOLERANCE = 1e-10
_CONSTANT_TOLERANCE = 1e-12


def alignment_r2(people_BC: np.ndarray, model_BC: np.ndarray, condition_C: np.ndarray) -> np.ndarray:
    """Alignment: adjusted R² of people ~ 1 + model + t + model·t over cells, t numeric.

    Adjusted R² = 1 - (SSE / (n - rank)) / (SST / (n - 1)), n the cells that both sides have, rank that of the
    regressors with the intercept. 1 means that the model's cells determine people's; about 0 (it can be negative)
    that they tell nothing. A concept-blind model can reach a high value through t alone: read `delta_r2` beside it.

    Args:
        people_BC: (B, C) or (C,) cell metric of people; NaN marks a missing cell.
        model_BC: (B, C) or (C,) cell metric of the model, same cells in the same order; a side with one row is used
            for all replicates.
        condition_C: (C,) condition value of every cell, finite.

    Returns:
        (B,) float64, at most 1; NaN where n ≤ rank or people's cells are all equal.

    Raises:
        ValueError: If shapes do not fit or a value is infinite.

    References:
        Mukherjee et al. 2023 (SEVA), Section 3.2 and Figure 5.

    Example:
        >>> t = np.tile([4.0, 8.0], 4)
        >>> model = np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.6, 0.0, 0.1])
        >>> alignment_r2(2 * model + 0.1 * t, model, t).round(6).tolist()
        [1.0]
    """
    people, model, condition = _cells(people_BC, model_BC, condition_C)
    return _adjusted_r2(people, model, condition, [condition])


def condition_r2(people_BC: np.ndarray, condition_C: np.ndarray, model_BC: np.ndarray | None = None) -> np.ndarray:
    """What the condition alone predicts: adjusted R² of people ~ C(t), t a factor.

    Args:
        people_BC: As in `alignment_r2`.
        condition_C: As in `alignment_r2`.
        model_BC: Cells missing here are left out too, so that the value compares with that of `delta_r2`.

    Returns:
        (B,) float64; 0 where there is one condition only, NaN as in `alignment_r2`.
    """
    people, model, condition = _cells(people_BC, people_BC if model_BC is None else model_BC, condition_C)
    return _adjusted_r2(people, model, condition, _factor(condition), with_model=False)


def condition_model_r2(people_BC: np.ndarray, model_BC: np.ndarray, condition_C: np.ndarray) -> np.ndarray:
    """What condition and model predict together: adjusted R² of people ~ C(t) + model + model·t.

    C(t) is the condition as a factor, because people's accuracy is concave in t; t in model·t is numeric.

    Args:
        people_BC: As in `alignment_r2`.
        model_BC: As in `alignment_r2`.
        condition_C: As in `alignment_r2`.

    Returns:
        (B,) float64, NaN as in `alignment_r2`.
    """
    people, model, condition = _cells(people_BC, model_BC, condition_C)
    return _adjusted_r2(people, model, condition, _factor(condition))


def delta_r2(people_BC: np.ndarray, model_BC: np.ndarray, condition_C: np.ndarray) -> np.ndarray:
    """What the model adds over the condition: `condition_model_r2` - `condition_r2`, on the same cells.

    About 0 for a model that knows nothing of the concepts. For an interval give both parts to `intervals.difference`;
    the replicates of the difference itself, however centred, cover the truth too rarely.

    Args:
        people_BC: As in `alignment_r2`.
        model_BC: As in `alignment_r2`.
        condition_C: As in `alignment_r2`.

    Returns:
        (B,) float64, NaN as in `alignment_r2`.
    """
    alone = condition_r2(people_BC, condition_C, model_BC)
    return condition_model_r2(people_BC, model_BC, condition_C) - alone


def split_correlation(a_BC: np.ndarray, b_BC: np.ndarray) -> np.ndarray:
    """(B,) Pearson correlation over the cells that both sides have; NaN below two cells or for a constant side."""
    a, b, _ = _cells(a_BC, b_BC, np.zeros(np.shape(a_BC)[-1]))
    mask = np.isfinite(a) & np.isfinite(b)
    n_B = mask.sum(axis=1)
    a_c = np.where(mask, a - _masked_mean(a, mask), 0.0)
    b_c = np.where(mask, b - _masked_mean(b, mask), 0.0)
    scale = np.sqrt((a_c**2).sum(axis=1) * (b_c**2).sum(axis=1))
    size = np.sqrt((np.where(mask, a, 0.0) ** 2).sum(axis=1) * (np.where(mask, b, 0.0) ** 2).sum(axis=1))
    known = (n_B > 1) & (scale > _CONSTANT_TOLERANCE * size)
    return np.where(known, (a_c * b_c).sum(axis=1) / np.where(known, scale, 1.0), np.nan)


def paired_cells(people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
    """(B,) number of cells that both sides have, the n of the fits."""
    return (np.isfinite(np.atleast_2d(people_BC)) & np.isfinite(np.atleast_2d(model_BC))).sum(axis=1)


def _cells(
    people_BC: np.ndarray, model_BC: np.ndarray, condition_C: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    people, model = (np.atleast_2d(np.asarray(side, dtype=np.float64)) for side in (people_BC, model_BC))
    condition = np.asarray(condition_C, dtype=np.float64)
    rows = {len(people), len(model)}
    if people.ndim != 2 or model.ndim != 2 or not people.shape[1] == model.shape[1] == condition.size:
        raise ValueError(
            f"people, model and condition need the same cells, got shapes {people.shape}, {model.shape} and "
            f"{condition.shape}"
        )
    if len(rows - {1}) > 1:
        raise ValueError(f"people have {len(people)} replicates and the model {len(model)}; give equal numbers, or 1")
    if np.any(np.isinf(people)) or np.any(np.isinf(model)) or not np.all(np.isfinite(condition)):
        raise ValueError("cell metrics must be finite or NaN (a missing cell), and conditions finite")
    return people, model, condition[None, :]


def _factor(condition_1C: np.ndarray) -> list[np.ndarray]:
    """One 0/1 column for every condition but the first."""
    return [(condition_1C == value).astype(np.float64) for value in np.unique(condition_1C)[1:]]


def _masked_mean(x_BC: np.ndarray, mask_BC: np.ndarray) -> np.ndarray:
    n_B1 = np.maximum(mask_BC.sum(axis=1, keepdims=True), 1)
    return np.where(mask_BC, x_BC, 0.0).sum(axis=1, keepdims=True) / n_B1


def _adjusted_r2(
    people_BC: np.ndarray,
    model_BC: np.ndarray,
    condition_1C: np.ndarray,
    shared: Sequence[np.ndarray],
    *,
    with_model: bool = True,
) -> np.ndarray:
    """(B,) adjusted R² of people ~ 1 + shared (1, C) columns, + model + model·t unless without the model."""
    shared = [np.ones_like(condition_1C), *shared]
    basis_QC = np.stack(_orthonormal(shared, shared[0][:0])[0])[:, 0]

    def rows_of(x_BC: np.ndarray, rows: slice) -> np.ndarray:
        return x_BC if len(x_BC) == 1 else x_BC[rows]

    parts = []  # blocks that stay in the cache: every step goes over all cells of all its replicates several times
    for at in range(0, max(len(people_BC), len(model_BC)), _BLOCK_REPLICATES):
        rows = slice(at, at + _BLOCK_REPLICATES)
        people, model = rows_of(people_BC, rows), rows_of(model_BC, rows)
        columns = [model, model * condition_1C] if with_model else []
        mask = np.isfinite(people) & np.isfinite(model)
        if mask.all():
            parts.append(_adjusted(people, basis_QC, columns, mask))
        else:  # every replicate leaves other cells out, so that none shares a column with another
            masked = [np.where(mask, column, 0.0) for column in (*shared, *columns)]
            parts.append(_adjusted(np.where(mask, people, 0.0), basis_QC[:0], masked, mask))
    return np.concatenate(parts)


def _adjusted(
    y_BC: np.ndarray, shared_QC: np.ndarray, columns: Sequence[np.ndarray], mask_BC: np.ndarray
) -> np.ndarray:
    """(B,) adjusted R² of a few replicates; y and the columns are 0 in cells that the mask leaves out."""
    basis, rank_B = _orthonormal(columns, shared_QC)
    rank_B = rank_B + np.any(shared_QC != 0, axis=1).sum()
    n_B = mask_BC.sum(axis=1)
    about_mean = np.where(mask_BC, y_BC - _masked_mean(y_BC, mask_BC), 0.0)
    sst_B = _along(about_mean, about_mean)
    residual = _residual(y_BC, shared_QC, basis)
    sse_B = _along(residual, residual)
    varies_B = np.sqrt(sst_B) > _CONSTANT_TOLERANCE * np.sqrt(_along(y_BC, y_BC))
    enough = (n_B > rank_B) & (rank_B > 0) & varies_B
    residual_B = np.where(enough, sse_B, 0.0) / np.where(enough, n_B - rank_B, 1)
    total_B = np.where(enough, sst_B, 1.0) / np.where(enough, np.maximum(n_B - 1, 1), 1)
    return np.where(enough, 1.0 - residual_B / total_B, np.nan)


def _orthonormal(columns: Sequence[np.ndarray], shared_QC: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Gram-Schmidt, column after column, behind a basis that all replicates share.

    Returns:
        The columns as orthonormal rows, 0 where one adds nothing, and the (B,) number of those that add something.
    """
    basis: list[np.ndarray] = []
    rank_B = np.zeros(1, dtype=np.int64)
    for column in columns:
        v = _residual(column, shared_QC, basis)
        length_B = np.sqrt(_along(v, v))
        adds_B = length_B > _COLUMN_TOLERANCE * np.sqrt(_along(column, column))
        basis.append(np.where(adds_B, 1.0 / np.where(adds_B, length_B, 1.0), 0.0)[:, None] * v)
        rank_B = rank_B + adds_B
    return basis, rank_B


def _residual(v_BC: np.ndarray, shared_QC: np.ndarray, basis: Sequence[np.ndarray]) -> np.ndarray:
    """What is left of v outside the span of orthonormal rows."""
    for _ in range(2):  # twice is enough: the second pass removes what rounding left in the first
        if len(shared_QC):
            v_BC = v_BC - (v_BC @ shared_QC.T) @ shared_QC
        for q_BC in basis:
            v_BC = v_BC - _along(q_BC, v_BC)[:, None] * q_BC
    return v_BC


def _along(a_BC: np.ndarray, b_BC: np.ndarray) -> np.ndarray:
    """(B,) inner product of every replicate; a side with one row is used for all."""
    return np.vecdot(a_BC, b_BC)
