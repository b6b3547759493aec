"""Misspelt overrides and configuration names, answered with the nearest valid ones."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
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


def check_overrides(
    config_name: str, overrides: Sequence[str], *, multirun: bool = True, config_dirs: Sequence[str] = ()
) -> None:
    """Check that every override names something that exists, before anything runs.

    Values of a sweep (`a,b`) are checked one by one.

    Args:
        config_name: File name in conf/ without suffix.
        overrides: Hydra overrides.
        multirun: Whether sweeps are allowed.
        config_dirs: Further folders of configuration files (`--config-dir`).

    Raises:
        OverrideError: A sentence with the nearest valid names.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    for folder in config_dirs:
        if not Path(folder).is_dir():
            raise OverrideError(f"there is no folder {folder!r} to take configuration files from (--config-dir)")
    parser = OverridesParser.create()
    plain = [_choices(text, parsed_override(text, parser), multirun) for text in overrides]
    check = _Check(config_name, parser, tuple(config_dirs), multirun)
    interval = next((text for text in overrides if parser.parse_override(text).is_interval_sweep()), None)
    with hydra_session():
        base = [choices[0] for choices in plain]
        for position, choices in enumerate(plain):
            parsed = parser.parse_override(choices[0])
            check.addition(parsed)
            for choice in choices[1:] if check.differs_by_value(parsed.key_or_group) else []:
                check.compose([*base[:position], choice, *base[position + 1 :]])
        sweeper = str(check.compose(base).sweeper["_target_"])
        if interval is not None and sweeper.startswith("hydra._internal."):
            raise OverrideError(f"{interval!r} has no end of values to try; a search can: hydra/sweeper=optuna")


def expanded(overrides: Sequence[str], sweep: bool) -> list[list[str]]:
    """The overrides of every job.

    Args:
        overrides: Hydra overrides.
        sweep: Whether comma-separated values make jobs.

    Raises:
        OverrideError: One cannot be read, or is a range without steps.

    Example:
        >>> expanded(["seed=0,1", "dataset=doodles"], True)
        [['seed=0', 'dataset=doodles'], ['seed=1', 'dataset=doodles']]
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    if not sweep:
        return [list(overrides)]
    parts, parser = [], OverridesParser.create()
    for override in (parsed_override(text, parser) for text in overrides):
        key = override.get_key_element()
        if override.is_interval_sweep():
            raise OverrideError(f"{override.input_line!r} has no end of values to try; name some, as in {key}=1,2")
        if override.is_sweep_override():
            parts.append([f"{key}={value}" for value in override.sweep_string_iterator()])
        else:
            parts.append([str(override.input_line)])
    return [list(job) for job in itertools.product(*parts)]


def parsed_override(text: str, parser: Any) -> Any:
    """An override as Hydra's parser takes it apart.

    Raises:
        OverrideError: It cannot be read.
    """
    from hydra.errors import HydraException

    try:
        return parser.parse_override(text)
    except HydraException as error:
        key = text.partition("=")[0]
        raise OverrideError(
            f"cannot read the override {text!r}: {str(error).splitlines()[0].partition(' expecting {')[0]}; a value "
            f"with blanks or any of =,:()[]{{}} stands in quotes inside quotes: '{key}=\"…\"'"
        ) from error


def setting_value(key: str, text: str) -> Any:
    """The value of a setting of a stored configuration, as its file would hold it: a number, a word, a list.

    Args:
        key: Of the setting, for the message.
        text: As it was given.

    Raises:
        OverrideError: It cannot be read.

    Example:
        >>> setting_value("dataset.concepts", "[lion, vase]"), setting_value("metric.delta", "1e-6")
        (['lion', 'vase'], 1e-06)
    """
    import yaml  # type: ignore[import-untyped]
    from omegaconf import OmegaConf

    try:
        return OmegaConf.to_container(OmegaConf.create(f"x: {text}"))["x"]  # type: ignore[index, call-overload]
    except yaml.YAMLError as error:
        raise OverrideError(f"cannot read the value of {key}={text}; put it into quotes: {key}='\"…\"'") from error


def _choices(text: str, parsed: Any, multirun: bool) -> list[str]:
    """The override once for every value of a sweep."""
    if not parsed.is_sweep_override():
        return [text]
    key, _, value = text.partition("=")
    if not multirun:
        raise OverrideError(
            f"{text!r} names several values: add -m to run every one, or write {key}=[{value}] for a list"
        )
    if parsed.is_interval_sweep():
        return [f"{key}={parsed.value().start}", f"{key}={parsed.value().end}"]
    return [f"{key}={choice}" for choice in parsed.sweep_string_iterator()]


@dataclass(frozen=True)
class _Check:
    """Composes the configuration to see what breaks; inside a Hydra session."""

    config_name: str
    parser: Any
    config_dirs: tuple[str, ...]
    multirun: bool = False

    def compose(self, overrides: list[str]) -> Any:
        """Compose; what breaks becomes an OverrideError, and so does code that Hydra itself would run.

        Returns:
            The part of the configuration that is Hydra's own.
        """
        from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException

        try:
            config = self._composed(overrides)
        except (MissingConfigException, ConfigCompositionException, HydraException, ValueError) as error:
            raise self._explain(overrides, error) from error
        _check_hydra_targets(config.hydra)
        if self.multirun:
            _check_installed(config.hydra)
        return config.hydra

    def differs_by_value(self, key: str) -> bool:
        """Whether other values of a setting can break the composition where one does not: of groups, and of Hydra's."""
        return key.startswith("hydra") or bool(self._options(key))

    def addition(self, override: Any) -> None:
        """`+key=value` may only add a keyword to something that is constructed; nobody would read it elsewhere."""
        key = override.key_or_group
        if not (override.is_add() or override.is_force_add()) or self._options(key) or key.startswith("hydra"):
            return
        keys = self._keys([])
        parent = key.rpartition(".")[0]
        if key in keys or (parent and f"{parent}._target_" in keys):
            return
        raise OverrideError(f"nothing reads the added setting {key!r}; {_nearest(key, [*keys, *groups()])}")

    def _composed(self, overrides: list[str]) -> Any:
        from hydra import compose

        found = [f"hydra.searchpath=[{','.join(_quoted(Path(d).resolve().as_uri()) for d in self.config_dirs)}]"]
        return compose(self.config_name, [*(found if self.config_dirs else []), *overrides], return_hydra_config=True)

    def _explain(self, overrides: list[str], error: Exception) -> OverrideError:
        """Find the first override that breaks the composition and say what would fit in its place."""
        for upto in range(1, len(overrides) + 1):
            try:
                self._composed(overrides[:upto])
            except Exception as first:
                culprit = self.parser.parse_override(overrides[upto - 1])
                return OverrideError(self._sentence(culprit, overrides[upto - 1], overrides[: upto - 1], first))
        return OverrideError(f"the configuration {self.config_name} cannot be composed: {_first_line(error)}")

    def _sentence(self, culprit: Any, text: str, before: list[str], error: Exception) -> str:
        key = culprit.key_or_group
        options = self._options(key)
        if options and not culprit.is_delete():
            value = culprit.value()
            named = [str(v) for v in value] if isinstance(value, list) else [str(value)]
            wrong = next((v for v in named if v not in options), None)
            if wrong is not None:
                return f"there is no {key} named {wrong!r}; {_nearest(wrong, options)} ({key}: {', '.join(options)})"
            if culprit.is_add():
                return f"a {key} is chosen already, so nothing is added: write {text.lstrip('+')!r}"
        keys = self._keys(before, inside_hydra=key.startswith("hydra"))
        if key not in keys and not options:
            return f"there is no setting {key!r} ({text}); {_nearest(key, [*keys, *groups()])}"
        if culprit.is_delete():
            return f"{key} is not set, so {text!r} has nothing to take away"
        if other := re.search(r"Could not override '([^']+)'", str(error)):  # given before, and of another choice
            return f"with {text} there is no setting {other[1]!r}: leave it out, or choose another {key}"
        return f"the override {text!r} does not fit: {_first_line(error)}"

    def _roots(self) -> list[Path]:
        return [conf_dir(), *map(Path, self.config_dirs)]

    def _options(self, key: str) -> list[str]:
        """Names of the configurations of a group; none where `key` is no group."""
        if key.startswith("hydra/"):
            from hydra.core.global_hydra import GlobalHydra

            return list(GlobalHydra.instance().config_loader().get_group_options(key))
        return sorted({name for root in self._roots() for name in group_options(root / key)})

    def _keys(self, overrides: list[str], inside_hydra: bool = False) -> list[str]:
        from omegaconf import open_dict

        config = self._composed(overrides)
        if not inside_hydra:
            with open_dict(config):
                del config["hydra"]
        return list(_walk(config, ""))


