from __future__ import annotations

import time

import pytest
import timm
import torch
from huggingface_hub import constants
from safetensors.torch import save_file

from humanlike.backbones.pretrained import is_offline, timm_config, timm_weights
from humanlike.backbones.vision import TimmBackbone

TINY = "test_vit.r160_in1k"


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An empty cache of the hub."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def published(hub_cache):
    """A cache that holds "published" weights of the tiny network, laid out as the hub lays them out."""
    network = timm.create_model("test_vit")
    snapshot = hub_cache / f"models--timm--{TINY}" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    references = hub_cache / f"models--timm--{TINY}" / "refs"
    references.mkdir()
    (references / "main").write_text("a" * 40)
    save_file(network.state_dict(), snapshot / "model.safetensors")
    return network


def test_offline_without_weights_says_at_once_what_is_missing(hub_cache):
    start = time.perf_counter()
    with pytest.raises(FileNotFoundError, match=r"timm/resnet50.a1_in1k/model.safetensors.*prefetch") as error:
        TimmBackbone("resnet50", weights="pretrained", offline=True)
    assert time.perf_counter() - start < 2
    assert str(hub_cache) in str(error.value)


def test_the_environment_variable_rules_out_downloads(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert is_offline()
    assert is_offline(False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert not is_offline()
    assert is_offline(True)


def test_a_failed_download_is_the_same_sentence_with_its_reason(hub_cache, monkeypatch):
    def refuse(*args, **kwargs):
        raise ConnectionError("network is unreachable\nand more")

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    with pytest.raises(FileNotFoundError, match=r"download failed: network is unreachable\)"):
        timm_weights("resnet50", offline=False)


def test_weights_in_the_cache_are_loaded_offline(published):
    backbone = TimmBackbone(TINY, offline=True)
    x_B3HW = torch.randn(2, 3, 160, 160)
    with torch.no_grad():
        expected = published.eval().forward_head(published.forward_features(x_B3HW), pre_logits=True)
    assert torch.equal(backbone.features(x_B3HW, ["pre_logits"])["pre_logits"], expected)
    assert backbone.weights_hash != TimmBackbone(TINY, weights=None).weights_hash


def test_another_preprocessing_than_the_weights_own_must_be_forced(published):
    same = TimmBackbone(TINY, transform={"crop_pct": 0.95, "interpolation": "bicubic"}, offline=True)
    assert same.transform.fingerprint == TimmBackbone(TINY, offline=True).transform.fingerprint
    with pytest.raises(ValueError, match=r"differs .* in \['interpolation'\].*force_transform"):
        TimmBackbone(TINY, transform={"interpolation": "bilinear"}, offline=True)
    forced = TimmBackbone(TINY, transform={"interpolation": "bilinear"}, force_transform=True, offline=True)
    assert forced.transform.fingerprint["interpolation"] == "bilinear"


def test_unknown_names_get_the_nearest():
    with pytest.raises(ValueError, match=r"no architecture 'resnet5O'; nearest are .*resnet50"):
        timm_config("resnet5O")
    with pytest.raises(ValueError, match=r"resnet50 comes as .*a1_in1k"):
        timm_config("resnet50.nonsense")


def test_weights_with_an_address_only(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    name = "vit_huge_patch16_gap_448.in1k_ijepa"
    with pytest.raises(FileNotFoundError, match="IN1K-vit"):
        timm_weights(name, offline=True)
    calls = []
    monkeypatch.setattr("humanlike.backbones.pretrained.download", lambda url, offline: calls.append((url, offline)))
    timm_weights(name, offline=False)
    assert calls == [("https://dl.fbaipublicfiles.com/ijepa/IN1K-vit.h.16-448px-300e.pth.tar", False)]
