"""The command line before Hydra reads it: flags apart from settings, in an order that Hydra takes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from humanlike.entry.overrides import OverrideError, normalise

HELP = frozenset({"--help", "-h"})
SWEEP = frozenset({"--multirun", "-m"})
CONFIG_DIR = frozenset({"--config-dir", "-cd"})
CONFIG_NAME = frozenset({"--config-name", "-cn"})
WITH_VALUE = frozenset({"--cfg", "-c", "--package", "-p", "--config-path", "-cp", "--experimental-rerun"})
ABOUT_HYDRA = frozenset({"--hydra-help", "--info", "-i", "--version", "--shell-completion", "-sc"})
ALONE = frozenset({"--resolve", "--run", "-r"})
FLAGS = HELP | SWEEP | CONFIG_DIR | CONFIG_NAME | WITH_VALUE | ABOUT_HYDRA | ALONE


@dataclass(frozen=True)
class CommandLine:
    """A command line taken apart.

    Attributes:
        flags: Flags with their values, in the order given.
        overrides: Settings (`key=value`, `+key=value`, `~key`).
        config_dirs: Values of `--config-dir`.
        about_hydra: A flag asks Hydra about itself, so that nothing is run.
        multirun: `-m` is among the flags.
        other_config: Another top configuration is named, which this project does not know.
    """

    flags: tuple[str, ...]
    overrides: tuple[str, ...]
    config_dirs: tuple[str, ...] = ()
    about_hydra: bool = False
    multirun: bool = False
    other_config: bool = False

    @property
    def arguments(self) -> list[str]:
        """Flags, then settings: Hydra does not take settings on both sides of a flag."""
        return [*self.flags, *self.overrides]


def parse_arguments(arguments: Sequence[str]) -> CommandLine:
    """Take a command line apart.

    Raises:
        OverrideError: For what is neither a flag nor a setting.

    Example:
        >>> parse_arguments(["seed=0,1", "-m", "layer=null"]).arguments
        ['-m', 'seed=0,1', 'layer=null']
    """
    flags: list[str] = []
    overrides: list[str] = []
    config_dirs: list[str] = []
    names: set[str] = set()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, joined, value = argument.partition("=")
        if not argument.startswith("-"):
            if not joined and not argument.startswith("~") and not names & ABOUT_HYDRA:
                raise OverrideError(f"{argument!r} is not understood: settings are written key=value (see --help)")
            overrides.append(argument)
            continue
        if name not in FLAGS:
            plain = argument.lstrip("-")
            hint = f"settings have no dashes, {plain!r}" if joined else f"settings are written {plain}=VALUE"
            if near := difflib.get_close_matches(name, sorted(FLAGS), n=1, cutoff=0.8):
                hint = f"did you mean {near[0]!r}?"
            raise OverrideError(f"there is no flag {name!r}: {hint} (see --help)")
        names.add(name)
        flags.append(argument)
        if name in WITH_VALUE | CONFIG_DIR | CONFIG_NAME and not joined:
            if not rest:
                raise OverrideError(f"{name} needs a value")
            value = rest.pop(0)
            flags.append(value)
        if name in {"--info", "-i"} and rest and "=" not in rest[0]:
            flags.append(rest.pop(0))
        if name in CONFIG_DIR:
            config_dirs.append(value)
    return CommandLine(
        flags=tuple(flags),
        overrides=tuple(normalise(overrides)),
        config_dirs=tuple(config_dirs),
        about_hydra=bool(names & ABOUT_HYDRA),
        multirun=bool(names & SWEEP) or any(o.startswith("hydra.mode=") for o in overrides),
        other_config=bool(names & (CONFIG_NAME | {"--config-path", "-cp"})),
    )
