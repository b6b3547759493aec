"""Folds: groups whole, classes balanced; scikit-learn's StratifiedGroupKFold is the referee for balance."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold

from humanlike.readouts.folds import groups_per_class, stratified_folds, stratified_group_folds


def counts(fold_N, class_N, n_splits):
    table_FK = np.zeros((n_splits, class_N.max() + 1), int)
    np.add.at(table_FK, (fold_N, class_N), 1)
    return table_FK


@given(
    size_K=st.lists(st.integers(5, 40), min_size=1, max_size=8),
    n_splits=st.integers(2, 5),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=30)
def test_stratified_folds_differ_by_one_item_at_most(size_K, n_splits, seed):
    class_N = np.repeat(np.arange(len(size_K)), size_K)
    table_FK = counts(stratified_folds(class_N, n_splits, seed), class_N, n_splits)
    assert np.ptp(table_FK, axis=0).max() <= 1
    assert np.ptp(table_FK.sum(1)) <= 1


@given(
    groups=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6)), min_size=30, max_size=80),
    n_splits=st.integers(2, 5),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=30)
def test_groups_are_never_split(groups, n_splits, seed):
    class_N = np.concatenate([np.full(size, k) for k, size in groups] + [np.repeat(np.arange(5), 5)])
    group_N = np.concatenate(
        [np.full(size, i) for i, (_, size) in enumerate(groups)] + [1000 + np.arange(25)],
    )
    fold_N = stratified_group_folds(class_N, group_N, n_splits, seed)
    for group in np.unique(group_N):
        assert len(np.unique(fold_N[group_N == group])) == 1
    # every class is held out a little in every fold, and never all at once
    table_FK = counts(fold_N, class_N, n_splits)
    assert (table_FK > 0).all()


@given(seed=st.integers(0, 50))
@settings(deadline=None, max_examples=20)
def test_groups_that_hold_several_classes_stay_whole_too(seed):
    rng = np.random.default_rng(seed)
    group_N = rng.integers(0, 60, 500)
    class_N = rng.integers(0, 4, 500)
    fold_N = stratified_group_folds(class_N, group_N, 4, seed)
    assert len(np.unique(np.stack([group_N, fold_N]), axis=1).T) == len(np.unique(group_N))
    table_FK = counts(fold_N, class_N, 4)
    assert table_FK.min() > 0.6 * 500 / 16


def test_balance_is_as_good_as_scikit_learns():
    rng = np.random.default_rng(3)
    class_G = rng.integers(0, 10, 300)
    size_G = rng.integers(1, 9, 300)
    class_N, group_N = np.repeat(class_G, size_G), np.repeat(np.arange(300), size_G)
    theirs_N = np.empty(len(class_N), int)
    for fold, (_, held) in enumerate(
        StratifiedGroupKFold(5, shuffle=True, random_state=0).split(class_N, class_N, group_N)
    ):
        theirs_N[held] = fold

    def worst(fold_N):
        return np.ptp(counts(fold_N, class_N, 5), axis=0).max()

    assert worst(stratified_group_folds(class_N, group_N, 5)) <= worst(theirs_N)


def test_equal_groups_are_dealt_as_evenly_as_possible():
    class_N = np.repeat(np.arange(8), 16 * 4)  # 8 concepts × 16 photographs × 4 conditions
    group_N = np.arange(len(class_N)) // 4
    table_FK = counts(stratified_group_folds(class_N, group_N, 5), class_N, 5)
    assert np.ptp(table_FK, axis=0).max() <= 4
    assert np.ptp(table_FK.sum(1)) <= 4


def test_result_depends_on_names_and_seed_only():
    rng = np.random.default_rng(0)
    class_N = np.repeat(np.arange(6), 50)
    group_N = np.array([f"photo_{i // 5}" for i in range(300)])
    fold_N = stratified_group_folds(class_N, group_N, 5, seed=1)
    order = rng.permutation(300)
    assert np.array_equal(stratified_group_folds(class_N[order], group_N[order], 5, seed=1), fold_N[order])
    assert not np.array_equal(stratified_group_folds(class_N, group_N, 5, seed=2), fold_N)
    # the same in another process and release: fixed values
    assert fold_N[::5].tolist() == stratified_group_folds(class_N, group_N.astype(object), 5, seed=1)[::5].tolist()


def test_ninety_thousand_items_in_twenty_thousand_groups_are_fast():
    class_G = np.arange(20_000) % 128
    class_N, group_N = np.repeat(class_G, 4)[:90_000], np.repeat(np.arange(20_000), 4)[:90_000]
    start = time.process_time()
    fold_N = stratified_group_folds(class_N, group_N, 5)
    assert time.process_time() - start < 5
    assert np.ptp(counts(fold_N, class_N, 5), axis=0).max() <= 4


def test_groups_per_class_counts_distinct_groups():
    assert groups_per_class(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])).tolist() == [2, 1]


def test_single_class_and_two_folds():
    assert sorted(stratified_folds(np.zeros(3, int), 2).tolist()) in ([0, 0, 1], [0, 1, 1])


@pytest.mark.parametrize(
    ("label_N", "group_N", "n_splits", "sentence"),
    [
        ([0, 0, 0, 1], [0, 1, 2, 3], 3, r"class 1 has 1 groups for 3 folds .*leave those classes out"),
        ([0, 0, 0, 1, 1], [0, 1, 2, 3, 4], 3, r"than folds\); use n_splits=2, add groups"),
        ([0, 0], [0, 1], 1, "n_splits must be a whole number of at least 2, got 1"),
        ([0, 0], [0, 1, 2], 2, "group of each of the 2 items, got 3"),
        ([0, 0], ["a", None], 2, "missing .* in row 1"),
        ([], [], 2, "label_N is empty"),
        ([[0, 1]], [0], 2, "one-dimensional"),
    ],
)
def test_errors_are_sentences(label_N, group_N, n_splits, sentence):
    with pytest.raises(ValueError, match=sentence):
        stratified_group_folds(np.array(label_N), np.array(group_N), n_splits)


def test_small_class_is_named_without_groups():
    with pytest.raises(ValueError, match="class b has 2 items for 3 folds"):
        stratified_folds(np.array(["a", "a", "a", "b", "b"]), 3)