def _check_hydra_targets(node: Any) -> None:
    """Refuse a launcher, sweeper or callback that comes from outside the allowed packages."""
    from omegaconf import OmegaConf

    from humanlike.entry.targets import TargetError, check_origin, check_target, targets

    for path, entry in targets(OmegaConf.to_container(node, resolve=False), "hydra"):
        target = str(entry["_target_"])
        try:
            if not target.startswith(("hydra._internal.", "hydra_plugins.")):
                check_target(target, path)
            with suppress(ImportError, AttributeError):  # Hydra says what is absent
                check_origin(target, path)
        except TargetError as error:
            raise OverrideError(str(error)) from error


def _check_installed(hydra: Any) -> None:
    """Refuse a launcher or sweeper whose optional dependencies are absent."""
    from importlib.util import find_spec

    from hydra.utils import get_class

    for group in ("launcher", "sweeper"):
        target = str(hydra[group]["_target_"])
        if not target.startswith("hydra_plugins.humanlike_"):
            continue
        plugin: Any = get_class(target)
        top, _, rest = plugin.needs.partition(".")
        if find_spec(top) is None or (rest and find_spec(plugin.needs) is None):
            raise OverrideError(
                f"hydra/{group}={hydra.runtime.choices[f'hydra/{group}']} needs the package {plugin.needs}: "
                f"pip install 'humanlike[{plugin.extra}]'"
            )


def _walk(node: Any, prefix: str) -> Iterator[str]:
    from omegaconf import DictConfig

    for name in node:
        full = f"{prefix}{name}"
        yield full
        child = node._get_node(name)
        if isinstance(child, DictConfig) and not child._is_none() and not child._is_missing():
            yield from _walk(child, f"{full}.")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


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
