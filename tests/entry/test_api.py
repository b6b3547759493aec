"""`humanlike.evaluate` from Python, with a name and with a user's own callable."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import humanlike
from humanlike import evaluate
from humanlike.entry.api import _literal
from humanlike.entry.overrides import OverrideError
from humanlike.entry.targets import build

SMALL = {
    "dataset__concepts": ["lion", "snail", "banjo", "vase"],
    "dataset__instances": 5,
    "benchmark__replicates": 20,
    "benchmark__splits": 5,
    "extraction__num_workers": 0,
}


def shrink(image):
    """RGB image → (3, 8, 8) in [0, 1]."""
    return torch.from_numpy(np.asarray(image.resize((8, 8)), np.float32).copy()).permute(2, 0, 1) / 255


def pixels(x):
    """The gray levels themselves as features."""
    return x.mean(1).flatten(1)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HUMANLIKE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_callable_is_scored_and_written(cache):
    score = evaluate(pixels, transform=shrink, name="pixels", out_dir=cache / "run", **SMALL)
    assert score.backbone == "pixels"
    assert 0 <= score["accuracy"] <= 1
    assert len(score.result.cells) == 16
    assert json.loads((cache / "run" / "score.json").read_text())["digest"] == score.digest
    again = evaluate(pixels, transform=shrink, name="pixels", **SMALL)
    assert again.digest == score.digest
    with pytest.raises(KeyError, match="no score 'acuracy'"):
        again["acuracy"]


def test_a_model_that_knows_the_answer_is_perfect(cache):
    """The referee is the data itself: features that encode the concept must give accuracy 1."""
    data = build(
        {"_target_": "humanlike.data.doodles.dataset.doodles", **{k[9:]: v for k, v in SMALL.items() if "dataset" in k}}
    )
    concept_of = {hash(data.images.load(i).tobytes()): int(data.target_N[i]) for i in range(len(data))}

    def look_up(image):  # also asked for the shape it gives, with a white sheet
        return torch.full((3, 1, 1), float(concept_of.get(hash(image.tobytes()), 0)))  # 0: a probe that is no doodle

    def one_hot(x):
        return torch.nn.functional.one_hot(x[:, 0, 0, 0].round().long().clamp(0, 3), 4).float()

    score = evaluate(one_hot, transform=_Named(look_up), name="oracle", **SMALL)
    assert score["accuracy"] == 1.0


class _Named:
    """A transform with a fingerprint of its own: the cache cannot look into a closure."""

    def __init__(self, function):
        self.function = function
        self.fingerprint = {"name": "look_up"}

    def __call__(self, image):
        return self.function(image)


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_computed(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"out_dir .*file/run cannot be made a folder \(Not a directory\)"):
        evaluate(lambda x: 1 / 0, transform=lambda image: 1 / 0, out_dir=tmp_path / "file" / "run")


def test_misspelt_names_are_answered():
    with pytest.raises(OverrideError, match="did you mean 'doodles'"):
        evaluate(pixels, transform=shrink, dataset="doodels")
    with pytest.raises(OverrideError, match=r"'benchmark\.replicates'"):
        evaluate("random_tiny", benchmark__replicate=3)
    with pytest.raises(TypeError, match="needs transform="):
        evaluate(pixels)
    with pytest.raises(TypeError, match="is a name, a Backbone or a callable"):
        evaluate(3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (1e-7, "1e-07"),
        ([1, "a b"], "[1,'a b']"),
        ({"x": None}, "{x:null}"),
        ("it's", r"'it\'s'"),
    ],
)
def test_values_in_the_override_grammar(value, text):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    assert _literal(value) == text
    assert OverridesParser.create().parse_override(f"key={_literal(value)}").value() == value


def test_a_setting_that_is_an_object_is_refused():
    with pytest.raises(TypeError, match="a text, a number, a list or a dictionary of these, got object"):
        evaluate(benchmark__learners={"mine": object()}, benchmark="object_learning", dataset="novel_objects")


class Nearest:
    """A learner of the user's own: the answer to the nearest image so far."""

    def reset(self, seed):
        self.random, self.seen = np.random.default_rng(seed), []

    def respond(self, x_D):
        near = min(self.seen, key=lambda pair: np.square(pair[0] - x_D).sum(), default=None)
        self.x, self.choice = x_D, int(self.random.integers(2)) if near is None else near[1]
        return self.choice

    def give_feedback(self, reward):
        self.seen.append((self.x, self.choice if reward > 0 else 1 - self.choice))


def test_a_learner_of_the_users_own_is_scored_beside_the_rules(cache):
    settings = {
        "dataset__subtasks": 2, "dataset__images": 20, "dataset__warmup": 8, "dataset__people": "none",
        "benchmark__rules": ["square"], "benchmark__rule": "nearest", "benchmark__sessions": 10,
        "benchmark__layers": "pre_logits", "benchmark__replicates": 10, "extraction__num_workers": 0,
    }  # fmt: skip
    own = {"nearest": Nearest()}
    score = evaluate("random_tiny", "object_learning", "novel_objects", learners=own, **settings)
    models = score.result.tables["models"].set_index("rule")
    assert list(models.index) == ["square", "nearest"]
    assert score["accuracy"] == models.loc["nearest", "accuracy"]
    with pytest.raises(TypeError, match=r"learner 'nearest' is a int; a learner has the methods reset"):
        evaluate("random_tiny", "object_learning", "novel_objects", learners={"nearest": 3}, **settings)


def test_the_package_has_nothing_else():
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        humanlike.evalute  # noqa: B018
