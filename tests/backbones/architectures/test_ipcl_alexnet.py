"""IPCL's AlexNet against the names in its published checkpoint and a pass written out with functions."""

from __future__ import annotations

import torch
from torch.nn import functional

from humanlike.backbones.architectures.ipcl_alexnet import AlexNetGN

CONVOLUTIONS = [(3, 96, 11, 4, 2, True), (96, 256, 5, 1, 2, True), (256, 384, 3, 1, 1, False)]
CONVOLUTIONS += [(384, 384, 3, 1, 1, False), (384, 256, 3, 1, 1, True)]


def published_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (before, channels, kernel, *_) in enumerate(CONVOLUTIONS, start=1):
        shapes[f"conv_block_{i}.0.weight"] = (channels, before, kernel, kernel)
        shapes |= {f"conv_block_{i}.1.{part}": (channels,) for part in ("weight", "bias")}
    for layer, before in (("fc6", 9216), ("fc7", 4096)):
        shapes[f"{layer}.0.weight"] = (4096, before)
        shapes[f"{layer}.0.bias"] = (4096,)
        shapes |= {f"{layer}.1.{part}": (4096,) for part in ("weight", "bias", "running_mean", "running_var")}
    return shapes | {"fc8.0.weight": (128, 4096), "fc8.0.bias": (128,)}


def test_names_and_shapes_are_the_published_ones():
    with torch.device("meta"):
        state = AlexNetGN().state_dict()
    found = {name: tuple(value.shape) for name, value in state.items() if "num_batches" not in name}
    assert found == published_shapes()


def test_a_pass_is_what_the_description_says():
    torch.manual_seed(0)
    network = AlexNetGN().eval()
    w = network.state_dict()
    x = features = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        for i, (_, _, _, stride, padding, pool) in enumerate(CONVOLUTIONS, start=1):
            block = f"conv_block_{i}"
            features = functional.conv2d(features, w[f"{block}.0.weight"], stride=stride, padding=padding)
            features = functional.group_norm(features, 32, w[f"{block}.1.weight"], w[f"{block}.1.bias"]).relu()
            features = functional.max_pool2d(features, 3, 2) if pool else features
        assert features.shape == (2, 256, 6, 6)
        features = features.flatten(1)
        for layer in ("fc6", "fc7"):
            features = functional.linear(features, w[f"{layer}.0.weight"], w[f"{layer}.0.bias"])
            features = (features / (1 + 1e-5) ** 0.5).relu()  # an untrained BatchNorm: mean 0, variance 1
        embedding = functional.linear(features, w["fc8.0.weight"], w["fc8.0.bias"])
        expected = embedding / embedding.norm(dim=1, keepdim=True)
        torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-5)
