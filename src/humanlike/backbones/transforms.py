"""From an RGB image on white to a network's input: the backbone's own resize, crop and normalisation, hashed.

Everything happens on one path, Pillow's antialiased resampling: resizing a tensor without antialiasing breaks thin
strokes and moves features far more than any other choice (openai/CLIP and torchvision users lose a point or more that
way).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from humanlike.interfaces import Transform

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class ImageTransform:
    """Resize, crop and normalise as the evaluation transform of timm does, bit for bit.

    The image is resized so that the crop covers `crop_pct` of it, the middle is cut out, bytes become x / 255, and each
    channel becomes (x - mean) / std.

    Attributes:
        size: Side of the network's input in pixels, or (height, width).
        crop_pct: Share of the resized image's side that the crop keeps, in (0, 1].
        crop_mode: "center" scales the shorter side and loses what lies outside; "squash" scales both sides without
            keeping the aspect ratio; "border" scales the longer side and pads with `mean`.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming"; Pillow's, always antialiased.
        mean: Mean of each channel on the scale [0, 1].
        std: Standard deviation of each channel on the scale [0, 1].

    Raises:
        ValueError: An argument lies outside the ranges above.

    Example:
        >>> ImageTransform(size=8)(Image.new("RGB", (20, 10), "white")).shape
        torch.Size([3, 8, 8])
    """

    size: int | tuple[int, int] = 224
    crop_pct: float = 0.875
    crop_mode: str = "center"
    interpolation: str = "bilinear"
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        # Configurations deliver lists and NumPy numbers; the record holds plain tuples so that it hashes and prints.
        if not isinstance(self.size, int):
            object.__setattr__(self, "size", tuple(int(s) for s in self.size))
        object.__setattr__(self, "mean", tuple(float(m) for m in self.mean))
        object.__setattr__(self, "std", tuple(float(s) for s in self.std))
        object.__setattr__(self, "crop_pct", float(self.crop_pct))
        if min(self.height_width) < 1 or len(self.height_width) != 2:
            raise ValueError(f"transform.size must be a positive integer or (height, width), got {self.size!r}")
        if not 0 < self.crop_pct <= 1:
            raise ValueError(f"transform.crop_pct must lie in (0, 1], got {self.crop_pct}")
        if self.interpolation not in RESAMPLING:
            raise ValueError(f"transform.interpolation must be one of {sorted(RESAMPLING)}, got {self.interpolation!r}")
        if self.crop_mode not in _FRAMINGS:
            raise ValueError(f"transform.crop_mode must be one of {sorted(_FRAMINGS)}, got {self.crop_mode!r}")
        if len(self.mean) != 3 or len(self.std) != 3 or min(self.std) <= 0:
            raise ValueError(
                f"transform.mean and transform.std need three channels and std > 0, got {self.mean} and {self.std}"
            )

    @property
    def height_width(self) -> tuple[int, int]:
        """(height, width) of the output in pixels."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Facts that fix the output; library versions are part of the feature cache's key."""
        return {
            "type": "humanlike.ImageTransform/1",
            "size": list(self.height_width),
            "crop_pct": self.crop_pct,
            "crop_mode": self.crop_mode,
            "interpolation": self.interpolation,
            "antialias": True,
            "resize_library": "pillow",
            "mean": list(self.mean),
            "std": list(self.std),
        }

    def __call__(self, image: Image.Image) -> torch.Tensor:
        """RGB image → (3, H, W) float32; the memory is laid out channels last."""
        if image.mode != "RGB":
            raise ValueError(
                f"the transform takes RGB images, got mode {image.mode!r}; open files with "
                "humanlike.data.images.load_image, which composites transparency on white"
            )
        framed = _FRAMINGS[self.crop_mode](image, self)
        # NumPy rather than torch: the batch may be prepared in a thread beside the forward pass, and torch would
        # start a second pool of OpenMP threads there.
        height, width = self.height_width
        x_HR = np.array(framed, dtype=np.float32).reshape(height, 3 * width)  # whole rows: long inner loops are fast
        x_HR /= 255
        x_HR -= np.tile(np.asarray(self.mean, dtype=np.float32), width)
        x_HR /= np.tile(np.asarray(self.std, dtype=np.float32), width)
        return torch.from_numpy(x_HR.reshape(height, width, 3)).permute(2, 0, 1)


def _scaled(size: tuple[int, int], crop_pct: float) -> tuple[int, int]:
    return math.floor(size[0] / crop_pct), math.floor(size[1] / crop_pct)


def _frame_center(image: Image.Image, t: ImageTransform) -> Image.Image:
    height, width = _scaled(t.height_width, t.crop_pct)
    if height != width:
        return _crop_or_pad(_resize_keeping_ratio(image, (height, width), t, longest=False), t.height_width, (0, 0, 0))
    short, long = sorted(image.size)
    new_long = int(height * long / short)
    target = (height, new_long) if image.size[0] <= image.size[1] else (new_long, height)
    return _crop_or_pad(_resize(image, target, t), t.height_width, (0, 0, 0))


def _frame_squash(image: Image.Image, t: ImageTransform) -> Image.Image:
    height, width = _scaled(t.height_width, t.crop_pct)
    return _crop_or_pad(_resize(image, (width, height), t), t.height_width, (0, 0, 0))


