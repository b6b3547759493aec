"""Misspelt overrides and configuration names, answered with the nearest valid ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from humanlike.entry.conf import conf_dir, hydra_session

SWITCHES = {"debug=true": "debug=traceback", "debug=True": "debug=traceback", "debug=1": "debug=traceback"}
OFF = {"debug=false", "debug=False", "debug=0"}


class OverrideError(ValueError):
    """An override that does not fit the configuration; the message names the nearest that do."""


def normalise(overrides: Sequence[str]) -> list[str]:
    """Overrides with the shorthand `debug=true|false` replaced: Hydra takes no booleans for a config group."""
    return [SWITCHES.get(o, o) for o in overrides if o not in OFF]


def check_overrides(config_name: str, overrides: Sequence[str]) -> None:
    """Check that every override names something that exists, before anything runs.

    Values of a sweep (`a,b`) are checked one by one.

    Raises:
        OverrideError: A sentence with the nearest valid names.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    plain: list[list[str]] = []
    for text in overrides:
        try:
            parsed = parser.parse_override(text)
        except HydraException as error:
            raise OverrideError(f"cannot read the override {text!r}: {str(error).splitlines()[0]}") from error
        if parsed.key_or_group.startswith("hydra"):
            continue
        if parsed.is_sweep_override():
            prefix = text.split("=", 1)[0]
            plain.append([f"{prefix}={value}" for value in parsed.sweep_string_iterator()])
        else:
            plain.append([text])
    with hydra_session():
        base = [choices[0] for choices in plain]
        for position, choices in enumerate(plain):
            _check_addition(config_name, parser.parse_override(choices[0]))
            for choice in choices[1:]:
                _compose(config_name, [*base[:position], choice, *base[position + 1 :]], parser)
        _compose(config_name, base, parser)


def _compose(config_name: str, overrides: list[str], parser: Any) -> Any:
    from hydra import compose
    from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException

    try:
        return compose(config_name=config_name, overrides=overrides)
    except (MissingConfigException, ConfigCompositionException, HydraException, ValueError) as error:
        raise _explain(config_name, overrides, error, parser) from error


def _explain(config_name: str, overrides: list[str], error: Exception, parser: Any) -> OverrideError:
    """Find the first override that breaks the composition and say what would fit in its place."""
    from hydra import compose

    for upto in range(1, len(overrides) + 1):
        try:
            compose(config_name=config_name, overrides=overrides[:upto])
        except Exception as first:
            culprit = parser.parse_override(overrides[upto - 1])
            return _sentence(config_name, culprit, overrides[upto - 1], overrides[: upto - 1], first)
    return OverrideError(f"the configuration {config_name} cannot be composed: {_first_line(error)}")


def _sentence(config_name: str, culprit: Any, text: str, before: list[str], error: Exception) -> OverrideError:
    key, value = culprit.key_or_group, culprit.value()
    group = conf_dir() / key
    if group.is_dir():
        options = group_options(group)
        named = [str(v) for v in value] if isinstance(value, list) else [str(value)]
        wrong = next((v for v in named if v not in options), named[0])
        return OverrideError(
            f"there is no {key} named {wrong!r}; {_nearest(wrong, options)} (conf/{key} has: {', '.join(options)})"
        )
    keys = list(_keys(config_name, before))
    if key not in keys:
        return OverrideError(f"there is no setting {key!r} ({text}); {_nearest(key, [*keys, *groups()])}")
    return OverrideError(f"the override {text!r} does not fit: {_first_line(error)}")


def _check_addition(config_name: str, override: Any) -> None:
    """`+key=value` may only add a keyword to something that is constructed; elsewhere nobody would ever read it."""
    if not (override.is_add() or override.is_force_add()) or (conf_dir() / override.key_or_group).is_dir():
        return
    key = override.key_or_group
    keys = list(_keys(config_name, []))
    parent = key.rpartition(".")[0]
    if key in keys or (parent and f"{parent}._target_" in keys):
        return
    raise OverrideError(f"nothing reads the added setting {key!r}; {_nearest(key, [*keys, *groups()])}")


def _keys(config_name: str, overrides: list[str]) -> Iterator[str]:
    from hydra import compose
    from omegaconf import DictConfig

    def walk(node: Any, prefix: str) -> Iterator[str]:
        for name in node:
            full = f"{prefix}{name}"
            yield full
            child = node._get_node(name)
            if isinstance(child, DictConfig) and not child._is_none() and not child._is_missing():
                yield from walk(child, f"{full}.")

    yield from walk(compose(config_name=config_name, overrides=overrides), "")


def groups() -> list[str]:
    """Names of all config groups."""
    return sorted(p.name for p in conf_dir().iterdir() if p.is_dir() and p.name != "hydra")


def group_options(group: Path) -> list[str]:
    """Names of the configurations in a group's folder."""
    return sorted(p.stem for p in group.glob("*.yaml"))


def _nearest(word: str, options: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, options, n=3, cutoff=0.5)
    last = word.rpartition(".")[2]
    by_last = [
        o
        for o in options
        if o.rpartition(".")[2]
        in difflib.get_close_matches(last, [o.rpartition(".")[2] for o in options], n=2, cutoff=0.7)
    ]
    found = list(dict.fromkeys([*close, *by_last]))[:4]
    if not found:
        return "nothing is close to it; --help lists what there is"
    return f"did you mean {' or '.join(repr(f) for f in found)}?"


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
