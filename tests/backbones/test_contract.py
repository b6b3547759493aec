"""What every adapter promises, with tiny random weights."""

from __future__ import annotations

import itertools
import json
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn

from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.checkpoint import Checkpoint
from humanlike.backbones.classifiers import TorchvisionBackbone
from humanlike.backbones.clip import OpenClipBackbone
from humanlike.backbones.layers import input_shape, layer_shapes
from humanlike.backbones.network import NetworkBackbone
from humanlike.backbones.vision import TimmBackbone
from humanlike.interfaces import Backbone, Transform


class Encoder(nn.Module):
    """A user's own network, with what breaks careless wrappers: BatchNorm, dropout, an in-place ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=4), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout(0.5)
        )

    def forward(self, x):
        return self.stem(x).mean((2, 3))


def encoder_backbone() -> CallableBackbone:
    torch.manual_seed(0)
    return CallableBackbone(Encoder().train(), {"size": 32}, name="encoder")


def checkpoint_backbone() -> TimmBackbone:
    """Weights out of a file whose names have a prefix, in an architecture without the file's classifier."""
    state = TimmBackbone("test_resnet", None, seed=5, transform={"size": 32}).network.state_dict()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.pt"
        torch.save({"state_dict": {f"module.{name}": value for name, value in state.items()}}, path)
        rename = [{"pattern": r"^module\.", "replace": ""}]
        weights = Checkpoint(path, rename=rename, allow_unexpected=[r"fc\..*"])
        transform = {"size": 32, "mean": [0.5] * 3, "std": [0.5] * 3}
        return TimmBackbone("test_resnet", weights, transform=transform, options={"num_classes": 0})


def clip_backbone(name: str) -> OpenClipBackbone:
    return OpenClipBackbone(name, None, transform={"size": 32})


@pytest.fixture(scope="module", autouse=True)
def tiny_clips(tmp_path_factory):
    """Two tiny architectures that open_clip knows for the time of this file."""
    from open_clip import factory

    folder = tmp_path_factory.mktemp("open_clip")
    text = {"context_length": 8, "vocab_size": 64, "width": 16, "heads": 2, "layers": 1}
    visions = {
        "tiny-vit": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
        "tiny-resnet": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
    }
    for name, vision in visions.items():
        config = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text}
        (folder / f"{name}.json").write_text(json.dumps(config))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factory, "_MODEL_CONFIGS", dict(factory._MODEL_CONFIGS))
        patch.setattr(factory, "_MODEL_CONFIG_PATHS", list(factory._MODEL_CONFIG_PATHS))
        factory.add_model_config(folder)
        yield


ADAPTERS: dict[str, Callable[[], Backbone]] = {
    "timm vit": lambda: TimmBackbone("test_vit", weights=None, transform={"size": 32}),
    "timm convolutional": lambda: TimmBackbone("test_efficientnet", weights=None, transform={"size": 32}),
    "timm resnet": lambda: TimmBackbone("test_resnet", weights=None, transform={"size": 32}),
    "timm logits": lambda: TimmBackbone("test_vit", None, "logits", {"size": 32}, allow_logits=True),
    "torchvision": lambda: TorchvisionBackbone("shufflenet_v2_x0_5", weights=None, transform={"size": 32}),
    "torchvision convolution as classifier": lambda: TorchvisionBackbone("squeezenet1_1", None, transform={"size": 32}),
    "open_clip transformer": lambda: clip_backbone("tiny-vit"),
    "open_clip resnet": lambda: clip_backbone("tiny-resnet"),
    "checkpoint": checkpoint_backbone,
    "network": lambda: NetworkBackbone(Encoder, "stem", {"size": 32}, name="encoder"),
    "network with classifier": lambda: NetworkBackbone(
        lambda: nn.Sequential(Encoder(), nn.Linear(8, 5)), "0.stem", {"size": 32}, name="classifier", classifier="1"
    ),
    "module": encoder_backbone,
    "bound method": lambda: CallableBackbone(Encoder().forward, {"size": 32}, name="bound"),
    "function": lambda: CallableBackbone(lambda x: x[:, :, ::8, ::8], {"size": 32}, name="subsample"),
}


@pytest.fixture(params=list(ADAPTERS))
def make(request):
    return ADAPTERS[request.param]


