"""Tiny vision-language models, sketches to show them, and a judge that asks them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image, ImageDraw

from humanlike.elements.prompts import Prompt
from humanlike.elements.vlm import TransformersJudge
from humanlike.files import sha256_value
from humanlike.types import Sketches

PROMPT = Prompt("test", "is the {element} of the {label} drawn ?")
ELEMENTS = {"lion": ("tail", "left front leg", "mane", "back leg", "ear"), "taxi": ("wheel", "door", "front window")}


class Pictures:
    """Drawings in memory; what cannot be read is None."""

    def __init__(self, pictures):
        self.pictures, self.loaded = pictures, []

    def __len__(self):
        return len(self.pictures)

    def load(self, index):
        self.loaded.append(index)
        if self.pictures[index] is None:
            raise OSError("truncated")
        return self.pictures[index]

    def content_hash(self, index):
        picture = self.pictures[index]
        return "none" if picture is None else sha256_value([picture.size, picture.tobytes().hex()])

    def describe(self, index):
        return f"picture {index}"


@pytest.fixture(scope="session", autouse=True)
def _extra():
    """What all of this folder needs."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers: pip install 'humanlike[vlm]'")


@pytest.fixture(scope="session")
def tiny():
    """The module that makes models."""
    spec = importlib.util.spec_from_file_location("tiny_vlm", Path(__file__).with_name("tiny_vlm.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def saved(tiny, tmp_path_factory):
    """Name of a class → folder with a tiny model of it, made once."""
    made = {}

    def make(name):
        if name not in made:
            made[name] = getattr(tiny, name)(tmp_path_factory.mktemp("models") / f"tiny-{name}")
        return made[name]

    return make


@pytest.fixture(scope="session")
def picture():
    """Makes a drawing from a seed."""

    def draw(seed, size=(40, 32)):
        image = Image.new("RGB", size, "white")
        pen, rng = ImageDraw.Draw(image), np.random.default_rng(seed)
        for _ in range(3 + seed):
            pen.line([tuple(rng.integers(0, size)) for _ in range(2)], fill="black", width=3)
        return image

    return draw


@pytest.fixture
def sketches(picture):
    """Makes a data set of drawings of lions and taxis."""

    def make(pictures=None, count=4):
        shown = [picture(i) for i in range(count)] if pictures is None else pictures
        concepts = [("lion", "taxi")[i % 2] for i in range(len(shown))]
        table = pd.DataFrame(
            {
                "sketch_id": [f"s{i}" for i in range(len(shown))],
                "concept": concepts,
                "condition": [1.0] * len(shown),
                "image_id": [f"s{i}" for i in range(len(shown))],
            }
        )
        return Sketches("test", table, ("lion", "taxi"), Pictures(shown))

    return make


@pytest.fixture
def judge_of(saved):
    """Makes a judge of a tiny model."""

    def make(name, reader, prompt=PROMPT, **settings):
        settings = {"device": "cpu", "threads": 1, "progress": False, "min_mass": 0.0, **settings}
        return TransformersJudge(str(saved(name)), reader, prompt, **settings)

    return make


@pytest.fixture
def by_hand():
    """P(yes) and the mass of both words out of a full softmax over logits."""

    def compute(tokenizer, logits, tiny):
        p = torch.softmax(logits.double(), dim=-1)
        yes, no = (sum(float(p[tokenizer.convert_tokens_to_ids(w)]) for w in words) for words in (tiny.YES, tiny.NO))
        return yes, no

    return compute
