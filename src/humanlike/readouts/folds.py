"""Cross-validation folds: balanced over classes, and groups that never stand on both sides.

Shapes: N items, F folds, K classes. A fold assignment is an (N,) int64 array with values 0 … F-1.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from humanlike.rng import address_seed, generator


def stratified_folds(label_N: np.ndarray, n_splits: int, seed: int = 0) -> np.ndarray:
    """Folds in which every class is spread as evenly as its size allows.

    The items of a class are shuffled and dealt in turn; the next class goes on where the last one ended, so that fold
    sizes differ by at most one too. The result depends on the seed and on the order of the rows. Give every row a name
    and use `stratified_group_folds` where it must not depend on the order.

    Args:
        label_N: (N,) class of every item.
        n_splits: Number of folds F, at least 2.
        seed: Global seed.

    Returns:
        (N,) int64 fold of every item; within a class, sizes of folds differ by at most 1.

    Raises:
        ValueError: If a class has fewer items than there are folds.

    Example:
        >>> sorted(stratified_folds(np.array([0, 0, 1, 1]), n_splits=2).tolist())
        [0, 0, 1, 1]
    """
    label_N = _column(label_N, "label_N")
    class_N, classes = pd.factorize(label_N, sort=True)
    _check_enough(np.bincount(class_N), classes, n_splits, "items")
    shuffled = generator(seed, "stratified_folds").permutation(len(label_N))
    in_class_order = shuffled[np.argsort(class_N[shuffled], kind="stable")]
    fold_N = np.empty(len(label_N), dtype=np.int64)
    fold_N[in_class_order] = np.arange(len(label_N)) % n_splits
    return fold_N


def stratified_group_folds(label_N: np.ndarray, group_N: np.ndarray, n_splits: int, seed: int = 0) -> np.ndarray:
    """Folds in which no group is split and every class is spread as evenly as its groups allow.

    Items that come from one source (time cuts of one drawing, sketches of one photograph) share a group; a readout that
    had seen one of them would be tested on what it knows. Groups are placed one by one, the largest first and equals in
    an order that hashes the seed with the group's name. Each goes where it least increases Σ_k n_fk² / n_k (n_fk: items
    of class k in fold f), ties going to the smaller fold. A group may hold several classes. The result depends on the
    seed, the labels and the names of the groups, and not on the order of the rows.

    Args:
        label_N: (N,) class of every item.
        group_N: (N,) group of every item: strings or numbers.
        n_splits: Number of folds F, at least 2.
        seed: Global seed.

    Returns:
        (N,) int64 fold of every item.

    Raises:
        ValueError: If a class has fewer groups than there are folds, or ends up in a single fold.

    Example:
        >>> fold_N = stratified_group_folds(np.array([0, 0, 0, 1, 1, 1]), np.array(list("aabccd")), n_splits=2)
        >>> bool(fold_N[0] == fold_N[1] != fold_N[2] and fold_N[3] == fold_N[4] != fold_N[5])
        True
    """
    label_N, group_N = _column(label_N, "label_N"), _column(group_N, "group_N")
    if len(group_N) != len(label_N):
        raise ValueError(f"group_N must name the group of each of the {len(label_N)} items, got {len(group_N)} names")
    class_N, classes = pd.factorize(label_N, sort=True)
    index_N, groups = pd.factorize(group_N)
    if (index_N < 0).any():
        raise ValueError(
            f"group_N is missing (NaN or None) in row {int(np.flatnonzero(index_N < 0)[0])}; name every group"
        )
    _check_enough(groups_per_class(class_N, index_N), classes, n_splits, "groups")
    fold_N = _place_groups(class_N, index_N, _group_keys(groups, seed), n_splits)[index_N]
    held_out_at_once = [c for c in range(len(classes)) if len(np.unique(fold_N[class_N == c])) < 2]
    if held_out_at_once:
        raise ValueError(
            f"all items of class {classes[held_out_at_once[0]]} fell into one fold, because its groups are shared with "
            "larger classes; use fewer folds (n_splits) or smaller groups"
        )
    return fold_N


def groups_per_class(class_N: np.ndarray, index_N: np.ndarray) -> np.ndarray:
    """(K,) number of distinct groups in which each class 0 … K-1 occurs.

    Example:
        >>> groups_per_class(np.array([0, 0, 1]), np.array([5, 5, 6])).tolist()
        [1, 1]
    """
    pairs = np.unique(np.stack([class_N, index_N]), axis=1)
    return np.bincount(pairs[0], minlength=int(class_N.max()) + 1)


def _place_groups(class_N: np.ndarray, index_N: np.ndarray, key_G: list[int], n_splits: int) -> np.ndarray:
    """(G,) fold of every group, placed greedily; see `stratified_group_folds`."""
    pairs, count_P = np.unique(np.stack([index_N, class_N]), axis=1, return_counts=True)
    start_G = np.searchsorted(pairs[0], np.arange(len(key_G) + 1)).tolist()
    size_G = np.bincount(index_N, minlength=len(key_G)).tolist()
    class_P, items_P = pairs[1].tolist(), count_P.tolist()
    total_K = np.bincount(class_N).tolist()
    held_FK = [[0] * len(total_K) for _ in range(n_splits)]
    held_F = [0] * n_splits
    fold_G = np.empty(len(key_G), dtype=np.int64)
    for group in sorted(range(len(key_G)), key=lambda g: (-size_G[g], key_G[g])):
        members = [(class_P[p], items_P[p]) for p in range(start_G[group], start_G[group + 1])]
        turn = key_G[group] % n_splits  # breaks full ties without favouring fold 0
        best = min(
            range(n_splits),
            key=lambda f: (
                sum(n * held_FK[f][k] / total_K[k] for k, n in members),
                held_F[f],
                (f - turn) % n_splits,
            ),
        )
        fold_G[group] = best
        held_F[best] += size_G[group]
        for k, n in members:
            held_FK[best][k] += n
    return fold_G


def _group_keys(groups: np.ndarray, seed: int) -> list[int]:
    names = np.asarray(groups).tolist()
    return [address_seed(seed, "folds", g if isinstance(g, str | int) else str(g)) for g in names]


def _column(values: np.ndarray, name: str) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {column.shape}")
    if len(column) == 0:
        raise ValueError(f"{name} is empty; folds need at least one item a class and fold")
    return column


class SmallClassError(ValueError):
    """A class with fewer members (or groups) than folds.

    Args:
        label: The class, as it was given.
        have: Its members or groups.
        n_splits: Number of folds.
        noun: What is counted: "items" or "groups".
        share: How many classes are too small, in words.
        setting: What sets the number of folds, as the one who reads the message knows it.
        otherwise: Another setting that would do, with its value; empty where there is none.
    """

    def __init__(
        self,
        label: object,
        have: int,
        n_splits: int,
        noun: str,
        share: str,
        setting: str = "n_splits",
        otherwise: str = "",
    ) -> None:
        self.label, self.have, self.n_splits, self.noun, self.share = label, have, n_splits, noun, share
        self.setting, self.otherwise = setting, otherwise
        remedy = " or ".join(filter(None, (f"{setting}={have}", otherwise)))
        super().__init__(
            f"class {label} has {have} {noun} for {n_splits} folds ({share} classes have fewer {noun} than folds); "
            f"{f'use {remedy}, ' if have >= 2 else ''}add {noun}, or leave those classes out"
        )

    def worded(
        self,
        label: object = None,
        noun: str | None = None,
        setting: str | None = None,
        otherwise: str | None = None,
    ) -> SmallClassError:
        """The same error in words that a caller knows better; None keeps a word."""
        return SmallClassError(
            self.label if label is None else label,
            self.have,
            self.n_splits,
            self.noun if noun is None else noun,
            self.share,
            self.setting if setting is None else setting,
            self.otherwise if otherwise is None else otherwise,
        )


def _check_enough(count_K: np.ndarray, classes: np.ndarray, n_splits: int, noun: str) -> None:
    if int(n_splits) != n_splits or n_splits < 2:
        raise ValueError(f"n_splits must be a whole number of at least 2, got {n_splits}")
    few = np.flatnonzero(count_K < n_splits)
    if len(few):
        worst = few[np.argmin(count_K[few])]
        have = int(count_K[worst])
        raise SmallClassError(classes[worst], have, n_splits, noun, f"{len(few)} of {len(classes)}")
