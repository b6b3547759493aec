"""What a score was made of, item by item, so that a replay can say where it first differs.

A row an item: its id, the first half of the hash of its content, and a signature of its features: their norm and
`DIRECTIONS` inner products with seeded rows of ±1. Two runs on one machine give equal signatures; on another machine
the last bits move, and a signature moves with them by about as much relative to the norm.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from humanlike.backbones.cache import FeatureCache, Shard
from humanlike.data.images import BadImageError
from humanlike.data.object_learning import ObjectLearningData
from humanlike.files import sha256_value
from humanlike.rng import generator
from humanlike.types import Features, ImageSource, Sketches

TABLE = "provenance"
DIRECTIONS = 8
HALF = 32
SIGNATURE = ("norm", *(f"direction_{i}" for i in range(DIRECTIONS)))
UNREADABLE, DAMAGED = "unreadable", "damaged"


def provenance_table(
    data: Sketches | ObjectLearningData, f_ND: np.ndarray | None, rows: np.ndarray | None
) -> pd.DataFrame:
    """One row an item.

    Args:
        data: The data set.
        f_ND: (N', D) features of the items that could be read; None where a benchmark keeps none.
        rows: (N',) their item indices.

    Returns:
        Columns `item_id`, `content` (32 hex digits, or "unreadable"), and with features `norm` and `direction_0` …
        (float64; NaN for items without).
    """
    items = data if isinstance(data, Sketches) else data.images
    table = pd.DataFrame({"item_id": item_ids(data), "content": contents(items.images)})
    if f_ND is not None and rows is not None:
        values = np.full((len(table), len(SIGNATURE)), np.nan)
        values[rows] = signatures(f_ND)
        for i, name in enumerate(SIGNATURE):
            table[name] = values[:, i]
    return table


def item_ids(data: Sketches | ObjectLearningData) -> list[str]:
    """The name of every item, in item order."""
    if isinstance(data, Sketches):
        return [str(i) for i in data.table["sketch_id"]]
    return [str(i) for i in data.images.table["image_id"]]


def contents(images: ImageSource) -> list[str]:
    """The first half of every item's content hash."""
    found = []
    for index in range(len(images)):
        try:
            found.append(images.content_hash(index)[:HALF])
        except BadImageError:
            found.append(UNREADABLE)
    return found


def signatures(f_ND: np.ndarray) -> np.ndarray:
    """(N, 1 + DIRECTIONS): norm and inner products with seeded rows of ±1, all in float64.

    Example:
        >>> bool(np.isclose(signatures(np.array([[3.0, 4.0]]))[0, 0], 5.0))
        True
    """
    f = np.asarray(f_ND, dtype=np.float64)
    signs_DK = generator(0, "provenance", f.shape[1]).integers(0, 2, (f.shape[1], DIRECTIONS)) * 2.0 - 1.0
    # Not BLAS, whose sums depend on threads and on how many rows there are.
    directions = np.stack([(f * signs_DK[:, k]).sum(axis=1) for k in range(DIRECTIONS)], axis=1)
    return np.concatenate([np.sqrt((f * f).sum(axis=1))[:, None], directions], axis=1)


def further_hashes(data: Sketches | ObjectLearningData) -> dict[str, str]:
    """Digests of what a data set holds beside its images; what it lacks is absent.

    Returns:
        `labels` (table of items, label order, semantic space), `people` (their answers) and `elements`.
    """
    if not isinstance(data, Sketches):
        return {}
    space = None if data.semantic_space is None else np.asarray(data.semantic_space, np.float64).round(6).tolist()
    columns = ["sketch_id", "concept", "condition", "image_id"]
    found = {"labels": sha256_value([_rows(data.table[columns]), list(data.labels), space])}
    if data.responses is not None:
        guesses = [c for c in data.responses.table.columns if c.startswith("guess_")]
        found["people"] = sha256_value(_rows(data.responses.table[["participant", "sketch_id", *guesses]]))
    if data.elements is not None:
        found["elements"] = sha256_value(_rows(data.elements[["sketch_id", "element", "drawn"]]))
    return found


def _rows(table: pd.DataFrame) -> list[list[Any]]:
    """The rows as plain values; numbers by value, whatever their type."""
    plain = table.astype(object).where(table.notna(), None)
    return [list(plain[name]) for name in plain.columns]


def stored_features(cache_dir: Path | None, info: Mapping[str, Any], view: str) -> Shard | None:
    """A layer's features as they lie in the cache; None where they are not stored there.

    Args:
        cache_dir: Folder of feature caches.
        info: Facts about the extraction, with its `cache_key`.
        view: Name of the layer in the cache.
    """
    cache = None if cache_dir is None else stored_cache(cache_dir, info)
    if cache is None or not all(cache.path(view, shard).is_file() for shard in range(cache.num_shards)):
        return None
    return cache.merge(view)


def stored_cache(cache_dir: Path, info: Mapping[str, Any]) -> FeatureCache | None:
    """The cache of a finished extraction; None where it is gone."""
    import json

    key, shards = info.get("cache_key"), int(info.get("shards") or 0)
    facts = cache_dir / str(key)[:32] / "facts.json"
    if key is None or not shards or not facts.is_file():
        return None
    known = json.loads(facts.read_text(encoding="utf-8"))
    micro_batch = int(info["micro_batch"])
    # A shard is a whole number of micro-batches; the key says which.
    for batches in range(1, 1 + -(-int(known["items"]) // micro_batch)):
        if -(-int(known["items"]) // (micro_batch * batches)) == shards:
            cache = FeatureCache(cache_dir, known, micro_batch * batches)
            if cache.key == key:
                return cache
    many = FeatureCache(cache_dir, known, micro_batch * 8)  # one shard, of the usual size, larger than the data set
    return many if many.key == key else None


def stored_grams(cache_dir: Path | None, key: str | None) -> dict[str, str]:
    """A digest of every layer's inner products that lie in the cache; empty where there are none.

    Args:
        cache_dir: Folder of feature caches.
        key: Key of the store, which is what `hashes["features"]` of object learning holds.

    Returns:
        Folder of the layer → 32 hex digits over the arrays of its blocks, or "damaged".
    """
    folder = None if cache_dir is None or key is None else Path(cache_dir) / "gram" / key[:32]
    found = {} if folder is None else {p.parent.name: p.parent for p in sorted(folder.glob("*/[0-9]*.npz"))}
    return {name: _gram_digest(layer) for name, layer in found.items()}


def _gram_digest(layer: Path) -> str:
    whole = hashlib.sha256()
    try:
        for path in sorted(layer.glob("[0-9]*.npz")):
            with np.load(path, allow_pickle=False) as arrays:
                for name in sorted(arrays.files):
                    value = np.ascontiguousarray(arrays[name])
                    whole.update(f"{path.stem} {name} {value.dtype.str} {value.shape}".encode())
                    whole.update(value.tobytes())
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError):
        return DAMAGED
    return whole.hexdigest()[:HALF]


def features_of(found: Any, cache_dir: Path | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Features that a result comes from: its own, or those that its extraction left in the cache."""
    if isinstance(found, Features):
        return found.f_ND, found.rows
    stored = stored_features(cache_dir, found.info, found.layer)
    return (None, None) if stored is None else (stored.f_ND, stored.rows)
