"""Bad input of object learning, from the data to the benchmark: one sentence that says what, where, and what to do."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from humanlike.backbones.network import NetworkBackbone
from humanlike.benchmarks.object_learning import ObjectLearningBenchmark
from humanlike.data.images import BadImageError
from humanlike.data.object_learning import ImageSet, ObjectLearningData, PeopleCounts, PeopleSessions
from humanlike.learners import simulate_sessions

SIDE, TRIALS = 16, 20


class Noise:
    """Seeded noise; `broken` is an image that cannot be read."""

    def __init__(self, number, broken=None):
        self.number, self.broken = number, broken

    def __len__(self):
        return self.number

    def load(self, index):
        if index == self.broken:
            raise BadImageError(f"/data/images/{index}.png", "there is no such file")
        return Image.fromarray(np.random.default_rng(index).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8))

    def content_hash(self, index):
        return hashlib.sha256(str(index).encode()).hexdigest()

    def describe(self, index):
        return f"image {index}"


def image_set(objects, each, broken=None):
    owner = [o for o in objects for _ in range(each)]
    table = pd.DataFrame({"image_id": [f"{o}{i}" for i, o in enumerate(owner)], "category": owner})
    return ImageSet("images", table, Noise(len(owner), broken))


def experiment(broken=None, **changes):
    given = {"subtasks": (("a", "b"), ("c", "d")), "images": image_set("abcd", TRIALS, broken), "num_trials": TRIALS}
    return ObjectLearningData("noise", "high_variation", warmup=image_set("wx", 8), **{**given, **changes})


def people(subtasks, participants, missing=None):
    correct_ST = np.ones((len(subtasks), TRIALS), np.int8)
    if missing is not None:
        correct_ST[missing, -1] = -1
    none_ST = np.full(correct_ST.shape, -1)
    return PeopleSessions(correct_ST, np.array(subtasks), np.array(list(participants)), none_ST, none_ST, none_ST > 0)


class Layer(torch.nn.Module):
    """What comes out of the layer that is scored."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of(x)


def run(data, of, path):
    def network():
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 20), Layer(of))

    benchmark = ObjectLearningBenchmark(["2"], ["square"], sessions=5, replicates=5, size=SIDE)
    backbone = NetworkBackbone(network, "2", {"size": SIDE}, name="tiny")
    return benchmark.run_backbone(backbone, data, cache_dir=path, extraction={"progress": False})


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (lambda x: x * 0, r"tiny, layer 2: .*constant over the warm-up images.*leave it out \(benchmark\.layers\)"),
        (
            lambda x: torch.log(x - 1e6),
            r"tiny: layer '2' gives NaN or infinity for item 0 \(image 0\).*check the weights",
        ),
    ],
    ids=["zero norm", "NaN"],
)
def test_features_that_cannot_be_used_name_network_and_layer(of, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        run(experiment(), of, tmp_path)


def test_a_missing_image_is_named(tmp_path):
    with pytest.raises(BadImageError, match=r"/data/images/7\.png.*there is no such file"):
        run(experiment(broken=7), lambda x: x, tmp_path)


def test_features_beyond_norm_one_are_refused_with_the_way_out():
    order_ST = np.tile(np.arange(4), (3, 1))
    with pytest.raises(ValueError, match=r"image 0 has norm 2.*calibrate"):
        simulate_sessions(2 * np.eye(4), order_ST, order_ST % 2, np.zeros((3, 4)), "square")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"subtasks": (("a", "a"),)}, "subtask 0 is .*two different objects"),
        ({"subtasks": (("a", "z"),)}, r"subtask 0 \(a,z\): images has no image of \['z'\]"),
        ({"people": people([0, 0, 1, 1], "abab", missing=2)}, "unequal length were given: leave out those"),
        ({"people": people([0, 0, 1], "aba")}, r"subtask c,d has 1 session.*at least 2: leave the subtask out"),
        ({"people": people([0, 0, 1, 1], "aaab")}, "participant 'a' stands twice in subtask a,b; one learns"),
    ],
    ids=["one object", "unknown object", "unequal length", "one session", "participant twice"],
)
def test_experiments_that_do_not_hold_together(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        experiment(**changes)


def test_counts_of_one_session_have_no_variance():
    with pytest.raises(ValueError, match="subtask 1 has fewer than 2 sessions; variances need 2"):
        PeopleCounts(np.ones((2, TRIALS), int), np.array([5, 1]))
