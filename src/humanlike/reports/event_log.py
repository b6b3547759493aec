"""`log.jsonl`: the events of a run, one JSON object a line, which survive a kill.

The log is the truth behind any dashboard: dashboards may lose data, this file only ever grows.
"""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from humanlike.files import json_ready

RESUMED = "log_resumed"


class EventLog:
    """Appends events to a file; every event is on disk before `write` returns.

    A line is one `write` to a file opened for appending, so that several processes can share a log. When the
    file ends in the middle of a line (the process that wrote it was killed), the first event on opening is
    `log_resumed`, which marks the line before it as torn.

    Args:
        path: The file; its folder is made. It is created at the first event.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> with EventLog(path) as log:
        ...     log.write("features_extracted", images=12)
        >>> [(e["event"], e["images"]) for e in read_events(path)]
        [('features_extracted', 12)]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor: int | None = None
        if _ends_inside_a_line(self.path):
            self._append("\n")
            self.write(RESUMED)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event with the current time (UTC, ISO 8601) and `fields` (made JSON-like; NaN becomes null).

        Raises:
            ValueError: When a field is called `time`, which the log sets itself.
            OSError: Naming the file when it cannot be written.
        """
        if "time" in fields:
            raise ValueError("an event's field cannot be called 'time': the log sets it; choose another name")
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **json_ready(fields)}
        self._append(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")

    def close(self) -> None:
        """Close the file; a later `write` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, text: str) -> None:
        data = text.encode()
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            while data:  # a full disk or a signal can cut a write short
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
            raise OSError(
                error.errno, f"cannot write {self.path}: {reason}; free space, or point paths.output_dir elsewhere"
            ) from error

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ends_inside_a_line(path: Path) -> bool:
    if not path.exists() or path.stat().st_size == 0:
        return False
    with open(path, "rb") as handle:
        handle.seek(-1, os.SEEK_END)
        return handle.read(1) != b"\n"


def read_events(path: str | Path) -> list[dict[str, Any]]:
    """The events of a log in order; a line that a kill has torn (the last, or one before `log_resumed`) is left out.

    Raises:
        FileNotFoundError: When there is no such file.
        ValueError: When any other line is not a JSON object; the sentence names the line.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no event log at {path}")
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    parsed = [_parse(line) for line in lines]
    for i, event in enumerate(parsed):
        following = parsed[i + 1] if i + 1 < len(parsed) else {"event": RESUMED}
        if event is None and (following is None or following["event"] != RESUMED):
            raise ValueError(f"{path}, line {i + 1}: not a JSON object with 'event': {lines[i][:80]!r}")
    return [event for event in parsed if event is not None]


def _parse(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and "event" in value else None
