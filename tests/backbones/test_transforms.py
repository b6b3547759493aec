from __future__ import annotations

import numpy as np
import pytest
import timm.data
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision import transforms as tv

from humanlike.backbones.transforms import RESAMPLING, CallableTransform, ImageTransform, as_transform


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def timm_transform(t: ImageTransform):
    return timm.data.create_transform(
        input_size=(3, *t.height_width),
        crop_pct=t.crop_pct,
        crop_mode=t.crop_mode,
        interpolation=t.interpolation,
        mean=t.mean,
        std=t.std,
    )


@settings(deadline=None, max_examples=30)
@given(
    size=st.sampled_from([32, 47, (32, 48), (51, 30)]),
    crop_pct=st.sampled_from([1.0, 0.95, 0.9, 0.875, 0.5]),
    crop_mode=st.sampled_from(["center", "squash", "border"]),
    interpolation=st.sampled_from(["bilinear", "bicubic", "lanczos", "nearest"]),
    width=st.integers(8, 120),
    height=st.integers(8, 120),
)
def test_equals_timm_bit_for_bit(size, crop_pct, crop_mode, interpolation, width, height):
    t = ImageTransform(
        size, crop_pct, crop_mode, interpolation, mean=(0.5, 0.45, 127 / 255), std=(0.25, 0.2, 128 / 255)
    )
    image = picture(width, height)
    assert torch.equal(t(image), timm_transform(t)(image))


@pytest.mark.parametrize("side", [224, 500])
def test_equals_timm_at_full_size(side):
    t = ImageTransform()
    assert torch.equal(t(picture(side, side + 31)), timm_transform(t)(picture(side, side + 31)))


def test_the_output_is_channels_last_in_memory():
    x_3HW = ImageTransform(size=16)(picture(40, 30))
    assert x_3HW.dtype == torch.float32
    assert x_3HW[None].is_contiguous(memory_format=torch.channels_last)


def test_every_field_changes_the_fingerprint():
    base = ImageTransform()
    others = [
        ImageTransform(size=192),
        ImageTransform(crop_pct=0.9),
        ImageTransform(crop_mode="squash"),
        ImageTransform(interpolation="bicubic"),
        ImageTransform(mean=(0.5, 0.5, 0.5)),
        ImageTransform(std=(0.5, 0.5, 0.5)),
    ]
    prints = [repr(dict(t.fingerprint)) for t in (base, *others)]
    assert len(set(prints)) == len(prints)


def test_lists_and_tuples_are_the_same_transform():
    lists = ImageTransform(size=[32, 32], mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5])
    assert lists == ImageTransform(size=(32, 32), mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    assert as_transform({"size": 32}) == ImageTransform(size=32)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"size": 0}, "size"),
        ({"crop_pct": 1.5}, "crop_pct"),
        ({"interpolation": "cubic"}, "bicubic"),
        ({"crop_mode": "middle"}, "squash"),
        ({"std": (0, 1, 1)}, "std"),
    ],
)
def test_errors_name_the_argument(arguments, word):
    with pytest.raises(ValueError, match=word):
        ImageTransform(**arguments)


def test_other_modes_than_rgb_are_refused():
    with pytest.raises(ValueError, match=r"RGBA.*load_image"):
        ImageTransform()(Image.new("RGBA", (8, 8)))


def test_resampling_names_are_timms():
    assert {"bilinear", "bicubic", "lanczos", "nearest", "box", "hamming"} == set(RESAMPLING)


def compose(size: int, mean: float) -> tv.Compose:
    return tv.Compose([tv.Resize(size), tv.CenterCrop(size), tv.ToTensor(), tv.Normalize([mean] * 3, [0.2] * 3)])


def test_a_users_transform_is_fingerprinted_by_what_it_does():
    same = [as_transform(compose(32, 0.5)).fingerprint["probe"] for _ in range(2)]
    assert same[0] == same[1]
    assert as_transform(compose(33, 0.5)).fingerprint["probe"] != same[0]
    assert as_transform(compose(32, 0.6)).fingerprint["probe"] != same[0]


def test_a_users_transform_that_is_random_or_misshapen_is_refused():
    with pytest.raises(ValueError, match="random augmentation"):
        _ = CallableTransform(lambda image: torch.rand(3, 8, 8), "noisy").fingerprint
    with pytest.raises(TypeError, match=r"ToTensor\(\)"):
        CallableTransform(lambda image: np.asarray(image), "array")(picture(8, 8))
    with pytest.raises(TypeError, match="arguments of ImageTransform"):
        as_transform(7)
