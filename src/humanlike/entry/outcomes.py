"""What became of a job of a sweep: a file in its folder that outlives the process, and tells a rerun what is done.

`outcome.json` is written when a job begins (`status` null: at work, or dead) and again when it ends. A job counts as
finished when it ended with status 0 under the same settings and every file that it left is still there.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUTCOME = "outcome.json"
APPENDED = (OUTCOME, ".jsonl", ".log")  # ends of names that a finished job may write again


def record_start(folder: Path, overrides: str, identity: str = "") -> None:
    """Write that a job has begun: where, and with what to compute.

    Args:
        folder: The job's folder.
        overrides: Its overrides, joined by commas.
        identity: Digest of the settings that decide its result.
    """
    _write(folder, {"status": None, "overrides": overrides, "why": "", "settings": identity, **_where()})


def record_outcome(
    folder: Path,
    status: int,
    overrides: str,
    why: str = "",
    *,
    identity: str = "",
    value: float | None = None,
    skipped: bool = False,
) -> None:
    """Write how a job ended, for the table at the end of the sweep and for the next run of it.

    Args:
        folder: The job's folder.
        status: Its exit status.
        overrides: Its overrides, joined by commas.
        why: The sentence of the error, when it failed.
        identity: Digest of the settings that decide its result.
        value: The objective that the job returned, for a sweep that searches.
        skipped: The job was finished before and not repeated.
    """
    folder.mkdir(parents=True, exist_ok=True)  # a job that never began has none
    before = read_outcome(folder) or {}
    where = {key: before[key] for key in _where() if key in before} or _where()
    outcome = {"status": status, "overrides": overrides, "why": why, "settings": identity, "value": value}
    _write(folder, {**outcome, "skipped": skipped, "finished": time.time(), **where, "files": _files(folder)})


def read_outcome(folder: Path) -> dict[str, Any] | None:
    """The outcome in a job's folder; None where there is none that can be read."""
    try:
        outcome = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return outcome if isinstance(outcome, dict) and "status" in outcome else None


def is_finished(folder: Path, identity: str) -> bool:
    """Whether the job ended well under these settings, and its files are still those that it left."""
    outcome = read_outcome(folder)
    if not identity or outcome is None or outcome["status"] != 0 or outcome.get("settings") != identity:
        return False
    left = outcome.get("files", {})
    return bool(left) and all(_size(folder / name) == size for name, size in left.items())


def objective_of(folder: Path, name: str | None) -> float | None:
    """The number that a sweep searches by: `objective=NAME`.

    Args:
        folder: A finished run.
        name: A score of `score.json` (`accuracy`), or a path of keys in `metrics.json` (`after.judge.sea`); None: none.

    Raises:
        ValueError: When the run has no such number; the message lists those it has.
    """
    if name is None:
        return None
    numbers: dict[str, float] = {}
    if (folder / "score.json").is_file():
        scores = json.loads((folder / "score.json").read_text(encoding="utf-8"))["scores"]
        numbers |= {key: score["value"] for key, score in scores.items() if score["value"] is not None}
    if (folder / "metrics.json").is_file():
        numbers |= dict(_numbers(json.loads((folder / "metrics.json").read_text(encoding="utf-8")), ""))
    if name not in numbers:
        raise ValueError(
            f"objective={name} is no number of the run in {folder}; there are {', '.join(sorted(numbers))}"
        )
    return float(numbers[name])


def _numbers(node: dict[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    """Every number in nested mappings, by its path of keys."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{key}", float(value)


def _write(folder: Path, outcome: dict[str, Any]) -> None:
    from humanlike.files import write_json

    write_json(folder / OUTCOME, outcome)


def _where() -> dict[str, Any]:
    """The machine, the process, and the devices and cores that it may use."""
    from humanlike.cores import own_cores

    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {"host": socket.gethostname(), "process": os.getpid(), "devices": devices, "cores": len(own_cores())}


def _files(folder: Path) -> dict[str, int | None]:
    """Name → bytes of what lies in the folder (None: a folder), without what every run appends to."""
    names = (p for p in folder.iterdir() if not p.name.startswith(".") and not p.name.endswith(APPENDED))
    return {path.name: _size(path) for path in sorted(names)}


def _size(path: Path) -> int | None:
    """Bytes of a file; None for a folder; -1 where there is nothing."""
    if path.is_dir():
        return None
    return path.stat().st_size if path.is_file() else -1
