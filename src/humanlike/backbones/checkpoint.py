"""A published checkpoint in a known architecture: where it lies, which names it uses, and what may be left over."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from humanlike.backbones.downloads import download
from humanlike.backbones.weights import load_by_name, misfits, read_tensors
from humanlike.data.fetch import check_digest


@dataclass(frozen=True)
class Checkpoint:
    r"""Weights in a file or behind an address, whose names need not be the architecture's.

    Loading is strict: after the renaming, every name of the architecture must be in the file and every name in the
    file in the architecture, apart from those that `allow_missing` and `allow_unexpected` match.

    Attributes:
        file: Path of a `.safetensors`, `.pt` or `.pth` file; or give `url`.
        url: Address, http or https. The file is fetched once, into torch hub's folder.
        sha256: Published hex SHA-256 of the file, or its first 8 digits or more; None where none was published.
        file_name: Name under which the download is kept, where the address ends in one that says too little.
        key: Where the state dict lies inside the file, keys joined by dots; None for the usual places.
        rename: Rules {pattern, replace}, applied to every name one after the other as `re.sub` does; a rule that
            changes nothing is an error.
        allow_missing: Patterns for whole names of the architecture that the file may lack; those keep their random
            values, and class scores cannot be read where the classifier is among them.
        allow_unexpected: Patterns for whole names (renamed) in the file that the architecture may lack, such as a
            projection head.
        offline: True: never download. Otherwise as HF_HUB_OFFLINE says.
        read: Reads the file into named tensors, for formats of its own; `rename` follows. By default `read_tensors`.

    Raises:
        ValueError: Neither or both of `file` and `url`, or a rule that is none.

    Example:
        >>> checkpoint = Checkpoint("w.pt", rename=[{"pattern": r"^module\.", "replace": ""}])
        >>> list(checkpoint.renamed({"module.fc.weight": torch.zeros(1)}))
        ['fc.weight']
    """

    file: str | Path | None = None
    url: str | None = None
    sha256: str | None = None
    file_name: str | None = None
    key: str | None = None
    rename: Sequence[Mapping[str, str]] = ()
    allow_missing: Sequence[str] = ()
    allow_unexpected: Sequence[str] = ()
    offline: bool | None = None
    read: Callable[[Path], Mapping[str, torch.Tensor]] | None = None

    def __post_init__(self) -> None:
        if (self.file is None) == (self.url is None):
            raise ValueError(f"a checkpoint needs either file= or url=, got file={self.file!r} and url={self.url!r}")
        for rule in self.rename:
            if set(rule) != {"pattern", "replace"}:
                raise ValueError(f"a rename rule reads {{pattern: ..., replace: ...}}, got {dict(rule)}")
        for pattern in (*(r["pattern"] for r in self.rename), *self.allow_missing, *self.allow_unexpected):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error

    def path(self) -> Path:
        """The file, whole and with the published digest, fetched now if need be.

        Raises:
            FileNotFoundError: It is not on this machine and cannot be fetched; says what to do by hand.
            ValueError: Its content is not the published one.
        """
        if self.url is not None:
            return download(self.url, self.sha256, self.file_name, self.offline)
        path = Path(str(self.file)).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"there is no weights file {path}; check the path")
        check_digest(path, self.sha256)
        return path

    def load_into(self, network: nn.Module) -> Sequence[str]:
        """Fill every parameter and buffer of `network` but those that may be missing, and name these.

        Raises:
            ValueError: Names or shapes do not fit; counts them, shows the first, and says which prefix is in the way.
        """
        path = self.path()
        own = network.state_dict()
        state = self.renamed(self.tensors(path), str(path))
        kept = {k: v for k, v in own.items() if k not in state and _matches(k, self.allow_missing)}
        state = {k: v for k, v in state.items() if k in own or not _matches(k, self.allow_unexpected)}
        try:
            load_by_name(network, {**kept, **state}, str(path))
        except ValueError as error:
            raise ValueError(f"{error}{_prefix_hint(own, state)}") from error
        return tuple(kept)

    def report(self, network: nn.Module) -> dict[str, list[str]]:
        """All names that keep the file from filling `network`, without what may be left over; see `misfits`."""
        state = self.renamed(self.tensors(path := self.path()), str(path))
        found = misfits(network.state_dict(), state)
        allowed = {"missing": self.allow_missing, "unexpected": self.allow_unexpected}
        return {kind: [n for n in names if not _matches(n, allowed.get(kind, ()))] for kind, names in found.items()}

    def tensors(self, path: Path) -> Mapping[str, torch.Tensor]:
        """The file's tensors under the file's names."""
        return read_tensors(path, self.key) if self.read is None else self.read(path)

    def renamed(self, state: Mapping[str, torch.Tensor], source: str = "the file") -> dict[str, torch.Tensor]:
        """`state` under the architecture's names.

        Raises:
            ValueError: A rule changes no name, or two names become one.
        """
        for rule in self.rename:
            new = {name: re.sub(rule["pattern"], rule["replace"], name) for name in state}
            if all(name == after for name, after in new.items()):
                raise ValueError(
                    f"{source}: the rule {rule['pattern']!r} changes no name (first names: "
                    f"{', '.join(list(state)[:3])}); correct it or take it out"
                )
            if len(set(new.values())) < len(new):
                twice = next(n for n in new.values() if list(new.values()).count(n) > 1)
                raise ValueError(f"{source}: the rule {rule['pattern']!r} turns several names into {twice!r}")
            state = {new[name]: value for name, value in state.items()}
        return dict(state)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _prefix_hint(own: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> str:
    """The rule that would help, where all that is missing stands in the file behind one prefix."""
    missing = misfits(own, state)["missing"]
    prefixes = [name.removesuffix(missing[0]) for name in state if missing and name.endswith("." + missing[0])]
    for prefix in prefixes:
        if all(f"{prefix}{name}" in state for name in missing):
            return (
                f"; the file's names begin with {prefix!r}: give "
                f"rename=[{{pattern: '^{re.escape(prefix)}', replace: ''}}]"
            )
    return ""
