"""Layers made small enough to read out: pooled over positions, and projected to at most so many dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from humanlike.interfaces import Backbone, Transform
from humanlike.rng import generator

POOLS = ("none", "average", "first_token")
BLOCK_ROWS = 2048
KEEP_BYTES = 2**29


@dataclass(frozen=True)
class Reduction:
    """What is done to a layer's activation before it is kept.

    Attributes:
        pool: "none"; "average": mean over positions of a map or over tokens; "first_token": the first token (the class
            token, where a transformer has one) of activations that are tokens, and the average of maps.
        max_features: Layers with more features than this after pooling are projected to this many; None: never.
        seed: Seed of the projection.

    Raises:
        ValueError: On an unknown pool or a number below 1.
    """

    pool: str = "none"
    max_features: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise ValueError(f"pool must be one of {', '.join(POOLS)}, got {self.pool!r}")
        if self.max_features is not None and self.max_features < 1:
            raise ValueError(f"max_features must be at least 1, or null for no limit, got {self.max_features}")

    @property
    def is_nothing(self) -> bool:
        """Whether activations are kept as they are."""
        return self.pool == "none" and self.max_features is None

    def view(self, layer: str) -> str:
        """Name under which the reduced layer is cached, unlike that of the whole layer or of another reduction."""
        limit = "" if self.max_features is None else f"|gaussian:{self.max_features}:{self.seed}"
        return f"{layer}|{self.pool}{limit}"

    def record(self) -> dict[str, Any]:
        """What a result stores."""
        projection = None if self.max_features is None else "gaussian"
        return {
            "pool": self.pool,
            "max_features": self.max_features,
            "projection": projection,
            "projection_seed": None if projection is None else self.seed,
        }


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


class GaussianProjection:
    """x (B, D) → x G (B, K), entries of G independent normal with variance 1/K: squared distances are kept on average.

    G is drawn in blocks of rows, each with its own address below the seed, so that it depends on D, K and the seed
    alone and a matrix larger than memory can be drawn block by block, again for every batch.

    Args:
        num_features: D.
        num_outputs: K.
        seed: Seed of the matrix.
        keep: Keep the matrix (4 D K bytes) between calls.

    References:
        Johnson and Lindenstrauss (1984).
    """

    def __init__(self, num_features: int, num_outputs: int, seed: int = 0, keep: bool = True) -> None:
        self.num_features, self.num_outputs, self.seed, self.keep = num_features, num_outputs, seed, keep
        self._kept: dict[int, torch.Tensor] = {}

    @property
    def nbytes(self) -> int:
        """Size of the matrix in float32."""
        return 4 * self.num_features * self.num_outputs

    def __call__(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, K) projection of (B, D) float32 rows, computed in float32 whatever autocast says."""
        y_BK = x_BD.new_zeros(len(x_BD), self.num_outputs)
        with torch.autocast(x_BD.device.type, enabled=False):
            for block, start in enumerate(range(0, self.num_features, BLOCK_ROWS)):
                y_BK += x_BD[:, start : start + BLOCK_ROWS] @ self._block(block, x_BD.device)
        return y_BK

    def _block(self, block: int, device: torch.device) -> torch.Tensor:
        if block not in self._kept:
            rows = min(BLOCK_ROWS, self.num_features - block * BLOCK_ROWS)
            random = generator(self.seed, "gaussian_projection", self.num_features, self.num_outputs, block)
            normal = random.standard_normal((rows, self.num_outputs), dtype="float32")
            matrix = torch.from_numpy(normal).to(device) / self.num_outputs**0.5
            if not self.keep:
                return matrix
            self._kept[block] = matrix
        self._kept[block] = self._kept[block].to(device)
        return self._kept[block]


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
        self._projections: dict[int, GaussianProjection] = {}

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
            found = own(x_B3HW, plain, lambda _layer, a_B: self._reduced(a_B))
        else:  # a backbone that gives flat rows only
            found = {layer: self._reduced(a_B) for layer, a_B in self.backbone.features(x_B3HW, plain).items()}
        return {self.reduction.view(layer): found[layer] for layer in plain}

    def _reduced(self, a_B: torch.Tensor) -> torch.Tensor:
        f_BD, limit = pooled(a_B, self.reduction.pool), self.reduction.max_features
        if limit is None or f_BD.shape[1] <= limit:
            return f_BD
        width = f_BD.shape[1]
        if width not in self._projections:
            kept = sum(p.nbytes for p in self._projections.values() if p.keep)
            projection = GaussianProjection(width, limit, self.reduction.seed, keep=True)
            projection.keep = kept + projection.nbytes <= KEEP_BYTES
            self._projections[width] = projection
        return self._projections[width](f_BD)
