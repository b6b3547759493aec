"""The transformations of the one-shot experiment: what each does to pixels, and the 61 images of an object.

Translation, scale and both rotations change the view, background the gray behind the object, the other four the pixels
of the finished image (values in [0, 1]). Names and levels are those of the published metadata.

References:
    Lee & DiCarlo, "One-shot stimulus image generation". Deviates: the source's formulas of background and contrast
    are lost; those here are assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter

from humanlike.data.novel_objects.rendering import Layer, View
from humanlike.data.novel_objects.rotations import turn
from humanlike.data.object_learning import SUPPORT

TRANSLATIONS = (0.125, 0.25, 0.5, 0.75)
"""Distance as a fraction of half the image's side: 16, 32, 64, 96 of 256 pixels."""
BACKGROUNDS = (0.1, 0.215443, 0.464159, 1.0)
"""Share α of the new background."""
SCALES = (0.125, 0.25, 0.5, 1.5)
CONTRASTS = (-0.8, -0.4, 0.4, 0.8)
DELETIONS = (0.25, 0.5, 0.75, 0.95)
BLURS = (0.007812, 0.015625, 0.03125, 0.0625)
"""Standard deviation of the kernel as a fraction of the side: 2, 4, 8, 16 of 256 pixels."""
NOISES = (0.125, 0.25, 0.375, 0.5)
TURNS_X = (-135.0, -90.0, -45.0, 45.0, 90.0, 135.0)
"""Out-of-plane turns about the image's horizontal; that by 180° belongs to the vertical alone, as published."""
TURNS_Y = (45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0)
ROLLS = TURNS_Y
COMBINED = 4
"""Number of `combinednat` images: a turn, scale, roll, translation and background at once. They are never scored."""


def blended(background_HW: np.ndarray, new_HW: np.ndarray, alpha: float) -> np.ndarray:
    """Mix of two backgrounds, b' = (1 - α) b + α c (assumed)."""
    return (1 - alpha) * background_HW + alpha * new_HW


def contrasted(image_HW: np.ndarray, contrast: float) -> np.ndarray:
    """Contrast about mid gray, p' = 0.5 + (1 + c)(p - 0.5), clipped to [0, 1] (assumed).

    Example:
        >>> contrasted(np.array([0.5, 0.75, 1.0]), -0.8).round(3).tolist()
        [0.5, 0.55, 0.6]
    """
    return np.clip(0.5 + (1 + contrast) * (image_HW - 0.5), 0, 1)


def deleted(
    image_HW: np.ndarray, cover_HW: np.ndarray, share: float, gray: float, rng: np.random.Generator
) -> np.ndarray:
    """The image with a share of the object's pixels (coverage above 0) in the gray of the background."""
    pixels = np.flatnonzero(cover_HW > 0)
    gone = rng.permutation(pixels)[: round(share * len(pixels))]
    result = image_HW.copy()
    result.flat[gone] = gray
    return result


def blurred(image_HW: np.ndarray, radius: float) -> np.ndarray:
    """Gaussian blur with a standard deviation of `radius` times the side; the edge continues outwards."""
    return gaussian_filter(image_HW, radius * image_HW.shape[0], mode="nearest")


def noised(image_HW: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Independent Gaussian noise on every pixel, then clipped to [0, 1]."""
    return np.clip(image_HW + sigma * rng.standard_normal(image_HW.shape), 0, 1)


@dataclass(frozen=True)
class Variation:
    """One image of an object in the one-shot experiment, as a change of its support image.

    Attributes:
        transformation: Name in the metadata.
        level: Level in the metadata; of rotations the absolute angle.
        turn_x, turn_y: Out-of-plane turn in degrees about the image's horizontal (x) and vertical (y), x first.
        scale: Size relative to the support image.
        roll: Counterclockwise in-plane turn in degrees.
        shift: Distance of the translation, as a fraction of half the side.
        theta: Its direction in degrees, counterclockwise from the right.
        alpha: Share of a new background.
        contrast, deletion, blur, noise: Levels of the changes of pixels; 0 does nothing.
    """

    transformation: str
    level: float
    turn_x: float = 0.0
    turn_y: float = 0.0
    scale: float = 1.0
    roll: float = 0.0
    shift: float = 0.0
    theta: float = 0.0
    alpha: float = 0.0
    contrast: float = 0.0
    deletion: float = 0.0
    blur: float = 0.0
    noise: float = 0.0

    def view(self, support: View) -> View:
        """The view that this image shows."""
        away = self.shift / 2 * np.array([np.cos(np.deg2rad(self.theta)), -np.sin(np.deg2rad(self.theta))])
        return replace(
            support,
            pose=turn("y", self.turn_y) @ turn("x", self.turn_x) @ support.pose,
            s=support.s * self.scale,
            u=support.u + float(away[0]),
            v=support.v + float(away[1]),
            roll=support.roll + self.roll,
        )

    def pixels(self, layer: Layer, background_HW: np.ndarray, gray: float, rng: np.random.Generator) -> np.ndarray:
        """(H, W) image of the object's picture on a background that is finished, with the changes of pixels."""
        image = layer.over(background_HW)
        if self.deletion:
            image = deleted(image, layer.cover_HW, self.deletion, gray, rng)
        if self.contrast:
            image = contrasted(image, self.contrast)
        if self.blur:
            image = blurred(image, self.blur)
        return noised(image, self.noise, rng) if self.noise else image


def variations(rng: np.random.Generator) -> tuple[Variation, ...]:
    """The 61 images of an object: the support image, 56 of nine scored types, and 4 `combinednat`.

    Args:
        rng: Draws the directions of translation and what is combined.

    Example:
        >>> len(variations(np.random.default_rng(0)))
        61
    """
    return (Variation(SUPPORT, 0.0), *_views(rng), *_pixels(), *(_combined(rng) for _ in range(COMBINED)))


def _views(rng: np.random.Generator) -> Iterator[Variation]:
    for level in TRANSLATIONS:
        theta = float(rng.integers(360))
        for direction in (theta, (theta + 180) % 360):
            yield Variation("inplanetranslation", level, shift=level, theta=direction)
    for level in BACKGROUNDS:
        for _ in range(2):
            yield Variation("backgrounds", level, alpha=level)
    for level in SCALES:
        yield Variation("scale", level, scale=level)
    for degrees in TURNS_X:
        yield Variation("outplanerotation", abs(degrees), turn_x=degrees)
    for degrees in TURNS_Y:
        yield Variation("outplanerotation", min(degrees, 360 - degrees), turn_y=degrees)
    for degrees in ROLLS:
        yield Variation("inplanerotation", min(degrees, 360 - degrees), roll=degrees)


def _pixels() -> Iterator[Variation]:
    for level in CONTRASTS:
        yield Variation("contrast", level, contrast=level)
    for level in DELETIONS:
        yield Variation("delpixels", level, deletion=level)
    for level in BLURS:
        yield Variation("blur", level, blur=level)
    for level in NOISES:
        yield Variation("noise", level, noise=level)


def _combined(rng: np.random.Generator) -> Variation:
    about_x = rng.random() < 0.5
    return Variation(
        "combinednat",
        1.0,
        turn_x=float(rng.choice(TURNS_X)) if about_x else 0.0,
        turn_y=0.0 if about_x else float(rng.choice(TURNS_Y)),
        scale=float(rng.choice(SCALES)),
        roll=float(rng.choice(ROLLS)),
        shift=float(rng.choice(TRANSLATIONS)),
        theta=float(rng.integers(360)),
        alpha=float(rng.choice(BACKGROUNDS)),
    )
