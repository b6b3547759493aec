"""XDoG and saliency against SciPy, scikit-image, a closed form and PyTorch's own attention weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from humanlike.generators.saliency import (
    attention_saliency,
    brightness,
    gaussian_blur,
    gradient_saliency,
    initial_weight,
    squared,
    xdog,
)

PARAMETERS = {"sigma": 0.8, "ratio": 1.6, "sharpness": 0.98, "steepness": 200.0, "threshold": -0.02}


def photograph(name):
    data = pytest.importorskip("skimage.data")
    return np.asarray(getattr(data, name)(), dtype=np.float64) / 255


@pytest.mark.parametrize("sigma", [0.5, 1.3, 6.0])
def test_blur_is_scipys(sigma):
    x = np.random.default_rng(0).random((2, 13, 17))
    expected = np.stack([ndimage.gaussian_filter(plane, sigma, mode="reflect") for plane in x])
    assert np.allclose(gaussian_blur(torch.from_numpy(x), sigma), expected, atol=1e-12)


def test_blur_is_scikit_images():
    filters = pytest.importorskip("skimage.filters")
    x = photograph("camera")[::4, ::4]
    expected = filters.gaussian(x, 2.0, mode="reflect", truncate=4)
    assert np.allclose(gaussian_blur(torch.from_numpy(x)[None], 2.0)[0], expected, atol=1e-9)


def test_xdog_is_its_formula_by_scipy():
    x = photograph("camera")[::4, ::4]
    narrow, wide = (ndimage.gaussian_filter(x, s, mode="reflect") for s in (0.8, 0.8 * 1.6))
    difference = narrow - 0.98 * wide
    shade = np.where(difference >= -0.02, 1.0, 1 + np.tanh(200 * (difference + 0.02)))
    lines = xdog(torch.from_numpy(x)[None], **PARAMETERS)[0]
    assert np.allclose(lines, np.clip(1 - shade, 0, 1), atol=1e-9)
    assert 0.001 < float(lines.mean()) < 0.3


def test_brightness_is_pillows():
    from PIL import Image

    x = np.random.default_rng(1).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    ours = brightness(torch.from_numpy(x).permute(2, 0, 1)[None] / 255)[0] * 255
    assert np.abs(ours.numpy() - np.asarray(Image.fromarray(x).convert("L"), dtype=float)).max() <= 0.51


def test_gradient_saliency_of_a_linear_network_is_its_closed_form():
    """f = W x: the gradient of ½‖f‖² is WᵀW x."""
    w = torch.randn(5, 3 * 8 * 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    slope = (x.flatten(1) @ w.T @ w).reshape(x.shape).abs().amax(1).numpy()
    blurred = np.stack([ndimage.gaussian_filter(plane, 1.5, mode="reflect") for plane in slope])
    found = gradient_saliency(lambda x: x.flatten(1) @ w.T, x, sigma=1.5)
    assert np.allclose(found, blurred / blurred.max(axis=(1, 2), keepdims=True), atol=1e-10)
    assert not found.requires_grad


def test_attention_becomes_a_map_in_reading_order():
    attention = torch.zeros(1, 5, 5)
    attention[0, 0] = torch.tensor([0.5, 0.0, 0.4, 0.1, 0.0])
    found = attention_saliency(attention, (4, 4), (2, 2))
    assert found.argmax() == 3  # the top right patch
    assert found.max() == 1
    with pytest.raises(ValueError, match="4 tokens has no class token beside 2 × 2 patches"):
        attention_saliency(torch.zeros(1, 4, 4), (4, 4), (2, 2))


def test_weight_of_initial_points_is_on_edges_and_falls_back_on_saliency():
    gray = torch.ones(1, 32, 32)
    gray[:, :, 16:] = 0.0
    weight = initial_weight(gray, torch.ones(1, 32, 32))
    assert weight[0, :, 13:19].sum() > 0.999 * weight.sum() > 0
    saliency = torch.rand(1, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(initial_weight(torch.full((1, 32, 32), 0.3), saliency), saliency)


def test_pictures_become_squares_on_white():
    x = torch.zeros(1, 3, 10, 20)
    found = squared(x, 20)
    assert found.shape == (1, 3, 20, 20)
    assert torch.equal(found[:, :, :5], torch.ones(1, 3, 5, 20))
    assert torch.equal(found[:, :, 5:15], torch.zeros(1, 3, 10, 20))


@pytest.mark.parametrize(("change", "words"), [({"sigma": 0.0}, "sigma"), ({"ratio": 1.0}, "ratio > 1")])
def test_what_makes_no_sense_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        xdog(torch.ones(1, 8, 8), **change)
