"""What a narrower type than float32 costs: measured on the first items of every extraction that uses one."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from humanlike.backbones.arithmetic import fixed_arithmetic
from humanlike.backbones.batches import MicroBatches
from humanlike.backbones.cache import FeatureCache
from humanlike.backbones.extractor import home_device
from humanlike.files import write_json
from humanlike.interfaces import Backbone

ITEMS = 64
_FILE = "deviation_from_float32.json"
_log = logging.getLogger(__name__)


def relative_deviation(f_ND: np.ndarray, reference_ND: np.ndarray) -> dict[str, Any]:
    """How far features are from a reference: |f − reference| / |reference| of every row, in Euclidean norms.

    Args:
        f_ND: (N, D) features.
        reference_ND: (N, D) what they should be. Rows of norm zero have no relative deviation and are left out.

    Returns:
        `items` compared, `max` and `median` over them (None where nothing can be compared).

    Example:
        >>> relative_deviation(np.array([[3.0, 4.5], [1.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]))
        {'items': 2, 'max': 0.1, 'median': 0.05}
    """
    norm_N = np.linalg.norm(reference_ND.astype(np.float64), axis=1)
    known_N = norm_N > 0
    if not known_N.any():
        return {"items": 0, "max": None, "median": None}
    difference_ND = f_ND[known_N].astype(np.float64) - reference_ND[known_N]
    relative_N = np.linalg.norm(difference_ND, axis=1) / norm_N[known_N]
    return {"items": len(relative_N), "max": float(relative_N.max()), "median": float(np.median(relative_N))}


def deviation_from_float32(
    backbone: Backbone,
    cache: FeatureCache,
    batches: MicroBatches,
    found: Mapping[str, np.ndarray],
    device: torch.device,
    threads: int,
) -> dict[str, dict[str, Any]]:
    """Run the first micro-batches (`ITEMS` items or a few more) in float32 and compare; kept beside the shards.

    Args:
        backbone: The network.
        cache: Cache of the features in the narrower type.
        batches: Micro-batches of the data set.
        found: Layer → (N, D) those features, readable items in item order.
        device: Where to run; the network is put back afterwards.
        threads: CPU threads inside one operator.

    Returns:
        Layer → `relative_deviation` of its features.
    """
    known = {layer: _read(cache, layer) for layer in found}
    unknown = [layer for layer, value in known.items() if value is None]
    if unknown:
        for layer, full_ND in _float32_rows(backbone, batches, unknown, device, threads).items():
            value = known[layer] = relative_deviation(found[layer][: len(full_ND)], full_ND)
            try:
                write_json(cache.path(layer, 0).with_name(_FILE), value)
            except OSError as error:  # a cache that may only be read is enough; it is measured again next time
                _log.warning("the deviation from float32 is not kept: %s", error)
    return {layer: value for layer, value in known.items() if value is not None}


def precision_flags(info: Mapping[str, Any]) -> tuple[str, ...]:
    """The flag that must stand beside scores of features in a narrower type; none for float32.

    Example:
        >>> precision_flags({"dtype": "bfloat16"}), precision_flags({"dtype": "float32"}), precision_flags({})
        (('reduced_precision:bfloat16',), (), ())
    """
    dtype = info.get("dtype", "float32")
    return () if dtype == "float32" else (f"reduced_precision:{dtype}",)


def _float32_rows(
    backbone: Backbone, batches: MicroBatches, layers: list[str], device: torch.device, threads: int
) -> dict[str, np.ndarray]:
    rows: dict[str, list[np.ndarray]] = {layer: [] for layer in layers}
    home = home_device(backbone)
    try:
        if isinstance(backbone, nn.Module):
            backbone.to(device)
        for index in range(min(len(batches), -(-ITEMS // batches.size))):
            batch, items = batches[index], batches.items(index)
            with fixed_arithmetic(device.type, "float32", threads):
                found = backbone.features(batch["x_B3HW"].to(device), layers)
            kept = [item - items.start for item in items if item not in batch["failed"]]
            for layer in layers:
                rows[layer].append(found[layer].to("cpu", torch.float32)[kept].numpy())
    finally:
        if home is not None and isinstance(backbone, nn.Module):
            backbone.to(home)
    return {layer: np.concatenate(parts) for layer, parts in rows.items()}


def _read(cache: FeatureCache, layer: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(cache.path(layer, 0).with_name(_FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None
