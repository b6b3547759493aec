"""Rank groups: pairs compared on the same resamples where items are kept, by intervals where they are not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from humanlike.reports.card.groups import group_runs
from humanlike.reports.card.paired import GroupItems, NotPairedError
from humanlike.reports.card.ranks import disjoint_intervals, rankings
from humanlike.reports.card.values import CardValue, entry_values
from humanlike.reports.run_folder import read_record, score_of_record


def group_of(scores, benchmark):
    return group_runs([s for s in scores if s.benchmark == benchmark])[0][0]


def plain_alignment(table):
    """Adjusted R² of people ~ 1 + model + t + model·t over cells, by least squares with pandas alone."""
    cells = table.groupby(["concept", "condition"])[["correct", "accuracy_people"]].mean().reset_index()
    x = np.column_stack(
        [np.ones(len(cells)), cells["correct"], cells["condition"], cells["correct"] * cells["condition"]]
    )
    y = cells["accuracy_people"].to_numpy()
    rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return 1 - (rest @ rest / (len(y) - 4)) / (((y - y.mean()) ** 2).sum() / (len(y) - 1))


def test_replicates_are_those_of_resampled_images(run_scores, monkeypatch):
    monkeypatch.setattr("humanlike.reports.card.paired.widened", lambda replicates_B, spread: replicates_B)
    group = group_of(run_scores, "seva")
    items = GroupItems(group)
    run = group.entries[0].first
    alone = replace(group, entries=(replace(group.entries[0], runs=(run,)),))
    items.group = alone
    paired = items.paired("alignment_accuracy")
    table = pd.read_parquet(Path(run.run_dir) / "items.parquet").sort_values("sketch_id", ignore_index=True)
    design, slots, weights_GB = items._resamples()
    for b in (0, 7, 999):
        times = np.rint(slots @ weights_GB[:, b]).astype(int)
        again = table.loc[np.repeat(np.arange(len(table)), times)]
        assert paired.replicates_MB[0, b] == pytest.approx(plain_alignment(again), abs=1e-9)
    assert len(design) == len(table)


def test_items_that_do_not_give_the_score_are_not_resampled(run_scores, tmp_path):
    group = group_of(run_scores, "seva")
    run = group.entries[0].first
    folder = tmp_path / "run"
    shutil.copytree(run.run_dir, folder)
    table = pd.read_parquet(folder / "items.parquet")
    table.loc[:20, "correct"] = 1 - table.loc[:20, "correct"]
    table.to_parquet(folder / "items.parquet")
    wrong = score_of_record(read_record(folder), folder)
    entries = (replace(group.entries[0], runs=(wrong,)), *group.entries[1:])
    with pytest.raises(NotPairedError, match="the items do not give the recorded alignment_accuracy"):
        GroupItems(replace(group, entries=entries)).paired("alignment_accuracy")
    (folder / "items.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(NotPairedError, match="cannot be read"):
        GroupItems(replace(group, entries=entries)).paired("accuracy")
    values = {e.label: entry_values(e) for e in entries}
    found = rankings(replace(group, entries=entries), values, ["accuracy"])["accuracy"]
    assert "where their 95% intervals do not overlap" in found.how
    assert "cannot be read" in found.how


def test_models_with_the_same_answers_share_everything(run_scores):
    seva = [s for s in run_scores if s.benchmark == "seva" and s.seeds["seed"] == 0]
    twin = replace(seva[0], backbone="a_twin", hashes={**seva[0].hashes, "weights": "ab" * 32}, digest="2" * 64)
    group = group_runs([*seva, twin])[0][0]
    values = {e.label: entry_values(e) for e in group.entries}
    for score, found in rankings(group, values, ["alignment_accuracy", "accuracy", "alignment_entropy"]).items():
        assert "1000 resamples of source images" in found.how, score
        for place in (found.rank, found.rank_high, found.letters):
            assert place["a_twin"] == place["synthetic_net_000"]


@pytest.mark.parametrize("score", ["sea", "visual_ratio", "recognition"])
def test_means_of_items_are_compared_too(run_scores, score):
    group = group_of(run_scores, "sea")
    paired = GroupItems(group).paired(score)
    for i, entry in enumerate(group.entries):
        means = [pd.read_parquet(Path(r.run_dir) / "items.parquet")[score].mean() for r in entry.runs]
        assert paired.replicates_MB[i].mean() == pytest.approx(
            np.mean(means), abs=4 * paired.replicates_MB[i].std() / 30
        )
    assert paired.centring == "basic"


def test_object_learning_reads_the_replicates_that_runs_keep(run_scores):
    group = group_of(run_scores, "object_learning")
    paired = GroupItems(group).paired("msen_paper")
    for i, entry in enumerate(group.entries):
        own = []
        for run in entry.runs:
            table = pd.read_parquet(Path(run.run_dir) / "replicates.parquet")
            row = table[(table["layer"] == "block_5") & (table["rule"] == "square")]
            own.append(row[[f"r{b}" for b in range(300)]].to_numpy()[0])
        assert np.array_equal(paired.replicates_MB[i], np.mean(own, axis=0))
    with pytest.raises(NotPairedError, match="their convention's squared error alone"):
        GroupItems(group).paired("accuracy")


def test_the_better_model_of_learning_has_the_lower_error(card):
    found, values = card.rankings["g3"]["msen_paper"], card.values["g3"]
    best = min(values, key=lambda label: values[label]["msen_paper"].value)
    assert found.rank[best] == 1
    assert all(found.rank[label] <= found.rank_high[label] for label in values)


def test_intervals_that_touch_are_not_told_apart():
    values = [CardValue(0.5, 0.4, 0.6), CardValue(0.7, 0.6, 0.8), CardValue(0.9, 0.85, 0.95), CardValue(0.1), None]
    told = disjoint_intervals(values)
    assert np.array_equal(told, told.T)
    assert [tuple(map(int, pair)) for pair in np.argwhere(np.triu(told))] == [(0, 2), (1, 2)]
