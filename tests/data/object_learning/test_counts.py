"""People known by published numbers alone: the real counts of all 6,400 cells, and accuracies read off a figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from humanlike.data.object_learning import Condition, PeopleConditions, PeopleCounts
from humanlike.data.object_learning_counts import counted_subtasks, counts_for, read_conditions, read_counts
from humanlike.data.object_learning_published import object_experiment


@pytest.fixture(scope="module")
def counts_file(shared_data):
    return shared_data / "hobj_human" / "highvar_human_correct_counts.csv"


def test_the_real_counts(counts_file, shared_data):
    table = read_counts(counts_file)
    raw = pd.read_csv(counts_file)
    subtasks = [tuple(sorted(s.split(","))) for s in raw["subtask"]]
    people = counts_for(table, subtasks, "counts")
    np.testing.assert_array_equal(people.k_ST, raw.iloc[:, 3:].to_numpy())
    assert sorted(people.n_S.tolist())[:2] == [49, 50]
    assert people.n_S.sum() == 3199
    curve = pd.read_csv(shared_data / "hobj_human" / "highvar_human_mean_curve.csv")["human_mean"]
    np.testing.assert_allclose((people.k_ST / people.n_S[:, None]).mean(axis=0), curve, atol=1e-6)
    assert (people.k_ST / people.n_S[:, None]).mean() == pytest.approx(0.82, abs=0.005)


def test_first_names_find_the_same_counts(counts_file, shared_data):
    table = read_counts(counts_file)
    meta = pd.read_csv(shared_data / "hobj_human" / "meta_highvar_images.csv.gz")
    now = counted_subtasks(table, set(meta["category"]))
    first = counted_subtasks(table, set(meta["category_v1"]))
    assert len(now) == len(first) == 64
    renamed = dict(zip(meta["category"], meta["category_v1"], strict=True))
    same = [tuple(sorted(renamed[c] for c in pair)) for pair in now]
    a, b = counts_for(table, now, "x"), counts_for(table, same, "x")
    np.testing.assert_array_equal(a.k_ST, b.k_ST)
    assert set(same) == set(first)


def test_counts_stand_in_for_sessions(published, counts_file, tmp_path):
    raw = pd.read_csv(counts_file).iloc[:3, :13].copy()
    raw["subtask"] = ["MutatorObject003,MutatorObject002", "MutatorObject000,MutatorObject001", "A,B"]
    path = tmp_path / "counts.csv"
    raw.to_csv(path, index=False)
    data = object_experiment(published, people="counts", people_file=path)
    assert isinstance(data.people, PeopleCounts)
    np.testing.assert_array_equal(data.people.k_ST, raw.iloc[[1, 0], 3:].to_numpy())
    assert data.num_trials == 10
    assert data.flags == ("within_session_correlation_ignored", "part of the people: 2 of 3 subtasks have images")
    raw.iloc[[2]].to_csv(path, index=False)
    with pytest.raises(ValueError, match="name no pair of objects"):
        object_experiment(published, people="counts", people_file=path)
    with pytest.raises(ValueError, match="no counts of 1 of 1 subtasks"):
        counts_for(read_counts(path), [("C", "D")], "counts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t001": 51}, "t001 is 51 in rows 1, 2"),
        ({"t001": -1}, "0 … n_sessions"),
        ({"t001": 0.5}, "whole number"),
        ({"n_sessions": 1}, "at least 2"),
        ({"subtask": "A"}, "row 1: a subtask is two different objects"),
        ({"subtask": None}, "subtask is empty"),
    ],
)
def test_bad_counts_are_named(tmp_path, change, message):
    table = pd.DataFrame({"subtask": ["A,B", "C,D"], "n_sessions": 50, "t001": [1, 2], "t002": [3, 4]})
    table.assign(**change).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(ValueError, match=message):
        read_counts(tmp_path / "c.csv")


def test_counts_need_trials_in_order(tmp_path):
    pd.DataFrame({"subtask": ["A,B"], "n_sessions": 50, "t002": 1, "t001": 1}).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(ValueError, match="t001, t002"):
        read_counts(tmp_path / "c.csv")


def test_accuracies_of_all_36_conditions(shared_data):
    path = shared_data / "hobj_human" / "oneshot_human_digitised.csv"
    raw = pd.read_csv(path)
    meta = pd.read_csv(shared_data / "hobj_human" / "meta_oneshot_images.csv.gz")
    meta = meta[~meta["transformation"].isin(["original", "combinednat"])]
    pairs = meta[["transformation", "transformation_level"]].drop_duplicates()
    conditions = [Condition(t, round(float(v), 6)) for t, v in pairs.itertuples(index=False)]
    assert len(conditions) == 36
    people = read_conditions(path, conditions)
    assert people.digitised
    for condition, p, se in zip(conditions, people.p_C, people.se_C, strict=True):
        row = raw[(raw["transformation"] == condition.transformation) & ((raw["level"] - condition.level).abs() < 1e-5)]
        assert (row["human_phat"].item(), row["human_se"].item()) == (p, se)


def test_one_shot_people_from_a_table(published, tmp_path):
    data = object_experiment(published, "one_shot", people="none")
    table = pd.DataFrame(data.conditions).rename(columns={"level": "level"}).assign(human_phat=0.9, human_se=0.02)
    table.to_csv(tmp_path / "p.csv", index=False)
    data = object_experiment(published, "one_shot", people="counts", people_file=tmp_path / "p.csv")
    assert isinstance(data.people, PeopleConditions)
    assert data.flags == ("human_values_digitised",)
    table.iloc[1:].to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(ValueError, match=r"blur at 0\.007812 stands in 0 rows"):
        object_experiment(published, "one_shot", people="counts", people_file=tmp_path / "p.csv")
    table.assign(human_se=None).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(ValueError, match="rows 1, 2, 3"):
        read_conditions(tmp_path / "p.csv", data.conditions)
