"""Image sets of novel objects, in memory: for Experiment 1, its warm-up, and the one-shot experiment."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from humanlike.data.novel_objects.backgrounds import Backgrounds, NoiseBackgrounds
from humanlike.data.novel_objects.images import HighVariationImages, OneShotImages, Scenery
from humanlike.data.novel_objects.rendering import Renderer, View
from humanlike.data.novel_objects.rotations import pose_angles, turn
from humanlike.data.object_learning import SUPPORT, ImageSet

HIGH_VARIATION_NAME = "NovelObject{:03d}"
WARMUP_NAME = "NovelWarmupObject{:02d}"
ONE_SHOT_NAME = "NovelOneShotObject{:02d}"
IMAGES_A_ONE_SHOT_OBJECT = 61


def high_variation_images(
    objects: int = 16, images: int = 100, seed: int = 0, size: int = 256, backgrounds: Backgrounds | None = None
) -> ImageSet:
    """Objects under high variation of view, as in Experiment 1 (there 128 objects × 100 images).

    Every image depends on the seed, its object and its number only: a smaller set is a part of a larger one.

    Args:
        objects: Number of objects.
        images: Images an object.
        seed: Global seed of objects, views and backgrounds.
        size: Side of the images in pixels.
        backgrounds: What stands behind the objects; default 1/f noise.

    Returns:
        A set whose table has `image_id`, `category`, the pose `rx, ry, rz` in degrees, size `s` in [0.5, 1] and
        position `u` (right) and `v` (down) in ±0.4 of the side.

    Example:
        >>> set_ = high_variation_images(objects=2, images=3)
        >>> len(set_), set_.categories, set_.table["image_id"].iloc[4]
        (6, ('NovelObject000', 'NovelObject001'), 'NovelObject001-Image01.png')
    """
    _positive(objects=objects, images=images)
    address = [(HIGH_VARIATION_NAME.format(o), i) for o in range(objects) for i in range(images)]
    return _high_variation("NovelHighVarImageset", address, _scenery(seed, size, backgrounds))


def warmup_images(
    objects: int = 8, images: int = 50, seed: int = 0, size: int = 256, backgrounds: Backgrounds | None = None
) -> ImageSet:
    """Images of further objects on which features are calibrated, as `high_variation_images`.

    Args:
        objects: Number of objects.
        images: Number of images altogether, dealt out to the objects in turn.
        seed: Global seed of objects, views and backgrounds.
        size: Side of the images in pixels.
        backgrounds: What stands behind the objects; default 1/f noise.
    """
    _positive(objects=objects, images=images)
    address = sorted((WARMUP_NAME.format(i % objects), i // objects) for i in range(images))
    return _high_variation("NovelWarmupImageset", address, _scenery(seed, size, backgrounds))


def one_shot_images(
    objects: int = 64, seed: int = 0, size: int = 256, backgrounds: Backgrounds | None = None
) -> ImageSet:
    """A support image and 60 transformations of it for every object, as in Experiment 2 (64 objects).

    Args:
        objects: Number of objects.
        seed: Global seed of objects, views and backgrounds.
        size: Side of the images in pixels.
        backgrounds: What stands behind the objects; default 1/f noise.

    Returns:
        A set whose table has, beside the columns there, `transformation`, `transformation_level` and `base_image_id`.
        The pose is that of the picture shown, turns out of and in the plane included.
    """
    _positive(objects=objects)
    names = [ONE_SHOT_NAME.format(o) for o in range(objects)]
    address = tuple((name, i) for name in names for i in range(IMAGES_A_ONE_SHOT_OBJECT))
    source = OneShotImages(address, _scenery(seed, size, backgrounds))
    table = _table(address, [source.view(i) for i in range(len(source))])
    changes = [source.variation(i) for i in range(len(source))]
    table["transformation"] = [c.transformation for c in changes]
    table["transformation_level"] = [c.level for c in changes]
    table["base_image_id"] = [_image_id(name, 0) for name, _ in address]
    return ImageSet("NovelOneShotImageset", table, source)


def catch_images(one_shot: ImageSet) -> ImageSet:
    """The support images alone, which catch trials show again."""
    support = (one_shot.table["transformation"] == SUPPORT).to_numpy()
    chosen = one_shot.select(support.nonzero()[0])
    return ImageSet("NovelCatchImageset", chosen.table, chosen.images)


def _high_variation(name: str, address: Sequence[tuple[str, int]], scenery: Scenery) -> ImageSet:
    source = HighVariationImages(tuple(address), scenery)
    return ImageSet(name, _table(address, [source.view(i) for i in range(len(source))]), source)


def _scenery(seed: int, size: int, backgrounds: Backgrounds | None) -> Scenery:
    return Scenery(int(seed), Renderer(size=size), NoiseBackgrounds() if backgrounds is None else backgrounds)


def _table(address: Sequence[tuple[str, int]], views: Sequence[View]) -> pd.DataFrame:
    angles = [pose_angles(turn("z", view.roll) @ view.pose) for view in views]
    columns = {
        "image_id": [_image_id(name, number) for name, number in address],
        "category": [name for name, _ in address],
        "rx": [a.rx for a in angles],
        "ry": [a.ry for a in angles],
        "rz": [a.rz for a in angles],
        "s": [view.s for view in views],
        "u": [view.u for view in views],
        "v": [view.v for view in views],
    }
    return pd.DataFrame(columns)


def _image_id(name: str, number: int) -> str:
    return f"{name}-Image{number:02d}.png"


def _positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