def _frame_border(image: Image.Image, t: ImageTransform) -> Image.Image:
    fill = (round(255 * t.mean[0]), round(255 * t.mean[1]), round(255 * t.mean[2]))
    resized = _resize_keeping_ratio(image, _scaled(t.height_width, t.crop_pct), t, longest=True)
    return _crop_or_pad(resized, t.height_width, fill)


_FRAMINGS: dict[str, Callable[[Image.Image, ImageTransform], Image.Image]] = {
    "center": _frame_center,
    "squash": _frame_squash,
    "border": _frame_border,
}


def _resize(image: Image.Image, width_height: tuple[int, int], t: ImageTransform) -> Image.Image:
    return image if image.size == width_height else image.resize(width_height, RESAMPLING[t.interpolation])


def _resize_keeping_ratio(
    image: Image.Image, height_width: tuple[int, int], t: ImageTransform, *, longest: bool
) -> Image.Image:
    ratios = (image.size[1] / height_width[0], image.size[0] / height_width[1])
    ratio = max(ratios) if longest else min(ratios)
    return _resize(image, (round(image.size[0] / ratio), round(image.size[1] / ratio)), t)


def _crop_or_pad(image: Image.Image, height_width: tuple[int, int], fill: tuple[int, int, int]) -> Image.Image:
    height, width = height_width
    if image.size[0] < width or image.size[1] < height:
        padded = Image.new("RGB", (max(width, image.size[0]), max(height, image.size[1])), fill)
        padded.paste(image, (max(0, (width - image.size[0]) // 2), max(0, (height - image.size[1]) // 2)))
        image = padded
    left, top = round((image.size[0] - width) / 2), round((image.size[1] - height) / 2)
    return image.crop((left, top, left + width, top + height))


class CallableTransform:
    """Any function of a user's own, from an RGB image to a (3, H, W) tensor, fingerprinted by what it does.

    A function's name says nothing about its numbers, so the fingerprint holds a digest of its output on three fixed
    images: a changed size, mean or interpolation changes it.

    Args:
        fn: RGB image → (3, H, W) floating-point tensor.
        name: Name for the record; by default that of the function's type or the function.

    Raises:
        TypeError: `fn` does not give a (3, H, W) floating-point tensor.
    """

    def __init__(self, fn: Callable[[Image.Image], torch.Tensor], name: str | None = None) -> None:
        self.fn = fn
        self.name = name or getattr(fn, "__qualname__", type(fn).__qualname__)

    def __call__(self, image: Image.Image) -> torch.Tensor:
        """RGB image → (3, H, W) float32 tensor."""
        x_3HW = self.fn(image)
        if not isinstance(x_3HW, torch.Tensor) or x_3HW.ndim != 3 or len(x_3HW) != 3 or not x_3HW.is_floating_point():
            got = f"{tuple(x_3HW.shape)} {x_3HW.dtype}" if isinstance(x_3HW, torch.Tensor) else type(x_3HW).__name__
            raise TypeError(
                f"transform {self.name!r} must turn an image into a (3, H, W) floating-point tensor, got {got}; "
                "for torchvision end it with ToTensor() and Normalize(...)"
            )
        return x_3HW.to(torch.float32)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Name and a digest of the output on fixed images; two calls that disagree mean a random transform."""
        first, second = self._probe_digest(), self._probe_digest()
        if first != second:
            raise ValueError(
                f"transform {self.name!r} gives different tensors for the same image; "
                "use the evaluation transform, without random augmentation"
            )
        return {"type": "humanlike.CallableTransform/1", "name": self.name, "probe": first}

    def _probe_digest(self) -> str:
        digest = hashlib.sha256()
        for width, height in ((300, 300), (320, 200), (64, 96)):
            x_3HW = self(_probe_image(width, height))
            digest.update(repr(tuple(x_3HW.shape)).encode())
            digest.update(x_3HW.contiguous().numpy().tobytes())
        return digest.hexdigest()


def as_transform(transform: Transform | Mapping[str, Any] | Callable[[Image.Image], torch.Tensor]) -> Transform:
    """A Transform from a Transform (as it is), from the arguments of ImageTransform, or from any function.

    Raises:
        TypeError: It is none of these.
    """
    if hasattr(type(transform), "fingerprint"):
        return transform  # type: ignore[return-value]
    if isinstance(transform, Mapping):
        return ImageTransform(**{str(k): v for k, v in transform.items()})
    if callable(transform):
        return CallableTransform(transform)
    raise TypeError(
        "transform must be a function from an RGB image to a (3, H, W) tensor, or the arguments of ImageTransform "
        f"(size, crop_pct, crop_mode, interpolation, mean, std); got {type(transform).__name__}"
    )


def _probe_image(width: int, height: int) -> Image.Image:
    """A fixed image with edges and gradients at every scale, the same on every machine (integer arithmetic only)."""
    y_H1, x_1W = np.arange(height)[:, None], np.arange(width)[None, :]
    channels: Sequence[np.ndarray] = (x_1W * 7 + y_H1, (x_1W * y_H1) // 3, (x_1W // 16 + y_H1 // 16) % 2 * 255)
    return Image.fromarray(np.stack([(c + 0 * x_1W) % 256 for c in channels], axis=-1).astype(np.uint8))
