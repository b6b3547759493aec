from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

from humanlike.metrics.functional import sea_terms
from humanlike.metrics.functional.sea import PARAMETER_NAMES
from humanlike.stats.sea_sensitivity import (
    COMPATIBLE_RANGES,
    MEASURES,
    RANGES,
    saltelli_design,
    sea_sensitivity,
    sobol_indices,
)


@pytest.fixture(scope="module")
def sketches():
    """Four conditions that look like the published table."""
    rng = np.random.default_rng(0)
    P, v, group = [], [], []
    for seconds, mean_P, mean_v in ((4, 0.17, 0.22), (8, 0.37, 0.31), (16, 0.64, 0.40), (32, 0.75, 0.45)):
        P.append(rng.beta(0.8 * mean_P, 0.8 * (1 - mean_P), 60))
        v.append(rng.binomial(8, mean_v, 60).clip(1) / 8)
        group += [seconds] * 60
    return np.concatenate(P), np.concatenate(v), np.array(group)


@pytest.fixture(scope="module")
def result(sketches):
    return sea_sensitivity(*sketches, draws=16, points=5)


def by_hand(sketches, parameters):
    P, v, group = sketches
    terms, plain = sea_terms(P, v, **parameters), sea_terms(P, v)
    mean = pd.Series(terms.sea.numpy()).groupby(group).mean()
    order = pd.Series(plain.sea.numpy()).groupby(group).mean()
    ranked = mean[order.sort_values(ascending=False).index].to_numpy()
    return {
        "kendall_sketches": kendalltau(plain.z, terms.z).statistic,
        "spearman_sketches": spearmanr(plain.z, terms.z).statistic,
        "kendall_groups": kendalltau(order, mean).statistic,
        "spearman_groups": spearmanr(order, mean).statistic,
        "margin": (ranked[:-1] - ranked[1:]).min(),
        "order_kept": bool((ranked[:-1] > ranked[1:]).all()),
    }


def test_rows_are_those_of_scipy(sketches, result):
    for row in result.one_at_a_time.iloc[::4].to_dict("records"):
        expected = by_hand(sketches, {row["parameter"]: row["value"]})
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    for row in result.joint.iloc[::7].to_dict("records"):
        expected = by_hand(sketches, {name: row[name] for name in PARAMETER_NAMES})
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert result.share_kept == result.joint["order_kept"].mean()


def test_pairs_are_those_of_the_draws(sketches, result):
    P, v, group = sketches
    assert len(result.pairs) == 6
    draws = result.joint[list(PARAMETER_NAMES)].to_dict("records")
    score = np.array([sea_terms(P, v, **parameters).sea.numpy() for parameters in draws])
    for row in result.pairs.to_dict("records"):
        difference = score[:, group == row["higher"]].mean(1) - score[:, group == row["lower"]].mean(1)
        assert row["share_kept"] == (difference > 0).mean()
        assert row["least"] == pytest.approx(difference.min(), abs=1e-12)
        assert row["greatest"] == pytest.approx(difference.max(), abs=1e-12)
        assert row["difference"] > 0


def test_ranges_are_those_stated(result):
    assert set(RANGES) == set(COMPATIBLE_RANGES) == set(PARAMETER_NAMES)
    assert dict(result.ranges) == dict(RANGES)
    for name, (low, high) in RANGES.items():
        values = result.one_at_a_time.query("parameter == @name")["value"]
        assert values.iloc[[0, -1]].tolist() == pytest.approx([low, high])
        assert len(values) == 5
        assert result.joint[name].between(low, high).all()
        # Even on the logarithmic scale: half of the draws lie below the middle.
        assert (result.joint[name] < np.sqrt(low * high)).mean() == pytest.approx(0.5, abs=0.1)
        # The published value is the middle of its range, where nothing changes.
        if name != "delta":
            middle = result.one_at_a_time.query("parameter == @name").iloc[2]
            assert middle["kendall_sketches"] == pytest.approx(1)


def test_alpha_does_not_order_sketches(result):
    alone = result.one_at_a_time.query("parameter == 'alpha'")
    assert alone["kendall_sketches"].to_numpy() == pytest.approx(1)
    table = result.importance.set_index(["measure", "parameter"])
    assert table.loc[("kendall_sketches", "alpha"), "total"] == pytest.approx(0, abs=1e-20)
    assert table.loc[("margin", "alpha"), "total"] > 0.01


