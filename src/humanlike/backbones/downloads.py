"""Fetching one published file: under a lock, resumed after a break, checked, and renamed only when it is whole."""

from __future__ import annotations

import http.client
import os
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import torch
from filelock import FileLock

from humanlike.files import sha256_file

CHUNK = 1 << 20
ATTEMPTS = 4
TIMEOUT_S = 30.0
WAIT_S = 1.0
MIN_DIGITS = 8


def is_offline(offline: bool | None = None) -> bool:
    """Whether downloads are ruled out: by the argument or by HF_HUB_OFFLINE."""
    return bool(offline) or os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in {"1", "true", "yes", "on"}


def download_folder() -> Path:
    """Where downloaded weights lie: `checkpoints` in torch hub's folder, which TORCH_HOME moves."""
    return Path(torch.hub.get_dir()) / "checkpoints"


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


def download(url: str, sha256: str | None = None, file_name: str | None = None, offline: bool | None = None) -> Path:
    """The file behind an address, fetched now if it is not here yet and that is allowed.

    Several processes that ask at once download it once. A broken download is resumed, by this process and by the next.

    Args:
        url: Address, http or https.
        sha256: Published digest or its first 8 hex digits or more; checked whether the file was here or not.
        file_name: Name in `download_folder()`; by default the last part of the address.
        offline: True: only look on this machine. Otherwise as HF_HUB_OFFLINE says.

    Returns:
        Path of the whole file.

    Raises:
        FileNotFoundError: It is not here and cannot be fetched; says how to put it there by hand.
        ValueError: The address is none, or the content is not the published one.
    """
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"url must begin with https:// or http://, got {url!r}; name a local file as file=")
    path = download_folder() / (file_name or url.partition("?")[0].rstrip("/").rpartition("/")[2])
    if not path.is_file():
        if is_offline(offline):
            raise _absent(url, path, sha256, "offline=true or HF_HUB_OFFLINE=1 rules out a download")
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.is_file():
                _fetch(url, path, sha256)
                return path
    check_digest(path, sha256)
    return path


def _absent(url: str, path: Path, sha256: str | None, reason: str) -> FileNotFoundError:
    digest = f" (SHA-256 {sha256}…)" if sha256 else ""
    return FileNotFoundError(
        f"{path.name} is not on this machine ({reason}). Run `python -m humanlike prefetch backbone=...` where there "
        f"is a network, or download {url}{digest} by hand and save it as {path}"
    )


def _fetch(url: str, path: Path, sha256: str | None) -> None:
    """Download to `<path>.part` and rename; what an earlier process left there is continued if a digest can tell."""
    part = path.with_name(f"{path.name}.part")
    if sha256 is None:
        part.unlink(missing_ok=True)
    resumed = part.exists()
    _transfer_with_patience(url, path, part, sha256)
    try:
        check_digest(part, sha256)
    except ValueError as error:
        part.unlink()
        if not resumed:
            raise ValueError(f"{url} did not give the published file: {error}") from error
        _fetch(url, path, sha256)  # the old half was damaged or of another version: once more, from the beginning
        return
    os.replace(part, path)


def _transfer_with_patience(url: str, path: Path, part: Path, sha256: str | None) -> None:
    """Go on after every break of the connection, until several in a row have brought nothing."""
    vain = 0
    while True:
        before = _size(part)
        try:
            _transfer(url, part)
            return
        except (OSError, http.client.HTTPException) as error:
            vain = 1 if _size(part) > before else vain + 1
            final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if final or vain == ATTEMPTS:
                raise _absent(url, path, sha256, f"download failed: {error or type(error).__name__}") from error
            time.sleep(WAIT_S * vain)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _transfer(url: str, part: Path) -> None:
    """Append what is missing to `part`; an OSError says that the connection broke before the end."""
    have = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
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
        length = response.headers.get("Content-Length")
        total = (have if resumes else 0) + int(length) if length else None
        with open(part, "ab" if resumes else "wb") as handle:
            while block := response.read(CHUNK):
                handle.write(block)
            handle.flush()
            os.fsync(handle.fileno())
    if total is not None and (size := part.stat().st_size) != total:
        raise OSError(f"the connection broke after {size} of {total} bytes")
