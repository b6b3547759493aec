from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import accuracy_score

from humanlike.metrics.functional import response_entropy, row_entropy, top1_accuracy

counts_tables = hnp.arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(2, 9)), elements=st.integers(0, 40))


def miller_madow_by_hand(n):
    n = [int(k) for k in n if k]
    total = sum(n)
    plug_in = -sum(mpmath.mpf(k) / total * mpmath.log(mpmath.mpf(k) / total) for k in n)
    return float(plug_in + mpmath.mpf(len(n) - 1) / (2 * total))


def chao_shen_by_hand(n):
    """The published formula in 50 digits."""
    n = [int(k) for k in n if k]
    total = sum(n)
    singletons = sum(k == 1 for k in n)
    if singletons == total:
        if total == 1:
            return 0.0
        singletons = total - 1
    with mpmath.workdps(50):
        coverage = 1 - mpmath.mpf(singletons) / total
        p = [coverage * k / total for k in n]
        return float(-sum(x * mpmath.log(x) / (1 - (1 - x) ** total) for x in p))


@pytest.fixture
def sparse_counts():
    rng = np.random.default_rng(3)
    table = rng.poisson(0.15, size=(40, 300)) * rng.integers(1, 9, size=(40, 300))
    table[:, 5] += 1
    table[7] = 0
    table[7, 3] = 1  # a single response
    table[8] = 0
    table[8, :11] = 1  # singletons only
    return torch.from_numpy(table)


def test_entropy_agrees_with_scipy(sparse_counts):
    expected = scipy.stats.entropy(sparse_counts.numpy(), axis=1)
    np.testing.assert_allclose(row_entropy(sparse_counts), expected, rtol=1e-13, atol=1e-13)
    assert torch.equal(response_entropy(sparse_counts), row_entropy(sparse_counts))


@pytest.mark.parametrize(
    ("estimator", "referee"), [("miller_madow", miller_madow_by_hand), ("chao_shen", chao_shen_by_hand)]
)
def test_corrections_agree_with_the_formula_in_many_digits(sparse_counts, estimator, referee):
    value = response_entropy(sparse_counts, estimator)
    np.testing.assert_allclose(value, [referee(row) for row in sparse_counts.tolist()], rtol=1e-12, atol=1e-13)


def test_corrections_lessen_the_bias_at_16_and_200_responses():
    # A long-tailed truth over 1,854 labels; the bias of each estimate is its mean over many draws minus the truth.
    rng = np.random.default_rng(0)
    p = 1.0 / np.arange(1, 1855) ** 1.5
    p /= p.sum()
    truth = scipy.stats.entropy(p)
    for responses in (16, 200):
        draws = torch.from_numpy(rng.multinomial(responses, p, size=400))
        bias = [abs(response_entropy(draws, e).mean().item() - truth) for e in ("pooled", "miller_madow", "chao_shen")]
        assert bias[0] > bias[1] > bias[2]


def test_accuracy_agrees_with_sklearn():
    rng = np.random.default_rng(1)
    labels, cells, target = rng.integers(0, 6, 500), rng.integers(0, 8, 500), rng.integers(0, 6, 8)
    counts = np.zeros((8, 6), np.int64)
    np.add.at(counts, (cells, labels), 1)
    expected = [accuracy_score(np.full((cells == c).sum(), target[c]), labels[cells == c]) for c in range(8)]
    value = top1_accuracy(torch.from_numpy(counts), torch.from_numpy(target))
    np.testing.assert_array_equal(value, expected)


@given(counts_tables)
@settings(deadline=None, max_examples=30)
def test_entropy_laws(table):
    counts = torch.from_numpy(table)
    value = row_entropy(counts)
    filled = counts.sum(1) > 0
    assert torch.equal(value.isnan(), ~filled)
    assert (value[filled] >= 0).all()
    assert (value[filled] <= math.log(counts.shape[1])).all()
    for same in (counts * 7, counts.flip(1)):
        assert torch.allclose(row_entropy(same), value, rtol=1e-14, atol=1e-14, equal_nan=True)
    for estimator in ("miller_madow", "chao_shen"):
        corrected = response_entropy(counts, estimator)
        assert torch.equal(corrected.isnan(), ~filled)
        assert (corrected[filled] >= value[filled] - 1e-12).all()


