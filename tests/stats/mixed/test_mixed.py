from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from humanlike.stats.hypothesis import least_squares
from humanlike.stats.mixed import MixedDesign, cross_products, fit_mixed, likelihood_ratio_test
from humanlike.stats.mixed_deviance import ProfiledDeviance

SLOPES = [[0.3, 0, 0, 0], [0.1, 0.2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def dense_log_likelihood(design: MixedDesign, theta_K, deviance: ProfiledDeviance, reml: bool) -> float:
    """log N(y; Xβ, σ²(Z T T'Z' + I)) with β, σ at their best, by the full N × N covariance."""
    y, x = design.outcome_N, np.column_stack(list(design.fixed.values()))
    z = np.column_stack(list(design.random.values())) / deviance.products.scale_Q
    t = deviance.factor(theta_K)
    same = design.group_N[:, None] == design.group_N[None, :]
    v = (z @ t @ t.T @ z.T) * same + np.eye(len(y))
    vx = np.linalg.solve(v, x)
    beta = np.linalg.solve(x.T @ vx, vx.T @ y)
    rest = y - x @ beta
    df = len(y) - (x.shape[1] if reml else 0)
    sigma2 = rest @ np.linalg.solve(v, rest) / df
    if not reml:
        return stats.multivariate_normal(x @ beta, sigma2 * v).logpdf(y)
    value = df * (1 + np.log(2 * np.pi * sigma2)) + np.linalg.slogdet(v)[1] + np.linalg.slogdet(x.T @ vx)[1]
    return -value / 2


@pytest.fixture(scope="module")
def small(make_table, make_design):
    table = make_table(21, concepts=8, images=2, models=2, factor=SLOPES)
    return make_design(table, ["1", "tz", "model"], ["1", "tz"])


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize(("correlated", "theta"), [(True, [0.7, -0.3, 0.4]), (True, [0, 0, 0]), (False, [0.5, 1.2])])
def test_the_deviance_is_that_of_the_dense_normal(small, reml, correlated, theta):
    deviance = ProfiledDeviance(cross_products(small), reml=reml, correlated=correlated)
    theta_K = np.array(theta, float)
    solution = deviance.solve(theta_K)
    assert -solution.deviance / 2 == pytest.approx(dense_log_likelihood(small, theta_K, deviance, reml), abs=1e-8)
    for k, step in enumerate(1e-5 * np.eye(len(theta_K))):
        ends = [deviance.solve(theta_K + s).deviance for s in (step, -step)]
        assert solution.gradient_K[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-4)


def test_balanced_one_way_layout_has_the_closed_form():
    """REML variances of a balanced layout with an intercept only are those of the analysis of variance."""
    rng = np.random.default_rng(4)
    y = (rng.normal(size=(20, 1)) + 0.5 * rng.normal(size=(20, 6))) + 3
    within = y.var(axis=1, ddof=1).mean()
    between = y.mean(axis=1).var(ddof=1) - within / 6
    one = np.ones(y.size)
    fit = fit_mixed(MixedDesign(y.ravel(), {"1": one}, {"1": one}, np.repeat(np.arange(20), 6)))
    assert fit.sigma**2 == pytest.approx(within, rel=1e-6)
    assert fit.random_covariance_QQ[0, 0] == pytest.approx(between, rel=1e-6)
    assert fit.estimate_P[0] == pytest.approx(y.mean(), rel=1e-12)
    assert fit.std_error_P[0] == pytest.approx(np.sqrt(y.mean(axis=1).var(ddof=1) / 20), rel=1e-6)
    assert fit.df_P[0] == pytest.approx(19, rel=1e-4)


def test_groups_that_do_not_differ_give_least_squares_and_are_called_singular(make_table, make_design):
    table = make_table(22, concepts=10, images=3, models=1, factor=SLOPES)
    for name in ("y", "x"):  # nothing is left between concepts
        table[name] -= table.groupby("concept")[name].transform("mean")
    design = make_design(table, ["1", "x"], ["1"])
    fit = fit_mixed(design)
    referee = least_squares(design.outcome_N, {"x": design.fixed["x"]})
    assert fit.singular
    assert fit.converged
    assert "singular" in fit.note
    assert fit.random_covariance_QQ[0, 0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(fit.estimate_P, referee.terms["estimate"], atol=1e-9)
    np.testing.assert_allclose(fit.std_error_P, referee.terms["std_error"], rtol=1e-6)


def test_parameters_are_recovered(make_table, make_design):
    table = make_table(23, concepts=300, images=6, models=2, factor=SLOPES, noise=0.3, model_spread=0.0)
    fit = fit_mixed(make_design(table, ["1", "tz", "x", "x:tz"], ["1", "tz"]))
    truth = np.array([0.3, 0.1, 0.2, 0.05])
    assert (np.abs(fit.estimate_P - truth) < 4 * fit.std_error_P).all()
    np.testing.assert_allclose(fit.random_covariance_QQ, [[0.09, 0.03], [0.03, 0.05]], atol=0.012)
    assert fit.sigma == pytest.approx(0.3, abs=0.006)


@settings(deadline=None, max_examples=10)
@given(
    seed=st.integers(0, 1000),
    shift=st.floats(-1e4, 1e4),
    scale=st.floats(0.01, 100),
    unit=st.floats(0.01, 100),
    reml=st.booleans(),
)
def test_order_and_units_do_not_matter(small, seed, shift, scale, unit, reml):
    """Rows permuted, groups renamed, y scaled and shifted, a regressor in another unit: the same model."""
    order = np.random.default_rng(seed).permutation(len(small.outcome_N))
    names = np.random.default_rng(seed + 1).permutation(len(set(small.group_N)))
    _, code = np.unique(small.group_N, return_inverse=True)
    moved = MixedDesign(
        (scale * small.outcome_N + shift)[order],
        {**{k: v[order] for k, v in small.fixed.items()}, "tz": unit * small.fixed["tz"][order]},
        {"(Intercept)": small.random["(Intercept)"], "tz": unit * small.random["tz"][order]},
        names[code][order],
    )
    a, b = fit_mixed(small, reml=reml), fit_mixed(moved, reml=reml)
    back = np.array([1, 1 / unit, 1]) * scale
    np.testing.assert_allclose(
        b.estimate_P, back * a.estimate_P + np.array([shift, 0, 0]), rtol=1e-6, atol=1e-7 * scale
    )
    np.testing.assert_allclose(b.std_error_P, back * a.std_error_P, rtol=1e-4)
    two = np.array([scale, scale / unit])
    np.testing.assert_allclose(
        b.random_covariance_QQ, np.outer(two, two) * a.random_covariance_QQ, rtol=1e-3, atol=1e-6 * (two @ two)
    )
    jacobian = a.n - (3 if reml else 0)
    expected = a.log_likelihood - jacobian * np.log(scale) - (np.log(unit) if reml else 0)
    assert b.log_likelihood == pytest.approx(expected, abs=1e-5)
    assert (b.converged, b.singular) == (a.converged, a.singular)


@pytest.mark.parametrize("reml", [True, False])
def test_observations_of_equal_regressors_may_be_given_as_one_row(make_table, make_design, reml):
    table = make_table(24, concepts=12, images=6, models=3, factor=SLOPES, ragged=True)
    cells = table.groupby(["concept", "t", "tz", "model"])["y"].agg(["size", "mean", "var"]).reset_index()
    short = make_design(cells.rename(columns={"mean": "y"}), ["1", "tz", "model"], ["1", "tz"])
    within = float((cells["var"] * (cells["size"] - 1)).sum())
    short = replace(short, count_N=cells["size"].to_numpy(), within=within)
    a, b = fit_mixed(make_design(table, ["1", "tz", "model"], ["1", "tz"]), reml=reml), fit_mixed(short, reml=reml)
    np.testing.assert_allclose(b.estimate_P, a.estimate_P, rtol=1e-7)
    np.testing.assert_allclose(b.std_error_P, a.std_error_P, rtol=1e-7)
    assert (b.log_likelihood, b.sigma, b.n) == (pytest.approx(a.log_likelihood, abs=1e-8), pytest.approx(a.sigma), a.n)


def test_nested_models_and_likelihood_ratio(small):
    full, uncorrelated = (fit_mixed(small, reml=False, correlated=c) for c in (True, False))
    assert full.log_likelihood >= uncorrelated.log_likelihood
    without = fit_mixed(small.without("modelm01"), reml=False)
    test = likelihood_ratio_test(without, full)
    assert test.chi2 == pytest.approx(2 * (full.log_likelihood - without.log_likelihood))
    assert test.p_value == pytest.approx(stats.chi2.sf(test.chi2, 1))
    assert full.aic == pytest.approx(full.deviance + 2 * 7)
    assert full.bic == pytest.approx(full.deviance + np.log(full.n) * 7)


def test_likelihood_ratio_refuses_what_does_not_compare(small):
    ml, restricted = fit_mixed(small, reml=False), fit_mixed(small)
    less = fit_mixed(small.without("modelm01"), reml=False)
    with pytest.raises(ValueError, match="reml=False"):
        likelihood_ratio_test(restricted, ml)
    with pytest.raises(ValueError, match="swap"):
        likelihood_ratio_test(ml, less)
    rows = slice(0, 64)
    part = MixedDesign(
        small.outcome_N[rows],
        {k: v[rows] for k, v in small.fixed.items()},
        {k: v[rows] for k, v in small.random.items()},
        small.group_N[rows],
    )
    with pytest.raises(ValueError, match="different data"):
        likelihood_ratio_test(fit_mixed(part.without("modelm01"), reml=False), ml)


def test_random_terms_name_deviations_and_correlations(small):
    table = fit_mixed(small).random_terms()
    assert table["first"].tolist() == ["(Intercept)", "tz", "(Intercept)", "residual"]
    assert table["second"].tolist() == ["", "", "tz", ""]
    fit = fit_mixed(small)
    s = fit.random_covariance_QQ
    assert table["correlation"].iloc[2] == pytest.approx(s[0, 1] / np.sqrt(s[0, 0] * s[1, 1]))


def test_a_saddle_at_zero_is_left(small):
    """At T = 0 the gradient is 0 by symmetry; the fit must not stop there."""
    deviance = ProfiledDeviance(cross_products(small), reml=True, correlated=True)
    assert np.abs(deviance.solve(np.zeros(3)).gradient_K).max() == pytest.approx(0, abs=1e-12)
    fit = fit_mixed(small)
    assert fit.deviance < deviance.solve(np.zeros(3)).deviance - 1
    assert fit.curvature > 0


def test_little_noise_beside_large_random_effects(make_table, make_design):
    """With hardly any noise a fixed effect is the mean of the groups' own coefficients, t with G - 1 degrees."""
    table = make_table(3, concepts=30, images=3, models=1, factor=[[1, 0, 0, 0], *SLOPES[1:]], noise=1e-3)
    table["y"] -= 0.2 * table["x"] + 0.05 * table["x"] * table["tz"]
    fit = fit_mixed(make_design(table, ["1", "tz"], ["1", "tz"]))
    own = np.array([np.polynomial.polynomial.polyfit(g["tz"], g["y"], 1) for _, g in table.groupby("concept")])
    assert fit.converged
    np.testing.assert_allclose(fit.estimate_P, own.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(fit.random_covariance_QQ, np.cov(own.T), rtol=1e-3)
    np.testing.assert_allclose(fit.df_P, 29, rtol=1e-3)
    exact = table.assign(y=table["y"].round(2).groupby([table["concept"], table["t"]]).transform("first"))
    exact["y"] = exact.groupby("concept")["y"].transform("first") * (1 + exact["tz"])
    with pytest.raises(ValueError, match="explain the outcome without a rest"):
        fit_mixed(make_design(exact, ["1", "tz"], ["1", "tz"]))


def test_errors_name_what_is_wrong(small):
    n = len(small.outcome_N)
    one = np.ones(n)
    twice = {**small.fixed, "again": 2 * small.fixed["tz"] + 1}
    with pytest.raises(ValueError, match="not independent"):
        fit_mixed(MixedDesign(small.outcome_N, twice, small.random, small.group_N))
    with pytest.raises(ValueError, match=r"two groups or more, got 1 \(\['a'\]\)"):
        fit_mixed(MixedDesign(small.outcome_N, small.fixed, small.random, np.array(["a"] * n)))
    with pytest.raises(ValueError, match="cannot tell 1 random"):
        fit_mixed(MixedDesign(small.outcome_N, {"1": one}, {"1": one}, np.arange(n)))
    with pytest.raises(ValueError, match="no variance"):
        fit_mixed(MixedDesign(one, {"1": one}, {"1": one}, small.group_N))
    with pytest.raises(ValueError, match="'outcome' holds values that are not finite"):
        MixedDesign(one * np.nan, {"1": one}, {"1": one}, small.group_N)
    with pytest.raises(ValueError, match=f"'t' must have {n} values"):
        MixedDesign(one, {"t": one[1:]}, {"1": one}, small.group_N)
    with pytest.raises(ValueError, match="at least one fixed and one random"):
        MixedDesign(one, {"1": one}, {}, small.group_N)
    with pytest.raises(ValueError, match="positive numbers"):
        replace(small, count_N=np.zeros(n))
    with pytest.raises(ValueError, match="within rows must be finite"):
        replace(small, within=-1.0)
    with pytest.raises(ValueError, match=r"no fixed terms \['time'\]"):
        small.without("time")
