"""What the file of a Weights & Biases run holds (`run-ID.wandb`), whether the run was online or offline.

The file is a log of blocks of 32 KiB. A record that does not fit into what is left of a block is cut into pieces; each
piece begins with a checksum (4 bytes), its length (2) and its kind (1): whole, first, middle, last. A record is a
protobuf message of wandb's own. A file whose run was killed ends anywhere; what is whole before that is read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAGIC = b":W&B"
_HEADER, _BLOCK, _PIECE = 7, 32 * 1024, 7
_WHOLE, _FIRST, _LAST = 1, 2, 4


@dataclass
class WandbFile:
    """A run as its file tells it.

    Attributes:
        run_id: Id of the run.
        name: Name that is shown.
        group: Group of runs, "" for none.
        config: Nested configuration.
        history: One dict a row; keys as they were logged, what is nested joined by dots.
        summary: What was written into the summary beside the history.
        axes: Name (or glob) of a series → name of the series that it is drawn over.
        exit_code: Exit code of the run; None where it was not finished.
    """

    run_id: str = ""
    name: str = ""
    group: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None


def read_wandb_file(path: str | Path) -> WandbFile:
    """Read a run's file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no file of a run.
    """
    from wandb.proto import wandb_internal_pb2

    record: Any = wandb_internal_pb2.Record  # type: ignore[attr-defined]  # made at run time
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} of a wandb run")
    data = path.read_bytes()
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} is no file of a wandb run: it begins with {data[:8]!r}, not with {MAGIC!r}")
    found = WandbFile()
    for message in _messages(data):
        _take(found, record.FromString(message))
    return found


def _messages(data: bytes) -> Iterator[bytes]:
    at, parts = _HEADER, b""
    while True:
        left = _BLOCK - at % _BLOCK
        at += left if left < _PIECE else 0
        if at + _PIECE > len(data):
            return
        _, length, kind = struct.unpack_from("<IHB", data, at)
        piece = data[at + _PIECE : at + _PIECE + length]
        if len(piece) < length or kind == 0:
            return
        at += _PIECE + length
        parts = piece if kind in (_WHOLE, _FIRST) else parts + piece
        if kind in (_WHOLE, _LAST):
            yield parts


def _take(found: WandbFile, record: Any) -> None:
    kind = record.WhichOneof("record_type")
    if kind == "run":
        found.run_id, found.name, found.group = record.run.run_id, record.run.display_name, record.run.run_group
        _put(found.config, record.run.config.update)
    elif kind == "config":
        _put(found.config, record.config.update)
    elif kind == "history":
        row: dict[str, Any] = {}
        for item in record.history.item:
            row[".".join(item.nested_key) or item.key] = json.loads(item.value_json)
        found.history.append(row)
    elif kind == "summary":
        _put(found.summary, record.summary.update)
    elif kind == "metric":
        found.axes[record.metric.name or record.metric.glob_name] = record.metric.step_metric
    elif kind == "exit":
        found.exit_code = int(record.exit.exit_code)


def _put(target: dict[str, Any], items: Any) -> None:
    """Put items into a nested dict, each under its key or down its path of keys."""
    for item in items:
        *path, last = list(item.nested_key) or [item.key]
        place = target
        for key in path:
            place = place.setdefault(key, {})
        place[last] = json.loads(item.value_json)
