"""Two-way analysis of variance: how much of the spread of many scores each of two choices explains.

Model: y_ijk = μ + e_i + r_j + γ_ij + ε_ijk. Where every cell (i, j) holds one value at most, as in a sweep of encoding
stages × update rules that were each scored once, γ and ε cannot be told apart and are one residual.

Legend: N values, I levels of the first factor, J of the second, C occupied cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy import stats

SumsOfSquares = Literal["I", "II", "III"]
"""What a factor's sum of squares is taken beside: what stands before it; the other factor; everything."""

INTERACTION, RESIDUAL, TOTAL = "interaction", "residual", "total"
CONFOUNDED = "interaction and residual"
_ROUNDING = 1e-12


@dataclass(frozen=True)
class TwoWayAnova:
    """An analysis of variance.

    Attributes:
        table: One row a source (first factor, second factor, interaction, residual, total; with one value a cell the
            two before the last are one): `source, sum_sq, df, mean_sq, f_statistic, p_value, share, partial_share`.
            `share` is SS / SS_total (η²); `partial_share` SS / (SS + SS_residual). F and p are NaN where there is no
            residual to hold them against.
        sums: Kind of the sums of squares; where `is_balanced`, all kinds are equal and shares add up to 1.
        is_balanced: Whether every combination occurs, and equally often.
        is_replicated: Whether a combination occurs more than once, so that the interaction has a row of its own.
        mean: μ, the mean of all values.
        n: Values used.
        dropped: Values left out because they were missing.
    """

    table: pd.DataFrame
    sums: SumsOfSquares
    is_balanced: bool
    is_replicated: bool
    mean: float
    n: int
    dropped: int

    def share(self, source: str) -> float:
        """The share of the variance that a source explains.

        Raises:
            KeyError: If the table has no such source.
        """
        rows = self.table.loc[self.table["source"] == source, "share"]
        if rows.empty:
            raise KeyError(f"no source {source!r}; there are {self.table['source'].tolist()}")
        return float(rows.iloc[0])


@dataclass(frozen=True)
class _Cells:
    """Counts, sums and the two margins of the occupied cells."""

    first_C: np.ndarray
    second_C: np.ndarray
    n_C: np.ndarray
    mean_C: np.ndarray
    shape: tuple[int, int]

    def margin(self, axis: int) -> np.ndarray:
        return self.first_C if axis == 0 else self.second_C


def two_way_anova(
    values: Sequence[float] | np.ndarray,
    first: Sequence[object] | np.ndarray,
    second: Sequence[object] | np.ndarray,
    *,
    names: tuple[str, str] = ("first", "second"),
    sums: SumsOfSquares = "II",
) -> TwoWayAnova:
    """Split the variance of values between two factors.

    Sums of squares are differences of the residual sums of nested least-squares fits. Type I adjusts nothing for the
    first factor and the second for it; type II each factor for the other (the default: right where the factors do not
    interact, whatever the numbers of values); type III, by weighted squares of cell means, compares unweighted means of
    the cells, and is defined only where every combination occurs. In a balanced design they are the same.

    Args:
        values: (N,) values; NaN are left out.
        first: (N,) level of the first factor of every value.
        second: (N,) level of the second.
        names: What to call the factors in the table.
        sums: Kind of the sums of squares.

    Raises:
        ValueError: If lengths differ, `sums` is unknown, a factor has fewer than two levels, or type III is asked for
            with empty cells or without replication.

    References:
        Yates 1934 (Journal of the American Statistical Association 29); Lee & DiCarlo, Appendix 1, "Effect of model
        choices on human behavioral similarity" (their shares are those of a balanced design with one value a cell).

    Example:
        >>> anova = two_way_anova([1.0, 2.0, 5.0, 6.0], ["a", "a", "b", "b"], ["x", "y", "x", "y"])
        >>> anova.table["sum_sq"].round(9).tolist(), round(anova.share("first"), 4)
        ([16.0, 1.0, 0.0, 17.0], 0.9412)
    """
    y, cells, dropped = _cells(values, first, second, sums)
    n, num_cells = len(y), len(cells.n_C)
    mean = float(y.mean())
    total = float(((y - mean) ** 2).sum())
    within = total - float((cells.n_C * (cells.mean_C - mean) ** 2).sum())
    replicated = bool((cells.n_C > 1).any())
    balanced = num_cells == cells.shape[0] * cells.shape[1] and bool((cells.n_C == cells.n_C[0]).all())
    if sums == "III" and (num_cells < cells.shape[0] * cells.shape[1] or not replicated):
        raise ValueError(
            f"type III needs every combination to occur, and some more than once; {num_cells} of "
            f"{cells.shape[0] * cells.shape[1]} occur; use sums='II'"
        )
    both, rank = _additive(cells, mean)
    lone = [_one_factor(cells, axis, mean) for axis in (0, 1)]
    square = [both - lone[1], both - lone[0]]
    df = [rank - cells.shape[1] + 1, rank - cells.shape[0] + 1]
    if sums == "I":
        square[0], df[0] = lone[0], cells.shape[0] - 1
    elif sums == "III":
        square = [_weighted_means(cells, axis) for axis in (0, 1)]
    between = total - within
    rows = [(names[0], square[0], df[0]), (names[1], square[1], df[1])]
    if replicated:
        rows += [(INTERACTION, between - both, num_cells - 1 - rank), (RESIDUAL, within, n - num_cells)]
    else:
        rows.append((CONFOUNDED, total - both, n - 1 - rank))
    table = _table([*rows, (TOTAL, total, n - 1)], scale=float((y**2).sum()))
    return TwoWayAnova(table, sums, balanced, replicated, mean, n, dropped)


