"""Build objects from configuration, from allowed places only and with checked keywords.

A configuration file can name any importable callable as `_target_`, so one that comes from somebody else could run
anything. Only the packages below are allowed. A user's own package is added through the environment, where no file can
put it: `HUMANLIKE_ALLOW_TARGETS=mylab,otherlab`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

ALLOWED = (
    "humanlike.",
    "pytorch_lightning.",
    "torch.nn.",
    "torch.optim.",
    "torchmetrics.",
    "torchvision.models.",
    "torchvision.transforms.",
    "timm.create_model",
    "open_clip.create_model",
)
SAME: Mapping[str, tuple[str, ...]] = {"pytorch_lightning": ("lightning_fabric",)}
"""Package → others of the same makers, from which it hands classes on."""
ENVIRONMENT = "HUMANLIKE_ALLOW_TARGETS"
SCALARS: dict[Any, Any] = {
    int: int,
    float: (int, float),
    bool: bool,
    str: str,
    Path: (str, Path),
    type(None): type(None),
}
WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    Path: "a path",
    type(None): "null",
}
RESERVED = {"_target_", "_partial_", "_recursive_", "_convert_", "_args_"}


class TargetError(ValueError):
    """A `_target_` that is not allowed, does not exist, or does not take the given keywords."""


def allowed_prefixes() -> tuple[str, ...]:
    """Prefixes that a `_target_` may start with."""
    own = [p.strip().rstrip(".") for p in os.environ.get(ENVIRONMENT, "").split(",") if p.strip()]
    return (*ALLOWED, *(f"{p}." for p in own))


def build(config: Any, **extra: Any) -> Any:
    """Build the object that `config` describes.

    Args:
        config: A mapping with `_target_`, nested ones included.
        extra: Keyword arguments that only the program knows, such as a folder.

    Raises:
        TargetError: When a target is not allowed, cannot be found, or does not take a keyword; the message names it.
        Exception: Whatever the constructor itself raises, unwrapped.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import get_object, instantiate
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else config
    root = str(config._get_full_key("") or "") if OmegaConf.is_config(config) else ""
    absent = OmegaConf.missing_keys(config) if OmegaConf.is_config(config) else set()
    lacking = sorted(absent - {f"{root}.{key}".lstrip(".") for key in extra})
    if lacking:
        raise TargetError(f"{lacking[0]} has no default: give it on the command line, {lacking[0]}=VALUE")
    found = list(targets(plain, root))
    for path, node in found:
        check_target(node["_target_"], path)
    for path, node in found:
        check_keywords(node, path, extra if node is plain else {})
        if node["_target_"].startswith("humanlike."):
            check_values(get_object(node["_target_"]), node, path)
    try:
        return instantiate(plain, **extra, _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__
        while isinstance(cause, InstantiationException) and cause.__cause__ is not None:
            cause = cause.__cause__
        if cause is None:
            raise TargetError(str(error).splitlines()[0]) from error
        raise cause from None


def check_target(target: str, path: str = "") -> None:
    """Refuse a `_target_` outside the allowed packages."""
    place = f" (at {path})" if path else ""
    if not isinstance(target, str) or not target.startswith(allowed_prefixes()):
        raise TargetError(
            f"the configuration asks for {target!r}{place}, which is not allowed: only {', '.join(ALLOWED)} may be "
            f"built from configuration; for code of your own set {ENVIRONMENT}=your_package"
        )


def check_origin(target: str, path: str = "") -> None:
    """Refuse a name that begins in an allowed package and leads out of it, as `humanlike.files.os.remove` does.

    Args:
        target: A name that can be imported.
        path: Where it stands in the configuration, for the message.

    Raises:
        TargetError: Naming what it leads to.
    """
    parts = target.split(".")
    found: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        found = getattr(found, part)
        if inspect.ismodule(found) and found.__name__ != ".".join(parts[:i]):
            break
    else:
        home = (getattr(found, "__module__", None) or parts[0]).partition(".")[0]
        packages = {"hydra", *(prefix.partition(".")[0] for prefix in ALLOWED)}
        # A package of the user's own may hand on what others made.
        if parts[0] not in packages or home in {parts[0], *SAME.get(parts[0], ())}:
            return
    place, what = f" (at {path})" if path else "", getattr(found, "__name__", repr(found))
    raise TargetError(
        f"{target!r}{place} leads out of {parts[0]}, to {what!r} of another package, which is not allowed: name what "
        f"{parts[0]} itself defines; for code of your own set {ENVIRONMENT}=your_package"
    )


def check_keywords(node: dict[str, Any], path: str = "", extra: dict[str, Any] | None = None) -> None:
    """Refuse keywords that the target does not take, naming the nearest that it does."""
    from hydra.utils import get_object

    target = node["_target_"]
    try:
        callable_ = get_object(target)
    except Exception as error:
        cause = error.__cause__ or error
        raise TargetError(f"{target!r}{f' (at {path})' if path else ''} cannot be imported: {cause}") from error
    check_origin(target, path)
    try:
        parameters = inspect.signature(callable_).parameters
    except (TypeError, ValueError):
        return
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for key in [*node, *(extra or {})]:
        if key in RESERVED or key in parameters:
            continue
        near = difflib.get_close_matches(key, list(parameters), n=2, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else f"; it takes {', '.join(parameters)}"
        raise TargetError(f"{target} takes no {key!r}{f' (at {path})' if path else ''}{hint}")


def check_values(function: Any, values: Mapping[str, Any], path: str = "") -> None:
    """Refuse values of another type than the signature states, before they fail somewhere inside.

    Args:
        function: The class or function that is called.
        values: Keyword → value as a configuration gives it.
        path: Where the values stand in the configuration, for the message.

    Raises:
        TargetError: Naming the key, what it takes and what came.
    """
    try:
        hints = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except (NameError, TypeError):  # a type that is imported for the type checker alone
        return
    check_types(hints, values, path)


def check_types(hints: Mapping[str, Any], values: Mapping[str, Any], path: str = "") -> None:
    """Like `check_values`, with the types given."""
    for key, value in values.items():
        if key in hints and not _fits(value, hints[key]):
            name = f"{path}.{key}" if path else key
            raise TargetError(f"{name} must be {_in_words(hints[key])}, got {value!r}")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of a configuration can be of a type; True wherever that cannot be told."""
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, a) for a in arguments)
    if kind in (Any, object) or (isinstance(value, Mapping) and "_target_" in value):
        return True
    if kind in SCALARS:
        return isinstance(value, SCALARS[kind]) and (kind is bool or not isinstance(value, bool))
    if isinstance(value, list) and inspect.isclass(kind) and (kind is tuple or issubclass(list, kind)):
        return not arguments or all(any(_fits(v, a) for a in arguments if a is not ...) for v in value)
    if not inspect.isclass(kind) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind) and not isinstance(value, str)


def _in_words(hint: Any) -> str:
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return " or ".join(dict.fromkeys(_in_words(a) for a in arguments))
    if kind in WORDS:
        return WORDS[kind]
    if inspect.isclass(kind) and issubclass(kind, Mapping):
        return "a mapping {key: value}"
    if inspect.isclass(kind) and (kind is tuple or issubclass(list, kind)):
        each = " or ".join(dict.fromkeys(_in_words(a) for a in arguments if a is not ...))
        return f"a list (every entry {each})" if each else "a list"
    return str(getattr(kind, "__name__", kind))


def targets(node: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping with a `_target_` in a plain configuration, with the path of keys that leads to it."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield path, node
        for key, value in node.items():
            yield from targets(value, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from targets(value, f"{path}[{i}]")
