"""Which sketches a survey asks about: triples whose scores lie apart, or sketches spread over the scores.

The published ranking study showed 160 triples "ordered by SEA" to 27 people, the rating study 88 sketches to 37; how
the triples were drawn is not stated. Here a triple takes one sketch from each third of a concept's scores, at random,
with a least distance between neighbours, so that its order is not a matter of noise; concepts take turns.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from humanlike.data.survey import SurveyItem
from humanlike.rng import generator

PUBLISHED_TRIPLES, PUBLISHED_SKETCHES = 160, 88
_TRIES = 40


@dataclass(frozen=True)
class Chosen:
    """What was chosen.

    Attributes:
        items: The questions, in a random order.
        table: One row a sketch of a question: `item, concept, sketch_id, score, place` (1 = highest score).
        passed_over: Concepts without any triple.
    """

    items: tuple[SurveyItem, ...]
    table: pd.DataFrame
    passed_over: tuple[str, ...] = ()


def choose_triples(
    sketches: pd.DataFrame, count: int, *, min_gap: float = 0.1, mixed: bool = False, seed: int = 0
) -> Chosen:
    """Triples for a ranking.

    Args:
        sketches: `sketch_id, concept, score`; rows without a score are passed over.
        count: How many triples.
        min_gap: Least difference of score between neighbours in a triple, 0 or more; equal scores never meet.
        mixed: Draw triples from all sketches together instead of within one concept.
        seed: Global seed.

    Returns:
        The triples. A sketch is used again only when the concept has no unused one that fits.

    Raises:
        ValueError: When fewer than `count` different triples are found; the sentence says how many there are.

    Example:
        >>> sketches = pd.DataFrame({"sketch_id": list("abcd"), "concept": "owl", "score": [0.9, 0.5, 0.45, 0.0]})
        >>> choose_triples(sketches, 1, min_gap=0.3).table["place"].tolist()
        [1, 2, 3]
    """
    if count < 1 or not 0 <= min_gap < np.inf:
        raise ValueError(f"a ranking needs a triple or more and a gap of 0 or more, got {count} and {min_gap}")
    known = _scored(sketches)
    groups: dict[str, pd.DataFrame] = {"": known}
    if not mixed:
        groups = {str(concept): own for concept, own in known.groupby("concept", sort=True)}
    used: Counter[str] = Counter()
    taken: set[frozenset[str]] = set()
    rows: list[tuple[str, tuple[str, ...]]] = []
    rng = generator(seed, "survey triples")
    alive = [str(name) for name in rng.permutation(np.array(list(groups), dtype=object))]
    fruitful: set[str] = set()
    while alive and len(rows) < count:
        for concept in tuple(alive):
            triple = _triple(groups[concept], min_gap, used, taken, rng)
            if triple is None:
                alive.remove(concept)
                continue
            fruitful.add(concept)
            taken.add(frozenset(triple))
            used.update(triple)
            rows.append((concept, triple))
            if len(rows) == count:
                break
    if len(rows) < count:
        raise ValueError(
            f"only {len(rows)} triples of {len(known)} scored sketches were found whose scores lie {min_gap:g} apart, "
            f"{count} were asked for; ask for fewer, lower --min-gap, or draw over all concepts with --mixed"
        )
    return _chosen(rows, known, tuple(sorted(set(groups) - fruitful - set(alive))), rng, "t")


def choose_sketches(sketches: pd.DataFrame, count: int, *, seed: int = 0) -> Chosen:
    """Sketches for a rating: one at random from each of `count` equal parts of the sketches sorted by score.

    Args:
        sketches: `sketch_id, concept, score`; without any score, sketches are drawn at random.
        count: How many sketches.
        seed: Global seed.

    Raises:
        ValueError: When there are fewer scored sketches.
    """
    whole = sketches["score"].isna().all()
    known = sketches.reset_index(drop=True) if whole else _scored(sketches)
    if not 1 <= count <= len(known):
        raise ValueError(f"{count} sketches were asked for, there are {len(known)}{'' if whole else ' with a score'}")
    rng = generator(seed, "survey sketches")
    order = rng.permutation(len(known)) if whole else np.argsort(known["score"].to_numpy(), kind="stable")
    ends = np.arange(count + 1) * len(order) // count
    picked = [int(order[rng.integers(a, b)]) for a, b in itertools.pairwise(ends)]
    rows: list[tuple[str, tuple[str, ...]]] = [
        (str(known["concept"].iloc[i]), (str(known["sketch_id"].iloc[i]),)) for i in picked
    ]
    return _chosen(rows, known, (), rng, "s")


def in_score_order(chosen: Chosen) -> tuple[SurveyItem, ...]:
    """The chosen items with their sketches by falling score, the order that an acceptance shows.

    Args:
        chosen: Triples.

    Example:
        >>> sketches = pd.DataFrame({"sketch_id": list("abc"), "concept": "owl", "score": [0.1, 0.9, 0.5]})
        >>> in_score_order(choose_triples(sketches, 1))[0].sketch_ids
        ('b', 'c', 'a')
    """
    placed = chosen.table.sort_values(["item", "place"], kind="stable").groupby("item")["sketch_id"]
    ids = {str(item): tuple(map(str, own)) for item, own in placed}
    return tuple(replace(item, sketch_ids=ids[item.item]) for item in chosen.items)


def _scored(sketches: pd.DataFrame) -> pd.DataFrame:
    known = sketches[sketches["score"].notna()].reset_index(drop=True)
    if not len(known):
        raise ValueError("no sketch has a score; give a finished run of benchmark=sea, or a table with --scores")
    return known


def _triple(
    own: pd.DataFrame, gap: float, used: Counter[str], taken: set[frozenset[str]], rng: np.random.Generator
) -> tuple[str, ...] | None:
    """Three ids by falling score, one from each third; the least used of some tries. None where no try fits."""
    order = np.argsort(own["score"].to_numpy(), kind="stable")
    if len(order) < 3:
        return None
    ids, score = own["sketch_id"].to_numpy(), own["score"].to_numpy()
    best: tuple[int, tuple[str, ...]] | None = None
    for _ in range(_TRIES):
        low, middle, high = (int(part[rng.integers(len(part))]) for part in np.array_split(order, 3))
        fits = min(score[high] - score[middle], score[middle] - score[low]) >= max(gap, 1e-12)
        triple = tuple(str(ids[i]) for i in (high, middle, low))
        if not fits or frozenset(triple) in taken:
            continue
        repeats = sum(used[i] for i in triple)
        if best is None or repeats < best[0]:
            best = repeats, triple
        if repeats == 0:
            break
    return None if best is None else best[1]


def _chosen(
    rows: list[tuple[str, tuple[str, ...]]],
    known: pd.DataFrame,
    passed_over: tuple[str, ...],
    rng: np.random.Generator,
    letter: str,
) -> Chosen:
    """Ids are given in a random order, so that they say nothing of the scores."""
    concept_of = dict(zip(known["sketch_id"].astype(str), known["concept"].astype(str), strict=True))
    score_of = dict(zip(known["sketch_id"].astype(str), known["score"], strict=True))
    shuffled = [rows[i] for i in rng.permutation(len(rows))]
    digits = len(str(len(rows)))
    items, table = [], []
    for number, (concept, ids) in enumerate(shuffled, start=1):
        item = f"{letter}{number:0{digits}d}"
        items.append(SurveyItem(item, tuple(sorted(ids)), concept))
        table += [
            {"item": item, "concept": concept_of[i], "sketch_id": i, "score": score_of[i], "place": place}
            for place, i in enumerate(ids, start=1)
        ]
    return Chosen(tuple(items), pd.DataFrame(table), passed_over)
