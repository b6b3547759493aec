"""Which runs are ranked together, and what models are called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from humanlike.reports.card.card import build_card
from humanlike.reports.card.groups import comparable_facts, group_runs


def changed(score, **parts):
    """A run with another result, or other fields."""
    of_result = {k: v for k, v in parts.items() if k in ("protocol", "details", "counts", "flags", "scores")}
    own = {k: v for k, v in parts.items() if k not in of_result}
    return replace(score, result=replace(score.result, **of_result), **own)


@pytest.fixture(scope="module")
def seva(run_scores):
    return [s for s in run_scores if s.benchmark == "seva"]


def test_benchmarks_stand_apart_in_the_order_of_the_page(run_scores):
    groups, twice = group_runs(run_scores)
    assert [g.benchmark for g in groups] == ["seva", "sea", "object_learning"]
    assert [g.key for g in groups] == ["g1", "g2", "g3"]
    assert all(g.apart == "" for g in groups)
    assert all(len(g.entries) == 4 for g in groups)
    assert twice == []


def test_seeds_of_a_model_are_one_entry(run_scores):
    groups, _ = group_runs(run_scores)
    for group in groups:
        for entry in group.entries:
            assert [run.seeds["seed"] for run in entry.runs] == [0, 1]
        assert any("several seeds" in note for note in group.notes)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("version", {"benchmark_version": "2"}),
        ("data hash", {"hashes": {"data": "ff" * 32}}),
        ("people entropy", {"protocol": {"people_entropy": "pooled"}}),
        ("people simulated", {"flags": ()}),
        ("judgments", {"counts": {"judgments": 3}}),
    ],
)
def test_what_differs_keeps_runs_apart_and_is_said(seva, what, change):
    given = {k: {**getattr(seva[0].result, k, getattr(seva[0], k, {})), **v} if isinstance(v, dict) else v
             for k, v in change.items()}  # fmt: skip
    groups, _ = group_runs([*seva[1:], changed(seva[0], **given)])
    assert len(groups) == 2
    assert len(groups[0].entries) == 4
    assert f"Not ranked with the runs of group g2, from which these differ in {what} (" in groups[0].apart
    assert f"Not ranked with the runs of group g1, from which these differ in {what} (" in groups[1].apart


def test_another_list_of_elements_or_judge_keeps_sea_apart(run_scores):
    sea = [s for s in run_scores if s.benchmark == "sea"]
    lists = {**sea[0].result.details, "elements": {"source": "shipped@abc"}}
    assert "elements (" in group_runs([*sea[1:], changed(sea[0], details=lists)])[0][1].apart
    heads = [
        changed(s, details={**s.result.details, "judge": {"source": f"presence head on {s.backbone} {s.layer} (C 1)"}})
        for s in sea
    ]
    groups, _ = group_runs(heads)
    assert len(groups) == 1
    assert any("each model's own features" in note for note in groups[0].notes)
    other = {**heads[0].result.details, "judge": {"source": "presence head on another net pool (C 1)"}}
    assert len(group_runs([changed(heads[0], details=other), *heads[1:]])[0]) == 2


def test_the_name_of_a_preset_and_layers_tried_do_not_count(run_scores):
    learning = [s for s in run_scores if s.benchmark == "object_learning"]
    other = {
        **learning[0].result.protocol,
        "preset": "mine",
        "overridden": ["rules"],
        "rules": ["square"],
        "store": "x",
    }
    assert comparable_facts(changed(learning[0], protocol=other)) == comparable_facts(learning[0])


def test_a_run_given_twice_counts_once(seva):
    copy = replace(seva[0], run_dir="/copy", started="2026-03-01T00:00:00+00:00")
    groups, twice = group_runs([*seva, copy])
    assert sum(len(e.runs) for e in groups[0].entries) == len(seva)
    assert len(twice) == 1
    assert f"{seva[0].run_dir} is the run of /copy once more" in twice[0]


def test_one_seed_with_two_outcomes_is_two_models(seva):
    again = replace(seva[0], digest="0" * 64, run_dir="/elsewhere/again", started="2026-03-01T00:00:00+00:00")
    groups, twice = group_runs([*seva, again])
    assert twice == []
    labels = [e.label for e in groups[0].entries]
    assert len(labels) == len(set(labels)) == 5
    assert any(label.endswith("again") for label in labels)


def test_layers_tell_models_apart_everywhere(run_scores):
    first = [s for s in run_scores if s.backbone.endswith("000")]
    deeper = [replace(s, layer="block_3", digest="1" * 64) for s in first if s.benchmark == "seva"]
    groups, _ = group_runs([*run_scores, *deeper])
    assert [e.label for e in groups[0].entries][:2] == ["synthetic_net_000 · block_3", "synthetic_net_000 · pre_logits"]
    assert groups[1].entries[0].label == "synthetic_net_000 · pre_logits"
    assert groups[1].entries[1].label == "synthetic_net_001"


def test_switches_between_groups_are_compared(seva):
    other = [changed(s, protocol={**s.result.protocol, "model_snp": "paper"}) for s in seva[:2]]
    value = other[0].scores["alignment_accuracy"]
    moved = {**other[0].scores, "alignment_accuracy": replace(value, value=value.value + 0.1)}
    card = build_card([*seva[2:], *seva[:2], changed(other[0], scores=moved)])
    rows = card.switches[card.switches["score"] == "alignment_accuracy"]
    assert rows["switches"].tolist() == ["model_snp: exact → paper"]
    before = sum(s.scores["alignment_accuracy"].value for s in seva[:2]) / 2
    assert rows["change"].tolist() == pytest.approx([value.value + 0.1 - before])


def test_no_run_is_refused():
    with pytest.raises(ValueError, match=r"no finished run to report; name folders"):
        build_card([])