def test_the_published_order_is_robust_where_the_table_allows_the_parameters(sketches):
    result = sea_sensitivity(*sketches, ranges=COMPATIBLE_RANGES, draws=8, points=3)
    assert result.share_kept == 1
    assert (result.joint["kendall_sketches"] > 0.9).all()
    assert result.one_at_a_time.query("parameter == 'alpha'")["value"].tolist() == [2.2]


def test_draws_have_addresses(sketches, result):
    again = sea_sensitivity(*sketches, draws=16, points=5)
    other = sea_sensitivity(*sketches, draws=16, points=2, seed=1)
    pd.testing.assert_frame_equal(result.joint, again.joint)
    pd.testing.assert_frame_equal(result.importance, again.importance)
    assert not result.joint["alpha"].equals(other.joint["alpha"])


def test_order_and_names_of_groups_do_not_matter(sketches, result):
    P, v, group = sketches
    order = np.random.default_rng(1).permutation(len(P))
    names = np.array([f"{seconds:02d} s" for seconds in group])
    other = sea_sensitivity(P[order], v[order], names[order], draws=16, points=5)
    for measure in MEASURES:
        np.testing.assert_allclose(other.joint[measure], result.joint[measure], atol=1e-12)


def test_a_sample_of_sketches_is_ranked_and_all_are_averaged(sketches, result):
    part = sea_sensitivity(*sketches, draws=16, points=5, max_ranked=100)
    assert (part.sketches_ranked, result.sketches_ranked) == (100, 240)
    np.testing.assert_array_equal(part.joint["margin"], result.joint["margin"])
    np.testing.assert_allclose(part.joint["kendall_sketches"], result.joint["kendall_sketches"], atol=0.1)


def test_one_group_has_sketches_alone(sketches):
    result = sea_sensitivity(sketches[0], sketches[1], ["x"] * 240, draws=2, points=2)
    assert np.isnan(result.share_kept)
    assert result.joint[["kendall_groups", "spearman_groups", "margin"]].isna().all(axis=None)
    assert result.joint["order_kept"].isna().all()
    assert result.joint["kendall_sketches"].notna().all()
    assert len(result.pairs) == 0
    assert result.importance.query("measure == 'margin'")["total"].isna().all()


def test_sobol_indices_of_a_known_function():
    # Ishigami and Homma's function with a = 7, b = .1: indices in closed form.
    x = np.pi * (2 * saltelli_design(3, 4096, seed=3) - 1)
    outcome = np.sin(x[..., 0]) + 7 * np.sin(x[..., 1]) ** 2 + 0.1 * x[..., 2] ** 4 * np.sin(x[..., 0])
    first, first_se, total, total_se = sobol_indices(outcome)
    v1, v2, v13 = 0.5 * (1 + 0.1 * np.pi**4 / 5) ** 2, 49 / 8, 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = v1 + v2 + v13
    np.testing.assert_allclose(first, np.array([v1, v2, 0]) / variance, atol=0.015)
    np.testing.assert_allclose(total, np.array([v1 + v13, v2, v13]) / variance, atol=0.01)
    assert (np.abs(first - np.array([v1, v2, 0]) / variance) < 3 * first_se).all()
    assert (total_se < 0.03).all()


def test_the_design_mixes_one_column():
    first, second, *mixed = saltelli_design(3, 8, seed=0)
    assert not np.isin(first, second).any()
    for j, points in enumerate(mixed):
        np.testing.assert_array_equal(points[:, j], second[:, j])
        np.testing.assert_array_equal(np.delete(points, j, 1), np.delete(first, j, 1))
    # One point in every eighth of each axis.
    assert (np.sort((first - first.min(0)) * 8 + 1e-9, axis=0).astype(int) == np.arange(8)[:, None]).all()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"draws": 12}, "power of two"),
        ({"ranges": {"lambda": (1, 2)}}, r"\['lambda'\]"),
        ({"ranges": {"lam": (2, 1)}}, "range of lam"),
        ({"ranges": {"tau": (0, 1)}}, "range of tau"),
        ({"v_N": np.array([0.5, 0.5, 1.5])}, "sketch 2 has v = 1.5"),
        ({"P_N": np.array([0.5, 0.5])}, "one length"),
        ({"group_N": np.array(["a", None, "b"], dtype=object)}, "sketch 1 has none"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_refusals(changed, sentence):
    good = {"P_N": np.array([0.1, 0.5, 0.9]), "v_N": np.array([0.5, 0.5, 0.5]), "group_N": [0, 0, 1], "draws": 2}
    with pytest.raises(ValueError, match=sentence):
        sea_sensitivity(**(good | changed))
