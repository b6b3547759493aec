"""The files of an object learning experiment: their names, fetching the published ones, unpacking what came packed.

The published data lie on OSF. Its listing gives an address and a digest for each file, so a broken download is
continued and a finished one is checked. The images come as one `images.tar.gz`, which is unpacked here: only regular
files below `images/`, never outside the folder, whole or not at all, and continued after a kill.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tarfile
import urllib.request
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from filelock import FileLock

from humanlike.data.archives import ZipArchive, checked_name
from humanlike.data.fetch import TIMEOUT_S, RemoteFile, fetch_file, is_offline
from humanlike.files import atomic_path

logger = logging.getLogger(__name__)

NODE = "pj6wm"
PAGE = f"https://osf.io/{NODE}/files/osfstorage"
OSF_API = f"https://api.osf.io/v2/nodes/{NODE}/files/osfstorage/"
ZIPS = (f"{NODE}.zip", "osfstorage-archive.zip")
"""Names under which the whole node comes when it is fetched by hand."""

HIGH_VARIATION_META = "meta-MutatorHighVarImageset.csv"
ONE_SHOT_META = "meta-MutatorOneShotImageset.csv"
WARMUP_META = "meta-MutatorWarmupImageset.csv"
CATCH_META = "meta-CatchImageset.csv"
HIGH_VARIATION_TRIALS = "behavior/human-behavior-highvar-subtasks.csv"
ONE_SHOT_TRIALS = "behavior/human-behavior-oneshot-subtasks.csv"
IMAGES = "images"
PACKED_IMAGES = "images.tar.gz"

CONTENT = {
    HIGH_VARIATION_META: "images of Experiment 1",
    ONE_SHOT_META: "images of Experiment 2",
    WARMUP_META: "images for calibration",
    CATCH_META: "images of probe trials",
    HIGH_VARIATION_TRIALS: "people's choices in Experiment 1",
    ONE_SHOT_TRIALS: "people's choices in Experiment 2",
    PACKED_IMAGES: "all images",
}
"""Every published file by its name below the folder."""

MAX_LISTING_BYTES = 16 << 20
MAX_PAGES = 200
MAX_IMAGE_BYTES = 64 << 20


def need_files(
    root: Path, names: Sequence[str], *, fetch: bool, mirrors: Sequence[str] = (), offline: bool | None = None
) -> None:
    """Make sure that published files are there: from a zip that lies in the folder, or fetched where that is allowed.

    Args:
        root: The folder.
        names: Names of the files, of `CONTENT`; `PACKED_IMAGES` stands for the unpacked images.
        fetch: Whether missing files are fetched.
        mirrors: Addresses asked before OSF, as `<mirror>/<file name>`.
        offline: True: fetch nothing; see `fetch_missing`.

    Raises:
        FileNotFoundError: Naming what is missing and how to get it by hand.
        ValueError: A file is damaged, or a packed file would lead outside the folder.
    """
    for name in ZIPS:
        if (root / name).is_file() and missing_files(root, names):
            unpack_zip(root / name, root)
    missing = missing_files(root, names)
    if missing and fetch:
        _fetch(root, missing, mirrors, offline)
        missing = missing_files(root, names)
    if missing:
        listed = "; ".join(f"{name} ({CONTENT[name]})" for name in missing)
        raise FileNotFoundError(
            f"object learning data: {len(missing)} of {len(names)} published files are missing in {root}: {listed}. "
            f"{by_hand(root)}"
        )
    if PACKED_IMAGES in names and not (root / IMAGES).is_dir():
        unpack_images(root)


def by_hand(root: Path) -> str:
    """How a person gets the published files."""
    return (
        f"By hand: open {PAGE}, choose 'Download as zip', and save the zip as {root / ZIPS[0]} (it is unpacked here), "
        "or set dataset.fetch=true on a machine with a network"
    )


def missing_files(root: Path, names: Sequence[str]) -> list[str]:
    """Those of the files that are not there; unpacked images count as their archive."""
    return [n for n in names if not ((root / n).is_file() or (n == PACKED_IMAGES and (root / IMAGES).is_dir()))]


def published_files(api: str | None = None) -> dict[str, RemoteFile]:
    """The published files as OSF lists them now, with address and SHA-256.

    Args:
        api: Address of the listing; None = OSF's.

    Raises:
        OSError: The listing cannot be had.
        ValueError: It has another form than expected.
    """
    found: dict[str, RemoteFile] = {}
    for entry in _listed(api or OSF_API):
        path = str(entry["attributes"].get("materialized_path", ""))
        for name, what in CONTENT.items():
            if f"/{path.strip('/')}".endswith(f"/{name}"):
                hashes = (entry["attributes"].get("extra") or {}).get("hashes") or {}
                url = entry["links"]["download"]
                found[name] = RemoteFile(PurePosixPath(name).name, what, url, PAGE, hashes.get("sha256"))
    return found


def _listed(api: str) -> Iterable[Mapping[str, Any]]:
    """Every file of the listing, folders and further pages followed."""
    waiting, pages = [api], 0
    while waiting:
        address = waiting.pop()
        pages += 1
        if pages > MAX_PAGES:
            raise ValueError(f"{api}: more than {MAX_PAGES} pages; this is not the listing that is expected")
        try:
            page = _json(address)
            for entry in page["data"]:
                if entry["attributes"]["kind"] == "folder":
                    waiting.append(entry["relationships"]["files"]["links"]["related"]["href"])
                else:
                    yield entry
            if page.get("links", {}).get("next"):
                waiting.append(page["links"]["next"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{address}: the listing has another form than expected ({error!r})") from error


def _json(address: str) -> Any:
    if not address.startswith(("https://", "http://")):
        raise ValueError(f"an address of the listing must begin with https://, got {address!r}")
    request = urllib.request.Request(address, headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        text = response.read(MAX_LISTING_BYTES)
    return json.loads(text)


def _fetch(root: Path, names: Sequence[str], mirrors: Sequence[str], offline: bool | None) -> None:
    """Fetch what is missing; a file that nobody has is named with the others afterwards, with the reason logged."""
    listed: dict[str, RemoteFile] = {}
    if not is_offline(offline):
        try:
            listed = published_files()
        except (OSError, ValueError) as error:
            logger.warning("the listing of the published files cannot be had (%s)", error)
    said = []
    for name in names:
        file = listed.get(name) or RemoteFile(PurePosixPath(name).name, CONTENT[name], by_hand=PAGE)
        try:
            fetch_file(file, (root / name).parent, mirrors, offline)
        except FileNotFoundError as error:
            said.append(str(error))
    if said:
        raise FileNotFoundError(f"object learning data: {'; '.join(said)}. {by_hand(root)}")


def unpack_zip(path: Path, root: Path) -> None:
    """Write the published files of a zip of the whole node below `root`; those that are there stay.

    Raises:
        ValueError: A damaged zip, or a member that leads outside.
    """
    archive = ZipArchive(path)
    loose = [n for n in archive.names() if _below_images(n) is not None]
    for member in archive.names():
        for name in CONTENT:
            if f"/{member}".endswith(f"/{name}") and not (root / name).exists():
                with atomic_path(root / name) as temporary, open(temporary, "wb") as handle:
                    handle.writelines(archive.lines(member))
    if loose and not (root / IMAGES).is_dir():
        with FileLock(root / ".unpack.lock"):
            for member in loose:
                target = _staging(root) / str(_below_images(member))
                _write(target, archive.lines(member))
            os.replace(_staging(root) / IMAGES, root / IMAGES)
            shutil.rmtree(_staging(root))


def unpack_images(root: Path) -> None:
    """Unpack `images.tar.gz` to `images/`, whole or not at all; an unpacking that was broken off goes on.

    Raises:
        ValueError: The archive is damaged, or holds a link, a device or a name that leads outside.
    """
    packed, staging = root / PACKED_IMAGES, _staging(root)
    logger.info("unpacking %s", packed)
    with FileLock(root / ".unpack.lock"):
        if (root / IMAGES).is_dir():
            return
        try:
            with tarfile.open(packed, "r|gz") as archive:
                for member in archive:
                    _unpack_member(archive, member, staging, packed)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"{packed}: not a whole archive ({error}); remove it and fetch it again") from error
        if not (staging / IMAGES).is_dir():
            raise ValueError(f"{packed}: the archive has no folder {IMAGES}/")
        os.replace(staging / IMAGES, root / IMAGES)
        shutil.rmtree(staging)


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, staging: Path, packed: Path) -> None:
    name = checked_name(member.name.removeprefix("./") or ".", str(packed))
    if member.isdir():
        return
    if not member.isreg():
        raise ValueError(f"{packed}: refused {name!r}, which is a link or a device; only plain files are unpacked")
    below = _below_images(name)
    if below is None:
        return
    if member.size > MAX_IMAGE_BYTES:
        raise ValueError(f"{packed}: refused {name!r} of {member.size} bytes; no image is that large")
    target = staging / below
    if target.is_file() and target.stat().st_size == member.size:
        return
    source = archive.extractfile(member)
    assert source is not None  # a regular file
    _write(target, _blocks(source))


def _blocks(source: IO[bytes]) -> Iterable[bytes]:
    while block := source.read(1 << 20):
        yield block


def _write(target: Path, blocks: Iterable[bytes]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as handle:
        handle.writelines(blocks)


def _staging(root: Path) -> Path:
    return root / ".images.unpacking"


def _below_images(name: str) -> str | None:
    """The name from `images/` on; None for other files, hidden ones and leftovers of systems."""
    parts = PurePosixPath(name).parts
    if IMAGES not in parts[:-1] or any(p.startswith(".") or p == "__MACOSX" for p in parts):
        return None
    return "/".join(parts[parts.index(IMAGES) :])
