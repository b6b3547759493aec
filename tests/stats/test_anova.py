"""Two-way ANOVA against dense least squares with dummy columns, scipy, and closed forms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from humanlike.stats.anova import two_way_anova


def dummies(levels):
    return (np.asarray(levels)[:, None] == np.unique(levels)).astype(float)


def contrasts(levels):
    """Sum-to-zero coding."""
    x = dummies(levels)
    return x[:, :-1] - x[:, -1:]


def sse(y, *blocks):
    x = np.column_stack([np.ones(len(y)), *blocks])
    return float(((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2).sum()), int(np.linalg.matrix_rank(x))


def products(a, b):
    return np.einsum("na,nb->nab", a, b).reshape(len(a), -1)


def brute(y, first, second, sums):
    """(sum of squares, degrees of freedom) of the two factors, the interaction and the residual."""
    a, b = dummies(first), dummies(second)
    one, with_a, with_b = sse(y), sse(y, a), sse(y, b)
    both, full = sse(y, a, b), sse(y, products(a, b))
    if sums == "III":
        ca, cb = contrasts(first), contrasts(second)
        no_a, no_b = sse(y, cb, products(ca, cb)), sse(y, ca, products(ca, cb))
    else:
        no_a, no_b = with_b, with_a
    top = full if sums == "III" else both
    first_row = (one[0] - with_a[0], with_a[1] - 1) if sums == "I" else (no_a[0] - top[0], top[1] - no_a[1])
    return [
        first_row,
        (no_b[0] - top[0], top[1] - no_b[1]),
        (both[0] - full[0], full[1] - both[1]),
        (full[0], len(y) - full[1]),
    ]


def unbalanced(seed, complete=True):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1 if complete else 0, 4, (4, 3))
    counts[0, 0] = 3
    first, second = (np.repeat(grid, counts.ravel()) for grid in (np.arange(12) // 3, np.arange(12) % 3))
    return rng.normal(0.3 * first + 0.5 * second + 0.1 * first * second, 1.0), first, second


@pytest.mark.parametrize("sums", ["I", "II", "III"])
@pytest.mark.parametrize("seed", range(3))
def test_unbalanced_sums_of_squares_are_those_of_dense_fits(sums, seed):
    y, first, second = unbalanced(seed)
    anova = two_way_anova(y, first, second, sums=sums)
    expected = brute(y, first, second, sums)
    np.testing.assert_allclose(anova.table["sum_sq"][:4], [s for s, _ in expected], rtol=1e-9)
    assert anova.table["df"].tolist() == [*(d for _, d in expected), len(y) - 1]
    error = expected[3][0] / expected[3][1]
    for row, (square, df) in zip(anova.table.to_dict("records")[:3], expected, strict=False):
        assert row["f_statistic"] == pytest.approx(square / df / error)
        assert row["p_value"] == pytest.approx(stats.f.sf(square / df / error, df, expected[3][1]))
        assert row["partial_share"] == pytest.approx(square / (square + expected[3][0]))
    assert anova.is_replicated
    assert not anova.is_balanced


@pytest.mark.parametrize("sums", ["I", "II"])
@pytest.mark.parametrize("seed", range(4))
def test_empty_cells(sums, seed):
    y, first, second = unbalanced(seed, complete=False)
    anova = two_way_anova(y, first, second, sums=sums)
    expected = brute(y, first, second, sums)
    np.testing.assert_allclose(anova.table["sum_sq"][:4], [s for s, _ in expected], rtol=1e-8, atol=1e-10)
    assert anova.table["df"].tolist()[:4] == [d for _, d in expected]


def test_groups_without_a_common_level():
    first, second = np.array([0, 0, 1, 1, 2, 2, 3, 3, 2]), np.array([0, 1, 0, 1, 2, 3, 2, 3, 2])
    y = np.random.default_rng(0).normal(size=9)
    anova = two_way_anova(y, first, second)
    expected = brute(y, first, second, "II")
    np.testing.assert_allclose(anova.table["sum_sq"][:4], [s for s, _ in expected], rtol=1e-9)
    assert anova.table["df"].tolist()[:4] == [d for _, d in expected]


def test_one_value_a_cell_splits_the_whole_variance():
    """The paper's form: effects are means of rows and columns less the grand mean; γ is what is left."""
    y_IJ = np.random.default_rng(1).normal(size=(20, 7)) + np.linspace(0, 9, 20)[:, None]
    first, second = np.indices(y_IJ.shape)
    anova = two_way_anova(y_IJ.ravel(), first.ravel(), second.ravel(), names=("encoding stage", "update rule"))
    mean, row, column = y_IJ.mean(), y_IJ.mean(1) - y_IJ.mean(), y_IJ.mean(0) - y_IJ.mean()
    rest = y_IJ - mean - row[:, None] - column
    expected = np.array([7 * (row**2).sum(), 20 * (column**2).sum(), (rest**2).sum()])
    assert anova.table["source"].tolist() == ["encoding stage", "update rule", "interaction and residual", "total"]
    np.testing.assert_allclose(anova.table["sum_sq"][:3], expected)
    np.testing.assert_allclose(anova.table["share"][:3], expected / expected.sum())
    assert anova.share("encoding stage") == pytest.approx(expected[0] / y_IJ.size / y_IJ.var())
    assert anova.table["df"].tolist() == [19, 6, 114, 139]
    assert anova.is_balanced
    assert not anova.is_replicated


