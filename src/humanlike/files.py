"""Files that are whole or absent: atomic writes, and digests of files and values."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` that is renamed onto it when the block ends without an error.

    A reader never sees half a file, and a kill leaves the old file or none. The temporary keeps the suffix of `path`,
    because some writers choose their format by it.

    Raises:
        OSError: With a sentence that names `path` when the disk is full or the folder is read-only.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _explained(error, path) from error
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp{path.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise _explained(error, path, temporary) from error
    finally:
        temporary.unlink(missing_ok=True)


def _explained(error: OSError, path: Path, temporary: Path | None = None) -> OSError:
    reasons = {
        errno.ENOSPC: "the disk is full; free space, or point paths.output_dir and paths.cache at another disk",
        errno.EROFS: "the file system is read-only; point paths.output_dir and paths.cache at a writable folder",
        errno.EACCES: "permission denied; point paths.output_dir and paths.cache at a folder of your own",
        errno.EFBIG: "a file may not be as large as this one here (ulimit -f); raise the limit",
        errno.EDQUOT: "the disk quota is used up; free space or point paths.output_dir and paths.cache elsewhere",
    }
    if error.errno not in reasons:
        return error
    got = ""
    if temporary is not None and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} and temporary.exists():
        got = f"; {temporary.stat().st_size:,} bytes of it were written"
    return OSError(error.errno, f"cannot write {path}: {reasons[error.errno]}{got}")


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` atomically, as UTF-8."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON to `path` atomically; NaN and infinities become null, as JSON has neither."""
    write_text(path, json.dumps(json_ready(value), indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def read_json_record(path: str | Path, schema: str, again: str) -> dict[str, Any]:
    """A record that this program wrote as JSON, with its `schema` in it.

    Args:
        path: The file, which must be there.
        schema: The one that can be read.
        again: What to do about a damaged file, for the message.

    Raises:
        ValueError: It is not JSON, or of another schema.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); {again}") from error
    found = record.get("schema") if isinstance(record, dict) else None
    if found != schema:
        raise ValueError(f"{path} has the schema {found!r}, this version reads {schema!r}")
    return dict(record)


def json_ready(value: Any) -> Any:
    """`value` with NumPy numbers, mappings and sequences turned into plain JSON types, and NaN or ±inf into None."""
    import math

    import numpy as np

    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(k): json_ready(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return json_ready(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [json_ready(v) for v in value]
    if isinstance(value, np.generic):
        return json_ready(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def sha256_file(path: str | Path, chunk: int = 1 << 20) -> str:
    """Hex SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while block := handle.read(chunk):
            digest.update(block)
    return digest.hexdigest()


def sha256_value(value: Any) -> str:
    """Hex SHA-256 of a JSON-like value (keys sorted), the same on every machine and in every process."""
    text = json.dumps(json_ready(value), sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
