"""Every configuration builds offline, names a layer that exists, and tells the truth about its weights."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path

import open_clip
import pytest
import torch
from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from omegaconf import OmegaConf

from humanlike.backbones.classifiers import TorchvisionBackbone, published_weights
from humanlike.backbones.clip import OpenClipBackbone
from humanlike.backbones.pretrained import timm_config
from humanlike.backbones.vision import TimmBackbone, own_transform
from humanlike.backbones.weights import misfits

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "conf" / "backbone").glob("*.yaml"))
NAMED = [p for p in CONFIGS if "???" not in p.read_text(encoding="utf-8")]  # others take a name or a path
INFO = {"title", "architecture", "paradigm", "data", "licence", "download_mb"}
OPTIONAL = {"download_note", "seva_table2"}
TABLE_2 = {
    *("vgg19", "inception_v3", "resnet50", "vit_base_patch16_224", "swin_base", "mixer_b16", "cornet_s"),
    *("harmonization_vit_b16", "ecoset_resnet50", "simclr_resnet50", "moco_v3_vit_b16", "dino_vit_b16", "mae_vit_b16"),
    *("clip_vit_b32", "ipcl_alexnet", "efficientnet_b4_noisy_student", "resnet50_swsl"),
}


def load(path: Path):
    """The configuration where it stands in a run: below the key `backbone`."""
    return OmegaConf.create({"offline": True, "backbone": OmegaConf.load(path)}).backbone


def of(target: type) -> list[Path]:
    """Configurations of published weights that an adapter fetches itself."""
    named = [p for p in NAMED if OmegaConf.load(p)._target_ == f"{target.__module__}.{target.__qualname__}"]
    return [p for p in named if isinstance(OmegaConf.load(p).weights, str)]


@functools.cache
def built(path: Path):
    """The configured backbone without its weights and without memory for them."""
    config = load(path)
    config.weights = None
    with torch.device("meta"):
        return instantiate(config, _convert_="all")


DOWNLOADED = [p for p in NAMED if OmegaConf.load(p).info.download_mb]


def megabytes(network: torch.nn.Module) -> float:
    return sum(t.numel() * t.element_size() for t in network.state_dict().values()) / 1e6


def test_all_of_seva_are_there_and_many_more():
    assert {p.stem for p in NAMED if OmegaConf.load(p).info.get("seva_table2")} == TABLE_2
    assert len(TABLE_2) == 17
    assert len(DOWNLOADED) >= 17 + 30


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_keys_are_arguments_and_facts_are_there(path):
    config = load(path)
    accepted = set(inspect.signature(get_object(config["_target_"])).parameters)
    assert set(config) - {"_target_"} <= accepted
    assert path.read_text(encoding="utf-8").startswith("# ")
    if path in NAMED:
        assert INFO <= set(config.info) <= INFO | OPTIONAL
        assert path.stem == config.name
        assert all(config.info[key] not in (None, "") for key in INFO)


@pytest.mark.parametrize("path", NAMED, ids=lambda p: p.stem)
def test_the_architecture_builds_and_has_the_layer(path):
    config, backbone = load(path), built(path)
    backbone.check_layers([config.layer])
    # Those of Wide ResNet-50-2 are stored in half precision.
    smallest = {"mobilenet_v2", "squeezenet", "shufflenet_v2", "wide_resnet50"}
    weights = megabytes(backbone.network)
    assert config.info.download_mb == 0 or config.info.download_mb >= 0.97 * weights or path.stem in smallest


@pytest.mark.parametrize("path", of(TimmBackbone), ids=lambda p: p.stem)
def test_timm_weights_are_described_truly(path):
    config = load(path)
    record = timm_config(config.architecture)
    network = built(path).network
    assert config.info.download_mb == pytest.approx(megabytes(network), rel=0.02)
    assert record.license == config.info.licence.lower()
    assert record.hf_hub_id == f"timm/{config.architecture}"
    assert own_transform(record.to_dict(remove_null=False)).size
    assert hasattr(network, "forward_head")
    assert config.offline is True


@pytest.mark.parametrize("path", of(TorchvisionBackbone), ids=lambda p: p.stem)
def test_torchvision_weights_are_described_truly(path):
    config = load(path)
    member = published_weights(config.architecture)[config.weights]
    assert config.info.download_mb == pytest.approx(member.meta["_file_size"] * 2**20 / 1e6, rel=0.01)
    assert member.url in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", of(OpenClipBackbone), ids=lambda p: p.stem)
def test_open_clip_weights_are_described_truly(path):
    config = load(path)
    record = open_clip.get_pretrained_cfg(config.architecture, config.weights)
    quick = open_clip.get_model_config(config.architecture).get("quick_gelu", False)
    assert record.get("quick_gelu", False) == quick, "the activation that the weights were trained with"
    assert record["hf_hub"].rstrip("/") in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "prefix", "last"),
    [
        ("cornet_s", "module.", ("decoder.linear.bias", 1000)),
        ("ipcl_alexnet", "module.", ("fc8.0.bias", 128)),
        ("moco_v3_vit_b16", "module.", ("head.bias", 1000)),
        ("simclr_resnet50", "_feature_blocks.", ("layer4.2.bn3.bias", 2048)),
        ("ecoset_resnet50", "", ("fc.bias", 565)),
    ],
)
def test_published_names_become_those_of_the_architecture(name, prefix, last):
    """Prefixes and sizes of the last layer as the authors' own loading code states them."""
    path = CONFIGS[0].with_name(f"{name}.yaml")
    own = built(path).network.state_dict()
    checkpoint = instantiate(load(path).weights, _convert_="all")
    renamed = checkpoint.renamed({f"{prefix}{key}": value for key, value in own.items()})
    assert not any(misfits(own, renamed).values())
    weights = [key for key in own if "num_batches" not in key and "running" not in key]
    assert (weights[-1], len(own[weights[-1]])) == last


@pytest.mark.parametrize("path", DOWNLOADED, ids=lambda p: p.stem)
def test_without_a_network_the_missing_file_is_named(path, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    config = load(path)
    with torch.device("meta"), pytest.raises(InstantiationException) as error:
        instantiate(config, _convert_="all")
    cause = error.value.__cause__
    assert isinstance(cause, FileNotFoundError)
    assert re.search(r"prefetch backbone=", str(cause))
    assert str(tmp_path) in str(cause)


def test_the_ones_without_download_run():
    tiny = instantiate(load(CONFIGS[0].with_name("random_tiny.yaml")))
    assert isinstance(tiny, TimmBackbone)
    assert tiny.features(torch.zeros(1, 3, 160, 160), [tiny.default_layer])[tiny.default_layer].shape == (1, 64)
    config = load(CONFIGS[0].with_name("callable.yaml"))
    assert OmegaConf.is_missing(config, "path")
    ready = instantiate(config, path="timm:create_model", arguments={"model_name": "test_vit", "num_classes": 5})
    assert ready.name == "create_model"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("timm", {"architecture": "test_vit", "weights": None}),
        ("torchvision", {"architecture": "resnet18", "weights": None}),
        ("open_clip", {"architecture": "RN50", "weights": None}),
    ],
)
def test_the_generic_ones_take_any_name(name, changes):
    config = OmegaConf.merge(load(CONFIGS[0].with_name(f"{name}.yaml")), changes)
    config.offline = True
    config.name = config.architecture
    with torch.device("meta"):
        assert instantiate(config).name == changes["architecture"]
