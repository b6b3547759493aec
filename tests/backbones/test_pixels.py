"""Preprocessing of tensors: Pillow's own path as the referee, and its derivative."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from humanlike.backbones.pixels import PixelTransform
from humanlike.backbones.transforms import CallableTransform, ImageTransform
from humanlike.data.doodles import doodles

SIZES = [(37, 37), (224, 224), (256, 256), (40, 64), (64, 40), (300, 200)]


def on_both_paths(image: Image.Image, transform: ImageTransform) -> tuple[torch.Tensor, torch.Tensor]:
    """The file's path and the tensor's, both back on the scale [0, 1]."""
    x_B3HW = torch.from_numpy(np.asarray(image, dtype=np.float64) / 255).permute(2, 0, 1)[None]
    mean, std = (torch.tensor(v, dtype=torch.float64).view(3, 1, 1) for v in (transform.mean, transform.std))
    return transform(image).double() * std + mean, PixelTransform(transform)(x_B3HW)[0] * std + mean


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"])
@pytest.mark.parametrize("mode", ["center", "squash", "border"])
@pytest.mark.parametrize("size", [32, (24, 40)])
def test_noise_of_any_shape_comes_out_within_a_byte_of_pillow(mode, interpolation, size):
    transform = ImageTransform(size, 0.9, mode, interpolation, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
    rng = np.random.default_rng(0)
    for width, height in SIZES:
        image = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        theirs, ours = on_both_paths(image, transform)
        assert ours.shape == theirs.shape
        assert (ours - theirs).abs().max() < 1.5 / 255  # two roundings to bytes, one of them spread by the filter


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_drawings_differ_by_less_than_a_byte(interpolation):
    transform = ImageTransform(224, interpolation=interpolation)
    data = doodles(["lion", "taxi"], instances=1, conditions=[32], judgments=0)
    worst, mean = 0.0, 0.0
    for i in range(len(data)):
        theirs, ours = on_both_paths(data.images.load(i), transform)
        worst, mean = max(worst, float((ours - theirs).abs().max())), max(mean, float((ours - theirs).abs().mean()))
    assert worst < 1.01 / 255
    assert mean < 1e-4


def test_the_gradient_is_that_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    x_B3HW = torch.rand(1, 3, 11, 9, dtype=torch.float64, generator=generator).mul(0.5).add(0.25).requires_grad_()
    for interpolation in ("bilinear", "bicubic"):
        function = PixelTransform(ImageTransform(6, interpolation=interpolation))
        assert torch.autograd.gradcheck(function, (x_B3HW,))


@pytest.mark.parametrize("mode", ["center", "border"])
def test_a_grey_canvas_is_resized_once_to_the_same_input_and_gradient(mode):
    transform = PixelTransform(ImageTransform((24, 40), 0.9, mode, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)))
    grey = torch.rand(2, 1, 50, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weight = torch.rand(2, 3, 24, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expanded, copied = (transform(x) for x in (grey.expand(-1, 3, -1, -1), grey.repeat(1, 3, 1, 1)))
    assert torch.allclose(expanded, copied, rtol=0, atol=1e-14)
    slopes = [torch.autograd.grad((x * weight).sum(), grey)[0] for x in (expanded, copied)]
    assert torch.allclose(*slopes, rtol=0, atol=1e-12)


def test_what_cannot_be_differentiated_is_told():
    with pytest.raises(TypeError, match="needs a transform that is known"):
        PixelTransform(CallableTransform(lambda image: torch.zeros(3, 4, 4)))
    with pytest.raises(ValueError, match=r"canvas\.expand"):
        PixelTransform(ImageTransform(8))(torch.zeros(1, 1, 8, 8))
