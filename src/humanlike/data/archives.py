"""Files of a data set by name, from a folder or from a zip read in place.

Nothing is ever extracted, and names that lead outside the folder or the archive are refused.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Protocol

MAX_MEMBER_BYTES = 4 << 30
MAX_RATIO = 2000


class Archive(Protocol):
    """Named files; names are relative, with "/" between folders."""

    def names(self) -> tuple[str, ...]:
        """All file names, sorted; hidden files and system leftovers are not listed."""

    def holds(self, name: str) -> bool:
        """True when the file is there; raises ValueError for a name that leads outside."""

    def read(self, name: str) -> bytes:
        """The bytes of one file."""

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of one file, read as they are asked for."""

    def describe(self, name: str) -> str:
        """Where the file lies, for messages."""


@dataclass(frozen=True)
class FolderArchive:
    """The files below a folder.

    Attributes:
        root: The folder.
    """

    root: Path

    def names(self) -> tuple[str, ...]:
        """See Archive."""
        return tuple(sorted(_files_below(self.root, "", ())))

    def holds(self, name: str) -> bool:
        """See Archive."""
        return self._path(name).is_file()

    def read(self, name: str) -> bytes:
        """See Archive."""
        return self._path(name).read_bytes()

    def lines(self, name: str) -> Iterator[bytes]:
        """See Archive."""
        with open(self._path(name), "rb") as handle:
            yield from handle

    def describe(self, name: str) -> str:
        """See Archive."""
        return str(self.root / name)

    def _path(self, name: str) -> Path:
        return self.root / checked_name(name, str(self.root))


@dataclass(frozen=True)
class ZipArchive:
    """The members of a zip file, read in place; safe to hand to other processes.

    Attributes:
        path: The zip file.
    """

    path: Path

    def names(self) -> tuple[str, ...]:
        """See Archive."""
        listed = [i for i in self._open().infolist() if not i.is_dir()]
        names = [checked_name(i.filename, str(self.path)) for i in listed]
        return tuple(sorted(n for n in names if not _hidden(n)))

    def holds(self, name: str) -> bool:
        """See Archive."""
        return checked_name(name, str(self.path)) in self._open().NameToInfo

    def read(self, name: str) -> bytes:
        """See Archive."""
        member = self._member(name)
        try:
            return self._open().read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{self.describe(name)}: the archive is damaged ({error}); fetch it again") from error

    def lines(self, name: str) -> Iterator[bytes]:
        """See Archive."""
        member = self._member(name)
        try:
            with self._open().open(member) as handle:
                yield from handle
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{self.describe(name)}: the archive is damaged ({error}); fetch it again") from error

    def describe(self, name: str) -> str:
        """See Archive."""
        return f"{self.path}/{name}"

    def _open(self) -> zipfile.ZipFile:
        # A handle per process: two processes that share a file offset would read each other's bytes.
        return _zip_file(str(self.path), self.path.stat().st_mtime_ns, os.getpid())

    def _member(self, name: str) -> zipfile.ZipInfo:
        try:
            member = self._open().getinfo(name)
        except KeyError as error:
            raise FileNotFoundError(f"no member {name!r} in {self.path}") from error
        checked_name(member.filename, str(self.path))
        if member.flag_bits & 1:
            raise ValueError(f"{self.describe(name)}: the member is encrypted; unpack the archive yourself")
        swollen = member.file_size > max(1 << 20, MAX_RATIO * member.compress_size)
        if member.file_size > MAX_MEMBER_BYTES or swollen:
            raise ValueError(
                f"{self.describe(name)}: refused, {member.compress_size} bytes would unpack to {member.file_size}; "
                "this looks like a decompression bomb"
            )
        return member


@lru_cache(maxsize=16)
def _zip_file(path: str, mtime_ns: int, pid: int) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: not a whole zip file ({error}); fetch it again") from error


def open_archive(root: str | Path, zip_name: str | None = None) -> Archive:
    """The archive at `root`: a zip file, or a folder, or the zip `zip_name` inside the folder where there is one.

    Raises:
        FileNotFoundError: When `root` is missing or is no folder and no zip.
    """
    path = Path(root).expanduser()
    if path.is_dir():
        inside = path / zip_name if zip_name is not None else path
        return ZipArchive(inside) if inside.is_file() else FolderArchive(path)
    if path.is_file() and path.suffix.lower() == ".zip":
        return ZipArchive(path)
    if path.exists():
        raise FileNotFoundError(f"{path} is neither a folder nor a .zip file")
    raise FileNotFoundError(f"no folder or zip file {path}")


def checked_name(name: str, where: str) -> str:
    """`name` when it stays inside its archive.

    Raises:
        ValueError: For absolute names, drive letters, backslashes and "..".

    Example:
        >>> checked_name("lion/lion0.png", "drawings.zip")
        'lion/lion0.png'
    """
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or "\\" in name or ".." in parts or (parts and parts[0].endswith(":")):
        raise ValueError(f"{where}: refused the member {name!r}, which leads outside the archive")
    return name


def _files_below(folder: Path, prefix: str, above: tuple[str, ...]) -> Iterator[str]:
    """Names of all files, also in linked folders; a link to a folder that it stands in is not followed."""
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as entries:  # an unreadable folder raises: classes must not vanish without a word
        for entry in sorted(entries, key=lambda e: e.name):
            if _hidden(entry.name):
                continue
            if entry.is_dir():
                yield from _files_below(folder / entry.name, f"{prefix}{entry.name}/", (*above, real))
            else:
                yield f"{prefix}{entry.name}"


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)
