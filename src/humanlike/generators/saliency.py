"""Where a drawing should have ink: edges of a picture (XDoG) and what a network looks at (attention, gradient).

Legend: B pictures, D embedding width, N tokens; h × w the grid of a transformer's patches. Maps are (B, H, W).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn.functional import conv2d, interpolate, pad

Embed = Callable[[torch.Tensor], torch.Tensor]
"""(B, 3, H, W) pictures in [0, 1] → (B, D) features, differentiable to the pixels."""

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in a picture's brightness (ITU-R BT.601)."""
TRUNCATE = 4.0
"""Standard deviations after which a Gaussian is cut off, as SciPy does."""


def brightness(x_B3HW: torch.Tensor) -> torch.Tensor:
    """(B, H, W) brightness of RGB pictures.

    Example:
        >>> round(brightness(torch.ones(1, 3, 1, 1)).item(), 6)
        1.0
    """
    return torch.einsum("bchw,c->bhw", x_B3HW, x_B3HW.new_tensor(LUMA))


def gaussian_blur(x_BHW: torch.Tensor, sigma: float) -> torch.Tensor:
    """Maps smoothed by a Gaussian of `sigma` pixels, borders mirrored (the border pixel is repeated).

    The same as `scipy.ndimage.gaussian_filter(mode="reflect", truncate=4)`.

    Raises:
        ValueError: `sigma` is not positive.
    """
    if not 0 < sigma < math.inf:
        raise ValueError(f"sigma must be a positive number of pixels, got {sigma}")
    radius = int(TRUNCATE * sigma + 0.5)
    at = torch.arange(-radius, radius + 1, dtype=x_BHW.dtype, device=x_BHW.device)
    kernel = torch.exp(-0.5 * (at / sigma) ** 2)
    kernel = kernel / kernel.sum()
    x = x_BHW[:, None]
    for side, shape in ((3, (1, 1, 1, -1)), (2, (1, 1, -1, 1))):
        x = conv2d(_mirrored(x, radius, side), kernel.reshape(shape))
    return x[:, 0]


def _mirrored(x: torch.Tensor, radius: int, axis: int) -> torch.Tensor:
    """`x` continued by `radius` pixels at both ends of an axis: … c b a | a b c | c b a …, however long the radius."""
    length = x.shape[axis]
    place = torch.arange(-radius, length + radius, device=x.device) % (2 * length)
    return x.index_select(axis, torch.where(place < length, place, 2 * length - 1 - place))


def xdog(
    gray_BHW: torch.Tensor,
    sigma: float = 0.8,
    ratio: float = 1.6,
    sharpness: float = 0.98,
    steepness: float = 200.0,
    threshold: float = -0.1,
) -> torch.Tensor:
    """Line drawing of grey pictures by extended differences of Gaussians: 1 on lines, 0 on paper.

    D = G_σ * I - τ G_{kσ} * I; the drawing is 1 where D ≥ ε and 1 + tanh(φ (D - ε)) below; its negative is returned,
    clipped to [0, 1].

    Args:
        gray_BHW: Brightness in [0, 1].
        sigma: σ > 0, thickness of lines in pixels.
        ratio: k > 1.
        sharpness: τ; below 1 flat areas stay paper.
        steepness: φ > 0.
        threshold: ε on the scale of brightness.

    Returns:
        (B, H, W) in [0, 1].

    Raises:
        ValueError: An argument is out of range.

    References:
        Winnemöller, Kyprianidis and Olsen, XDoG: an extended difference-of-Gaussians compendium, Computers & Graphics
        2012; in use for initial strokes since CLIPasso (SIGGRAPH 2022).
    """
    if not ratio > 1 or not steepness > 0:
        raise ValueError(f"xdog needs ratio > 1 and steepness > 0, got {ratio} and {steepness}")
    difference = gaussian_blur(gray_BHW, sigma) - sharpness * gaussian_blur(gray_BHW, sigma * ratio)
    shade = torch.where(difference >= threshold, 1.0, 1.0 + torch.tanh(steepness * (difference - threshold)))
    return (1 - shade).clamp(0, 1)


def initial_weight(gray_BHW: torch.Tensor, saliency_BHW: torch.Tensor, **lines: float) -> torch.Tensor:
    """Where strokes should begin: lines of the picture (XDoG, contrast stretched) that are salient.

    The saliency alone, where a picture has no salient line.

    Args:
        gray_BHW: Brightness.
        saliency_BHW: Saliency ≥ 0.
        **lines: Arguments of `xdog`; the threshold is -0.02 by default, which keeps soft edges.
    """
    low, high = gray_BHW.amin(dim=(1, 2), keepdim=True), gray_BHW.amax(dim=(1, 2), keepdim=True)
    stretched = (gray_BHW - low) / (high - low).clamp(min=1e-3)
    weight = xdog(stretched, **{"threshold": -0.02, **lines}) * saliency_BHW
    return torch.where(weight.amax(dim=(1, 2), keepdim=True) > 0, weight, saliency_BHW)


def gradient_saliency(embed: Embed, x_B3HW: torch.Tensor, sigma: float = 3.0) -> torch.Tensor:
    """How much each pixel moves a network's embedding: max over colours of |∂ ½‖f‖² / ∂x|, smoothed, largest value 1.

    Serves every network that has a gradient.

    Args:
        embed: Pictures → features.
        x_B3HW: Pictures in [0, 1].
        sigma: Smoothing, pixels.

    Returns:
        (B, H, W) in [0, 1], without gradient.
    """
    with torch.enable_grad():
        x = x_B3HW.detach().clone().requires_grad_()
        f_BD = embed(x)
        (slope,) = torch.autograd.grad(0.5 * f_BD.square().sum(), x)
    return normalized(gaussian_blur(slope.abs().amax(dim=1), sigma))


def attention_saliency(attention_BNN: torch.Tensor, size: tuple[int, int], grid: tuple[int, int]) -> torch.Tensor:
    """What the class token attends to, as a map of the picture, largest value 1.

    Args:
        attention_BNN: (B, N, N) attention, averaged over heads and layers; the last h · w tokens are the patches and
            token 0 reads them.
        size: (H, W) of the map.
        grid: (h, w) patches.

    Raises:
        ValueError: There are fewer tokens than patches plus one.
    """
    patches = grid[0] * grid[1]
    if attention_BNN.shape[-1] <= patches:
        raise ValueError(
            f"attention over {attention_BNN.shape[-1]} tokens has no class token beside {grid[0]} × {grid[1]} patches; "
            "use saliency=gradient"
        )
    read = attention_BNN[:, 0, -patches:].reshape(-1, 1, *grid)
    return normalized(interpolate(read, size=size, mode="bicubic", align_corners=False)[:, 0].clamp(min=0))


def normalized(x_BHW: torch.Tensor) -> torch.Tensor:
    """Maps over their largest value; a map without any stays 0."""
    top = x_BHW.amax(dim=(1, 2), keepdim=True)
    return x_BHW / torch.where(top > 0, top, 1)


def squared(x_B3HW: torch.Tensor, size: int, background: float = 1.0) -> torch.Tensor:
    """Pictures of any shape as squares of `size` pixels: padded to a square with the background, then resized."""
    height, width = x_B3HW.shape[-2:]
    side = max(height, width)
    left, top = (side - width) // 2, (side - height) // 2
    x = pad(x_B3HW, (left, side - width - left, top, side - height - top), value=background)
    return interpolate(x, size=(size, size), mode="bilinear", antialias=True, align_corners=False).clamp(0, 1)
