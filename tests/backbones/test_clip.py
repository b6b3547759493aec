from __future__ import annotations

import json
import logging

import numpy as np
import open_clip
import pytest
import torch
from huggingface_hub import constants
from open_clip import factory
from PIL import Image
from safetensors.torch import save_file

from humanlike.backbones.checkpoint import Checkpoint
from humanlike.backbones.clip import OpenClipBackbone, own_transform, published_tags

TINY = "tiny-clip"
TAG = {"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6), "interpolation": "bilinear", "resize_mode": "squash"}


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    """A tiny architecture with one published tag whose preprocessing is not the usual one, and an empty cache."""
    config = {
        "embed_dim": 24,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
        "text_cfg": {"context_length": 8, "vocab_size": 64, "width": 16, "heads": 2, "layers": 1},
    }
    (tmp_path / f"{TINY}.json").write_text(json.dumps(config))
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", dict(factory._MODEL_CONFIGS))
    monkeypatch.setattr(factory, "_MODEL_CONFIG_PATHS", list(factory._MODEL_CONFIG_PATHS))
    factory.add_model_config(tmp_path / f"{TINY}.json")
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, TINY, {"some_tag": {**TAG, "hf_hub": "some/tiny/"}})
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


@pytest.fixture
def published(tiny):
    """The whole model, its weights laid into the cache as the hub lays them out."""
    torch.manual_seed(7)
    model = open_clip.create_model(TINY).eval()
    repository = tiny / "hub" / "models--some--tiny"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    save_file(model.state_dict(), snapshot / "open_clip_model.safetensors")
    return model


def every_record():
    records = {}
    for name, tag in open_clip.list_pretrained():
        record = open_clip.get_pretrained_cfg(name, tag)
        kind = tuple(str(record.get(k)) for k in ("mean", "std", "interpolation", "resize_mode"))
        records.setdefault(kind, (name, tag))
    return list(records.values())


@pytest.mark.parametrize(("name", "tag"), every_record())
def test_the_transform_is_open_clips_own(name, tag):
    record = open_clip.get_pretrained_cfg(name, tag)
    kept = {k: record[k] for k in ("mean", "std", "interpolation", "resize_mode")}
    theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(size=64, **kept), is_train=False)
    ours = own_transform(name, tag, type("Tower", (), {"image_size": 64}))
    random = np.random.default_rng(0)
    for height, width in ((90, 81), (60, 200)):
        image = Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
        torch.testing.assert_close(ours(image), theirs(image), rtol=0, atol=1e-6)


def test_the_embedding_is_what_open_clip_compares_with_texts(published):
    backbone = OpenClipBackbone(TINY, "some_tag", offline=True)
    x_B3HW = torch.randn(3, 3, 32, 32)
    with torch.no_grad():
        expected = published.encode_image(x_B3HW)
    found = backbone.features(x_B3HW, ["embedding", "transformer.resblocks.1"])
    torch.testing.assert_close(found["embedding"], expected, rtol=1e-6, atol=1e-6)
    assert found["transformer.resblocks.1"].shape == (3, 17 * 32)
    assert backbone.transform.fingerprint["mean"] == [0.1, 0.2, 0.3]
    assert backbone.transform.fingerprint["crop_mode"] == "squash"
    assert not any("token_embedding" in name for name, _ in backbone.named_parameters()), "the text tower is let go"


def test_a_local_file_never_gets_the_usual_preprocessing(published, tiny):
    """An SigLIP checkpoint read from a folder would silently be given CLIP's mean and std."""
    path = tiny / "w.pt"
    torch.save({"state_dict": {f"module.{k}": v for k, v in published.state_dict().items()}}, path)
    with pytest.raises(ValueError, match="say nothing about their preprocessing"):
        OpenClipBackbone(TINY, path)
    stated = OpenClipBackbone(TINY, path, transform={"mean": [0.5] * 3, "std": [0.25] * 3})
    (tiny / "open_clip_config.json").write_text(json.dumps({"preprocess_cfg": {"size": 32, **TAG}}))
    beside = OpenClipBackbone(TINY, str(path))
    assert stated.transform.fingerprint["std"] == [0.25] * 3
    assert beside.transform.fingerprint == OpenClipBackbone(TINY, "some_tag").transform.fingerprint
    assert beside.weights_hash == stated.weights_hash == OpenClipBackbone(TINY, "some_tag").weights_hash
    (tiny / "open_clip_config.json").write_text(json.dumps({"preprocess_cfg": {**TAG, "resize_mode": "longest"}}))
    with pytest.raises(ValueError, match="resize_mode='longest' is not known"):
        OpenClipBackbone(TINY, path)


def test_another_preprocessing_than_the_tags_own_must_be_forced(published):
    with pytest.raises(ValueError, match=r"differs .* in \['mean'\].*force_transform"):
        OpenClipBackbone(TINY, "some_tag", transform={"mean": [0.0] * 3})
    forced = OpenClipBackbone(TINY, "some_tag", transform={"mean": [0.0] * 3}, force_transform=True)
    assert forced.transform.fingerprint["mean"] == [0.0] * 3


def test_the_tower_alone_can_come_from_a_checkpoint(published, tiny):
    torch.save({f"vision.{k}": v for k, v in published.visual.state_dict().items()}, tiny / "tower.pt")
    weights = Checkpoint(tiny / "tower.pt", rename=[{"pattern": r"^vision\.", "replace": ""}])
    backbone = OpenClipBackbone(TINY, weights, transform={"mean": [0.5] * 3, "std": [0.5] * 3})
    assert backbone.weights_hash == OpenClipBackbone(TINY, "some_tag").weights_hash


def test_what_is_missing_or_unknown_is_a_sentence(tiny):
    with pytest.raises(FileNotFoundError, match=r"'tiny-clip \(some_tag\)' are not .* some/tiny/open_clip_model"):
        OpenClipBackbone(TINY, "some_tag", offline=True)
    with pytest.raises(ValueError, match=r"no architecture 'ViT-B32'; nearest are .*ViT-B-32"):
        OpenClipBackbone("ViT-B32", None)
    with pytest.raises(FileNotFoundError, match=r"opnai; the tags of RN50 are openai, yfcc15m"):
        OpenClipBackbone("RN50", "opnai")
    with pytest.raises(ValueError, match=r"cannot build 'tiny-clip' from random weights: .*depth"):
        OpenClipBackbone(TINY, None, options={"depth": 3})
    torch.save({"a": torch.zeros(1)}, tiny / "other.pt")
    with pytest.raises(ValueError, match="cannot build 'tiny-clip' from"):
        OpenClipBackbone(TINY, tiny / "other.pt", transform={"mean": [0.5] * 3, "std": [0.5] * 3})
    assert "openai" in published_tags("RN50")


def test_open_clips_log_is_left_as_it_was():
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    OpenClipBackbone(TINY, None)
    assert (root.level, list(root.handlers)) == before


def test_random_weights_follow_the_seed():
    torch.manual_seed(0)
    first = OpenClipBackbone(TINY, None, seed=1).weights_hash
    assert first == OpenClipBackbone(TINY, None, seed=1).weights_hash
    assert first != OpenClipBackbone(TINY, None, seed=2).weights_hash
