"""A user's own function or module as a backbone."""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from PIL import Image
from torch import nn

from humanlike.backbones.frozen import WeightsDigest
from humanlike.backbones.layers import input_shape
from humanlike.backbones.transforms import as_transform
from humanlike.interfaces import Backbone, Transform

OUTPUT = "output"


class CallableError(RuntimeError):
    """A user's callable raised; the message holds its name, the input's shape and its own error."""


class CallableBackbone(nn.Module):
    """Any callable (B, 3, H, W) → (B, D) as a backbone with one layer, "output".

    A module is run in evaluation mode and left as it was found, so a network in the middle of its training can be
    measured.
    What identifies the weights: parameters and buffers of the module that is called (directly, as a bound method, or
    inside `functools.partial`); for any other function, a digest of what it gives for two fixed images, which notices
    changed weights wherever they are kept, but is comparable on one machine only.

    Args:
        fn: The callable; more than two axes of its output are flattened.
        transform: Its preprocessing: a Transform, a function from an RGB image to a tensor, or arguments of
            ImageTransform.
        name: Name in results; by default that of the function or the module's class.
        info: Facts for tables.

    Raises:
        TypeError: `fn` cannot be called, or `transform` is missing.

    Example:
        >>> backbone = CallableBackbone(lambda x: x.mean((2, 3)), {"size": 8}, name="mean colour")
        >>> backbone.features(torch.ones(2, 3, 8, 8), ["output"])["output"].shape
        torch.Size([2, 3])
    """

    default_layer = OUTPUT
    layers = (OUTPUT,)

    def __init__(
        self,
        fn: Callable[[torch.Tensor], torch.Tensor],
        transform: Transform | Mapping[str, Any] | Callable[[Image.Image], torch.Tensor],
        name: str | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if not callable(fn):
            raise TypeError(f"a backbone is called with a (B, 3, H, W) tensor, but {type(fn).__name__} is not callable")
        if transform is None:
            raise TypeError(
                "a callable backbone needs its transform (for example transform={'size': 224, 'mean': [...], "
                "'std': [...]}): a wrong preprocessing passes unnoticed"
            )
        self.transform = as_transform(transform)
        self.name = name or str(getattr(fn, "__name__", type(fn).__name__))
        self.info = dict(info or {})
        self.module = _module_of(fn)
        self._fn = [fn]  # in a list, so that a module is registered once, as `module`
        self._digest = None if self.module is None else WeightsDigest(self.name, self.module)

    @property
    def weights_hash(self) -> str:
        """Hex digest of the weights, or of the behaviour of an opaque function; see the class."""
        return self._digest() if self._digest is not None else self._behaviour()

    def features(self, x_B3HW: torch.Tensor, layers: Sequence[str] = (OUTPUT,)) -> dict[str, torch.Tensor]:
        """(B, D) float32 output without gradient.

        Raises:
            ValueError: Another layer than "output" is asked for.
            TypeError: The callable gives no tensor with one row an image.
            CallableError: The callable raised; its own error is the cause.
        """
        unknown = [layer for layer in layers if layer != OUTPUT]
        if unknown or not layers:
            raise ValueError(f"{self.name} is a callable with one layer, {OUTPUT!r}; asked for {list(layers)}")
        try:
            with torch.no_grad(), _evaluating(self.module):
                f_BD = self._fn[0](x_B3HW)
        except Exception as error:
            raise CallableError(
                f"{self.name} failed on a tensor of shape {tuple(x_B3HW.shape)}: {type(error).__name__}: {error}; "
                "debug=true shows where"
            ) from error
        if not isinstance(f_BD, torch.Tensor) or f_BD.ndim < 2 or len(f_BD) != len(x_B3HW):
            got = tuple(f_BD.shape) if isinstance(f_BD, torch.Tensor) else type(f_BD).__name__
            raise TypeError(f"{self.name} must give a ({len(x_B3HW)}, D) tensor for {tuple(x_B3HW.shape)}, got {got}")
        return {OUTPUT: f_BD.detach().to(torch.float32).flatten(1)}

    def _behaviour(self) -> str:
        shape = input_shape(self.transform)
        ramp = torch.arange(2 * shape[0] * shape[1] * shape[2], dtype=torch.float32)
        x_23HW = (ramp * 0.618034 % 1 * 4 - 2).reshape(2, *shape)
        first, second = (self.features(x_23HW)[OUTPUT].cpu().contiguous() for _ in range(2))
        if not torch.equal(first, second) and not first.isnan().any():
            raise ValueError(
                f"{self.name} gives different features for the same images; switch off what is random in it "
                "(model.eval(), no dropout, no augmentation)"
            )
        return hashlib.sha256(f"{self.name}|{tuple(first.shape)}|".encode() + first.numpy().tobytes()).hexdigest()


def from_path(
    path: str,
    transform: Transform | Mapping[str, Any] | Callable[[Image.Image], torch.Tensor] | None = None,
    name: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    info: Mapping[str, Any] | None = None,
) -> Backbone:
    """A backbone from an importable object.

    Args:
        path: "package.module:attribute" or "package.module.attribute", found as Python finds imports (run from the
            folder of your module, or install it).
        transform: Its preprocessing; by default the object's own `transform`.
        name: Name in results; by default the attribute's.
        arguments: Given (an empty mapping counts): the attribute is a class or function that makes the callable,
            called with these. A class is always called.
        info: Facts for tables.

    Returns:
        The object itself if it already is a Backbone, otherwise a CallableBackbone around it.

    Raises:
        ValueError: `path` is no such name, names the standard library or leads into it (`package.module:os.system`), or
            an attribute that its module does not have.
        ModuleNotFoundError: There is no such module.
        TypeError: The object cannot be called, or no transform is known.
    """
    target = _import(path)
    if arguments is not None or inspect.isclass(target):
        target = target(**{str(k): v for k, v in (arguments or {}).items()})
    if all(hasattr(type(target), part) for part in ("features", "weights_hash", "layers")):
        return target
    transform = transform if transform is not None else getattr(target, "transform", None)
    if transform is None:
        raise TypeError(
            f"{path} has no `transform`; give one, for example transform={{size: 224, mean: [...], std: [...]}}"
        )
    return CallableBackbone(target, transform, name or path.replace(":", ".").rpartition(".")[2], info)


def _import(path: str) -> Any:
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise ValueError(f"path must read package.module:attribute, got {path!r}")
    _refuse_standard_library(module_name, path)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"no module {error.name!r} for path {path!r}; run from the folder that holds it, add that folder to "
            "PYTHONPATH, or install its package"
        ) from error
    found: Any = module
    try:
        for name in attribute.split("."):
            found = getattr(found, name)
            _refuse_standard_library(_home(found), path)
        return found
    except AttributeError as error:
        public = [n for n in vars(module) if not n.startswith("_")]
        near = difflib.get_close_matches(attribute, public, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(public[:12])}"
        raise ValueError(f"module {module_name!r} has no {attribute!r}; {hint}") from error


