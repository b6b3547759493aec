"""FeatureLoss against its formula in NumPy, finite differences, and CLIPasso's plain distance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.gradient import differentiable_layers
from humanlike.backbones.vision import TimmBackbone
from humanlike.losses_features import FeatureLoss

LAYERS = ("blocks.1.0", "blocks.2.0")


@pytest.fixture(scope="module")
def backbone():
    return TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})


def pictures(num=3, size=32, seed=0):
    return torch.rand(num, 3, size, size, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("relative", [True, False])
def test_the_distance_is_its_formula(backbone, relative):
    drawn, pictured = pictures(seed=0), pictures(seed=1)
    loss = FeatureLoss(backbone, LAYERS, [0.5, 2.0], semantic_weight=0.1, relative=relative, reduction="none")
    f, g = (backbone.features(loss.pixels(x), [*LAYERS, "pre_logits"]) for x in (drawn, pictured))
    expected = np.zeros(3)
    for weight, layer in zip([0.5, 2.0], LAYERS, strict=True):
        a, b = f[layer].double().numpy(), g[layer].double().numpy()
        squares = ((a - b) ** 2).mean(axis=1)
        expected += weight * squares / ((b**2).mean(axis=1) if relative else 1)
    a, b = f["pre_logits"].double().numpy(), g["pre_logits"].double().numpy()
    expected += 0.1 * (1 - (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
    assert np.allclose(loss(drawn, pictured), expected, rtol=1e-4)
    for reduction, value in (("mean", expected.mean()), ("sum", expected.sum())):
        loss.reduction = reduction
        assert float(loss(drawn, pictured)) == pytest.approx(value, rel=1e-4)


def test_equal_pictures_have_no_distance_and_sizes_may_differ(backbone):
    loss = FeatureLoss(backbone, LAYERS, reduction="none")
    assert loss(pictures(), pictures()).abs().max() < 1e-5
    assert loss(pictures(size=48), pictures(size=64)).shape == (3,)


def test_the_gradient_reaches_the_drawing_alone():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.Flatten()).double()
    backbone = CallableBackbone(network, {"size": 8, "crop_pct": 1.0})
    loss = FeatureLoss(backbone, semantic_weight=1.0)
    drawn, pictured = (pictures(1, 8, s).double().requires_grad_() for s in (0, 1))
    (slope,) = torch.autograd.grad(loss(drawn, pictured), drawn)
    direction = torch.randn(drawn.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():
        ends = [float(loss((drawn + s * direction).clamp(0, 1), pictured)) for s in (1e-3, -1e-3)]
    assert float((slope * direction).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=5e-2, abs=1e-3)
    loss(drawn, pictured).backward()
    assert pictured.grad is None
    assert all(p.grad is None for p in network.parameters())


def test_several_layers_come_from_one_pass(backbone):
    calls = []
    handle = backbone.network.register_forward_pre_hook(lambda *_: calls.append(1))
    stem = backbone.network.conv_stem.register_forward_hook(lambda *_: calls.append(2))
    x = pictures(2).contiguous(memory_format=torch.channels_last)
    found = differentiable_layers(backbone, x, [*LAYERS, "pre_logits"])
    handle.remove(), stem.remove()
    assert calls.count(2) == 1
    plain = backbone.features(x, [*LAYERS, "pre_logits"])
    assert all(torch.equal(found[name], plain[name]) for name in plain)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layers": LAYERS, "weights": [1.0]}, "2 layers, 1 weights"),
        ({"layers": LAYERS, "weights": [1.0, -1.0]}, "finite and ≥ 0"),
        ({"semantic_weight": 0.0}, "nothing is compared"),
        ({"reduction": "median"}, "reduction"),
    ],
)
def test_settings_that_make_no_sense_are_refused(backbone, arguments, words):
    with pytest.raises(ValueError, match=words):
        FeatureLoss(backbone, **arguments)
    with pytest.raises(ValueError, match="3 drawings, got 2"):
        FeatureLoss(backbone)(pictures(3), pictures(2))