def _cells(
    values: Sequence[float] | np.ndarray, first: Sequence[object] | np.ndarray, second: Sequence[object] | np.ndarray,
    sums: str,
) -> tuple[np.ndarray, _Cells, int]:  # fmt: skip
    """The finite values, and what the occupied cells hold."""
    if sums not in get_args(SumsOfSquares):
        raise ValueError(f"sums must be one of {list(get_args(SumsOfSquares))}, got {sums!r}")
    y = np.asarray(values, dtype=np.float64)
    if y.ndim != 1 or len(first) != len(y) or len(second) != len(y):
        raise ValueError(f"values and both factors need one length, got {y.shape}, {len(first)} and {len(second)}")
    known = np.isfinite(y)
    codes, sizes = [], []
    for place, levels in (("first", first), ("second", second)):
        code, names = pd.factorize(np.asarray(levels, dtype=object)[known])
        if (code < 0).any():
            raise ValueError(f"the {place} factor has no level for {int((code < 0).sum())} value(s)")
        if len(names) < 2:
            raise ValueError(f"the {place} factor has {len(names)} level(s) among the values; it needs two or more")
        codes.append(code)
        sizes.append(len(names))
    cell, inverse = np.unique(codes[0] * sizes[1] + codes[1], return_inverse=True)
    n_C = np.bincount(inverse)
    mean_C = np.bincount(inverse, weights=y[known]) / n_C
    shape = (sizes[0], sizes[1])
    return y[known], _Cells(cell // sizes[1], cell % sizes[1], n_C, mean_C, shape), int((~known).sum())


def _one_factor(cells: _Cells, axis: int, mean: float) -> float:
    """Sum of squares that one factor explains alone."""
    code = cells.margin(axis)
    n = np.bincount(code, weights=cells.n_C)
    level = np.bincount(code, weights=cells.n_C * (cells.mean_C - mean)) / n
    return float((n * level**2).sum())


def _additive(cells: _Cells, mean: float) -> tuple[float, int]:
    """Sum of squares that both factors explain without interaction, and its degrees of freedom.

    The factor with more levels is swept out, so that the system to be solved is of the smaller one's size; where the
    combinations fall into groups without a common level, the pseudo-inverse and its rank take care of it.
    """
    big, small = (0, 1) if cells.shape[0] >= cells.shape[1] else (1, 0)
    n_BS = np.zeros((cells.shape[big], cells.shape[small]))
    sum_BS = np.zeros_like(n_BS)
    place = (cells.margin(big), cells.margin(small))
    n_BS[place], sum_BS[place] = cells.n_C, cells.n_C * (cells.mean_C - mean)
    n_B = n_BS.sum(axis=1)
    share_BS = n_BS / n_B[:, None]
    matrix = np.diag(n_BS.sum(axis=0)) - n_BS.T @ share_BS
    right = sum_BS.sum(axis=0) - share_BS.T @ sum_BS.sum(axis=1)
    value, vector = np.linalg.eigh(matrix)
    kept = value > _ROUNDING * max(float(value.max()), 1.0) * len(value)
    solved = (vector[:, kept].T @ right) ** 2 / value[kept]
    return _one_factor(cells, big, mean) + float(solved.sum()), cells.shape[big] - 1 + int(kept.sum())


def _weighted_means(cells: _Cells, axis: int) -> float:
    """Type III sum of squares of a factor: weighted squares of its unweighted means of cell means."""
    size, other = cells.shape[axis], cells.shape[1 - axis]
    code = cells.margin(axis)
    level = np.bincount(code, weights=cells.mean_C, minlength=size) / other
    weight = other**2 / np.bincount(code, weights=1 / cells.n_C, minlength=size)
    return float((weight * (level - (weight * level).sum() / weight.sum()) ** 2).sum())


def _table(rows: Sequence[tuple[str, float, int]], scale: float) -> pd.DataFrame:
    """Mean squares, F, p and shares; sums of squares below the rounding of the values' own squares are 0."""
    source, square, df = zip(*rows, strict=True)
    sum_sq = np.array(square)
    sum_sq[np.abs(sum_sq) <= _ROUNDING * scale] = 0.0
    df_of = np.array(df)
    mean_sq = np.divide(sum_sq, df_of, out=np.full(len(rows), np.nan), where=df_of > 0)
    error, error_df, total = sum_sq[-2], df_of[-2], sum_sq[-1]
    tested = np.arange(len(rows)) < len(rows) - 2
    has_error = error_df > 0 and error > 0
    f = np.where(tested & (df_of > 0), mean_sq / mean_sq[-2], np.nan) if has_error else np.full(len(rows), np.nan)
    p = np.where(np.isfinite(f), stats.f.sf(f, np.maximum(df_of, 1), max(error_df, 1)), np.nan)
    whole = np.where(tested, sum_sq + error, np.nan)
    return pd.DataFrame(
        {
            "source": source,
            "sum_sq": sum_sq,
            "df": df_of,
            "mean_sq": mean_sq,
            "f_statistic": f,
            "p_value": p,
            "share": sum_sq / total if total > 0 else np.full(len(rows), np.nan),
            "partial_share": np.divide(sum_sq, whole, out=np.full(len(rows), np.nan), where=tested & (whole > 0)),
        }
    )
