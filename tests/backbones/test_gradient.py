"""Features with a gradient: the values of `Backbone.features`, and what finite differences say."""

from __future__ import annotations

import pytest
import torch

from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.gradient import differentiable_features
from humanlike.backbones.vision import TimmBackbone


@pytest.fixture(scope="module")
def convolutional():
    return TimmBackbone("test_resnet", weights=None)


@pytest.mark.parametrize("architecture", ["test_vit", "test_resnet", "test_efficientnet"])
def test_values_are_those_of_features(architecture):
    backbone = TimmBackbone(architecture, weights=None)
    x = torch.rand(2, *backbone.transform(_white()).shape, generator=torch.Generator().manual_seed(0))
    x = x.contiguous(memory_format=torch.channels_last)  # as extraction gives it
    layers = [backbone.layers[len(backbone.layers) // 2], "pre_logits"]
    plain = backbone.features(x, layers)
    for layer in layers:
        x.requires_grad_()
        found = differentiable_features(backbone, x, layer)
        assert torch.equal(found.detach(), plain[layer])
        # Weighted at random, because the plain sum is constant behind a LayerNorm.
        weight = torch.randn(found.shape[1], generator=torch.Generator().manual_seed(1))
        (gradient,) = torch.autograd.grad((found @ weight).sum(), x)
        assert gradient.isfinite().all()
        assert (gradient.flatten(1).abs().amax(1) > 1e-9).all()
        x.requires_grad_(False)
    assert all(p.grad is None for p in backbone.parameters())


def test_an_activation_in_place_changes_nothing(convolutional):
    """The layer before an in-place ReLU is handed on as it was."""
    x = torch.rand(1, 3, 160, 160).contiguous(memory_format=torch.channels_last).requires_grad_()
    layer = next(n for n, m in convolutional.network.named_modules() if isinstance(m, torch.nn.BatchNorm2d))
    found = differentiable_features(convolutional, x, layer)
    assert torch.equal(found.detach(), convolutional.features(x, [layer])[layer])
    assert torch.autograd.grad(found.sum(), x)[0].isfinite().all()


def test_finite_differences_agree():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.Flatten())
    backbone = CallableBackbone(network.requires_grad_(False), {"size": 8})
    x = torch.rand(1, 3, 8, 8, requires_grad=True)
    weight = torch.randn(4 * 36)
    (gradient,) = torch.autograd.grad(differentiable_features(backbone, x)[0] @ weight, x)
    direction = torch.randn(x.shape)
    with torch.no_grad():
        ends = [(differentiable_features(backbone, x + s * direction)[0] @ weight).double() for s in (1e-2, -1e-2)]
    assert float((gradient * direction).sum()) == pytest.approx(float(ends[0] - ends[1]) / 2e-2, rel=2e-2, abs=2e-2)


def test_what_cuts_the_gradient_is_named():
    class Deaf:
        name, default_layer, layers, weights_hash = "deaf", "f", ("f",), "0"

        def features(self, x_B3HW, layers):
            return dict.fromkeys(layers, x_B3HW.detach().flatten(1))

    x = torch.rand(1, 3, 4, 4, requires_grad=True)
    with pytest.raises(ValueError, match="deaf gives features without a gradient"):
        differentiable_features(Deaf(), x)
    assert differentiable_features(Deaf(), x.detach()).shape == (1, 48)
    with pytest.raises(ValueError, match="one layer, 'output'; asked for 'deep'"):
        differentiable_features(CallableBackbone(torch.nn.Flatten(), {"size": 4}), x, "deep")
    with pytest.raises(ValueError, match="has no layer 'nowhere'"):
        differentiable_features(TimmBackbone("test_vit", weights=None), x, "nowhere")


def _white():
    from PIL import Image

    return Image.new("RGB", (200, 200), "white")
