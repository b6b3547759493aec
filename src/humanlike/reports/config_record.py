"""The configuration as it is stored and shown: plain nested values, resolved, with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from humanlike.files import json_ready, write_text

MASK = "***"
SECRET_KEY = re.compile(r"token|key|secret|password", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def masked_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as a plain nested dict in which nothing secret is left.

    Strings under a key that contains `token`, `key`, `secret` or `password` (in any case, at any depth)
    become `***`, and so does the user part of an address (`https://user:word@host`). Numbers, booleans and
    null stay, so that `max_tokens: 64` can be read. Hydra's interpolations are resolved on the way.

    Args:
        config: A mapping, for example Hydra's DictConfig.

    Returns:
        Dicts with string keys, lists, strings, numbers, booleans and None.

    Example:
        >>> masked_config({"api": {"Api_Key": "abc", "max_tokens": 64}, "url": "https://me:pw@host/x"})
        {'api': {'Api_Key': '***', 'max_tokens': 64}, 'url': 'https://***@host/x'}
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config must be a mapping, got {type(config).__name__}")
    return {str(key): _plain(value, bool(SECRET_KEY.search(str(key)))) for key, value in config.items()}


def _plain(value: Any, secret: bool) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v, secret or bool(SECRET_KEY.search(str(k)))) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(v, secret) for v in value]
    ready = json_ready(value)
    if not isinstance(ready, str):
        return ready
    return MASK if secret else _CREDENTIALS.sub(f"{MASK}@", ready)


def config_text(config: Mapping[str, Any]) -> str:
    """The masked configuration as YAML text, in the order of its keys."""
    return str(yaml.safe_dump(masked_config(config), sort_keys=False, allow_unicode=True, width=110))


def write_config(path: str | Path, config: Mapping[str, Any]) -> None:
    """Write the masked configuration to a YAML file atomically."""
    write_text(path, config_text(config))


def read_config(path: str | Path) -> dict[str, Any]:
    """Read a stored configuration back; an empty file is an empty configuration.

    Raises:
        ValueError: The file is damaged, or holds something else.
    """
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML ({' '.join(str(error).split())}); run its command again") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold `key: value`, got {type(found).__name__}; run its command again")
    return found
