"""Layers made small enough to read out: pooled over positions, and projected to at most so many dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from humanlike.backbones.projection import BLOCK_ROWS, PROJECTIONS, GaussianProjection, Projection
from humanlike.interfaces import Backbone, Transform
from humanlike.rng import address_seed

__all__ = ["BLOCK_ROWS", "KEEP_BYTES", "POOLS", "GaussianProjection", "ReducedBackbone", "Reduction", "pooled"]

POOLS = ("none", "average", "first_token")
KEEP_BYTES = 2**29


@dataclass(frozen=True)
class Reduction:
    """What is done to a layer's activation before it is kept.

    Attributes:
        pool: "none"; "average": mean over positions of a map or over tokens; "first_token": the first token (the class
            token, where a transformer has one) of activations that are tokens, and the average of maps.
        max_features: Layers with more features than this after pooling are projected to this many; None: never.
        seed: Seed of the projection.
        projection: "gaussian" or "srft"; see `humanlike.backbones.projection`.
        by_layer: Whether every layer has a projection of its own, drawn from its name and the seed; otherwise layers
            of equal width share one.

    Raises:
        ValueError: On an unknown pool or projection, or a number below 1.
    """

    pool: str = "none"
    max_features: int | None = None
    seed: int = 0
    projection: str = "gaussian"
    by_layer: bool = False

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise ValueError(f"pool must be one of {', '.join(POOLS)}, got {self.pool!r}")
        if self.max_features is not None and self.max_features < 1:
            raise ValueError(f"max_features must be at least 1, or null for no limit, got {self.max_features}")
        if self.projection not in PROJECTIONS:
            raise ValueError(f"projection must be one of {', '.join(PROJECTIONS)}, got {self.projection!r}")

    @property
    def is_nothing(self) -> bool:
        """Whether activations are kept as they are."""
        return self.pool == "none" and self.max_features is None

    def view(self, layer: str) -> str:
        """Name under which the reduced layer is cached, unlike that of the whole layer or of another reduction."""
        own = ":by_layer" if self.by_layer else ""
        limit = "" if self.max_features is None else f"|{self.projection}:{self.max_features}:{self.seed}{own}"
        return f"{layer}|{self.pool}{limit}"

    def projection_seed(self, layer: str) -> int:
        """Seed of the projection of a layer."""
        return address_seed(self.seed, "projection of layer", layer) if self.by_layer else self.seed

    def record(self) -> dict[str, Any]:
        """What a result stores."""
        projects = self.max_features is not None
        record = {
            "pool": self.pool,
            "max_features": self.max_features,
            "projection": self.projection if projects else None,
            "projection_seed": self.seed if projects else None,
        }
        return {**record, "projection_by_layer": True} if projects and self.by_layer else record


def pooled(a_B: torch.Tensor, pool: str) -> torch.Tensor:
    """(B, D) features of activations with positions.

    Positions are the tokens of (B, T, C), and the plane of four axes: of (B, C, H, W), or of (B, H, W, C), which is
    told by the two equal axes (some transformers and MLPs keep channels last; where all three are equal, and where no
    two neighbours are, channels come first). Activations with other axes have no positions, and are flattened.

    Args:
        a_B: (B, …) activations.
        pool: See `Reduction`.

    Example:
        >>> pooled(torch.arange(8.0).reshape(1, 2, 2, 2), "average").tolist()
        [[1.5, 5.5]]
        >>> pooled(torch.arange(6.0).reshape(1, 3, 2), "first_token").tolist()
        [[0.0, 1.0]]
    """
    if pool == "none" or a_B.ndim not in (3, 4):
        return a_B.flatten(1)
    if a_B.ndim == 3:
        return a_B[:, 0] if pool == "first_token" else a_B.mean(1)
    _, first, middle, last = a_B.shape
    channels_last = first == middle and middle != last
    return a_B.mean((1, 2) if channels_last else (2, 3))


class ReducedBackbone(nn.Module):
    """A backbone whose layers are reduced as soon as the forward pass reaches them, so that no large one is kept.

    Args:
        backbone: The backbone.
        reduction: What is done to every layer.

    Attributes:
        view_of: Layer → name of its reduced features, which are the layers of this backbone.
    """

    def __init__(self, backbone: Backbone, reduction: Reduction) -> None:
        super().__init__()
        self.backbone = backbone  # a submodule where it is one, so that it moves to the device
        self.reduction = reduction
        self.name = backbone.name
        self.architecture = getattr(backbone, "architecture", backbone.name)
        self.transform: Transform = backbone.transform
        self.default_layer = reduction.view(backbone.default_layer)
        self._projections: dict[tuple[int, int], Projection] = {}

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the reduced layers in depth order."""
        return tuple(self.reduction.view(layer) for layer in self.backbone.layers)

    @property
    def weights_hash(self) -> str:
        """That of the backbone: the reduction is part of a layer's name."""
        return self.backbone.weights_hash

    def features(self, x_B3HW: torch.Tensor, layers: Sequence[str]) -> dict[str, torch.Tensor]:
        """(B, D) float32 reduced features from one forward pass; see `Backbone.features`."""
        ending = self.reduction.view("")
        plain = [layer.removesuffix(ending) for layer in layers]
        own = getattr(self.backbone, "activations", None)
        found: Mapping[str, torch.Tensor]
        if own is not None:
            found = own(x_B3HW, plain, self._reduced)
        else:  # a backbone that gives flat rows only
            found = {layer: self._reduced(layer, a_B) for layer, a_B in self.backbone.features(x_B3HW, plain).items()}
        return {self.reduction.view(layer): found[layer] for layer in plain}

    def _reduced(self, layer: str, a_B: torch.Tensor) -> torch.Tensor:
        f_BD, limit = pooled(a_B, self.reduction.pool), self.reduction.max_features
        if limit is None or f_BD.shape[1] <= limit:
            return f_BD
        address = (f_BD.shape[1], self.reduction.projection_seed(layer))
        if address not in self._projections:
            kept = sum(p.nbytes for p in self._projections.values() if p.keep)
            projection = PROJECTIONS[self.reduction.projection](address[0], limit, address[1])
            projection.keep = kept + projection.nbytes <= KEEP_BYTES
            self._projections[address] = projection
        return self._projections[address](f_BD)
