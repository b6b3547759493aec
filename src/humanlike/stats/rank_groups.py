"""Ranks that say no more than the data do: models that cannot be told apart share a rank and a letter.

Being inseparable is not transitive: a may be inseparable from b, b from c, and a still be better than c. So two things
are given. The *rank* of a model is 1 + the number of models that are significantly better; its *rank range* ends at
M - the number of models that are significantly worse. *Letters* (a compact letter display) are exact about pairs: two
models share a letter if and only if they are inseparable.

Legend: M models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RankGroups:
    """Ranks of M models, in the order given.

    Attributes:
        rank_M: 1 + number of models significantly better; 0 for a model without a value.
        rank_high_M: M' - number of models significantly worse, M' the models that have a value; 0 without one.
        letters_M: Letters of the groups a model is in, "" without a value.
    """

    rank_M: np.ndarray
    rank_high_M: np.ndarray
    letters_M: tuple[str, ...]


def rank_groups(estimate_M: np.ndarray, separable_MM: np.ndarray, higher_is_better: bool = True) -> RankGroups:
    """Ranks, rank ranges and letters from which pairs are separable.

    Every letter is a largest possible set of mutually inseparable models (nothing can be added to it), and letters are
    made until each inseparable pair shares one: models are gone through from the best, and for each inseparable
    neighbour with which no letter is shared yet a new letter is begun with both and filled up, best first. That takes
    at most as many letters as there are inseparable pairs, for any pattern of separability.

    Args:
        estimate_M: (M,) values; NaN for a model without one.
        separable_MM: (M, M) bool, symmetric.
        higher_is_better: False where the best value is the lowest.

    Raises:
        ValueError: If shapes do not fit or the table is not symmetric.

    References:
        Piepho 2004 (Journal of Computational and Graphical Statistics 13), the letter display; Mogstad et al. 2024
        (Review of Economic Studies 91), ranges of ranks.

    Example:
        >>> separable = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool)
        >>> groups = rank_groups(np.array([0.9, 0.8, 0.7]), separable)
        >>> groups.rank_M.tolist(), groups.rank_high_M.tolist(), groups.letters_M
        ([1, 1, 2], [2, 3, 3], ('a', 'ab', 'b'))
    """
    estimate_M, separable_MM = np.asarray(estimate_M, np.float64), np.asarray(separable_MM, dtype=bool)
    if estimate_M.ndim != 1 or separable_MM.shape != (len(estimate_M), len(estimate_M)):
        raise ValueError(
            f"separable_MM must be square with a row for each of {estimate_M.shape} models, got {separable_MM.shape}"
        )
    if not np.array_equal(separable_MM, separable_MM.T):
        raise ValueError("separable_MM must be symmetric: a is separable from b exactly where b is from a")
    known_M = np.isfinite(estimate_M)
    merit_M = np.where(known_M, estimate_M if higher_is_better else -estimate_M, np.nan)
    better_MM = separable_MM & (merit_M[None, :] > merit_M[:, None])  # [m, other]: other is better than m
    worse_MM = separable_MM & (merit_M[None, :] < merit_M[:, None])
    order = np.argsort(-merit_M, kind="stable")[: known_M.sum()]
    return RankGroups(
        rank_M=np.where(known_M, 1 + better_MM.sum(axis=1), 0),
        rank_high_M=np.where(known_M, known_M.sum() - worse_MM.sum(axis=1), 0),
        letters_M=_letters(order, ~separable_MM),
    )


def _letters(order: np.ndarray, alike_MM: np.ndarray) -> tuple[str, ...]:
    """Letters of every model; `order` lists the models that have a value, best first."""
    alike = alike_MM[np.ix_(order, order)]
    np.fill_diagonal(alike, True)
    covered = np.zeros_like(alike)
    groups = []
    for first in range(len(order)):
        for second in (first, *np.flatnonzero(alike[first] & (np.arange(len(order)) > first))):
            alone = second == first
            if covered[first, second] or (alone and alike[first].sum() > 1):
                continue  # a model with an inseparable neighbour gets its letters with it
            members = _filled(alike, int(first), int(second))
            covered[np.ix_(members, members)] = True
            groups.append(members)
    groups.sort(key=lambda members: tuple(members))
    out: list[list[str]] = [[] for _ in range(len(alike_MM))]
    for letter, members in zip(_names(), groups, strict=False):
        for place in members:
            out[order[place]].append(letter)
    separator = "" if len(groups) <= 26 else " "
    return tuple(separator.join(letters) for letters in out)


def _filled(alike: np.ndarray, first: int, second: int) -> np.ndarray:
    """Places of a largest set of mutually inseparable models with these two, filled up from the best."""
    members = {first, second}
    candidates = alike[first] & alike[second]
    candidates[[first, second]] = False
    while candidates.any():
        place = int(np.argmax(candidates))
        members.add(place)
        candidates &= alike[place]
        candidates[place] = False
    return np.array(sorted(members))


def _names() -> Iterator[str]:
    """Letters without end: a … z, aa, ab, …, az, ba, and so on."""
    number = 0
    while True:
        name, left = "", number
        while True:
            name = chr(ord("a") + left % 26) + name
            left = left // 26 - 1
            if left < 0:
                break
        yield name
        number += 1
