"""The critic of drawings with strokes missing: deterministic, kept, saved with its network, and it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.backbones.architectures.sketch_mixer import SketchMixer
from humanlike.data.doodles import doodles
from humanlike.elements.critic_drawn import (
    drawn_critic,
    network_file,
    other_doodles,
    save_drawn_critic,
    saved_drawn_critic,
)
from humanlike.elements.critic_scratch import accuracy_of
from humanlike.interfaces import Backbone

CONCEPTS = ["lion", "mouse", "taxi"]
SMALL = {"steps": 6, "width": 8, "size": 32, "batch_size": 16}


@pytest.fixture(scope="module")
def data():
    return doodles(CONCEPTS, instances=6, judgments=0, variation=0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("critics")


@pytest.fixture(scope="module")
def critic(data, folder):
    return drawn_critic(None, data, cache_dir=folder, **SMALL)


def test_the_same_arguments_give_the_same_critic_from_the_cache_too(critic, data, folder):
    anew, kept = drawn_critic(None, data, **SMALL), drawn_critic(None, data, cache_dir=folder, **SMALL)
    other = drawn_critic(None, data, seed=1, **SMALL)
    for same in (anew, kept):
        assert same.backbone.weights_hash == critic.backbone.weights_hash != other.backbone.weights_hash
        assert torch.equal(same.coef_KD, critic.coef_KD)
    assert len(list((folder / "critics").iterdir())) == 2
    assert isinstance(critic.backbone, Backbone)


def test_held_out_sources_are_not_trained_on(critic, data):
    trained = {s.split(":", 1)[1] for s in critic.head.trained_on["sources"]}
    everything = set(data.table["image_id"])
    assert trained < everything
    per_source = data.table.groupby("image_id").size()
    # Whole and thinned, every sketch of a source that was held out.
    assert critic.record["held_out"]["items"] == 2 * per_source[sorted(everything - trained)].sum()


def test_saved_and_read_again_it_says_the_same(critic, tmp_path):
    save_drawn_critic(tmp_path / "critic.safetensors", critic)
    again = saved_drawn_critic(tmp_path / "critic.safetensors", backbone=None, sketches=None, seed=3)
    x_B3HW = torch.rand(3, 3, 50, 50, generator=torch.Generator().manual_seed(0), requires_grad=True)
    ours, theirs = critic(x_B3HW, CONCEPTS), again(x_B3HW, CONCEPTS)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    theirs.log_p_B.sum().backward()
    assert float(x_B3HW.grad.abs().sum()) > 0
    network_file(tmp_path / "critic.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="needs both"):
        saved_drawn_critic(tmp_path / "critic.safetensors")


def test_it_learns_from_other_drawings_than_the_generators(data):
    others = other_doodles(CONCEPTS, instances=6, seed=0)
    assert not set(others.table["image_id"]) & set(data.table["image_id"])
    assert list(others.table["image_id"]) != list(other_doodles(CONCEPTS, instances=6, seed=1).table["image_id"])
    apart = drawn_critic(None, data, drawings=others, **SMALL)
    assert {s.split(":", 1)[1] for s in apart.head.trained_on["sources"]} < set(others.table["image_id"])
    assert torch.equal(apart.coef_KD, drawn_critic(None, others, **SMALL).coef_KD)
    with pytest.raises(ValueError, match="show others than"):
        drawn_critic(None, data, drawings=other_doodles(CONCEPTS[:2], instances=6), **SMALL)


def test_pictures_without_strokes_are_refused(data):
    with pytest.raises(ValueError, match="without strokes"):
        drawn_critic(None, data.select(range(8)), **SMALL)


def test_one_source_is_not_enough(data):
    assert drawn_critic(None, doodles(CONCEPTS, instances=2, judgments=0), **SMALL).record["held_out"]["items"] == 24
    with pytest.raises(ValueError, match="one source only"):
        drawn_critic(None, doodles(CONCEPTS, instances=1, judgments=0), **SMALL)


def test_layers_look_at_places_or_at_channels():
    network = SketchMixer(4, width=6, depth=1).eval()
    mix = network.trunk.stage1[0]
    x = torch.zeros(1, 6, 9, 9)
    x[0, 2, 4, 4] = 1
    with torch.no_grad():
        places = (mix.places(x) - mix.places(x * 0)).abs()[0]
        channels = (mix.channels(x) - mix.channels(x * 0)).abs()[0]
    assert places.sum((1, 2)).nonzero().flatten().tolist() == [2]
    assert np.argwhere(channels.sum(0).numpy()).tolist() == [[4, 4]]
    assert network(torch.ones(2, 3, 64, 64)).shape == (2, 4)


@pytest.mark.slow
def test_it_learns_whole_and_incomplete_drawings(data):
    critic = drawn_critic(None, data, steps=150, width=24, size=64)
    held_out = critic.record["held_out"]
    assert held_out["top1"] > 0.6  # of three; chance is a third
    assert held_out["presence_accuracy"] > held_out["presence_base"] + 0.05
    others = accuracy_of(critic, doodles(CONCEPTS, instances=4, judgments=0, seed=77, size=64))
    assert others["top1"] > 0.6
