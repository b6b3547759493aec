"""The embedded demo: its experiments hold together, its parts are parts, and its files read back the same."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.data.novel_objects import high_variation_images, warmup_images, write_image_set
from humanlike.data.object_learning import SimulatedPeople
from humanlike.data.object_learning_demo import novel_objects
from humanlike.data.object_learning_files import HIGH_VARIATION_META, WARMUP_META
from humanlike.data.object_learning_published import object_experiment
from humanlike.entry.conf import compose
from humanlike.entry.targets import build


def test_high_variation():
    data = build(compose("evaluate", ["dataset=novel_objects"]).dataset)
    assert len(data.subtasks) == 8
    assert len(data) == 1600
    assert len(data.warmup) == 50
    assert data.num_trials == 100
    assert not set(data.images.categories) & set(data.warmup.categories)
    assert isinstance(data.people, SimulatedPeople)
    assert data.simulated
    assert data.flags == ("simulated_participants",)


def test_one_shot_has_the_36_conditions():
    settings = ["dataset=novel_objects_one_shot", "dataset.subtasks=1", "dataset.truth.lapse=0.2"]
    data = build(compose("evaluate", settings).dataset)
    assert data.people.lapse == 0.2
    assert len(data.conditions) == 36
    assert len({c.transformation for c in data.conditions}) == 9
    rows, _ = data.subtask_rows(0)
    assert len(rows) == 122
    assert (np.bincount(data.condition_rows()[rows] + 1)[0]) == 2 + 8


def test_fewer_are_a_part_of_more():
    few, more = novel_objects(subtasks=1, images=3, warmup=4), novel_objects(subtasks=2, images=5, warmup=4)
    shared = more.images.table["image_id"].isin(few.images.table["image_id"]).to_numpy()
    rows = np.flatnonzero(shared)
    assert [few.images.images.content_hash(i) for i in range(len(few))] == [
        more.images.images.content_hash(int(r)) for r in rows
    ]
    assert few.num_trials == 6


def test_without_people():
    data = novel_objects(subtasks=1, images=3, warmup=2, people="none")
    assert data.people is None
    assert not data.simulated
    assert data.flags == ("no_people",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subtasks": 0}, "subtasks must be 1 or more"),
        ({"warmup": 1}, "warmup must be 2 or more"),
        ({"images": 0}, "images must be 1 or more"),
        ({"experiment": "both"}, "experiment must be one of"),
        ({"people": "real"}, "people must be one of"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        novel_objects(**arguments)


def test_written_stimuli_are_an_own_experiment(tmp_path):
    made = novel_objects(subtasks=1, images=3, warmup=2, size=64)
    write_image_set(tmp_path, high_variation_images(2, 3, size=64), HIGH_VARIATION_META)
    write_image_set(tmp_path, warmup_images(8, 2, size=64), WARMUP_META)
    read = object_experiment(tmp_path, people="none", verify="all", name="mine", source="made here")
    assert read.subtasks == made.subtasks
    assert read.num_trials == made.num_trials == 6
    assert read.images.table["image_id"].tolist() == made.images.table["image_id"].tolist()
    for i in range(len(read)):
        np.testing.assert_array_equal(read.images.images.load(i), made.images.images.load(i))
