from __future__ import annotations

import pytest
import torch
from torch import nn

from humanlike.backbones.network import NetworkBackbone, logit_modules

TRANSFORM = {"size": 16, "mean": [0.5] * 3, "std": [0.5] * 3}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.Softmax(dim=1))

    def forward(self, x):
        return self.head(self.stem(x).relu().mean((2, 3)))


def test_pre_logits_are_the_input_and_logits_the_output_of_the_call():
    backbone = NetworkBackbone(Net, "stem", TRANSFORM, name="net", classifier="head.1", allow_logits=True)
    x_B3HW = torch.randn(5, 3, 16, 16)
    found = backbone.features(x_B3HW, ["pre_logits", "logits", "stem"])
    with torch.no_grad():
        stem = backbone.network.stem(x_B3HW)
        torch.testing.assert_close(found["pre_logits"], stem.relu().mean((2, 3)))
        torch.testing.assert_close(found["logits"], backbone.network(x_B3HW))
        torch.testing.assert_close(found["stem"], stem.flatten(1))


def test_without_a_classifier_there_is_the_output():
    backbone = NetworkBackbone(Net, "output", TRANSFORM, name="net")
    x_B3HW = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        assert torch.equal(backbone.features(x_B3HW, ["output"])["output"], backbone.network(x_B3HW))


def test_logits_have_many_names():
    assert logit_modules(Net(), "head.1") == ("head", "head.1", "head.2")
    assert logit_modules(nn.Sequential(Net(), nn.Linear(4, 2)), "1") == ("1",)
    backbone = NetworkBackbone(Net, "stem", TRANSFORM, name="net", classifier="head.1")
    for layer in ("head", "head.1", "head.2", "logits"):
        with pytest.raises(ValueError, match="class scores"):
            backbone.check_layers([layer])


def test_weights_come_from_the_seed_or_from_a_file(tmp_path):
    first, second = (NetworkBackbone(Net, "stem", TRANSFORM, name="net", seed=3) for _ in range(2))
    assert first.weights_hash == second.weights_hash
    torch.save(first.network.state_dict(), tmp_path / "w.pt")
    read = NetworkBackbone(Net, "stem", TRANSFORM, tmp_path / "w.pt", name="net", seed=4)
    assert read.weights_hash == first.weights_hash
    assert NetworkBackbone(Net, "stem", TRANSFORM, name="net", seed=4).weights_hash != first.weights_hash
    with pytest.raises(ValueError, match="say nothing about their preprocessing"):
        NetworkBackbone(Net, "stem", {"size": 16}, tmp_path / "w.pt", name="net")


def test_building_leaves_the_global_generator_alone():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    NetworkBackbone(Net, "stem", TRANSFORM, name="net")
    assert torch.equal(torch.rand(3), expected)
