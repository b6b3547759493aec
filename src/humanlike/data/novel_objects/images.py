"""Images of novel objects as ImageSource: each is rendered from its address when it is asked for.

An address is (global seed, object, number), so every image is the same in any set, order or process that has it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

from humanlike.data.novel_objects.backgrounds import GRAY, Backgrounds, NoiseBackgrounds
from humanlike.data.novel_objects.genome import GENOME_VERSION, object_mesh
from humanlike.data.novel_objects.rendering import RENDERER_VERSION, Layer, Renderer, View, to_bytes
from humanlike.data.novel_objects.rotations import uniform_pose
from humanlike.data.novel_objects.transformations import Variation, blended, variations
from humanlike.files import sha256_value
from humanlike.rng import generator

SIZES = (0.5, 1.0)
"""Range of s: the ball around the object spans 25% to 50% of the image."""
OFFSET = 0.4
"""Largest distance of u and v from the centre, as a fraction of the side."""


@dataclass(frozen=True)
class Scenery:
    """What all images of a set share.

    Attributes:
        seed: Global seed.
        renderer: How meshes become pixels.
        backgrounds: What stands behind the objects.
    """

    seed: int = 0
    renderer: Renderer = field(default_factory=Renderer)
    backgrounds: Backgrounds = field(default_factory=NoiseBackgrounds)

    def rng(self, what: str, name: str, *number: int) -> np.random.Generator:
        """The generator of one thing about an object, or about one of its images."""
        return generator(self.seed, "novel objects", what, name, *number)

    def layer(self, name: str, view: View) -> Layer:
        """The picture of an object."""
        return self.renderer(object_mesh(self.seed, name), view)

    def background(self, name: str, number: int) -> np.ndarray:
        """(H, W) the background of an image."""
        return self.backgrounds.draw(self.rng("background", name, number), self.renderer.size)

    def digest(self, kind: str, name: str, number: int) -> str:
        """What identifies the pixels of an image."""
        versions = [GENOME_VERSION, RENDERER_VERSION]
        behind: Any = self.backgrounds.fingerprint(self.rng("background", name, number))
        return sha256_value([kind, versions, self.seed, name, number, asdict(self.renderer), behind])


@dataclass(frozen=True)
class HighVariationImages:
    """Objects in random pose, size and position on random backgrounds (Experiment 1), an ImageSource.

    Attributes:
        address: One (object, number) an image.
        scenery: Seed, renderer and backgrounds.
    """

    address: tuple[tuple[str, int], ...]
    scenery: Scenery = field(default_factory=Scenery)

    def __len__(self) -> int:
        return len(self.address)

    def view(self, index: int) -> View:
        """How the object stands in image `index`: uniform on SO(3), s in [0.5, 1], u and v in ±0.4."""
        rng = self.scenery.rng("view", *self.address[index])
        angles = uniform_pose(rng)
        s, u, v = (float(x) for x in rng.uniform((SIZES[0], -OFFSET, -OFFSET), (SIZES[1], OFFSET, OFFSET)))
        return View.of_angles(angles, s, u, v)

    def layer(self, index: int) -> Layer:
        """The picture of the object alone."""
        return self.scenery.layer(self.address[index][0], self.view(index))

    def pixels(self, index: int) -> np.ndarray:
        """(H, W) uint8 gray."""
        return to_bytes(self.layer(index).over(self.scenery.background(*self.address[index])))

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        return Image.fromarray(self.pixels(index)).convert("RGB")

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return self.scenery.digest("high variation", *self.address[index])

    def describe(self, index: int) -> str:
        """See ImageSource."""
        name, number = self.address[index]
        return f"{name}, image {number}, seed {self.scenery.seed}"


@dataclass(frozen=True)
class OneShotImages:
    """A support image of every object and 60 transformations of it (Experiment 2), an ImageSource.

    Attributes:
        address: One (object, number) an image; number 0 is the support image, see `variations`.
        scenery: Seed, renderer and backgrounds.
    """

    address: tuple[tuple[str, int], ...]
    scenery: Scenery = field(default_factory=Scenery)

    def __len__(self) -> int:
        return len(self.address)

    def variation(self, index: int) -> Variation:
        """What image `index` changes."""
        name, number = self.address[index]
        return object_variations(self.scenery.seed, name)[number]

    def view(self, index: int) -> View:
        """How the object stands in image `index`; in the support image in the middle, at size 1, in a random pose."""
        support = View.of_angles(uniform_pose(self.scenery.rng("support", self.address[index][0])))
        return self.variation(index).view(support)

    def layer(self, index: int) -> Layer:
        """The picture of the object alone, before its pixels are changed."""
        return self.scenery.layer(self.address[index][0], self.view(index))

    def pixels(self, index: int) -> np.ndarray:
        """(H, W) uint8 gray."""
        variation, size = self.variation(index), self.scenery.renderer.size
        background = np.full((size, size), GRAY)
        if variation.alpha:
            background = blended(background, self.scenery.background(*self.address[index]), variation.alpha)
        rng = self.scenery.rng("pixels", *self.address[index])
        return to_bytes(variation.pixels(self.layer(index), background, GRAY, rng))

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        return Image.fromarray(self.pixels(index)).convert("RGB")

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        digest = self.scenery.digest("one shot", *self.address[index])
        return sha256_value([digest, asdict(self.variation(index))])

    def describe(self, index: int) -> str:
        """See ImageSource."""
        name, number = self.address[index]
        return f"{name}, image {number} ({self.variation(index).transformation}), seed {self.scenery.seed}"


@lru_cache(maxsize=256)
def object_variations(seed: int, name: str) -> tuple[Variation, ...]:
    """The 61 images of an object, see `variations`."""
    return variations(generator(seed, "novel objects", "variations", name))
