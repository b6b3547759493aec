"""Where strokes begin: points drawn from a saliency map, or anywhere; short curves around them.

Legend: B sketches, K strokes, H × W pixels. Points are canvas units, [0, 1]², x to the right, y down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from humanlike.rng import generator

MARGIN = 0.08
"""Free border that curves without a picture keep at first."""


def sample_points(
    weight_BHW: torch.Tensor, num: int, seed: int, names: Sequence[str], spacing: float = 0.03
) -> torch.Tensor:
    """Pixels drawn with probability proportional to a weight, none twice, apart from one another.

    Each point is drawn like this: among the pixels farther than `spacing` from the points before (all, where none is
    left), one with probability proportional to its weight. The draw depends on the seed and the sketch's name alone.

    Args:
        weight_BHW: Weights ≥ 0; a map without any weight counts as even.
        num: Points a sketch, K.
        seed: Global seed.
        names: What the B sketches are called.
        spacing: Least distance of two points, canvas units.

    Returns:
        (B, K, 2) float32, centres of pixels.

    Raises:
        ValueError: A weight is negative or not finite, there is no pixel for each point, or names are too few.

    Example:
        >>> weight = torch.zeros(1, 4, 4)
        >>> weight[0, 1, 2] = 1.0
        >>> sample_points(weight, 1, seed=0, names=["a"]).tolist()
        [[[0.625, 0.375]]]
    """
    if len(names) != len(weight_BHW):
        raise ValueError(f"names must have one entry a sketch: {len(weight_BHW)} maps, {len(names)} names")
    height, width = weight_BHW.shape[1:]
    if not 1 <= num <= height * width:
        raise ValueError(f"num must lie in [1, {height * width}], the number of pixels, got {num}")
    y, x = np.divmod(np.arange(height * width), width)
    place_P2 = np.stack([(x + 0.5) / width, (y + 0.5) / height], axis=1)
    weights = weight_BHW.detach().double().cpu().flatten(1).numpy()
    points = []
    for name, weight_P in zip(names, weights, strict=True):
        if not (np.isfinite(weight_P).all() and (weight_P >= 0).all()):
            raise ValueError(f"weights of initial points must be finite and ≥ 0; those of sketch {name!r} are not")
        chosen = _apart(weight_P, place_P2, num, spacing, generator(seed, "initial points", name).random(num))
        points.append(place_P2[chosen])
    return torch.tensor(np.stack(points), dtype=torch.float32, device=weight_BHW.device)


def _apart(weight_P: np.ndarray, place_P2: np.ndarray, num: int, spacing: float, coin_K: np.ndarray) -> list[int]:
    """Indices of `num` pixels; see `sample_points`."""
    free, unused = np.ones(len(weight_P), bool), np.ones(len(weight_P), bool)
    chosen: list[int] = []
    for coin in coin_K:
        for candidates in (weight_P * free, weight_P * unused, unused.astype(float)):
            total = candidates.cumsum()
            if total[-1] > 0:
                break
        pick = int(np.searchsorted(total, coin * total[-1], side="right"))
        chosen.append(pick)
        unused[pick] = False
        free &= ((place_P2 - place_P2[pick]) ** 2).sum(axis=1) > spacing**2
    return chosen


def curves_from(point_BK2: torch.Tensor, seed: int, names: Sequence[str], radius: float = 0.05) -> torch.Tensor:
    """Short cubics that begin at given points and wander: each control point is near the one before.

    Args:
        point_BK2: Where strokes begin.
        seed: Global seed.
        names: What the B sketches are called.
        radius: A control point lies within ± radius of the one before, in x and in y.

    Returns:
        (B, K, 4, 2) control points.
    """
    strokes = point_BK2.shape[1]
    steps = np.stack(
        [generator(seed, "initial curves", name).uniform(-radius, radius, (strokes, 3, 2)) for name in names]
    )
    step_BK32 = torch.as_tensor(steps, dtype=point_BK2.dtype, device=point_BK2.device)
    return torch.cat([point_BK2[:, :, None], point_BK2[:, :, None] + step_BK32.cumsum(dim=2)], dim=2)


def scattered_points(num: int, seed: int, names: Sequence[str], margin: float = MARGIN) -> torch.Tensor:
    """(B, K, 2) points anywhere in the canvas but its border, for sketches without a picture."""
    drawn = [generator(seed, "scattered points", name).uniform(margin, 1 - margin, (num, 2)) for name in names]
    return torch.tensor(np.stack(drawn), dtype=torch.float32)
