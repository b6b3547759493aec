"""Both experiments from the published layout: what is read, in parts too, against pandas on the same files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from humanlike.data.object_learning import PeopleSessions
from humanlike.data.object_learning_published import hobj, object_experiment

HIGH = "behavior/human-behavior-highvar-subtasks.csv"
ONE = "behavior/human-behavior-oneshot-subtasks.csv"
META = "meta-MutatorHighVarImageset.csv"
ONE_META = "meta-MutatorOneShotImageset.csv"


def raw(root, name):
    return pd.read_csv(root / name)


def test_high_variation_sessions_equal_the_rows_without_probes(published):
    data = object_experiment(published, verify="all")
    rows = raw(published, HIGH)
    rows = rows[rows["trial_type"] != "probe"]
    assert data.subtask_names == ("MutatorObject000,MutatorObject001", "MutatorObject002,MutatorObject003")
    assert data.num_trials == 10
    people = data.people
    assert isinstance(people, PeopleSessions)
    assert people.dropped == {"probe trial": 6} == data.dropped
    for session, (_, group) in enumerate(rows.groupby("assignment_id")):
        group = group.sort_values("trial")
        np.testing.assert_array_equal(people.correct_ST[session], group["perf"].astype(int))
        assert people.participant_S[session] == group["worker_id"].iloc[0]
        assert data.subtask_names[people.subtask_S[session]] == group["subtask"].iloc[0]
        shown = data.images.table["image_id"].to_numpy()[people.image_ST[session]]
        assert shown.tolist() == group["image_id"].tolist()
    expected = rows.groupby(["subtask", rows.groupby("assignment_id").cumcount()])["perf"].sum().unstack()
    counts = people.counts(2)
    np.testing.assert_array_equal(counts.k_ST, expected.to_numpy())
    np.testing.assert_array_equal(counts.n_S, [3, 3])
    assert (people.condition_ST == -1).all()
    assert not people.catch_ST.any()


def test_images_and_their_numbers_in_a_subtask(published):
    data = object_experiment(published)
    rows, side = data.subtask_rows(1)
    ids = data.images.table["image_id"].to_numpy()[rows]
    assert ids.tolist() == sorted(ids)
    assert side.tolist() == [0] * 6 + [1] * 6
    assert data.images.images.load(int(rows[0])).size == (16, 16)
    assert data.warmup is not None
    assert len(data.warmup) == 6
    assert set(data.images.table.columns) >= {"rx", "ry", "rz", "s", "u", "v"}
    assert len(data) == 24


def test_one_shot_conditions_support_and_catch(published):
    data = object_experiment(published, "one_shot")
    assert [(c.transformation, c.level) for c in data.conditions] == [
        ("blur", 0.007812),
        ("blur", 0.0625),
        ("inplanerotation", 45.0),
        ("inplanerotation", 90.0),
        ("noise", 0.125),
    ]
    people, table = data.people, data.images.table
    assert people.correct_ST.shape == (4, 20)
    kind = table["transformation"].to_numpy()[people.image_ST]
    scored = ~np.isin(kind, ("original", "combinednat"))
    np.testing.assert_array_equal(people.condition_ST >= 0, scored)
    level = table["transformation_level"].abs().to_numpy()[people.image_ST]
    for s, t in np.argwhere(scored):
        condition = data.conditions[people.condition_ST[s, t]]
        assert (condition.transformation, condition.level) == (kind[s, t], level[s, t])
    assert np.flatnonzero(people.catch_ST.all(axis=0)).tolist() == [9, 14, 19]
    assert people.catch_ST.any(axis=0).sum() == 3
    support = data.support_rows(0)
    assert table["image_id"].to_numpy()[support].tolist() == [
        "MutatorOneshotObject00-original.png",
        "MutatorOneshotObject01-original.png",
    ]
    rows, side = data.subtask_rows(1)
    shown = table.iloc[rows]
    assert (shown["transformation"].iloc[2:] != "original").all()
    assert side.tolist() == [0, 1] + [0] * 13 + [1] * 13
    assert shown["category"].tolist() == [data.subtasks[1][i] for i in side]
    assert shown["image_id"].iloc[2:15].tolist() == sorted(shown["image_id"].iloc[2:15])


def test_time_outs_are_wrong_and_reported(edit):
    def late(table):
        table.loc[[0, 1], "timed_out"] = True
        table.loc[0, "perf"] = None
        table.loc[1, "perf"] = True

    data = object_experiment(edit(HIGH, late))
    assert data.people.timed_out == pytest.approx(2 / 60)
    session = data.people.participant_S.tolist().index("worker0", 0)
    rows = data.people.correct_ST[data.people.subtask_S == 1]
    assert rows[0, :2].tolist() == [0, 0]
    assert session == 0


def test_order_of_rows_does_not_matter(edit, published):
    shuffled = object_experiment(edit(HIGH, lambda t: t.sample(frac=1, random_state=0)))
    people, other = shuffled.people, object_experiment(published).people
    np.testing.assert_array_equal(people.correct_ST, other.correct_ST)
    np.testing.assert_array_equal(people.image_ST, other.image_ST)


def test_parts(published):
    pair = "MutatorObject003,MutatorObject002"
    data = object_experiment(published, subtasks=[pair], sessions=2)
    assert data.subtask_names == ("MutatorObject002,MutatorObject003",)
    assert data.people.correct_ST.shape == (2, 10)
    assert set(data.images.categories) == {"MutatorObject002", "MutatorObject003"}
    assert data.flags == ("part of the data: 1 of 2 subtasks, at most 2 sessions each",)
    first = object_experiment(published, subtasks=1)
    assert first.subtask_names == ("MutatorObject000,MutatorObject001",)
    objects = object_experiment(published, objects=["MutatorObject000", "MutatorObject001", "MutatorObject002"])
    assert objects.subtask_names == first.subtask_names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subtasks": ["MutatorObject000,MutatorObject002"]}, "no subtask MutatorObject000,MutatorObject002"),
        ({"subtasks": 3}, "must lie in 1 … 2"),
        ({"subtasks": "MutatorObject000,MutatorObject001"}, "are lists"),
        ({"subtasks": ["MutatorObject000"]}, "two different objects"),
        ({"objects": ["MutatorObject009"]}, "no subtask has the object 'MutatorObject009'"),
        ({"objects": ["MutatorObject000", "MutatorObject002"]}, "no subtask is left"),
        ({"sessions": 1}, "at least 2"),
        ({"people": "none", "sessions": 2}, "needs people=sessions"),
        ({"people": "counts"}, "needs people_file"),
        ({"people_file": "x.csv"}, "people=counts only"),
        ({"people": "all"}, "people must be one of"),
        ({"experiment": "two_shot"}, "experiment must be one of"),
        ({"verify": "some"}, "verify must be one of"),
        ({"on_repeat": "keep"}, "on_repeat must be one of"),
    ],
)
def test_wrong_arguments(published, arguments, message):
    with pytest.raises(ValueError, match=message):
        object_experiment(published, **arguments)


def test_without_people_neighbours_are_paired_or_pairs_named(published):
    data = object_experiment(published, people="none")
    assert data.subtask_names == ("MutatorObject000,MutatorObject001", "MutatorObject002,MutatorObject003")
    assert data.people is None
    assert data.flags == ("no_people",)
    assert data.num_trials == 12
    named = object_experiment(published, people="none", subtasks=["MutatorObject003,MutatorObject000"])
    assert named.subtask_names == ("MutatorObject000,MutatorObject003",)


def test_published_counts_are_demanded_or_flagged(published):
    with pytest.raises(ValueError, match=r"images: 24, expected 12,800.*sessions: 6, expected 3,199"):
        hobj(published)
    data = hobj(published, on_count="warn", subtasks=1)
    assert data.flags[0].startswith("counts deviate from the published data")
    assert "pj6wm" in data.source
    with pytest.raises(ValueError, match="scored conditions: 5, expected 36"):
        hobj(published, "one_shot")


BAD_TRIALS = [
    (lambda t: t.drop(index=3), "session ASSIGN00 has 9 trials and 10 are expected"),
    (lambda t: t[~t["assignment_id"].isin(["ASSIGN01", "ASSIGN02"])], "has 1 session"),
    (lambda t: t.assign(worker_id="worker0"), "participant 'worker0' stands twice in subtask"),
    (lambda t: t.assign(subtask=t["subtask"].str.split(",").str[0]), r"rows 1, 2, 3, 4.*two different objects"),
    (lambda t: t.assign(subtask="MutatorObject002,MutatorObject002"), "two different objects"),
    (lambda t: t.replace("MutatorObject002,MutatorObject003", "MutatorObject002,MutatorObject000"), "no object of the"),
    (lambda t: t.replace("MutatorObject002,MutatorObject003", "MutatorObject002,MutatorObject777"), "MutatorObject777"),
    (lambda t: t.assign(perf="maybe"), "perf is 'maybe' in rows 1, 2, 3, 4"),
    (lambda t: t.assign(perf=None), "perf is empty in rows 1, 2"),
    (lambda t: t.assign(timed_out="late"), "timed_out is 'late'"),
    (lambda t: t.assign(trial=0), "have one trial number in one session"),
    (lambda t: t.assign(trial=0.5), "trials are numbered"),
    (lambda t: t.assign(worker_id=None), "worker_id is empty in rows 1"),
    (lambda t: t.assign(trial_type="probe"), "every row is a probe"),
    (lambda t: t.drop(columns="worker_id"), r"lacks the column\(s\) \['worker_id'\]"),
    (lambda t: t.replace(t["image_id"].iloc[2], "nowhere.png"), "'nowhere.png' is no image of"),
    (lambda t: t.replace({"assignment_id": {"ASSIGN01": "ASSIGN00"}}), "one trial number in one session"),
]


@pytest.mark.parametrize(("change", "message"), BAD_TRIALS)
def test_bad_trials_are_named(edit, change, message):
    root = edit(HIGH, change)
    with pytest.raises(ValueError, match=message):
        object_experiment(root)


def test_a_repeat_can_be_settled_by_time(edit):
    def again(table):
        table.loc[table["assignment_id"] == "ASSIGN02", "worker_id"] = "worker0"

    data = object_experiment(edit(HIGH, again), on_repeat="first")
    assert data.people.dropped["session of a subtask that the participant had done before"] == 1
    assert np.bincount(data.people.subtask_S).tolist() == [3, 2]


def test_one_shot_trials_must_follow_the_protocol(edit):
    def swap(table):
        table.loc[[3, 12], "image_id"] = table.loc[[12, 3], "image_id"].to_numpy()

    root = edit(ONE, swap)
    with pytest.raises(ValueError, match=r"trial 3 of session ONE0/0 shows .*; a support image is expected"):
        object_experiment(root, "one_shot")


def test_sessions_of_one_assignment_need_slots(edit):
    root = edit(ONE, lambda t: t.drop(columns="slot"))
    with pytest.raises(ValueError, match="slot"):
        object_experiment(root, "one_shot")


def test_missing_and_damaged_images(changed):
    missing = changed / "images/MutatorHighVarImageset/MutatorObject001/MutatorObject001-Image02.png"
    content = missing.read_bytes()
    missing.unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 24 images are missing, first .*Image02.png \(row 9"):
        object_experiment(changed)
    missing.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=r"Image02.png \(row 9\) has another SHA-256"):
        object_experiment(changed)
    assert len(object_experiment(changed, verify="none")) == 24


BAD_META = [
    (META, "high_variation", lambda t: t.assign(image_id="a.png"), "image_id 'a.png' stands in"),
    (META, "high_variation", lambda t: t.assign(relpath="../" + t["relpath"]), "leads outside"),
    (META, "high_variation", lambda t: t.drop(columns="sha256"), "sha256"),
    (META, "high_variation", lambda t: t.assign(sha256=None), "sha256 of .* is empty"),
    (ONE_META, "one_shot", lambda t: t.drop(columns="transformation"), "transformation"),
    (ONE_META, "one_shot", lambda t: t.assign(transformation_level="high"), "needs a number"),
    (ONE_META, "one_shot", lambda t: t.replace({"transformation": {"original": "blur"}}), "level|support"),
]


@pytest.mark.parametrize(("name", "experiment", "change", "message"), BAD_META)
def test_bad_metadata_is_named(edit, name, experiment, change, message):
    root = edit(name, change)
    with pytest.raises(ValueError, match=message):
        object_experiment(root, experiment)


def test_an_odd_number_of_objects_needs_named_pairs(edit):
    root = edit(META, lambda t: t[t["category"] != "MutatorObject003"])
    with pytest.raises(ValueError, match="3 objects, an odd number"):
        object_experiment(root, people="none")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        object_experiment(tmp_path / "nowhere")
