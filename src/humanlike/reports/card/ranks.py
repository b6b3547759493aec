"""Rank groups: models that cannot be told apart share a letter, and a rank is a range."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from humanlike.reports.card.groups import Group
from humanlike.reports.card.paired import GroupItems, NotPairedError
from humanlike.reports.card.values import CardValue, lower_is_better
from humanlike.stats.comparison import compare_pairs
from humanlike.stats.rank_groups import rank_groups


@dataclass(frozen=True)
class Ranking:
    """The order of a group's models by one score.

    Attributes:
        rank: Label of a model → 1 + number of models that are better; absent without a value.
        rank_high: Label → the lowest place it can have.
        letters: Label → letters of its groups.
        how: How pairs were told apart, as a sentence.
    """

    rank: Mapping[str, int]
    rank_high: Mapping[str, int]
    letters: Mapping[str, str]
    how: str


def rankings(group: Group, values: Mapping[str, Mapping[str, CardValue]], scores: Sequence[str]) -> dict[str, Ranking]:
    """Rank groups of every score.

    Args:
        group: Models that can be compared.
        values: Label → score → value.
        scores: Scores to rank by.

    Returns:
        Score → ranking; nothing for a group of one model, which is not ranked.
    """
    if len(group.entries) < 2:
        return {}
    items = GroupItems(group)
    return {score: _ranking(group, values, score, items) for score in scores}


def _ranking(group: Group, values: Mapping[str, Mapping[str, CardValue]], score: str, items: GroupItems) -> Ranking:
    labels = [entry.label for entry in group.entries]
    found = [values[label].get(score) for label in labels]
    estimate_M = np.array([np.nan if v is None or v.value is None else v.value for v in found])
    studied = group.entries[0].first.result.details.get("rank_groups")
    if studied is not None and score in studied:
        return _of_study(studied[score], labels)
    try:
        paired = items.paired(score)
    except NotPairedError as error:
        separable = disjoint_intervals(found)
        how = f"Two models are told apart where their 95% intervals do not overlap, which is a strict test: {error}."
    else:
        pairs = compare_pairs(estimate_M, paired.replicates_MB, centring=paired.centring)
        separable = pairs.separable(len(labels))
        how = (
            f"All {len(pairs.a_Q)} pair(s) were compared on the same {paired.replicates_MB.shape[1]} resamples of "
            f"{paired.over}; p-values are adjusted for their number (Holm), and two models are told apart at 5%."
        )
    groups = rank_groups(estimate_M, separable, higher_is_better=not lower_is_better(score))
    known = [(label, i) for i, label in enumerate(labels) if groups.rank_M[i]]
    return Ranking(
        {label: int(groups.rank_M[i]) for label, i in known},
        {label: int(groups.rank_high_M[i]) for label, i in known},
        {label: short_letters(groups.letters_M[i]) for label, i in known},
        how,
    )


def _of_study(rows: Mapping[str, Mapping[str, object]], labels: Sequence[str]) -> Ranking:
    known = [label for label in labels if label in rows and int(str(rows[label]["rank"])) > 0]
    return Ranking(
        {label: int(str(rows[label]["rank"])) for label in known},
        {label: int(str(rows[label]["rank_high"])) for label in known},
        {label: short_letters(str(rows[label]["letters"])) for label in known},
        "Ranks are the study's own, whose models were all compared on the same resamples.",
    )


def disjoint_intervals(values: Sequence[CardValue | None]) -> np.ndarray:
    """(M, M) bool: pairs of models whose intervals do not overlap; a model without an interval is told from none."""
    low_M = np.array([np.nan if v is None or v.low is None else v.low for v in values])
    high_M = np.array([np.nan if v is None or v.high is None else v.high for v in values])
    above = low_M[:, None] > high_M[None, :]
    return above | above.T


def short_letters(letters: str) -> str:
    """Letters with runs of four and more shortened.

    Example:
        >>> short_letters("abcdf"), short_letters("z aa ab ac"), short_letters("ab")
        ('a–d f', 'z–ac', 'ab')
    """
    names = letters.split() if " " in letters else list(letters)
    places = [_place(name) for name in names]
    parts: list[list[str]] = []
    for i, name in enumerate(names):
        if parts and places[i] == places[i - 1] + 1:
            parts[-1].append(name)
        else:
            parts.append([name])
    if all(len(part) < 4 for part in parts):
        return letters
    return " ".join(f"{part[0]}–{part[-1]}" if len(part) > 3 else " ".join(part) for part in parts)


def _place(name: str) -> int:
    assert re.fullmatch("[a-z]+", name)
    place = 0
    for letter in name:
        place = 26 * place + ord(letter) - ord("a") + 1
    return place