def test_a_factor_without_effect_beside_it_gives_one_way_anova():
    """With the second factor crossed and orthogonal, F over the pooled rest is scipy's one-way F."""
    y = np.random.default_rng(2).normal(size=24)
    first, second = np.arange(24) % 3, np.arange(24) // 3 % 2
    table = two_way_anova(y, first, second).table.set_index("source")["sum_sq"]
    rest = table["second"] + table["interaction"] + table["residual"]
    expected = stats.f_oneway(*(y[first == i] for i in range(3))).statistic
    assert table["first"] / 2 / (rest / 21) == pytest.approx(expected)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.floats(-100, 100), scale=st.floats(0.1, 100))
def test_shares_do_not_change_with_unit_or_order_and_factors_may_swap(seed, shift, scale):
    y, first, second = unbalanced(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    table = two_way_anova(y, first, second).table
    moved = two_way_anova(shift + scale * y[order], first[order].astype(str), second[order]).table
    np.testing.assert_allclose(moved["share"], table["share"], rtol=1e-6, atol=1e-8)
    swapped = two_way_anova(y, second, first).table
    np.testing.assert_allclose(swapped["share"], table["share"].iloc[[1, 0, 2, 3, 4]], rtol=1e-9)


def test_balanced_designs_have_one_answer():
    y = np.random.default_rng(3).normal(size=(3, 4, 2))
    first, second, _ = np.indices(y.shape)
    tables = [two_way_anova(y.ravel(), first.ravel(), second.ravel(), sums=s).table for s in ("I", "II", "III")]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0], rtol=1e-9)
    assert tables[0]["share"].iloc[:-1].sum() == pytest.approx(1)


def test_missing_values_are_left_out_and_nothing_left_is_said():
    y, first, second = unbalanced(0)
    with_gap = two_way_anova(np.append(y, np.nan), np.append(first, 0), np.append(second, 0))
    assert (with_gap.n, with_gap.dropped) == (len(y), 1)
    pd.testing.assert_frame_equal(with_gap.table, two_way_anova(y, first, second).table)
    exact = two_way_anova([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], [0, 1, 0, 1]).table
    assert exact["f_statistic"].isna().all()
    assert exact["share"].tolist() == pytest.approx([0.8, 0.2, 0.0, 1.0])
    constant = two_way_anova(np.full(4, 0.1), [0, 0, 1, 1], [0, 1, 0, 1]).table
    assert constant["share"].isna().all()


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (([1.0, 2.0], ["a"], ["x", "y"]), {}, "one length"),
        (([1.0, 2.0], ["a", "a"], ["x", "y"]), {}, "the first factor has 1 level"),
        (([1.0, np.nan], ["a", "b"], ["x", "y"]), {}, "the first factor has 1 level"),
        (([1.0, 2.0], ["a", None], ["x", "y"]), {}, "no level for 1 value"),
        (([1.0, 2.0], ["a", "b"], ["x", "y"]), {"sums": "IV"}, "sums must be one of"),
        (([1.0, 2.0], ["a", "b"], ["x", "y"]), {"sums": "III"}, "2 of 4 occur"),
    ],
)
def test_errors_are_sentences(arguments, options, said):
    with pytest.raises(ValueError, match=said):
        two_way_anova(*arguments, **options)
    with pytest.raises(KeyError, match="no source 'other'"):
        two_way_anova([1.0, 2.0, 3.0, 5.0], [0, 0, 1, 1], [0, 1, 0, 1]).share("other")
