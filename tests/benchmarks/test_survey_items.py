"""Triples lie apart in score, come from one concept, spread over sketches, and are the same for the same seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.survey_checks import attention_checks
from humanlike.benchmarks.survey_items import choose_sketches, choose_triples, in_score_order
from humanlike.data.survey import RatingScale, SurveyItem


@pytest.fixture(scope="module")
def sketches():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "sketch_id": [f"{c}_{i}" for c in "abcdefgh" for i in range(24)],
            "concept": [c for c in "abcdefgh" for _ in range(24)],
            "score": rng.uniform(-1, 1, 192),
        }
    )
    table.loc[::17, "score"] = np.nan
    return table


def test_triples_keep_their_promises(sketches):
    chosen = choose_triples(sketches, 160, min_gap=0.15, seed=3)
    score = sketches.set_index("sketch_id")["score"]
    assert len({frozenset(i.sketch_ids) for i in chosen.items}) == 160
    for item in chosen.items:
        assert {sketch[0] for sketch in item.sketch_ids} == {item.concept}
        assert np.diff(sorted(score[list(item.sketch_ids)])).min() >= 0.15
    assert set(Counter(i.concept for i in chosen.items).values()) == {20}
    uses = Counter(s for i in chosen.items for s in i.sketch_ids)
    assert max(uses.values()) <= 8
    assert len(uses) > 150
    assert chosen.table.groupby("item")["score"].apply(lambda s: s.is_monotonic_decreasing).all()
    assert choose_triples(sketches, 160, min_gap=0.15, seed=3).items == chosen.items
    assert choose_triples(sketches, 160, min_gap=0.15, seed=4).items != chosen.items


def test_ids_and_their_order_say_nothing_of_the_scores(sketches):
    chosen = choose_triples(sketches, 160, seed=0)
    assert [i.item for i in chosen.items] == [f"t{n:03d}" for n in range(1, 161)]
    score = sketches.set_index("sketch_id")["score"]
    tops = [int(np.argmax(score[list(i.sketch_ids)])) for i in chosen.items]
    assert all(35 <= tops.count(place) <= 72 for place in range(3))  # 53 expected


def test_an_acceptance_shows_falling_scores(sketches):
    chosen = choose_triples(sketches, 60, seed=2)
    score = sketches.set_index("sketch_id")["score"]
    for own, item in zip(in_score_order(chosen), chosen.items, strict=True):
        assert (own.item, set(own.sketch_ids)) == (item.item, set(item.sketch_ids))
        assert score[list(own.sketch_ids)].is_monotonic_decreasing


def test_concepts_without_a_triple_are_named_and_too_many_triples_refused(sketches):
    flat = sketches.assign(score=sketches["score"].where(sketches["concept"] != "c", 0.5))
    chosen = choose_triples(flat, 20)
    assert chosen.passed_over == ("c",)
    few = sketches.groupby("concept").head(4)
    with pytest.raises(ValueError, match=r"only \d+ triples of \d+ scored sketches .* 500 were asked for; .*--mixed"):
        choose_triples(few, 500)
    with pytest.raises(ValueError, match="no sketch has a score"):
        choose_triples(sketches.assign(score=np.nan), 3)


def test_mixed_triples_cross_concepts(sketches):
    chosen = choose_triples(sketches, 30, mixed=True)
    assert {i.concept for i in chosen.items} == {""}
    assert any(len({s[0] for s in i.sketch_ids}) == 3 for i in chosen.items)


def test_rated_sketches_spread_over_the_scores(sketches):
    chosen = choose_sketches(sketches, 88, seed=1)
    known = np.sort(sketches["score"].dropna())
    places = np.searchsorted(known, np.sort(chosen.table["score"])) / len(known)
    assert np.abs(places - (np.arange(88) + 0.5) / 88).max() < 0.012
    assert chosen.table["sketch_id"].is_unique
    unscored = sketches.assign(score=np.nan)
    assert choose_sketches(unscored, 5).table["sketch_id"].nunique() == 5
    with pytest.raises(ValueError, match="there are 180 with a score"):
        choose_sketches(sketches, 181)


def test_checks_ask_for_something_that_nobody_does_by_chance():
    items = tuple(SurveyItem(f"t{i}", (f"a{i}", f"b{i}", f"c{i}")) for i in range(40))
    checks = attention_checks(items, 40, None)
    assert all(check.expected != (0, 1, 2) and sorted(check.expected) == [0, 1, 2] for check in checks)
    assert {check.expected for check in checks} == {(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)}
    rated = attention_checks(tuple(SurveyItem(f"s{i}", (f"a{i}",)) for i in range(40)), 40, RatingScale(0, 10, 5))
    assert {check.expected for check in rated} == {(0,), (5,), (10,)}
    accepting = attention_checks(items, 40, None, accepting=True)
    assert {check.expected for check in accepting} == {(0,), (1,)}
    with pytest.raises(ValueError, match="41 attention checks among 40 questions"):
        attention_checks(items, 41, None)
