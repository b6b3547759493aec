from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from humanlike.stats.full_rank import orthonormal_columns
from humanlike.stats.hypothesis import least_squares, spearman_table, welch_test


def normal_equations(y, columns):
    """Coefficients, standard errors and R² by the textbook formula."""
    x = np.column_stack([np.ones(len(y)), *columns])
    gram = np.linalg.inv(x.T @ x)
    beta = gram @ x.T @ y
    rest = y - x @ beta
    variance = rest @ rest / (len(y) - x.shape[1])
    return beta, np.sqrt(variance * np.diag(gram)), 1 - rest @ rest / ((y - y.mean()) ** 2).sum()


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_welch_equals_scipy_and_the_formula(alternative):
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.3, 1, 40), rng.normal(0, 3, 25)
    test = welch_test(np.append(x, np.nan), y, alternative=alternative)
    referee = stats.ttest_ind(x, y, equal_var=False, alternative=alternative)
    assert (test.statistic, test.df, test.p_value) == pytest.approx((referee.statistic, referee.df, referee.pvalue))
    a, b = x.var(ddof=1) / 40, y.var(ddof=1) / 25
    assert test.df == pytest.approx((a + b) ** 2 / (a**2 / 39 + b**2 / 24))
    assert test.statistic == pytest.approx((x.mean() - y.mean()) / np.sqrt(a + b))
    ends = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert (test.low, test.high) == pytest.approx((ends.low, ends.high))
    assert (test.n_first, test.n_second) == (40, 25)


def test_the_effect_does_not_grow_with_repeats_but_t_does():
    rng = np.random.default_rng(0)
    x, y = rng.normal(1, 1, 200), rng.normal(0, 1, 200)
    once, often = welch_test(x, y), welch_test(np.tile(x, 25), np.tile(y, 25))
    assert often.difference == pytest.approx(once.difference)
    assert often.statistic / once.statistic == pytest.approx(5, rel=0.01)


def test_swapping_the_samples_turns_the_sign():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=10), rng.normal(size=12)
    there, back = welch_test(x, y), welch_test(y, x)
    assert (there.statistic, there.low, there.p_value) == pytest.approx((-back.statistic, -back.high, back.p_value))


@pytest.mark.parametrize(("x", "y"), [([1.0], [1.0, 2.0]), ([1.0, 1.0], [2.0, 2.0]), ([], [1.0, 2.0])])
def test_without_spread_there_is_no_test(x, y):
    test = welch_test(np.array(x), np.array(y))
    assert np.isnan([test.statistic, test.df, test.p_value, test.low]).all()
    assert np.isnan(test.difference) == (len(x) == 0)


def test_spearman_equals_scipy_with_ties_and_missing_rows():
    rng = np.random.default_rng(5)
    values = pd.DataFrame(rng.integers(0, 6, (17, 3)).astype(float), columns=["accuracy", "entropy", "snp"])
    values.loc[2, "snp"] = np.nan
    table = spearman_table(values).set_index(["first", "second"])
    for a in values:
        for b in values:
            both = values[[a, b]].dropna(axis=0).to_numpy()
            referee = stats.spearmanr(both[:, 0], both[:, -1])
            assert table.loc[(a, b), "rho"] == pytest.approx(referee.statistic)
            assert table.loc[(a, b), "p_value"] == pytest.approx(referee.pvalue, abs=1e-12)
    assert table.loc[("snp", "entropy"), "n"] == 16


def test_spearman_of_few_or_constant_rows_is_missing():
    table = spearman_table(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 3.0]})).set_index(["first", "second"])
    assert table.loc[("a", "a"), "rho"] == pytest.approx(1)
    assert np.isnan(table.loc[("a", "b"), ["rho", "p_value"]].to_numpy(float)).all()


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), shift=st.floats(-1e3, 1e3), scale=st.floats(0.01, 100))
def test_least_squares_equals_the_normal_equations(seed, shift, scale):
    rng = np.random.default_rng(seed)
    m, t = rng.normal(size=60), np.tile([4.0, 8.0, 16.0, 32.0], 15)
    y = 0.4 * m + 0.02 * t + rng.normal(size=60)
    fit = least_squares(scale * y + shift, {"machine": m, "level": t, "machine:level": m * t})
    beta, error, r2 = normal_equations(y, [m, t, m * t])
    expected = scale * beta + np.array([shift, 0, 0, 0])
    np.testing.assert_allclose(fit.terms["estimate"], expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fit.terms["std_error"], scale * error, rtol=1e-7)
    assert fit.r2 == pytest.approx(r2, abs=1e-9)
    assert fit.adjusted_r2 == pytest.approx(1 - (1 - r2) * 59 / 56, abs=1e-9)
    assert fit.f_p_value == pytest.approx(stats.f.sf(r2 / 3 / ((1 - r2) / 56), 3, 56), rel=1e-6)


def test_one_regressor_equals_scipy_linregress_and_missing_rows_are_counted():
    rng = np.random.default_rng(2)
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    fit = least_squares(np.append(y, [np.nan, 1.0]), {"x": np.append(x, [1.0, np.inf])})
    referee = stats.linregress(x, y)
    row = fit.terms.set_index("term").loc["x"]
    assert (row["estimate"], row["std_error"], row["p_value"]) == pytest.approx(
        (referee.slope, referee.stderr, referee.pvalue)
    )
    assert (fit.n, fit.dropped, fit.r2) == (30, 2, pytest.approx(referee.rvalue**2))
    assert fit.terms["statistic"].iloc[0] == pytest.approx(referee.intercept / referee.intercept_stderr)


def test_dependent_regressors_are_named():
    x = np.arange(6.0)
    with pytest.raises(ValueError, match=r"'double'|'x'"):
        least_squares(x**2, {"x": x, "double": 2 * x})
    with pytest.raises(ValueError, match="3 usable rows cannot carry 3"):
        least_squares(np.arange(3.0), {"a": np.array([0.0, 1.0, 0.0]), "b": np.array([0.0, 0.0, 1.0])})
    with pytest.raises(ValueError, match=r"not: \['b'\]"):
        orthonormal_columns(np.array([[1.0, np.nan], [1.0, 2.0]]), ["a", "b"])