@pytest.fixture
def x_B3HW():
    return torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_it_is_a_backbone(make):
    backbone = make()
    assert isinstance(backbone, Backbone)
    assert isinstance(backbone.transform, Transform)
    assert backbone.name
    assert backbone.default_layer in backbone.layers
    assert len(set(backbone.layers)) == len(backbone.layers)
    assert input_shape(backbone.transform) == (3, 32, 32)
    assert backbone.transform(Image.new("RGB", (50, 40))).dtype == torch.float32


def test_features_are_flat_finite_float32_without_gradient(make, x_B3HW):
    backbone = make()
    found = backbone.features(x_B3HW, [backbone.default_layer])
    (f_BD,) = found.values()
    assert list(found) == [backbone.default_layer]
    assert f_BD.shape[0] == 4
    assert f_BD.ndim == 2
    assert f_BD.dtype == torch.float32
    assert f_BD.isfinite().all()
    assert not f_BD.requires_grad


def test_all_layers_come_from_one_pass_and_equal_single_requests(make, x_B3HW):
    backbone = make()
    together = backbone.features(x_B3HW, backbone.layers)
    assert list(together) == list(backbone.layers)
    for layer in backbone.layers:
        assert torch.equal(backbone.features(x_B3HW, [layer])[layer], together[layer]), layer


def test_rows_do_not_depend_on_the_rest_of_the_batch(make, x_B3HW):
    backbone = make()
    layer = backbone.default_layer
    whole = backbone.features(x_B3HW, [layer])[layer]
    turned = backbone.features(x_B3HW.flip(0), [layer])[layer].flip(0)
    torch.testing.assert_close(turned, whole, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(backbone.features(x_B3HW[:1], [layer])[layer], whole[:1], rtol=1e-5, atol=1e-5)


def test_train_on_a_parent_changes_nothing(make, x_B3HW):
    backbone = make()
    layer = backbone.default_layer
    before, digest = backbone.features(x_B3HW, [layer])[layer], backbone.weights_hash
    nn.ModuleList([backbone]).train()
    assert torch.equal(backbone.features(x_B3HW, [layer])[layer], before)
    assert backbone.weights_hash == digest


def test_the_weights_hash_is_stable_and_the_features_are_reproducible(make, x_B3HW):
    torch.manual_seed(3)
    first = make()
    torch.manual_seed(3)
    second = make()
    assert first.weights_hash == second.weights_hash
    assert len(first.weights_hash) == 64
    layer = first.default_layer
    assert torch.equal(first.features(x_B3HW, [layer])[layer], second.features(x_B3HW, [layer])[layer])


def test_features_can_be_the_input_of_something_that_is_trained(make, x_B3HW):
    backbone = make()
    f_BD = backbone.features(x_B3HW, [backbone.default_layer])[backbone.default_layer]
    head = nn.Linear(f_BD.shape[1], 2)
    head(f_BD).sum().backward()
    assert head.weight.grad is not None


def test_an_unknown_layer_is_a_sentence(make, x_B3HW):
    backbone = make()
    with pytest.raises(ValueError, match=r"nolayer"):
        backbone.features(x_B3HW, ["nolayer"])
    with pytest.raises(ValueError, match=backbone.name.partition(".")[0]):
        backbone.features(x_B3HW, [])


def test_layer_shapes_are_those_of_the_features(make, x_B3HW):
    backbone = make()
    shapes = layer_shapes(backbone)
    found = backbone.features(x_B3HW, backbone.layers)
    assert [s.name for s in shapes] == list(backbone.layers)
    assert all(torch.Size(s.shape).numel() == found[s.name].shape[1] for s in shapes)
    assert shapes[-1].depth == 1
    assert all(a.depth < b.depth for a, b in itertools.pairwise(shapes))


def test_it_survives_pickling_where_its_parts_do(x_B3HW):
    backbone = ADAPTERS["timm vit"]()
    copy = pickle.loads(pickle.dumps(backbone))
    assert copy.weights_hash == backbone.weights_hash
    assert torch.equal(
        copy.features(x_B3HW, ["blocks.0"])["blocks.0"], backbone.features(x_B3HW, ["blocks.0"])["blocks.0"]
    )
