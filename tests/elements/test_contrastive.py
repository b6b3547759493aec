"""Contrastive presence: the softmax over two sentences, its gradient to the pixels, its record."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.backbones.callable import CallableBackbone
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.contrastive import ContrastivePresence
from humanlike.elements.presence import DifferentiablePresence, PresenceJudge
from humanlike.types import Features

D = 5


class Words:
    """A stand-in for a text tower: a random vector a sentence, drawn from its own text."""

    weights_hash = "words"
    logit_scale = 20.0

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        self.asked += texts
        rows = [np.random.default_rng(list(text.encode())).normal(size=D) for text in texts]
        return torch.nn.functional.normalize(torch.tensor(np.array(rows), dtype=torch.float32), dim=1)


@pytest.fixture
def image():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 5, stride=3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.LazyLinear(D)
        )
        network(torch.zeros(1, 3, 16, 16))
    return CallableBackbone(network.requires_grad_(False), {"size": 16}, name="eyes")


@pytest.fixture
def judge(image):
    return ContrastivePresence(image, Words(), layer="output")


def test_probability_is_the_softmax_over_both_sentences(judge):
    data = doodles(["lion", "taxi"], instances=2, judgments=0, size=32)
    f_ND = np.random.default_rng(0).normal(size=(len(data), D)).astype(np.float32)
    features = Features(f_ND, np.arange(len(data)), {}, "output", {})
    elements = annotated_elements(data)
    assert isinstance(judge, PresenceJudge)
    presence = judge.judge(data, elements, features)
    text = Words()
    position = {s: i for i, s in enumerate(data.table["sketch_id"])}
    for _, row in presence.table.iterrows():
        i = position[row["sketch_id"]]
        what = f"a sketch of a {data.table['concept'][i]}"
        t = text.embed([f"{what} with {row['element']}", f"{what} without {row['element']}"]).double().numpy()
        f = f_ND[i].astype(float) / np.linalg.norm(f_ND[i].astype(float))
        odds = np.exp(20 * (t @ f))
        assert row["probability"] == pytest.approx(odds[0] / odds.sum(), rel=1e-4, abs=1e-6)
    assert len(judge._text[0].asked) == 2 * sum(map(len, elements.values()))  # every sentence is embedded once
    assert "a sketch of a {label} with {element}" in presence.source


def test_ensembles_scale_and_bias_are_settings(image):
    plain = ContrastivePresence(image, Words(), layer="output")
    twice = ContrastivePresence(
        image, Words(), layer="output", with_prompts=["{element}", "a {label}'s {element}"], logit_scale=3, bias=0.5
    )
    direction = twice.directions([("sea_lion", "fore flipper")])[0]
    a, b, c = Words().embed(
        ["fore flipper", "a sea lion's fore flipper", "a sketch of a sea lion without fore flipper"]
    )
    expected = (a + b) / (a + b).norm() - c
    torch.testing.assert_close(direction, expected)
    f = torch.randn(1, D, generator=torch.Generator().manual_seed(0))
    got = twice.logits_of(f, [[("sea_lion", "fore flipper")]])
    assert float(got) == pytest.approx(3 * float(f[0] / f.norm() @ expected) + 0.5, rel=1e-5)
    assert plain.source != twice.source
    assert twice.record["logit_scale"] == 3


def test_pixels_get_the_gradient_that_finite_differences_say(judge):
    bound = judge.bound({"lion": ["mane", "tail", "eye"], "taxi": ["wheel"]})
    assert isinstance(bound, DifferentiablePresence)
    x = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(1)).requires_grad_()
    logit, mask = bound.presence_logits(x, ["taxi", "lion"])
    assert mask.tolist() == [[True, False, False], [True, True, True]]
    assert (logit[~mask] == 0).all()
    (gradient,) = torch.autograd.grad(logit.double().sum(), x)
    assert gradient.isfinite().all()
    assert (gradient.flatten(1).norm(dim=1) > 0).all()
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        ends = [bound.presence_logits(x + s * direction, ["taxi", "lion"])[0].double().sum() for s in (1e-2, -1e-2)]
    assert float((gradient * direction).sum()) == pytest.approx(float(ends[0] - ends[1]) / 2e-2, rel=5e-3, abs=1e-2)


def test_images_are_judged_and_unreadable_ones_are_missing(judge):
    data = doodles(["lion", "taxi"], instances=1, judgments=0, size=32)
    elements = annotated_elements(data)
    presence = judge.judge(data, elements)
    assert presence.coverage == 1
    features = Features(np.ones((len(data) - 1, D), np.float32), np.arange(1, len(data)), {}, "output", {})
    assert judge.judge(data, elements, features).missing == {"the image could not be read": len(elements["lion"])}


def test_prompts_and_concepts_that_do_not_fit_are_named(image, judge):
    for prompts, message in (
        ("a {label} with {element}", "must be a list"),
        ([], "must be a list"),
        (["a {label}"], "does not name the {element}"),
        (["{element} of {thing}"], "may name {label} and {element}, not 'thing'"),
    ):
        with pytest.raises(ValueError, match=message):
            ContrastivePresence(image, Words(), with_prompts=prompts)
    with pytest.raises(ValueError, match="no elements of 'zebra'"):
        judge.bound({"lion": ["mane"]}).presence_logits(torch.zeros(1, 3, 16, 16), ["zebra"])


def test_a_backbone_without_words_is_no_such_judge():
    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build

    judge = build(compose("evaluate", ["benchmark=sea", "judge=contrastive"]).judge)  # beside the default backbone
    with pytest.raises(ValueError, match=r"tf_efficientnet_lite0 reads none: take .*backbone=clip_vit_b32"):
        judge(backbone=None)


@pytest.mark.slow
def test_a_real_pair_of_towers_fits():
    from humanlike.backbones.clip import OpenClipBackbone
    from humanlike.backbones.clip_text import TextTower

    judge = ContrastivePresence(OpenClipBackbone("RN50", None), TextTower("RN50", None))
    x = torch.rand(1, 3, 224, 224, requires_grad=True)
    logit, mask = judge.bound({"lion": ["mane", "tail"]}).presence_logits(x, ["lion"])
    logit.sum().backward()
    assert mask.all()
    assert x.grad.isfinite().all()
    assert float(x.grad.abs().sum()) > 0
