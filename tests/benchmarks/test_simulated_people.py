"""Simulated people against the direct weight-vector loop, and the law of their lapses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.benchmarks.simulated_people import simulate_people
from humanlike.data.object_learning import Condition, ImageSet, ObjectLearningData, SimulatedPeople
from humanlike.learners import draw_high_variation
from humanlike.rng import address_seed


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


def high_variation(truth, images=12, trials=16):
    names = [(f"{o}-{i:02d}", o) for o in "ABCD" for i in range(images)]
    table = pd.DataFrame(names, columns=["image_id", "category"])
    pairs = (("A", "B"), ("C", "D"))
    images_set = ImageSet("toy", table, Gray(len(table)))
    return ObjectLearningData("toy", "high_variation", pairs, images_set, people=truth, num_trials=trials)


def one_shot(truth):
    names = [(f"{o}-{i:02d}", o, "original" if i == 5 else "blur") for o in "AB" for i in range(12)]
    table = pd.DataFrame(names, columns=["image_id", "category", "transformation"])
    table["condition"] = np.where(table["transformation"] == "blur", table.index % 2, -1)
    conditions = (Condition("blur", 1.0), Condition("blur", 2.0))
    images = ImageSet("toy", table, Gray(len(table)))
    return ObjectLearningData("toy", "one_shot", (("A", "B"),), images, people=truth, conditions=conditions)


@pytest.fixture(scope="module")
def features():
    f = np.random.default_rng(0).normal(size=(64, 6))
    f[:24] += np.repeat([[0.8], [-0.8]], 12, axis=0)
    return f / np.linalg.norm(f, axis=1).max()


def grams(data, features):
    return lambda s: features[data.subtask_rows(s)[0]] @ features[data.subtask_rows(s)[0]].T


def test_without_lapses_people_are_the_learner(features):
    truth = SimulatedPeople(rule="square", alpha=0.7, lapse=0.0, sessions=20, seed=3)
    data = high_variation(truth)
    people = simulate_people(data, grams(data, features))
    assert people.simulated
    seed = address_seed(3, "simulated people")
    draws = draw_high_variation(seed, "C,D", 20, num_images=(12, 12), num_trials=16)
    for k in range(20):
        row = 20 + k
        assert people.subtask_S[row] == 1
        w = np.zeros((6, 2))
        for t, i in enumerate(draws.order_ST[k]):
            x = features[24 + i]
            assert people.image_ST[row, t] == 24 + i
            preference = x @ w
            tie = preference[0] == preference[1]
            choice = int(draws.coins_ST[k, t] >= 0.5) if tie else int(preference[1] > preference[0])
            reward = 1.0 if choice == draws.correct_action_ST[k, t] else -1.0
            assert people.correct_ST[row, t] == (reward > 0)
            w[:, choice] += 0.7 * (reward - preference[choice]) * x


def test_lapses_pull_accuracy_to_one_half(features):
    sure = high_variation(SimulatedPeople(lapse=0.0, sessions=2000))
    lapsing = high_variation(SimulatedPeople(lapse=0.3, sessions=2000))
    p = simulate_people(sure, grams(sure, features)).counts(2)
    q = simulate_people(lapsing, grams(sure, features)).counts(2)
    expected = 0.7 * p.k_ST / p.n_S[:, None] + 0.15
    assert np.abs(q.k_ST / q.n_S[:, None] - expected).max() < 4.5 * np.sqrt(0.25 * 0.3 / 2000) + 0.01
    guessing = replace(sure, people=SimulatedPeople(lapse=1.0, sessions=2000))
    r = simulate_people(guessing, grams(sure, features)).counts(2)
    assert np.abs(r.k_ST / 2000 - 0.5).max() < 4.5 * np.sqrt(0.25 / 2000)


def test_fewer_people_are_the_first_of_more(features):
    few, more = (high_variation(SimulatedPeople(sessions=n)) for n in (3, 9))
    a, b = (simulate_people(d, grams(d, features)) for d in (few, more))
    np.testing.assert_array_equal(a.correct_ST[a.subtask_S == 1], b.correct_ST[b.subtask_S == 1][:3])
    assert a.participant_S.tolist() == ["simulated-000", "simulated-001", "simulated-002"] * 2


def test_one_shot_people_follow_the_protocol(features):
    data = one_shot(SimulatedPeople(sessions=30))
    people = simulate_people(data, grams(data, features))
    kind = data.images.table["transformation"].to_numpy()[people.image_ST]
    support = [*range(10), 14, 19]
    assert (kind[:, support] == "original").all()
    assert (np.delete(kind, support, axis=1) == "blur").all()
    np.testing.assert_array_equal(people.condition_ST >= 0, kind == "blur")
    np.testing.assert_array_equal(people.condition_ST, data.condition_rows()[people.image_ST])
    assert np.flatnonzero(people.catch_ST[0]).tolist() == [9, 14, 19]


def test_what_cannot_be_simulated(features):
    data = high_variation(SimulatedPeople())
    with pytest.raises(ValueError, match=r"Gram matrix of subtask A,B has the shape \(3, 3\) for 24 images"):
        simulate_people(data, lambda s: np.eye(3))
    with pytest.raises(TypeError, match="must be a SimulatedPeople"):
        simulate_people(replace(data, people=None), grams(data, features))
    for wrong in ({"alpha": 2.0}, {"lapse": -0.1}, {"sessions": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SimulatedPeople(**wrong)
