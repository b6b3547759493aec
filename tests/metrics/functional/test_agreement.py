from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from humanlike.metrics.functional import error_consistency, kappa_from_counts

answers = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(answers)
@settings(deadline=None, max_examples=30)
def test_agrees_with_cohens_kappa(pairs):
    a, b = np.array(pairs).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn divides by zero where κ is undefined
        expected = cohen_kappa_score(a, b)
    value = error_consistency(torch.from_numpy(a), torch.from_numpy(b))
    assert value.dtype == torch.float64
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_by_hand():
    # o = 6/8, p_a = 5/8, p_b = 5/8: e = 34/64, κ = (48 - 34) / (64 - 34)
    a = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0])
    b = torch.tensor([1, 1, 1, 1, 0, 1, 0, 0])
    assert error_consistency(a, b).item() == 14 / 30


def test_unseen_items_are_left_out_and_people_come_at_once():
    rng = np.random.default_rng(0)
    model = rng.integers(0, 2, 60).astype(float)
    people = rng.integers(0, 2, (5, 60)).astype(float)
    people[rng.random((5, 60)) < 0.3] = np.nan
    value = error_consistency(torch.from_numpy(model), torch.from_numpy(people))
    for person, kappa in zip(people, value.tolist(), strict=True):
        seen = ~np.isnan(person)
        assert kappa == pytest.approx(cohen_kappa_score(model[seen], person[seen]), abs=1e-12)
    pairs = error_consistency(torch.from_numpy(people)[:, None], torch.from_numpy(people)[None])
    assert torch.equal(pairs, pairs.T)
    assert torch.equal(pairs.diagonal(), torch.ones(5, dtype=torch.float64))


def test_counts_alone_give_cohens_kappa():
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 30, 9)) < np.linspace(0.1, 0.9, 30)[:, None]
    counts = ((a & b).sum(1), a.sum(1), b.sum(1), np.full(30, 9))
    value = kappa_from_counts(*map(torch.from_numpy, counts)).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [cohen_kappa_score(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    assert kappa_from_counts(*torch.zeros(4, dtype=torch.int64)).isnan()


def test_undefined_is_nan():
    ones, zeros = torch.ones(4), torch.zeros(4)
    assert error_consistency(ones, ones).isnan()
    assert error_consistency(zeros, zeros).isnan()
    assert error_consistency(ones, ones * torch.nan).isnan()
    assert error_consistency(torch.zeros(0), torch.zeros(0)).isnan()
    assert error_consistency(ones, zeros).item() == 0.0
    assert error_consistency(torch.tensor([1, 0]), torch.tensor([0, 1])).item() == -1.0


@pytest.mark.parametrize(
    ("a", "b", "error", "sentence"),
    [
        (torch.ones(3), torch.ones(4), ValueError, "3 items and correct_b_N 4"),
        (torch.tensor([1, 2]), torch.ones(2), ValueError, "item 1 is 2"),
        (torch.ones(2), torch.tensor([0.5, 1]), ValueError, r"correct_b_N .* item 0 is 0\.5"),
        (np.ones(2), torch.ones(2), TypeError, "torch.from_numpy"),
        (torch.tensor(1), torch.ones(2), ValueError, "dimension of items"),
    ],
)
def test_refusals_name_the_place(a, b, error, sentence):
    with pytest.raises(error, match=sentence):
        error_consistency(a, b)
