"""Fetching one published file: under a lock, resumed after a break, checked, and renamed only when it is whole."""

from __future__ import annotations

import http.client
import os
from pathlib import Path

import torch
from filelock import FileLock

from humanlike.data.fetch import check_digest, is_offline, transfer_patiently


def download_folder() -> Path:
    """Where downloaded weights lie: `checkpoints` in torch hub's folder, which TORCH_HOME moves."""
    return Path(torch.hub.get_dir()) / "checkpoints"


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
    try:
        transfer_patiently(url, part)
    except (OSError, http.client.HTTPException) as error:
        raise _absent(url, path, sha256, f"download failed: {error or type(error).__name__}") from error
    try:
        check_digest(part, sha256)
    except ValueError as error:
        part.unlink()
        if not resumed:
            raise ValueError(f"{url} did not give the published file: {error}") from error
        _fetch(url, path, sha256)  # the old half was damaged or of another version: once more, from the beginning
        return
    os.replace(part, path)
