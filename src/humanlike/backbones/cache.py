"""Feature shards on disk: whole or absent, checksummed, addressed by everything that can change a number in them.

Layout: `<root>/<extraction key>/<layer key>/<shard>.safetensors`. The extraction key covers the weights, the
transform, the arithmetic, the libraries and the content of every item; a layer has its own folder below it, so that
asking for another layer later leaves the known ones alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock
from safetensors import SafetensorError
from safetensors import numpy as safetensors_numpy

from humanlike.data.images import BadImageError
from humanlike.files import atomic_path, sha256_value, write_json
from humanlike.interfaces import Backbone
from humanlike.types import ImageSource

FORMAT = "humanlike.features/1"
LIBRARIES = ("torch", "torchvision", "timm", "open_clip_torch", "pillow")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shard:
    """Rows of one layer for the items [start, stop), without the items that could not be read.

    Attributes:
        f_ND: (N', D) float32 features.
        rows: (N',) item index of every row, increasing.
        failed: Item index → (where, reason).
    """

    f_ND: np.ndarray
    rows: np.ndarray
    failed: Mapping[int, tuple[str, str]]


def library_versions() -> dict[str, str]:
    """Name → version of the libraries that take part in a feature's value; "absent" where one is not installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def data_digest(images: ImageSource) -> str:
    """Hex SHA-256 over the content hashes of all items in item order.

    A file that cannot be read counts with the reason, so that the features are computed anew once it can; whether it
    stops the run is decided where it is loaded.
    """
    digest = hashlib.sha256()
    for index in range(len(images)):
        try:
            content = images.content_hash(index)
        except BadImageError as error:
            content = f"unreadable: {error.where}: {error.reason}"
        digest.update(content.encode() + b"\n")
    return digest.hexdigest()


def extraction_facts(
    backbone: Backbone, images: ImageSource, input_3HW: tuple[int, int, int], arithmetic: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that can change a feature, apart from the layer; its digest is the extraction key.

    Args:
        backbone: Gives `weights_hash`, `transform.fingerprint` and, where it has one, `architecture`.
        images: Gives the content hashes.
        input_3HW: Shape of one transformed image.
        arithmetic: dtype, micro-batch, memory format, threads and device.
    """
    return {
        "format": FORMAT,
        "weights": backbone.weights_hash,
        "architecture": getattr(backbone, "architecture", backbone.name),
        "transform": dict(backbone.transform.fingerprint),
        "input": list(input_3HW),
        "arithmetic": dict(arithmetic),
        "versions": library_versions(),
        "data": data_digest(images),
        "items": len(images),
    }


class FeatureCache:
    """The shards of one extraction.

    Args:
        root: Folder of all feature caches.
        facts: See `extraction_facts`.
        shard_items: Items a shard, a multiple of the micro-batch.

    Attributes:
        key: Hex digest of the facts.
        folder: Folder of this extraction.
        corrupt: Shard files found damaged by this object, so that a run can report them.
    """

    def __init__(self, root: str | Path, facts: Mapping[str, Any], shard_items: int) -> None:
        self.facts = dict(facts)
        self.shard_items = shard_items
        self.key = sha256_value({**self.facts, "shard_items": shard_items})
        self.folder = Path(root) / self.key[:32]
        self.corrupt: set[str] = set()

    @property
    def num_items(self) -> int:
        """Number N of items."""
        return int(self.facts["items"])

    @property
    def num_shards(self) -> int:
        """Number of shards a layer."""
        return -(-self.num_items // self.shard_items)

    def bounds(self, shard: int) -> tuple[int, int]:
        """[start, stop) of the shard's item indices."""
        return shard * self.shard_items, min((shard + 1) * self.shard_items, self.num_items)

    def path(self, layer: str, shard: int) -> Path:
        """File of a layer's shard; the folder's name is a digest, because a layer's name may hold any character."""
        return self.folder / sha256_value([self.key, layer])[:32] / f"{shard:06d}.safetensors"

    def missing(self, layers: Iterable[str]) -> list[int]:
        """Shards that at least one of `layers` lacks, or has damaged."""
        names = tuple(layers)
        return [s for s in range(self.num_shards) if any(self.read(layer, s) is None for layer in names)]

    def lock(self, shard: int) -> BaseFileLock:
        """A lock that the process computing a shard holds; the system frees it when the process dies.

        The empty lock files stay: deleting one under a process that is about to lock it would break that process.
        """
        folder = self.folder / "locks"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return FileLock(folder / f"{shard:06d}.lock")
        except OSError as error:
            raise OSError(
                error.errno,
                f"cannot write into the feature cache {self.folder} ({error.strerror}); point paths.cache at a "
                "writable folder with free space",
            ) from error

    def describe(self) -> None:
        """Write the facts beside the shards, for whoever wonders what a folder holds."""
        path = self.folder / "facts.json"
        if not path.exists():
            write_json(path, self.facts)

    def write(self, layer: str, shard: int, content: Shard) -> None:
        """Write a shard atomically.

        Raises:
            OSError: The disk is full or the folder cannot be written; the sentence names the file and the way out.
        """
        start, stop = self.bounds(shard)
        f_ND = np.ascontiguousarray(content.f_ND, dtype=np.float32)
        rows = np.ascontiguousarray(content.rows, dtype=np.int64)
        header = {
            "key": self.key,
            "layer": layer,
            "start": str(start),
            "stop": str(stop),
            "failed": json.dumps({str(k): list(v) for k, v in content.failed.items()}, sort_keys=True),
        }
        checksum = _checksum(header, f_ND, rows)
        payload = safetensors_numpy.save({"f_ND": f_ND, "rows": rows}, metadata={**header, "sha256": checksum})
        # Written by hand rather than by safetensors, whose errors hide the system's reason (disk full, read-only).
        with atomic_path(self.path(layer, shard)) as temporary, open(temporary, "wb") as handle:
            handle.write(payload)

    def read(self, layer: str, shard: int) -> Shard | None:
        """A shard, or None where it is absent or damaged; damage is logged and noted in `corrupt`."""
        path = self.path(layer, shard)
        try:
            payload = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            header = _header(payload)
            tensors = safetensors_numpy.load(payload)
            f_ND, rows = tensors["f_ND"], tensors["rows"]
            checksum = header.pop("sha256")
            failed = {int(k): (str(v[0]), str(v[1])) for k, v in json.loads(header["failed"]).items()}
            if checksum != _checksum(header, f_ND, rows) or header["key"] != self.key or header["layer"] != layer:
                raise ValueError("its checksum does not match its content")
            if [int(header["start"]), int(header["stop"])] != list(self.bounds(shard)):
                raise ValueError("it holds the items of another shard")
        except (SafetensorError, ValueError, KeyError, IndexError, TypeError) as error:
            if str(path) not in self.corrupt:
                self.corrupt.add(str(path))
                _log.warning("feature shard %s is damaged (%s); it is computed again", path, error)
            return None
        return Shard(f_ND, rows, failed)

    def merge(self, layer: str) -> Shard:
        """All shards of a layer, by item index.

        Raises:
            FileNotFoundError: A shard is absent or damaged.
        """
        rows: list[np.ndarray] = []
        failed: dict[int, tuple[str, str]] = {}
        f_ND: np.ndarray | None = None
        filled = 0
        for shard in range(self.num_shards):
            part = self.read(layer, shard)
            if part is None:
                raise FileNotFoundError(
                    f"feature shard {self.path(layer, shard)} is absent after the extraction; all processes must see "
                    "the same cache folder (set paths.cache to a folder that every node shares) and nobody may clear it"
                )
            failed.update(part.failed)
            if len(part.rows) == 0:
                continue
            if f_ND is None:
                f_ND = np.empty((self.num_items, part.f_ND.shape[1]), np.float32)
            f_ND[filled : filled + len(part.rows)] = part.f_ND
            filled += len(part.rows)
            rows.append(part.rows)
        if f_ND is None:
            return Shard(np.empty((0, 0), np.float32), np.empty(0, np.int64), failed)
        return Shard(f_ND[:filled], np.concatenate(rows), failed)


def features_digest(f_ND: np.ndarray, rows: np.ndarray) -> str:
    """Hex SHA-256 over shape, values and item indices."""
    digest = hashlib.sha256(repr(f_ND.shape).encode())
    digest.update(np.ascontiguousarray(f_ND).data)
    digest.update(np.ascontiguousarray(rows, dtype=np.int64).data)
    return digest.hexdigest()


def _header(payload: bytes) -> dict[str, str]:
    size = int.from_bytes(payload[:8], "little")
    return dict(json.loads(payload[8 : 8 + size])["__metadata__"])


def _checksum(header: Mapping[str, str], f_ND: np.ndarray, rows: np.ndarray) -> str:
    return sha256_value({**header, "content": features_digest(f_ND, rows)})
