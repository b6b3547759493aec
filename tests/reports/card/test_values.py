"""Shares of the ceiling: numbers of score.json, means over seeds, and reasons where something is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from humanlike.reports.card.groups import Entry
from humanlike.reports.card.values import entry_values, fraction_of_ceiling, lower_is_better, ranked_scores
from humanlike.types import ScoreValue


def test_one_seed_shows_score_json(card):
    for group in card.groups:
        for entry in group.entries:
            alone = Entry(entry.label, entry.runs[:1])
            recorded = json.loads((Path(entry.first.run_dir) / "score.json").read_text())["scores"]
            for name, value in entry_values(alone).items():
                own = recorded[name]
                assert (value.value, value.low, value.high, value.ceiling) == (
                    own["value"], own["ci_low"], own["ci_high"], own["ceiling"],
                )  # fmt: skip
                if own["ceiling"] and own["value"] is not None:
                    assert value.fraction == own["value"] / own["ceiling"]


def test_seeds_are_averaged_and_the_interval_holds_both(card):
    entry = card.groups[0].entries[0]
    value = card.values["g1"][entry.label]["alignment_accuracy"]
    own = [run.scores["alignment_accuracy"] for run in entry.runs]
    assert value.value == pytest.approx(sum(v.value for v in own) / 2, abs=1e-15)
    assert (value.low, value.high) == (min(v.ci_low for v in own), max(v.ci_high for v in own))
    assert value.seeds == 2


def test_the_interval_of_a_share_is_wider_than_that_of_the_score_alone(card):
    for values in card.values["g1"].values():
        value = values["alignment_accuracy"]
        assert value.fraction_low < value.low / value.ceiling
        assert value.fraction_high > value.high / value.ceiling


@pytest.mark.parametrize(
    ("value", "fraction", "bounded", "reason"),
    [
        (ScoreValue(0.4, 0.3, 0.5, 0.8, (0.7, 0.9)), 0.5, True, ""),
        (ScoreValue(0.4, 0.3, 0.5, 0.8), 0.5, True, "taken as exact"),
        (ScoreValue(0.4, None, None, 0.8, (0.7, 0.9)), 0.5, False, "the score has no interval"),
        (ScoreValue(0.4, 0.3, 0.5, 0.1, (-0.1, 0.3)), 4.0, False, "cannot be told from 0"),
        (ScoreValue(0.4, 0.3, 0.5, -0.1, (-0.2, 0.1)), None, False, "not above 0"),
        (ScoreValue(0.4, 0.3, 0.5), None, False, "is not measured"),
        (ScoreValue(None), None, False, "no such value"),
    ],
)
def test_shares_and_reasons(run_scores, value, fraction, bounded, reason):
    got, low, high, why = fraction_of_ceiling(run_scores[0], "alignment_accuracy", value)
    assert got == (None if fraction is None else pytest.approx(fraction))
    assert (low is not None and low < got < high) == bounded
    assert reason in why
    assert bool(reason) == bool(why)


def test_reasons_name_what_is_missing(run_scores, card):
    sea, learning = card.values["g2"], card.values["g3"]
    assert {v["sea"].reason for v in sea.values()} == {"people are not scored on SEA, so it has no ceiling"}
    assert all("a perfect model is expected at 0.00240" in v["msen_paper"].reason for v in learning.values())
    without = replace(run_scores[0], result=replace(run_scores[0].result, flags=("no_people",)))
    assert fraction_of_ceiling(without, "accuracy", ScoreValue(0.5))[3] == "the data set has no people's answers"


def test_scores_to_order_by(card):
    assert ranked_scores(card.groups[0])[0] == "alignment_accuracy"
    assert ranked_scores(card.groups[2])[:2] == ["msen_paper", "consistency"]
    assert [lower_is_better(n) for n in ("msen_v2", "jsd", "sea", "alignment_snp")] == [True, True, False, False]
