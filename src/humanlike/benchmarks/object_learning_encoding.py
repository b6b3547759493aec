"""The encoding stage: images of novel objects → layers of a frozen network → calibrated inner products per subtask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from humanlike.backbones.cache import extraction_facts
from humanlike.backbones.extraction_settings import ExtractionSettings
from humanlike.backbones.gram import GramStore, LayerGram
from humanlike.backbones.layer_selection import select_layers
from humanlike.backbones.layers import input_shape, layer_shapes
from humanlike.backbones.projection import PROJECTIONS
from humanlike.backbones.whole_image import with_whole_images
from humanlike.benchmarks.object_learning_pass import ImagePass
from humanlike.data.object_learning import ObjectLearningData
from humanlike.files import sha256_value
from humanlike.interfaces import Backbone

TRANSFORMS, STORES = ("whole", "backbone"), ("gram", "features")
EXACT = "none"


@dataclass(frozen=True)
class Encoding:
    """How images become features.

    Attributes:
        layers: Names, patterns or `spread:N`; see `humanlike.backbones.layer_selection.select_layers`.
        projection: "gaussian" (the paper's), "srft" (faster, another matrix), or "none": inner products of all
            activations, which is another model, not an approximation of the projected one.
        num_features: Wider layers are projected to this many.
        transform: "whole": the whole image, resized without a crop; "backbone": the network's own preprocessing.
        size: Side of the network's input in pixels with transform="whole".
        widest: Layers with more activations than this are passed over by patterns and by `spread:N`, because their
            projection costs more than the network; layers that are named are never passed over. None: no limit.
        store: "gram": only inner products stay on disk; "features": features stay in the cache as well.

    Raises:
        ValueError: On an unknown word, or a number below 1.
    """

    layers: str | Sequence[str] = "spread:6"
    projection: str = "gaussian"
    num_features: int = 2048
    transform: str = "whole"
    size: int = 224
    widest: int | None = 65_536
    store: str = "gram"

    def __post_init__(self) -> None:
        words = (
            ("projection", (*PROJECTIONS, EXACT)),
            ("transform", TRANSFORMS),
            ("store", STORES),
        )
        for name, allowed in words:
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        for name in ("num_features", "size", "widest"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")

    @property
    def is_exact(self) -> bool:
        """Whether nothing is projected."""
        return self.projection == EXACT

    def record(self) -> dict[str, Any]:
        """What a result stores."""
        return asdict(self)

    def options(self, seed: int) -> dict[str, Any]:
        """Keywords of `layer_features`; every layer has a projection of its own, drawn from its name and `seed`."""
        if self.is_exact:
            return {"max_features": None, "pool": None, "micro_batches_per_shard": 1}
        return {
            "pool": None,
            "max_features": self.num_features,
            "projection": self.projection,
            "projection_seed": seed,
            "projection_by_layer": True,
        }


@dataclass(frozen=True)
class EncodedLayers:
    """Layers of one network for one experiment, read from disk one by one.

    Attributes:
        store: Where the inner products are.
        backbone: Name of the network.
        layers: Names in depth order.
        depth: Layer → relative depth in (0, 1].
        shapes: Layer → shape of its activation for one image.
        hashes: `weights`, `transform`, `data`, `features`.
        info: Facts about the extraction.
        passed_over: Layers that were passed over because they are wider than `Encoding.widest`.
    """

    store: GramStore
    backbone: str
    layers: tuple[str, ...]
    depth: Mapping[str, float]
    shapes: Mapping[str, tuple[int, ...]]
    hashes: Mapping[str, str]
    info: Mapping[str, Any]
    passed_over: int = 0

    def read(self, layer: str) -> LayerGram:
        """Inner products of a layer."""
        return self.store.read(layer)


def chosen_layers(
    backbone: Backbone, encoding: Encoding, always: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, float], dict[str, tuple[int, ...]], int]:
    """Which layers are meant.

    Args:
        backbone: The network.
        encoding: Says which.
        always: Layers that are added.

    Returns:
        Names in depth order; relative depth and shape of each layer of the network; number of layers passed over.

    Raises:
        ValueError: When a name or pattern fits no layer.
    """
    shapes = {s.name: tuple(s.shape) for s in layer_shapes(backbone)}
    depth = {s.name: s.depth for s in layer_shapes(backbone)}
    asked = [encoding.layers] if isinstance(encoding.layers, str) else [str(x) for x in encoding.layers]
    named = [layer for layer in (*asked, *always) if layer in shapes]
    patterns = [entry for entry in asked if entry not in shapes]
    limit = encoding.widest if encoding.widest is not None else max(int(np.prod(s)) for s in shapes.values())
    narrow = tuple(layer for layer, shape in shapes.items() if int(np.prod(shape)) <= limit)
    select_layers(tuple(shapes), always or "all")  # says which is nearest, where one does not exist
    found = {*named, *(select_layers(narrow, patterns) if patterns else ())}
    return tuple(layer for layer in shapes if layer in found), depth, shapes, len(shapes) - len(narrow)


def encode(
    backbone: Backbone,
    data: ObjectLearningData,
    encoding: Encoding,
    *,
    always: Sequence[str] = (),
    seed: int = 0,
    cache_dir: str | Path,
    trainer: Any = None,
    extraction: Mapping[str, Any] | None = None,
) -> EncodedLayers | None:
    """Inner products of all layers from one pass over the images; what is on disk already is not computed again.

    Args:
        backbone: The frozen network.
        data: The experiment. Without warm-up images its own images take their place.
        encoding: How images become features.
        always: Layers beside those of `encoding.layers`.
        seed: Seed of the projections.
        cache_dir: Folder of all caches.
        trainer: A Lightning trainer that says on which devices and processes; one CPU process if None.
        extraction: Further keywords of `extract_features`.

    Returns:
        The layers; None in every process but the first.

    Raises:
        BadImageError: An image cannot be read; sessions need all of them.
        ValueError: A layer is unknown or not finite.
    """
    root = Path(cache_dir)
    backbone = with_whole_images(backbone, encoding.size) if encoding.transform == "whole" else backbone
    names, depth, shapes, passed_over = chosen_layers(backbone, encoding, always)
    options = {**(extraction or {}), **encoding.options(seed), "on_bad_image": "raise"}
    warmup = data.images if data.warmup is None else data.warmup
    device = trainer.strategy.root_device if trainer is not None else torch.device("cpu")
    arithmetic = ExtractionSettings(**options).arithmetic(device)
    shape_3HW = input_shape(backbone.transform)
    facts: dict[str, Any] = {
        "images": extraction_facts(backbone, data.images.images, shape_3HW, arithmetic),
        "warmup": extraction_facts(backbone, warmup.images, shape_3HW, arithmetic),
        "projection": encoding.projection,
        "num_features": None if encoding.is_exact else encoding.num_features,
        "seed": None if encoding.is_exact else seed,
        "subtasks": data.subtask_names,
    }
    subtasks = range(len(data.subtasks))
    blocks = [[s] for s in subtasks] if encoding.is_exact else [list(subtasks)]
    store = GramStore(root / "gram", facts, blocks)
    features = root / "features" if encoding.store == "features" else store.folder / "features"
    work = ImagePass(backbone, data, warmup, trainer, options, store, features, encoding.store == "features")
    info = work.run(names)
    if not work.is_first:
        return None
    hashes = {
        "weights": facts["images"]["weights"],
        "data": facts["images"]["data"],
        "transform": sha256_value(facts["images"]["transform"]),
        "features": store.key,
    }
    return EncodedLayers(store, backbone.name, names, depth, shapes, hashes, {**arithmetic, **info}, passed_over)
