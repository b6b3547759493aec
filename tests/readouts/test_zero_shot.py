from __future__ import annotations

import json

import numpy as np
import open_clip
import pytest
import torch
from open_clip import factory
from safetensors.torch import save_file
from scipy.special import softmax

from humanlike.backbones.clip_text import TextTower
from humanlike.entry.conf import compose
from humanlike.entry.targets import build
from humanlike.readouts.zero_shot import ZeroShot

TINY = "tiny-clip-with-words"
LABELS = ("hot_air_balloon", "owl", "piano")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A tiny language-image model with CLIP's own vocabulary, in a file."""
    config = {
        "embed_dim": 12,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 16, "patch_size": 16, "head_width": 8},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
    }
    (tmp_path / f"{TINY}.json").write_text(json.dumps(config))
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", dict(factory._MODEL_CONFIGS))
    monkeypatch.setattr(factory, "_MODEL_CONFIG_PATHS", list(factory._MODEL_CONFIG_PATHS))
    factory.add_model_config(tmp_path / f"{TINY}.json")
    torch.manual_seed(3)
    model = open_clip.create_model(TINY).eval()
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, tmp_path / "model.safetensors")
    return model, tmp_path / "model.safetensors"


def by_hand(model, f_ND, labels, prompts, scale):
    """The prompt ensemble written out with open_clip alone."""
    tokenizer = open_clip.get_tokenizer("ViT-B-32")
    rows = []
    for label in labels:
        with torch.no_grad():
            t_QD = model.encode_text(tokenizer([p.format(label=label.replace("_", " ")) for p in prompts]))
        t_QD = t_QD.double().numpy()
        mean_D = (t_QD / np.linalg.norm(t_QD, axis=1, keepdims=True)).mean(0)
        rows.append(mean_D / np.linalg.norm(mean_D))
    cosine_NL = f_ND / np.linalg.norm(f_ND, axis=1, keepdims=True) @ np.array(rows).T
    return softmax(scale * cosine_NL, axis=1)


def test_probabilities_are_the_softmax_of_scaled_cosines(model):
    network, path = model
    f_ND = np.random.default_rng(0).standard_normal((5, 12))
    prompts = ["a sketch of a {label}", "{label}, drawn"]
    own = ZeroShot(TINY, path, prompts).for_labels(LABELS)
    scale = network.logit_scale.exp().item()
    assert own.scale == pytest.approx(scale)
    np.testing.assert_allclose(own.predict_proba(f_ND), by_hand(network, f_ND, LABELS, prompts, scale), atol=2e-6)
    warm = ZeroShot(TINY, path, prompts, temperature=0.5).for_labels(LABELS)
    np.testing.assert_allclose(warm.predict_proba(f_ND), by_hand(network, f_ND, LABELS, prompts, 2.0), atol=1e-6)
    assert warm.certificate()["temperature"] == 0.5
    assert own.certificate()["logit_scale"] == pytest.approx(scale)


def test_the_length_of_an_embedding_does_not_matter_and_order_of_labels_follows(model):
    _, path = model
    f_ND = np.random.default_rng(1).standard_normal((4, 12))
    readout = ZeroShot(TINY, path).for_labels(LABELS)
    np.testing.assert_allclose(readout.predict_proba(7 * f_ND), readout.predict_proba(f_ND), atol=1e-12)
    turned = readout.for_labels(LABELS[::-1])
    np.testing.assert_allclose(turned.predict_proba(f_ND)[:, ::-1], readout.predict_proba(f_ND), atol=1e-12)
    assert readout.labels == LABELS
    np.testing.assert_array_equal(readout.out_of_fold_proba(f_ND, np.zeros(4), 3), readout.predict_proba(f_ND))


def test_log_probabilities_have_a_gradient(model):
    _, path = model
    readout = ZeroShot(TINY, path).for_labels(LABELS)
    f_BD = torch.randn(2, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(readout.log_proba, (f_BD,))


def test_texts_are_embedded_once(model, tmp_path, monkeypatch):
    _, path = model
    first = TextTower(TINY, path, cache_dir=tmp_path / "texts")
    vectors = first.embed(["an owl", "a piano"])
    again = TextTower(TINY, path, cache_dir=tmp_path / "texts")
    monkeypatch.setattr(again, "_computed", lambda texts: pytest.fail("these texts were embedded before"))
    assert torch.equal(again.embed(["an owl", "a piano"]), vectors)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    other = TextTower(TINY, None, cache_dir=tmp_path / "texts")
    assert other.weights_hash != first.weights_hash
    assert not torch.allclose(other.embed(["an owl", "a piano"]), vectors)


def test_what_does_not_fit_is_said(model):
    _, path = model
    with pytest.raises(ValueError, match=r"sentences with \{label\} in them"):
        ZeroShot(TINY, path, ["a sketch"])
    with pytest.raises(ValueError, match="temperature is 0"):
        ZeroShot(TINY, path, temperature=0.0)
    with pytest.raises(ValueError, match=r"no architecture 'vgg19_bn'.*set readout\.architecture and readout\.weights"):
        ZeroShot("vgg19_bn", None)
    with pytest.raises(ValueError, match=r"backbone names no architecture: .*set readout\.architecture"):
        ZeroShot(None, None)
    readout = ZeroShot(TINY, path)
    with pytest.raises(ValueError, match="call for_labels"):
        readout.predict_proba(np.ones((1, 12)))
    with pytest.raises(ValueError, match="'hot air balloon' occurs more than once"):
        readout.for_labels(["hot_air_balloon", "hot air balloon"])
    with pytest.raises(ValueError, match=r"width 12.*layer=embedding"):
        readout.for_labels(LABELS).predict_proba(np.ones((1, 5)))
    with pytest.raises(ValueError, match="speaks of 3 labels, the data have 4"):
        readout.for_labels(LABELS).out_of_fold_proba(np.ones((1, 12)), np.zeros(1), 4)
    with pytest.raises(FileNotFoundError, match="no weights file"):
        ZeroShot(TINY, path.with_name("absent.pt"))
    with pytest.raises(ValueError, match="text 1 is empty"):
        readout.tower.embed(["an owl", " "])


@pytest.mark.parametrize("backbone", ["vgg19", "random_tiny", "callable"])
def test_a_network_outside_open_clip_is_told_which_setting_to_give(backbone):
    settings = compose("evaluate", [f"backbone={backbone}", "readout=zero_shot"]).readout
    with pytest.raises(ValueError, match=r"set readout\.architecture and readout\.weights to the model whose image"):
        build(settings)