def _refuse_standard_library(module_name: str, path: str) -> None:
    """A stored configuration could otherwise run any command: by os:system, or by any module that imports os."""
    if module_name.partition(".")[0] in sys.stdlib_module_names:
        raise ValueError(
            f"path {path!r} leads to {module_name!r} of Python's standard library, which holds no image networks"
        )


def _home(found: Any) -> str:
    """The module that something was made in, or that it is; empty where an object does not tell."""
    if inspect.ismodule(found):
        return found.__name__
    # An instance has the module of its class, as functools.partial does: that says nothing about what it calls.
    told = getattr(found, "__module__", None) if inspect.isclass(found) or inspect.isroutine(found) else None
    return told if isinstance(told, str) else ""


def _module_of(fn: Any) -> nn.Module | None:
    while isinstance(fn, functools.partial):
        fn = fn.func
    if isinstance(fn, nn.Module):
        return fn
    owner = getattr(fn, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None


@contextmanager
def _evaluating(module: nn.Module | None) -> Iterator[None]:
    """Evaluation mode inside the block; every module's own mode afterwards."""
    modes = [] if module is None else [(m, m.training) for m in module.modules()]
    try:
        for m, _ in modes:
            m.training = False
        yield
    finally:
        for m, mode in modes:
            m.training = mode
