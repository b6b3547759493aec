"""Every configuration builds offline, names a layer that exists, and tells the truth about its weights."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import timm
import torch
from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from omegaconf import OmegaConf

from humanlike.backbones.pretrained import timm_config
from humanlike.backbones.vision import TimmBackbone, own_transform

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "conf" / "backbone").glob("*.yaml"))
INFO = {"title", "architecture", "paradigm", "data", "licence", "download_mb"}
CHOSEN_BY_USER = {"callable", "timm"}
PRETRAINED = [p for p in CONFIGS if OmegaConf.load(p).get("weights") == "pretrained" and p.stem not in CHOSEN_BY_USER]


def load(path: Path):
    """The configuration where it stands in a run: below the key `backbone`."""
    return OmegaConf.create({"offline": True, "backbone": OmegaConf.load(path)}).backbone


def test_there_are_enough():
    assert len(PRETRAINED) >= 12


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_keys_are_arguments_and_facts_are_there(path):
    config = load(path)
    accepted = set(inspect.signature(get_object(config["_target_"])).parameters)
    keys = set(config) - {"_target_"}
    assert keys <= accepted
    assert set(config.info) == INFO
    assert path.stem in CHOSEN_BY_USER or path.stem == config.name
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("path", PRETRAINED, ids=lambda p: p.stem)
def test_published_weights_are_described_truly(path):
    config = load(path)
    record = timm_config(config.architecture)
    with torch.device("meta"):
        network = timm.create_model(config.architecture)
    megabytes = sum(t.numel() for t in network.state_dict().values()) * 4 / 1e6
    assert config.info.download_mb == pytest.approx(megabytes, rel=0.02)
    assert record.license == config.info.licence.lower()
    assert record.hf_hub_id == f"timm/{config.architecture}"
    assert own_transform(record.to_dict(remove_null=False)).size
    assert hasattr(network, "forward_head")
    assert config.layer == "pre_logits" or config.layer in dict(network.named_modules())
    assert config.offline is True


@pytest.mark.parametrize("path", PRETRAINED, ids=lambda p: p.stem)
def test_without_a_network_the_missing_file_is_named(path, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InstantiationException, match=f"timm/{load(path).architecture}/model.safetensors") as error:
        instantiate(load(path))
    assert isinstance(error.value.__cause__, FileNotFoundError)


def test_the_ones_without_download_run():
    tiny = instantiate(load(CONFIGS[0].with_name("random_tiny.yaml")))
    assert isinstance(tiny, TimmBackbone)
    assert tiny.features(torch.zeros(1, 3, 160, 160), [tiny.default_layer])[tiny.default_layer].shape == (1, 64)
    config = load(CONFIGS[0].with_name("callable.yaml"))
    assert OmegaConf.is_missing(config, "path")
    ready = instantiate(config, path="timm:create_model", arguments={"model_name": "test_vit", "num_classes": 5})
    assert ready.name == "create_model"
