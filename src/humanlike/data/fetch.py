"""Published files fetched whole: resumed after a break, from the first mirror that has them, checked by content.

What was fetched is written into `fetched.json` beside the files (bytes, SHA-256, address), and a file that no longer
has that content is refused afterwards. So a first download fixes the content even where no digest is published.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from humanlike.files import sha256_file, write_json

logger = logging.getLogger(__name__)

CHUNK = 1 << 20
ATTEMPTS = 4
TIMEOUT_S = 30.0
WAIT_S = 1.0
MIN_DIGITS = 8
RECORD = "fetched.json"
RECORD_SCHEMA = "humanlike.fetched/1"


@dataclass(frozen=True)
class RemoteFile:
    """A published file.

    Attributes:
        name: Its name in the folder and below a mirror's address.
        what: What it holds, in a few words.
        url: Direct address; None where there is no direct link.
        by_hand: Where a person finds it.
        sha256: Published digest, or None.
    """

    name: str
    what: str
    url: str | None = None
    by_hand: str = ""
    sha256: str | None = None


def fetch_missing(
    files: Sequence[RemoteFile], folder: str | Path, mirrors: Sequence[str] = (), offline: bool | None = None
) -> None:
    """Fetch every file that is not in the folder, then say what is still missing and how to get it.

    Args:
        files: The files that are needed; those that are there are checked against `fetched.json`.
        folder: Where they lie; made when something is fetched.
        mirrors: Addresses that are asked before a file's own, as `<mirror>/<name>`; they may hold any of the files.
        offline: True: only look on this machine. Otherwise as HF_HUB_OFFLINE says.

    Raises:
        FileNotFoundError: Naming every file that could not be had, why, and where it belongs.
        ValueError: A file that is here is not the one that was fetched.
    """
    folder = Path(folder).expanduser()
    missing = []
    for file in files:
        try:
            fetch_file(file, folder, mirrors, offline)
        except FileNotFoundError as error:
            missing.append(str(error))
    if missing:
        raise FileNotFoundError(f"{len(missing)} of {len(files)} published files are missing: {'; '.join(missing)}")


def fetch_file(file: RemoteFile, folder: str | Path, mirrors: Sequence[str] = (), offline: bool | None = None) -> Path:
    """One published file, fetched now if it is not in the folder and that is allowed; see `fetch_missing`.

    Raises:
        FileNotFoundError: It is not here and cannot be fetched.
        ValueError: The file that is here is not the one that was fetched, or has another digest than the published.
    """
    folder = Path(folder).expanduser()
    path = folder / file.name
    if not path.is_file():
        addresses = _addresses(file, mirrors)
        if not addresses:
            raise _missing(file, path, "there is no direct link")
        if is_offline(offline):
            raise _missing(file, path, "offline=true or HF_HUB_OFFLINE=1 rules out a download")
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".fetch.lock"):
            if not path.is_file():
                return _from_any(addresses, file, path)
    _check_kept(path, file)
    return path


def is_offline(offline: bool | None = None) -> bool:
    """Whether downloads are ruled out: by the argument or by HF_HUB_OFFLINE."""
    return bool(offline) or os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in {"1", "true", "yes", "on"}


def check_digest(path: Path, sha256: str | None) -> None:
    """Compare a file with its published digest, of which the first 8 hex digits or more are enough.

    Raises:
        ValueError: The digests differ, or the expected one is no hex digest.
    """
    if sha256 is None:
        return
    if not re.fullmatch(rf"[0-9a-f]{{{MIN_DIGITS},64}}", sha256.lower()):
        raise ValueError(f"sha256 must be {MIN_DIGITS} to 64 hex digits, got {sha256!r}")
    if not (found := sha256_file(path)).startswith(sha256.lower()):
        raise ValueError(
            f"{path} has SHA-256 {found}, but {sha256} is expected: the file is damaged or another version"
        )


def transfer_patiently(url: str, part: Path, note: Path | None = None) -> None:
    """Fetch `url` to `part`, going on after every break until several in a row have brought nothing.

    Args:
        url: Address, http or https.
        part: Where the bytes go; what it holds already is continued.
        note: File that keeps what the server calls this version of the content, so that a later process only continues
            the same version. Without it the caller must be able to tell by a digest.

    Raises:
        OSError, http.client.HTTPException: Of the last attempt.
    """
    vain = 0
    while True:
        before = _size(part)
        try:
            _transfer(url, part, note)
            return
        except (OSError, http.client.HTTPException) as error:
            vain = 1 if _size(part) > before else vain + 1
            if (isinstance(error, urllib.error.HTTPError) and error.code < 500) or vain == ATTEMPTS:
                raise
            time.sleep(WAIT_S * vain)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _transfer(url: str, part: Path, note: Path | None) -> None:
    """Append what is missing to `part`; an OSError says that the connection broke before the end."""
    have = _size(part)
    version = _noted(note).get("version") if have else None
    headers = {"Range": f"bytes={have}-"} if have else {}
    request = urllib.request.Request(url, headers={**headers, **({"If-Range": version} if version else {})})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing lies beyond what is here; the digest or the length decides
            whole = (error.headers.get("Content-Range") or "").rpartition("/")[2]
            error.close()
            if whole == str(have):
                return
            part.unlink()
            raise OSError(f"the server's file has {whole or 'another number of'} bytes, {have} were here") from error
        error.close()
        raise
    with response:
        resumes = response.status == 206
        if note is not None and not resumes:
            write_json(note, {"url": url, "version": _version(response.headers)})
        length = response.headers.get("Content-Length")
        total = (have if resumes else 0) + int(length) if length else None
        with open(part, "ab" if resumes else "wb") as handle:
            while block := response.read(CHUNK):
                handle.write(block)
            handle.flush()
            os.fsync(handle.fileno())
    if total is not None and (size := part.stat().st_size) != total:
        raise OSError(f"the connection broke after {size} of {total} bytes")


def _version(headers: Any) -> str | None:
    """What the server calls this version of the content; a weak tag does not promise equal bytes."""
    tag = headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")


def _noted(note: Path | None) -> dict[str, Any]:
    try:
        value = json.loads(note.read_text(encoding="utf-8")) if note is not None else {}
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _addresses(file: RemoteFile, mirrors: Sequence[str]) -> list[str]:
    if isinstance(mirrors, str):
        raise ValueError(f"mirrors must be a list of addresses, got {mirrors!r}; write [{mirrors}]")
    found = [f"{base.rstrip('/')}/{file.name}" for base in mirrors] + ([file.url] if file.url else [])
    for address in found:
        if not address.startswith(("https://", "http://")):
            raise ValueError(f"a mirror's address must begin with https:// or http://, got {address!r}")
    return found


def _missing(file: RemoteFile, path: Path, reason: str) -> FileNotFoundError:
    source = file.url or file.by_hand
    return FileNotFoundError(
        f"{file.name} ({file.what}; {reason}): fetch it by hand from {source} and save it as {path}"
    )


def _from_any(addresses: Sequence[str], file: RemoteFile, path: Path) -> Path:
    """The file from the first address that gives the right content."""
    known = file.sha256 or _record(path.parent).get(file.name, {}).get("sha256")
    said = []
    for address in addresses:
        logger.info("fetching %s", address)
        try:
            _fetch(address, path, known)
        except (OSError, http.client.HTTPException, ValueError) as error:
            said.append(f"{address}: {error or type(error).__name__}")
        else:
            _remember(path, address)
            return path
    raise _missing(file, path, f"download failed: {', '.join(said)}")


def _fetch(url: str, path: Path, sha256: str | None) -> None:
    """Download to `<path>.part`, look at it, and rename it."""
    part, note = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")
    noted = _noted(note)
    if noted.get("url") != url or not noted.get("version"):
        part.unlink(missing_ok=True)  # another address or an unnamed version: two halves might not fit together
    transfer_patiently(url, part, note)
    try:
        _check_kind(part, path.suffix.lower())
        check_digest(part, sha256)
    except ValueError:
        part.unlink()
        raise
    finally:
        note.unlink(missing_ok=True)
    os.replace(part, path)


def _check_kind(part: Path, suffix: str) -> None:
    """Refuse what is plainly another thing, such as a page that asks for a login."""
    with open(part, "rb") as handle:
        head = handle.read(512).lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        raise ValueError("the answer is a web page, not the file")
    if suffix == ".zip" and not zipfile.is_zipfile(part):
        raise ValueError("the answer is no whole zip file")


def _record(folder: Path) -> dict[str, dict[str, Any]]:
    value = _noted(folder / RECORD)
    files = value.get("files") if value.get("schema") == RECORD_SCHEMA else None
    return files if isinstance(files, dict) else {}


def _remember(path: Path, url: str) -> None:
    entry: Mapping[str, Any] = {"bytes": path.stat().st_size, "sha256": sha256_file(path), "url": url}
    files = {**_record(path.parent), path.name: entry}
    write_json(path.parent / RECORD, {"schema": RECORD_SCHEMA, "files": files})


def _check_kept(path: Path, file: RemoteFile) -> None:
    """The file that is here has the published content, and that of its first download."""
    check_digest(path, file.sha256)
    entry = _record(path.parent).get(file.name)
    if entry is None or file.sha256 is not None:
        return
    if path.stat().st_size != entry["bytes"] or sha256_file(path) != entry["sha256"]:
        raise ValueError(
            f"{path} is not the file that was fetched from {entry['url']} ({entry['bytes']} bytes, SHA-256 "
            f"{entry['sha256']}): remove it to fetch it again, or remove its entry from {RECORD} to keep this one"
        )
