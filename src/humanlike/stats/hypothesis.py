"""Classical tests: Welch's t, Spearman's rank correlations, a table of ordinary least squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from humanlike.stats.full_rank import orthonormal_columns

INTERCEPT = "(Intercept)"


@dataclass(frozen=True)
class WelchTest:
    """Welch's t-test of two samples with unequal variances.

    Attributes:
        difference: Mean of the first sample minus mean of the second: the effect, in the samples' unit. Unlike the
            statistic it does not grow with the sizes of the samples.
        low: Lower end of the confidence interval of `difference` (t based).
        high: Upper end.
        statistic: t.
        df: Welch-Satterthwaite degrees of freedom.
        p_value: Of the alternative asked for.
        n_first: Finite values of the first sample.
        n_second: Finite values of the second sample.
    """

    difference: float
    low: float
    high: float
    statistic: float
    df: float
    p_value: float
    n_first: int
    n_second: int


def welch_test(
    first: np.ndarray, second: np.ndarray, *, alternative: str = "two-sided", level: float = 0.95
) -> WelchTest:
    """Two samples' t = (x̄ - ȳ) / √(s²_x/n_x + s²_y/n_y); NaN values are left out.

    Over bootstrap replicates the statistic is not fair: n is then a free choice, and t grows with its square root.
    `gap_to_consistency` gives the gap with an interval that does not.

    Args:
        first: Sample x.
        second: Sample y.
        alternative: "two-sided", "less" (mean of x below that of y) or "greater".
        level: Coverage of the interval of the difference, which is two-sided for every alternative.

    Returns:
        WelchTest; interval, statistic, df and p are NaN where a sample has fewer than two values or neither varies.

    References:
        Welch 1947 (Biometrika 34).

    Example:
        >>> test = welch_test(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.5, 2.0]))
        >>> test.difference, round(test.statistic, 4), round(test.df, 4)
        (0.5, 0.7746, 2.9412)
    """
    x, y = (_finite(sample) for sample in (first, second))
    difference = float(x.mean() - y.mean()) if len(x) and len(y) else np.nan
    if min(len(x), len(y)) < 2 or (np.ptp(x) == 0 and np.ptp(y) == 0):
        return WelchTest(difference, *(np.nan,) * 5, len(x), len(y))
    result = stats.ttest_ind(x, y, equal_var=False, alternative=alternative)
    half = stats.t.ppf(0.5 + level / 2, result.df) * np.sqrt(x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y))
    ends = (difference - float(half), difference + float(half))
    return WelchTest(difference, *ends, float(result.statistic), float(result.df), float(result.pvalue), len(x), len(y))


def spearman_table(values: pd.DataFrame) -> pd.DataFrame:
    """Spearman's ρ between the orders that every pair of columns puts the rows in (Figure 5D: models by metrics).

    Args:
        values: One row a model, one numeric column a metric; rows that a pair lacks (NaN) are left out of that pair.

    Returns:
        One row an ordered pair of columns, the diagonal included: `first, second, rho, p_value, n`. ρ and p are NaN
        below 2 (p: 3) common rows or where a column is constant. p is that of the t approximation, two-sided.

    References:
        Mukherjee et al. 2023 (SEVA), Figure 5D.

    Example:
        >>> table = spearman_table(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 3.0, 2.0]}))
        >>> table.loc[table["first"] != table["second"], "rho"].round(6).tolist()
        [0.5, 0.5]
    """
    rows = []
    for first in values.columns:
        for second in values.columns:
            both = values[first].notna() & values[second].notna()
            a, b = (values.loc[both, name].to_numpy(np.float64) for name in (first, second))
            rho, p = np.nan, np.nan
            if len(a) > 1 and np.ptp(a) > 0 and np.ptp(b) > 0:
                # ρ is Pearson's r of the ranks; scipy's own p divides by zero at two rows
                rho = float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1])
                p = float(stats.spearmanr(a, b).pvalue) if len(a) > 2 else np.nan
            rows.append({"first": first, "second": second, "rho": rho, "p_value": p, "n": len(a)})
    return pd.DataFrame(rows, columns=["first", "second", "rho", "p_value", "n"])


@dataclass(frozen=True)
class LeastSquares:
    """An ordinary least squares fit.

    Attributes:
        terms: One row a coefficient: `term, estimate, std_error, statistic, df, p_value, ci_low, ci_high`.
        r2: Share of the variance explained.
        adjusted_r2: 1 - (1 - R²)(n - 1)/(n - p), p the number of coefficients with the intercept.
        sigma: Residual standard deviation.
        f_statistic: F of all terms together against the intercept alone.
        f_p_value: Its p.
        n: Rows used.
        dropped: Rows left out because a value was missing.
    """

    terms: pd.DataFrame
    r2: float
    adjusted_r2: float
    sigma: float
    f_statistic: float
    f_p_value: float
    n: int
    dropped: int


def least_squares(outcome: np.ndarray, regressors: Mapping[str, np.ndarray], *, level: float = 0.95) -> LeastSquares:
    """Ordinary least squares of `outcome` on an intercept and the regressors, with t tests.

    Figure 6A is `least_squares(people_on_human, {"machine": m, "level": t, "machine:level": m * t})` over cells.

    Args:
        outcome: (N,) values; rows with a NaN here or in a regressor are left out.
        regressors: Name → (N,) column; products for interactions are the caller's, because how to centre is a choice.
        level: Coverage of the coefficients' intervals.

    Raises:
        ValueError: If regressors are not independent (they are named), lengths differ, or there are no more rows than
            coefficients.

    Example:
        >>> fit = least_squares(np.array([1.0, 2.0, 2.0, 4.0]), {"x": np.array([0.0, 1.0, 2.0, 3.0])})
        >>> fit.terms["estimate"].round(6).tolist(), round(fit.r2, 4)
        ([0.9, 0.9], 0.8526)
    """
    y = np.asarray(outcome, dtype=np.float64)
    columns = {name: np.asarray(column, dtype=np.float64) for name, column in regressors.items()}
    for name, column in columns.items():
        if column.shape != y.shape or y.ndim != 1:
            raise ValueError(f"regressor {name!r} must have the outcome's length {y.shape}, got shape {column.shape}")
    x_NP = np.column_stack([np.ones(len(y)), *columns.values()])
    known = np.isfinite(y) & np.isfinite(x_NP).all(axis=1)
    y, x_NP = y[known], x_NP[known]
    names = [INTERCEPT, *columns]
    n, p = x_NP.shape
    if n <= p:
        raise ValueError(f"{n} usable rows cannot carry {p} coefficients ({', '.join(names)}) and an error")
    q_NP, r_PP = orthonormal_columns(x_NP, names)
    inverse_PP = np.linalg.inv(r_PP)
    estimate_P = inverse_PP @ (q_NP.T @ y)
    residual = y - x_NP @ estimate_P
    sse, sst, df = float(residual @ residual), float(((y - y.mean()) ** 2).sum()), n - p
    error_P = np.sqrt(sse / df * (inverse_PP**2).sum(axis=1))
    r2 = 1 - sse / sst if sst > 0 else np.nan
    f = (sst - sse) / (p - 1) / (sse / df) if p > 1 and sse > 0 else np.nan
    return LeastSquares(
        terms=coefficient_table(names, estimate_P, error_P, np.full(p, float(df)), level),
        r2=r2,
        adjusted_r2=1 - (1 - r2) * (n - 1) / df,
        sigma=float(np.sqrt(sse / df)),
        f_statistic=f,
        f_p_value=float(stats.f.sf(f, p - 1, df)),
        n=n,
        dropped=int((~known).sum()),
    )


def coefficient_table(
    names: list[str] | tuple[str, ...], estimate_P: np.ndarray, error_P: np.ndarray, df_P: np.ndarray, level: float
) -> pd.DataFrame:
    """One row a coefficient with its two-sided t test: `term, estimate, std_error, statistic, df, p_value, ci_…`.

    Args:
        names: P names.
        estimate_P: (P,) estimates.
        error_P: (P,) standard errors; the statistic of a zero one is NaN.
        df_P: (P,) degrees of freedom; infinity is the normal distribution.
        level: Coverage of the intervals.
    """
    statistic = np.divide(estimate_P, error_P, out=np.full(len(estimate_P), np.nan), where=error_P > 0)
    half = stats.t.ppf(0.5 + level / 2, df_P) * error_P
    return pd.DataFrame(
        {
            "term": list(names),
            "estimate": estimate_P,
            "std_error": error_P,
            "statistic": statistic,
            "df": df_P,
            "p_value": 2 * stats.t.sf(np.abs(statistic), df_P),
            "ci_low": estimate_P - half,
            "ci_high": estimate_P + half,
        }
    )


def _finite(sample: np.ndarray) -> np.ndarray:
    values = np.asarray(sample, dtype=np.float64).ravel()
    return values[np.isfinite(values)]
