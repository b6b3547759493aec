"""Novel three-dimensional objects, rendered: new stimuli for object learning, and its embedded demo."""

from humanlike.data.novel_objects.backgrounds import Backgrounds, NoiseBackgrounds, PhotographBackgrounds
from humanlike.data.novel_objects.dataset import catch_images, high_variation_images, one_shot_images, warmup_images
from humanlike.data.novel_objects.genome import Genome, genome, object_mesh
from humanlike.data.novel_objects.images import HighVariationImages, OneShotImages
from humanlike.data.novel_objects.rendering import Renderer, View
from humanlike.data.novel_objects.transformations import Variation, variations
from humanlike.data.novel_objects.writer import write_image_set, write_novel_objects

__all__ = [
    "Backgrounds",
    "Genome",
    "HighVariationImages",
    "NoiseBackgrounds",
    "OneShotImages",
    "PhotographBackgrounds",
    "Renderer",
    "Variation",
    "View",
    "catch_images",
    "genome",
    "high_variation_images",
    "object_mesh",
    "one_shot_images",
    "variations",
    "warmup_images",
    "write_image_set",
    "write_novel_objects",
]
