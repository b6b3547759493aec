import hashlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from humanlike.backbones.features import extract_features
from humanlike.backbones.network import NetworkBackbone
from humanlike.backbones.whole_image import with_whole_images
from humanlike.benchmarks.object_learning_encoding import Encoding, chosen_layers, encode
from humanlike.data.object_learning import ImageSet, ObjectLearningData

SIDE = 24


class NoiseImages:
    """Seeded gray images, or an error where one is asked for."""

    def __init__(self, number, seed):
        self.number, self.seed = number, seed

    def __len__(self):
        return self.number

    def load(self, index):
        gray = np.random.default_rng([self.seed, index]).integers(0, 256, (32, 32), dtype=np.uint8)
        return Image.fromarray(gray).convert("RGB")

    def content_hash(self, index):
        return hashlib.sha256(f"{self.seed}/{index}".encode()).hexdigest()

    def describe(self, index):
        return f"noise {index}"


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(6, 8, 3), torch.nn.Flatten(),
        torch.nn.Linear(512, 40),
    )  # fmt: skip


@pytest.fixture
def backbone():
    return NetworkBackbone(network, "4", {"size": SIDE}, name="tiny")


@pytest.fixture
def data():
    objects = ["a", "b", "c", "d"]
    table = pd.DataFrame({"image_id": [f"{o}{i}" for i in range(6) for o in objects], "category": objects * 6})
    warm = pd.DataFrame({"image_id": [f"w{i}" for i in range(70)], "category": "w"})
    return ObjectLearningData(
        "noise",
        "high_variation",
        (("a", "b"), ("d", "c")),
        ImageSet("images", table, NoiseImages(24, 1)),
        ImageSet("warm-up", warm, NoiseImages(70, 2)),
        num_trials=10,
    )


def referee(backbone, data, layer, options, quantile):
    """Features at once, calibrated as the text says, then inner products."""
    seeing = with_whole_images(backbone, SIDE)
    f_ND = extract_features(seeing, data.images, [layer], progress=False, **options)[layer].f_ND.astype(float)
    warm_MD = extract_features(seeing, data.warmup, [layer], progress=False, **options)[layer].f_ND.astype(float)
    mean_D = warm_MD.mean(0)
    scale = np.quantile(np.linalg.norm(warm_MD - mean_D, axis=1), quantile)
    x_ND = (f_ND - mean_D) / scale
    x_ND /= np.maximum(np.linalg.norm(x_ND, axis=1, keepdims=True), 1)
    return [x_ND[rows] @ x_ND[rows].T for rows, _ in map(data.subtask_rows, range(len(data.subtasks)))]


@pytest.mark.parametrize("projection", ["gaussian", "srft", "none"])
@pytest.mark.parametrize("quantile", [0.99, 0.5])
def test_inner_products_are_those_of_calibrated_features(backbone, data, tmp_path, projection, quantile):
    encoding = Encoding(["0", "4"], projection, num_features=64, size=SIDE)
    found = encode(backbone, data, encoding, seed=3, cache_dir=tmp_path, extraction={"progress": False})
    options = {}
    if projection != "none":
        options = {"max_features": 64, "projection": projection, "projection_seed": 3, "projection_by_layer": True}
    for layer in ("0", "4"):
        for own, expected in zip(
            found.read(layer).calibrated(quantile), referee(backbone, data, layer, options, quantile), strict=True
        ):
            np.testing.assert_allclose(own, expected, atol=2e-6)
    assert found.read("0").num_features == (600 if projection == "none" else 64)
    assert found.depth["output"] == 1
    assert not list(tmp_path.rglob("*.safetensors"))  # store=gram keeps no features


def test_a_second_pass_computes_nothing_and_a_lost_file_alone_is_made_again(backbone, data, tmp_path):
    encoding = Encoding("*", "none", size=SIDE, widest=600)
    options = {"cache_dir": tmp_path, "extraction": {"progress": False}}
    first = encode(backbone, data, encoding, **options)
    assert first.info["items_computed"] == 24 + 70
    assert set(first.layers) == set(backbone.layers)
    kept = {layer: first.read(layer).gram_GNN for layer in first.layers}
    assert encode(backbone, data, encoding, **options).info["from_cache"]
    first.store.path("2", 1).write_bytes(b"PK\x03\x04 half a file")
    again = encode(backbone, data, encoding, **options)
    assert again.info["items_computed"] == 12 + 70
    assert again.info["layers_computed"] == 1
    for layer, grams in kept.items():
        for one, other in zip(grams, again.read(layer).gram_GNN, strict=True):
            np.testing.assert_array_equal(one, other)


def test_features_stay_where_asked_and_every_choice_has_its_own_store(backbone, data, tmp_path):
    options = {"cache_dir": tmp_path, "extraction": {"progress": False}}
    kept = encode(backbone, data, Encoding("4", num_features=32, size=SIDE, store="features"), **options)
    assert list((tmp_path / "features").rglob("*.safetensors"))
    keys = {kept.store.key}
    for other in (
        Encoding("4", "srft", 32, size=SIDE),
        Encoding("4", num_features=16, size=SIDE),
        Encoding("4", num_features=32, size=SIDE, transform="backbone"),
    ):
        keys.add(encode(backbone, data, other, **options).store.key)
    keys.add(encode(backbone, data, Encoding("4", num_features=32, size=SIDE), seed=1, **options).store.key)
    assert len(keys) == 5


def test_layers_by_name_pattern_and_width(backbone):
    def chosen(layers, widest=None, always=()):
        names, _, _, passed = chosen_layers(backbone, Encoding(layers, widest=widest), always)
        return names, passed

    assert chosen("spread:2", 550) == (("2", "output"), 2)
    assert chosen(["0", "spread:1"], 550)[0] == ("0", "output")
    assert chosen("spread:1", None, ["1"])[0] == ("1", "output")
    with pytest.raises(ValueError, match="no layer fits the name '22'"):
        chosen("22")


def test_a_transform_of_the_users_own_is_named(backbone):
    with pytest.raises(ValueError, match=r"benchmark\.transform=backbone"):
        with_whole_images(SimpleNamespace(name="mine", transform=torch.nn.Identity()))


@pytest.mark.parametrize("wrong", [{"projection": "gauss"}, {"transform": "crop"}, {"store": "ram"}, {"size": 0}])
def test_unknown_words_are_errors(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Encoding(**wrong)
