"""Do people put things into the order that a score puts them into? One judgment is one person's order of M things.

Legend: R judgments, M things of a judgment (3 in a triple), P participants, I items (sets of things that are ordered).
Rank 1 is the first place, the place of the highest score.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

PAIR_CHANCE = 0.5
"""Concordance of a pair that is ordered by a coin."""


def order_chance(num_things: int) -> float:
    """Share of random orders that are one given order, 1/M!.

    Example:
        >>> round(order_chance(3), 6)
        0.166667
    """
    return 1 / math.factorial(num_things)


def order_accepted(rank_RM: np.ndarray, score_RM: np.ndarray) -> np.ndarray:
    """Whether a person's whole order is the order of the scores.

    Args:
        rank_RM: (R, M) ranks, each row a permutation of 1 … M.
        score_RM: (R, M) scores of the same things.

    Returns:
        (R,) float64: 1 accepted, 0 not, NaN where scores tie or are missing, so that they have no one order.

    Raises:
        ValueError: When shapes differ or a row of ranks is no permutation; the first such row is named.

    Example:
        >>> order_accepted(np.array([[1, 2, 3], [2, 1, 3]]), np.array([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]])).tolist()
        [1.0, 0.0]
    """
    rank_RM, score_RM = _checked(rank_RM, score_RM)
    sorted_RM = np.take_along_axis(score_RM, np.argsort(rank_RM, axis=1), axis=1)
    falls_R = (sorted_RM[:, 1:] < sorted_RM[:, :-1]).all(axis=1)
    by_size_RM = np.sort(score_RM, axis=1)
    ordered_R = (by_size_RM[:, 1:] > by_size_RM[:, :-1]).all(axis=1)  # False with a tie, and with a NaN
    return np.where(ordered_R, falls_R.astype(np.float64), np.nan)


def pair_concordance(rank_RM: np.ndarray, score_RM: np.ndarray) -> np.ndarray:
    """Share of a judgment's M(M-1)/2 pairs that person and score put into the same order.

    With untied scores it is (1 + Kendall's τ) / 2. Pairs whose scores tie or are missing are left out.

    Args:
        rank_RM: As in `order_accepted`.
        score_RM: As in `order_accepted`.

    Returns:
        (R,) float64 in [0, 1]; NaN where no pair is left.

    Example:
        >>> pair_concordance(np.array([[2, 1, 3]]), np.array([[0.9, 0.5, 0.1]])).round(6).tolist()
        [0.666667]
    """
    rank_RM, score_RM = _checked(rank_RM, score_RM)
    right_R, all_R = np.zeros(len(rank_RM)), np.zeros(len(rank_RM))
    for a, b in itertools.combinations(range(rank_RM.shape[1]), 2):
        difference_R = score_RM[:, a] - score_RM[:, b]
        known_R = np.isfinite(difference_R) & (difference_R != 0)
        all_R += known_R
        right_R += known_R & ((rank_RM[:, a] < rank_RM[:, b]) == (difference_R > 0))
    return np.divide(right_R, all_R, out=np.full(len(all_R), np.nan), where=all_R > 0)


def order_spearman(rank_RM: np.ndarray, score_RM: np.ndarray) -> np.ndarray:
    """Spearman's ρ between each person's order and the scores, average ranks for tied scores.

    Args:
        rank_RM: As in `order_accepted`.
        score_RM: As in `order_accepted`.

    Returns:
        (R,) float64 in [-1, 1]; NaN where a score is missing or all tie.
    """
    rank_RM, score_RM = _checked(rank_RM, score_RM)
    by_score_RM = rankdata(-score_RM, axis=1, nan_policy="propagate")
    a_RM = rank_RM - rank_RM.mean(axis=1, keepdims=True)
    b_RM = by_score_RM - by_score_RM.mean(axis=1, keepdims=True)
    below_R = np.sqrt((a_RM**2).sum(axis=1) * (b_RM**2).sum(axis=1))
    return np.divide((a_RM * b_RM).sum(axis=1), below_R, out=np.full(len(below_R), np.nan), where=below_R > 0)


@dataclass(frozen=True)
class OrderConsistency:
    """How far people agree with each other on whole orders.

    Attributes:
        left_out_R: (R,) whether a judgment is the most frequent order that the *others* gave the item, 1/n where n
            orders are equally frequent; NaN where nobody else judged the item.
        best_R: (R,) the same with the judgment itself among those counted. Its mean is the largest share that any fixed
            order of every item can reach on these judgments, so it is too high for people to come.
        pair_share_I: (I,) share of pairs of people who gave an item the same order; NaN below two people.
        pairs_I: (I,) int64 number of such pairs.
    """

    left_out_R: np.ndarray
    best_R: np.ndarray
    pair_share_I: np.ndarray
    pairs_I: np.ndarray

    @property
    def pair_agreement(self) -> float:
        """Share of pairs of people who agree, over all items; NaN where there is no pair."""
        pairs = int(self.pairs_I.sum())
        return float(np.nansum(self.pair_share_I * self.pairs_I) / pairs) if pairs else float("nan")


def order_consistency(rank_RM: np.ndarray, item_R: np.ndarray) -> OrderConsistency:
    """What the people themselves reach: the ceiling that a score's agreement is held against.

    The mean of `left_out_R` is a lower bound of the ceiling (the others are too few to know the best order), that of
    `best_R` an upper one (it has seen the judgment that it predicts).

    Args:
        rank_RM: (R, M) ranks in one fixed order of an item's things, each row a permutation of 1 … M.
        item_R: (R,) item of every judgment, 0 … I-1.

    References:
        Nili et al. 2014 (PLoS Computational Biology 10), lower and upper noise ceilings.

    Example:
        >>> found = order_consistency(np.array([[1, 2, 3], [1, 2, 3], [3, 2, 1]]), np.array([0, 0, 0]))
        >>> found.left_out_R.tolist(), found.best_R.tolist(), round(found.pair_agreement, 6)
        ([0.5, 0.5, 0.0], [1.0, 1.0, 0.0], 0.333333)
    """
    rank_RM, _ = _checked(rank_RM, np.zeros(np.shape(rank_RM)))
    item_R = np.asarray(item_R)
    if item_R.shape != (len(rank_RM),):
        raise ValueError(f"there are {len(rank_RM)} judgments and {item_R.shape} items of judgments")
    orders, code_R = np.unique(rank_RM, axis=0, return_inverse=True)
    code_R = code_R.reshape(-1)
    count_IO = np.zeros((int(item_R.max(initial=-1)) + 1, len(orders)), np.int64)
    np.add.at(count_IO, (item_R, code_R), 1)
    all_I = count_IO.sum(axis=1)
    pairs_I = all_I * (all_I - 1) // 2
    same_I = (count_IO * (count_IO - 1) // 2).sum(axis=1)
    others_RO = count_IO[item_R]
    others_RO[np.arange(len(code_R)), code_R] -= 1
    return OrderConsistency(
        left_out_R=_credit(others_RO, code_R),
        best_R=_credit(count_IO[item_R], code_R),
        pair_share_I=np.divide(same_I, pairs_I, out=np.full(len(pairs_I), np.nan), where=pairs_I > 0),
        pairs_I=pairs_I,
    )


def _credit(count_RO: np.ndarray, code_R: np.ndarray) -> np.ndarray:
    """Whether each order is the most frequent one, shared among those that are."""
    top_R = count_RO.max(axis=1, initial=0)
    modal_RO = count_RO == top_R[:, None]
    own_R = modal_RO[np.arange(len(code_R)), code_R]
    return np.where(top_R > 0, own_R / np.maximum(modal_RO.sum(axis=1), 1), np.nan)


def _checked(rank_RM: np.ndarray, score_RM: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rank_RM, score_RM = np.asarray(rank_RM), np.asarray(score_RM, np.float64)
    if rank_RM.ndim != 2 or rank_RM.shape != score_RM.shape or rank_RM.shape[1] < 2:
        raise ValueError(
            "ranks and scores must be (R, M) with M of 2 or more for the same things, got shapes "
            f"{rank_RM.shape} and {score_RM.shape}"
        )
    bad_R = (np.sort(rank_RM, axis=1) != np.arange(1, rank_RM.shape[1] + 1)).any(axis=1)
    if bad_R.any():
        row = int(bad_R.argmax())
        raise ValueError(
            f"ranks of judgment {row} are {rank_RM[row].tolist()}; each of 1 … {rank_RM.shape[1]} must occur once"
        )
    return rank_RM, score_RM
