from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import models

from humanlike.backbones.checkpoint import Checkpoint
from humanlike.backbones.classifiers import (
    TorchvisionBackbone,
    _build,
    classifier_name,
    own_transform,
    published_weights,
    torchvision_weights,
)

SMALL = ["shufflenet_v2_x0_5", "squeezenet1_1", "mobilenet_v3_small", "resnet18", "mnasnet0_5"]


def every_record():
    records = {}
    for name in models.list_models(module=models):
        for member in models.get_model_weights(name):
            preset = member.transforms()
            key = (*preset.crop_size, *preset.resize_size, preset.interpolation.value, *preset.mean, *preset.std)
            records.setdefault(key, member)
    return list(records.values())


@pytest.mark.parametrize("member", every_record(), ids=str)
def test_the_transform_is_torchvisions_own_bit_for_bit(member):
    ours, theirs = own_transform(member), member.transforms()
    random = np.random.default_rng(0)
    for height, width in ((301, 260), (90, 400)):
        image = Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
        torch.testing.assert_close(ours(image), theirs(image), rtol=0, atol=1e-6)


@pytest.mark.parametrize("architecture", SMALL)
def test_pre_logits_go_into_the_classifier_and_logits_come_out(architecture):
    backbone = TorchvisionBackbone(architecture, None, transform={"size": 64}, allow_logits=True)
    x_B3HW = torch.randn(2, 3, 64, 64)
    found = backbone.features(x_B3HW, ["pre_logits", "logits"])
    with torch.no_grad():
        assert torch.equal(found["logits"], backbone.network(x_B3HW))
        head = backbone.network.get_submodule(backbone.classifier)
        if isinstance(head, torch.nn.Linear):
            torch.testing.assert_close(head(found["pre_logits"]), found["logits"])
    assert found["pre_logits"].ndim == 2


def one_of_each_family():
    families = {}
    for name in models.list_models(module=models):
        families.setdefault(models.get_model_builder(name).__module__, name)
    return list(families.values())


@pytest.mark.parametrize("name", one_of_each_family())
def test_every_family_ends_in_the_classifier_that_is_found(name):
    with torch.device("cpu" if name.startswith("regnet") else "meta"):  # RegNet computes its widths with tensors
        network = _build("regnet_x_400mf" if name.startswith("regnet") else name, None, True, {})
    head = network.get_submodule(classifier_name(network))
    assert (head.out_features if isinstance(head, torch.nn.Linear) else head.out_channels) == 1000


def test_class_scores_are_refused_under_all_their_names():
    backbone = TorchvisionBackbone("squeezenet1_1", None)
    for layer in ("logits", "classifier", "classifier.1", "classifier.3"):
        with pytest.raises(ValueError, match=r"class scores \(logits\), not an embedding; use 'pre_logits'"):
            backbone.check_layers([layer])
    assert not {"classifier", "classifier.1", "classifier.3"} & set(backbone.layers)


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A torch hub folder with "published" weights, as the published files are named and saved."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr("humanlike.data.fetch.sha256_file", lambda path: path.stem.rpartition("-")[2] + "0" * 56)
    (tmp_path / "checkpoints").mkdir()

    def save(architecture: str, weights: str, state=None) -> torch.nn.Module:
        torch.manual_seed(5)
        network = models.get_model(architecture, weights=None)
        member = published_weights(architecture)[weights]
        path = tmp_path / "checkpoints" / member.url.rpartition("/")[2]
        torch.save(state(network.state_dict()) if state else network.state_dict(), path)
        return network.eval()

    return save


def test_published_weights_are_read_offline_without_unpickling(published, monkeypatch):
    expected = published("shufflenet_v2_x0_5", "DEFAULT")
    monkeypatch.setattr("torch.hub.load", None)
    backbone = TorchvisionBackbone("shufflenet_v2_x0_5", offline=True, allow_logits=True)
    x_B3HW = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(backbone.features(x_B3HW, ["logits"])["logits"], expected(x_B3HW))
    member = published_weights("shufflenet_v2_x0_5")["DEFAULT"]
    assert "get_state_dict" not in vars(member), "torchvision's record is left as it was"
    with pytest.raises(ValueError, match=r"differs .* in \['mean'\]"):
        TorchvisionBackbone("shufflenet_v2_x0_5", transform={"mean": [0, 0, 0]}, offline=True)


def test_names_of_old_files_are_torchvisions_affair(published):
    """DenseNet's files of 2017 say norm.1 where the network says norm1, and count no batches."""

    def as_in_2017(state):
        return {
            re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", name): value
            for name, value in state.items()
            if "num_batches" not in name
        }

    expected = published("densenet121", "IMAGENET1K_V1", as_in_2017).state_dict()
    own = TorchvisionBackbone("densenet121", "IMAGENET1K_V1", offline=True).network.state_dict()
    assert all(torch.equal(own[name], value) for name, value in expected.items())


def test_versions_of_layouts_come_along(published):
    """MNASNet refuses weights that do not say which version of its layout they have."""
    expected = published("mnasnet0_5", "DEFAULT")
    backbone = TorchvisionBackbone("mnasnet0_5", offline=True)
    own = backbone.network.state_dict()
    assert all(torch.equal(own[k], v) for k, v in expected.state_dict().items())


def test_missing_files_and_unknown_names(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"resnet50-11ad3fa6.pth .*download https://download.pytorch.org"):
        TorchvisionBackbone("resnet50", offline=True)
    with pytest.raises(FileNotFoundError, match="resnet50-0676ba61"):
        torchvision_weights(published_weights("resnet50")["IMAGENET1K_V1"], offline=True)
    with pytest.raises(ValueError, match=r"no classification network 'resnet5'; nearest are .*resnet50"):
        TorchvisionBackbone("resnet5")
    with pytest.raises(FileNotFoundError, match=r"IMAGENET1K_V9; published weights are DEFAULT, IMAGENET1K_V1"):
        TorchvisionBackbone("resnet18", "IMAGENET1K_V9", transform={"mean": [0] * 3, "std": [1] * 3})
    with pytest.raises(ValueError, match=r"cannot build 'resnet18' with \{'depth': 3\}"):
        TorchvisionBackbone("resnet18", None, options={"depth": 3})


def test_a_users_file_needs_its_preprocessing(tmp_path):
    source = TorchvisionBackbone("mnasnet0_5", None, seed=9, options={"num_classes": 4})
    path = tmp_path / "w.pt"
    torch.save(source.network.state_dict(), path)
    transform = {"mean": [0.5] * 3, "std": [0.5] * 3}
    for weights in (path, str(path), Checkpoint(path)):
        again = TorchvisionBackbone("mnasnet0_5", weights, transform=transform, options={"num_classes": 4})
        assert again.weights_hash == source.weights_hash
    with pytest.raises(ValueError, match="say nothing about their preprocessing"):
        TorchvisionBackbone("mnasnet0_5", path, options={"num_classes": 4})
    assert TorchvisionBackbone("mnasnet0_5", None, seed=9).weights_hash != source.weights_hash
