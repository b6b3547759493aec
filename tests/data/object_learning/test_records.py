"""What the records refuse, and their small laws."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.data.object_learning import (
    Condition,
    ImageSet,
    ObjectLearningData,
    PeopleConditions,
    PeopleCounts,
    PeopleSessions,
    SimulatedPeople,
)
from humanlike.entry.conf import compose
from humanlike.entry.convert import kinds
from humanlike.entry.targets import build


@dataclass(frozen=True)
class Gray:
    number: int

    def __len__(self):
        return self.number

    def load(self, index):
        return Image.new("RGB", (4, 4))

    def content_hash(self, index):
        return str(index)

    def describe(self, index):
        return f"image {index}"


def image_set(names):
    table = pd.DataFrame(names, columns=["image_id", "category"])
    return ImageSet("toy", table, Gray(len(table)))


@pytest.fixture
def images():
    return image_set([(f"{o}{i}", o) for o in "ABCD" for i in range(3)])


def sessions(subtask, participant, trials=4):
    shape = (len(subtask), trials)
    return PeopleSessions(
        correct_ST=np.ones(shape, np.int8),
        subtask_S=np.array(subtask),
        participant_S=np.array(list(participant)),
        image_ST=np.zeros(shape, np.int64),
        condition_ST=np.full(shape, -1),
        catch_ST=np.zeros(shape, bool),
    )


def experiment(images, **changes):
    given = {"subtasks": (("A", "B"), ("C", "D")), "images": images, "num_trials": 4}
    return ObjectLearningData(name="toy", experiment="high_variation", **{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subtasks": ()}, "no subtask"),
        ({"subtasks": (("A",),)}, "two different objects"),
        ({"subtasks": (("A", "A"),)}, "two different objects"),
        ({"subtasks": (("A", "B", "C"),)}, "two different objects"),
        ({"subtasks": (("A", "E"),)}, r"has no image of \['E'\]"),
        ({"subtasks": (("A", "B"), ("B", "A"))}, "A,B stands twice"),
        ({"num_trials": 7}, "has 6 images for 7 trials"),
        ({"people": PeopleCounts(np.full((2, 3), 1), np.full(2, 5))}, r"shape \(2, 3\), expected \(2, 4\)"),
        ({"people": PeopleConditions(np.ones(1), np.ones(1))}, "1 of 0 conditions"),
        ({"people": sessions([0, 0, 1, 1], "abab", 3)}, "must have 4 trials"),
        ({"people": sessions([0, 0, 1], "aba")}, "subtask C,D has 1 session"),
        ({"people": sessions([0, 0], "ab")}, "subtask C,D has 0 session"),
        ({"people": sessions([0, 0, 1, 2], "abab")}, "subtask_S must lie in 0 … 1"),
        ({"people": sessions([0, 0, 1, 1], "aaab")}, "participant 'a' stands twice in subtask A,B"),
    ],
)
def test_an_experiment_must_hold_together(images, changes, message):
    with pytest.raises(ValueError, match=message):
        experiment(images, **changes)


def test_sessions_of_unequal_length(images):
    people = sessions([0, 0, 1, 1], ["a", "b", "a", "b"])
    people.correct_ST[2, 3] = -1
    with pytest.raises(ValueError, match="unequal length"):
        experiment(images, people=people)
    with pytest.raises(ValueError, match="session 2 lacks a trial"):
        people.counts(2)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([("a", "A"), ("a", "B")], "'a' stands in more than one row"),
        ([], "is empty"),
    ],
)
def test_image_sets(names, message):
    with pytest.raises(ValueError, match=message):
        image_set(names)


def test_image_sets_need_columns_and_images():
    with pytest.raises(ValueError, match="category"):
        ImageSet("toy", pd.DataFrame({"image_id": ["a"]}), Gray(1))
    with pytest.raises(ValueError, match="1 rows but 2 images"):
        ImageSet("toy", pd.DataFrame({"image_id": ["a"], "category": ["A"]}), Gray(2))


def test_selecting_images(images):
    part = images.select([5, 0])
    assert part.table["image_id"].tolist() == ["B2", "A0"]
    assert part.images.describe(0) == "image 5"
    assert images.rows_of("B").tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match="no image of object 'E'"):
        images.rows_of("E")


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        ([[3]], [1], "fewer than 2 sessions"),
        ([[6]], [5], "outside 0"),
        ([[-1]], [5], "outside 0"),
        ([[1.0]], [5], "integers"),
        ([1], [5], "subtasks × trials"),
    ],
)
def test_counts(k, n, message):
    with pytest.raises(ValueError, match=message):
        PeopleCounts(np.array(k), np.array(n))


def test_session_arrays_fit_each_other():
    good = sessions([0, 0], ["a", "b"])
    with pytest.raises(ValueError, match="image_ST must have the shape"):
        replace(good, image_ST=np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="participant_S must have one entry"):
        replace(good, participant_S=np.array(["a"]))
    with pytest.raises(ValueError, match="1, 0 or -1"):
        replace(good, correct_ST=np.full((2, 4), 2, np.int8))
    with pytest.raises(ValueError, match="not empty"):
        replace(good, correct_ST=np.zeros((0, 4), np.int8))


@pytest.mark.parametrize(
    ("kinds_of_A", "message"),
    [
        (["blur"] * 10, "has 0 support images"),
        (["original"] * 2 + ["blur"] * 8, "has 2 support images"),
        (["original"] + ["blur"] * 7, "has 7 test images; a session may show 8"),
    ],
)
def test_one_shot_needs_a_support_image_and_tests(kinds_of_A, message):
    rows = [(f"A{i}", "A", k) for i, k in enumerate(kinds_of_A)]
    rows += [(f"B{i}", "B", "blur" if i else "original") for i in range(9)]
    table = pd.DataFrame(rows, columns=["image_id", "category", "transformation"])
    table["condition"] = np.where(table["transformation"] == "blur", 0, -1)
    images = ImageSet("toy", table, Gray(len(table)))
    with pytest.raises(ValueError, match=message):
        ObjectLearningData("toy", "one_shot", (("A", "B"),), images, conditions=(Condition("blur", 1.0),))
    with pytest.raises(ValueError, match="condition must lie in"):
        ObjectLearningData("toy", "one_shot", (("A", "B"),), images)


def test_recipes_and_conditions_have_ranges():
    assert SimulatedPeople().sessions >= 2
    with pytest.raises(ValueError, match="must not be negative"):
        PeopleConditions(np.ones(2), -np.ones(2))
    with pytest.raises(ValueError, match="one length"):
        PeopleConditions(np.ones(2), np.ones(1))


def test_from_the_command_line(published):
    config = compose("evaluate", ["dataset=object_experiment", f"dataset.root={published}", "dataset.subtasks=1"])
    assert build(config.dataset).subtask_names == ("MutatorObject000,MutatorObject001",)
    settings = ["dataset=hobj_one_shot", f"dataset.root={published}", "dataset.on_count=warn", "offline=true"]
    assert build(compose("evaluate", settings).dataset).experiment == "one_shot"
    assert not {k for k in kinds() if k.startswith(("hobj", "object", "novel"))}
