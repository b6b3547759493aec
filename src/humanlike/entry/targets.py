"""Build objects from configuration, from allowed places only and with checked keywords.

A configuration file can name any importable callable as `_target_`, so one that comes from somebody else could run
anything. Only the packages below are allowed. A user's own package is added through the environment, where no file can
put it: `HUMANLIKE_ALLOW_TARGETS=mylab,otherlab`.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Iterator
from typing import Any

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
ENVIRONMENT = "HUMANLIKE_ALLOW_TARGETS"
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
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else config
    for path, node in targets(plain, ""):
        check_target(node["_target_"], path)
    for path, node in targets(plain, ""):
        check_keywords(node, path, extra if path == "" else {})
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


def check_keywords(node: dict[str, Any], path: str = "", extra: dict[str, Any] | None = None) -> None:
    """Refuse keywords that the target does not take, naming the nearest that it does."""
    from hydra.utils import get_object

    target = node["_target_"]
    try:
        callable_ = get_object(target)
    except Exception as error:
        cause = error.__cause__ or error
        raise TargetError(f"{target!r}{f' (at {path})' if path else ''} cannot be imported: {cause}") from error
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
