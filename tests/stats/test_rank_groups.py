from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.stats.rank_groups import rank_groups


def symmetric(models: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    separable = np.triu(rng.random((models, models)) < share, k=1)
    return rng.random(models), separable | separable.T


@settings(max_examples=30, deadline=None)
@given(models=st.integers(1, 14), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_two_models_share_a_letter_exactly_where_they_are_inseparable(models, share, seed):
    estimate_M, separable = symmetric(models, share, seed)
    letters = rank_groups(estimate_M, separable).letters_M
    sets = [set(text.split() if " " in "".join(letters) else text) for text in letters]
    for a, b in itertools.combinations(range(models), 2):
        assert bool(sets[a] & sets[b]) == (not separable[a, b])
    assert all(sets)


@settings(max_examples=30, deadline=None)
@given(models=st.integers(1, 14), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_every_letter_is_as_large_as_it_can_be(models, share, seed):
    """No model outside a letter's group is inseparable from all in it: letters are maximal cliques."""
    estimate_M, separable = symmetric(models, share, seed)
    letters = rank_groups(estimate_M, separable).letters_M
    split = [text.split() if " " in "".join(letters) else list(text) for text in letters]
    for letter in {name for names in split for name in names}:
        group = [m for m in range(models) if letter in split[m]]
        assert not any(not separable[m, group].any() for m in set(range(models)) - set(group))


def test_ranks_count_who_is_significantly_better():
    estimate_M = np.array([0.3, 0.9, np.nan, 0.8, 0.7])
    separable = np.zeros((5, 5), dtype=bool)
    for a, b in ((1, 4), (1, 0), (3, 0)):  # .9 > .7, .9 > .3, .8 > .3; .7 against .3 and .9 against .8 are not
        separable[a, b] = separable[b, a] = True
    groups = rank_groups(estimate_M, separable)
    assert groups.rank_M.tolist() == [3, 1, 0, 1, 2]
    assert groups.rank_high_M.tolist() == [4, 2, 0, 3, 4]
    assert groups.letters_M == ("c", "a", "", "ab", "bc")
    lowest_best = rank_groups(estimate_M, separable, higher_is_better=False)
    assert lowest_best.rank_M.tolist() == [1, 3, 0, 2, 1]


def test_all_alike_share_one_letter_and_all_apart_have_their_own():
    estimate_M = np.arange(30) / 30
    none = rank_groups(estimate_M, np.zeros((30, 30), dtype=bool))
    assert set(none.letters_M) == {"a"}
    assert set(none.rank_M.tolist()) == {1}
    every = rank_groups(estimate_M, ~np.eye(30, dtype=bool))
    assert every.rank_M.tolist() == every.rank_high_M.tolist() == list(range(30, 0, -1))
    assert every.letters_M[29] == "a"
    assert every.letters_M[0] == "ad"  # the thirtieth: a … z, aa, ab, ac, ad


def test_sentences():
    with pytest.raises(ValueError, match="square"):
        rank_groups(np.array([0.1]), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="symmetric"):
        rank_groups(np.array([0.1, 0.2]), np.array([[0, 1], [0, 0]]))
    assert rank_groups(np.array([]), np.zeros((0, 0))).letters_M == ()