@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_a_row_does_not_depend_on_its_company_or_its_memory(rows, labels, seed):
    p = torch.from_numpy(np.random.default_rng(seed).random((rows, labels)))
    whole = row_entropy(p)
    assert torch.equal(torch.cat([row_entropy(p[i : i + 1]) for i in range(rows)]), whole)
    strided = torch.empty(labels, rows, dtype=torch.float64).T.copy_(p)
    assert torch.equal(row_entropy(strided), whole)


def test_large_float32_tables_are_computed_in_float64():
    p = torch.softmax(4 * torch.randn(3000, 1854, generator=torch.Generator().manual_seed(0)), dim=1)
    expected = scipy.stats.entropy(p.numpy().astype(np.float64), axis=1)
    value = row_entropy(p)
    assert value.dtype == torch.float64
    np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_exact_values_at_the_edges():
    assert row_entropy(torch.tensor([[7.0, 0, 0]])).item() == 0.0
    assert row_entropy(torch.full((1, 1854), 1 / 3)).item() <= math.log(1854)
    assert response_entropy(torch.tensor([[0, 1, 0]]), "chao_shen").item() == 0.0
    assert response_entropy(torch.tensor([[0, 9, 0]]), "chao_shen").item() == 0.0
    assert response_entropy(torch.zeros(2, 3, dtype=torch.int64)).isnan().all()
    for function in (row_entropy, response_entropy, lambda x: top1_accuracy(x, torch.zeros(0, dtype=torch.int64))):
        assert function(torch.zeros(0, 5)).shape == (0,)
    assert top1_accuracy(torch.tensor([[0, 0], [True, False]]).bool(), torch.tensor([0, 0])).tolist()[1] == 1.0


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: row_entropy(np.ones((2, 2))), TypeError, "torch.from_numpy"),
        (lambda: row_entropy(torch.ones(3)), ValueError, "two dimensions"),
        (lambda: row_entropy(torch.ones(1, 2, dtype=torch.complex64)), TypeError, "real numbers"),
        (lambda: row_entropy(torch.tensor([[1.0, 2], [0, -3]])), ValueError, r"row 1, label 1 is -3\.0"),
        (lambda: row_entropy(torch.tensor([[1.0, float("nan")]])), ValueError, "row 0, label 1 is nan"),
        (lambda: row_entropy(torch.tensor([[1.0, float("inf")]])), ValueError, "row 0, label 1 is inf"),
        (lambda: row_entropy(torch.tensor([[1, -2]])), ValueError, "row 0, label 1 is -2"),
        (lambda: response_entropy(torch.ones(1, 2), "per_sketch"), ValueError, "needs one row a sketch"),
        (lambda: response_entropy(torch.ones(1, 2), "james_stein"), ValueError, "must be one of"),
        (
            lambda: response_entropy(torch.tensor([[0.5, 1]]), "chao_shen"),
            ValueError,
            "integer counts .* row 0, label 0",
        ),
        (lambda: top1_accuracy(torch.ones(1, 2), torch.tensor([2])), ValueError, r"\[0, 2\); row 0 is 2"),
        (lambda: top1_accuracy(torch.ones(1, 2), torch.tensor([0.0])), TypeError, "integer dtype"),
        (lambda: top1_accuracy(torch.ones(1, 2), torch.tensor([[0]])), ValueError, "one dimension"),
        (lambda: top1_accuracy(torch.ones(2, 2), torch.tensor([0])), ValueError, "1 rows for 2 rows"),
    ],
)
def test_refusals_name_the_place(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
