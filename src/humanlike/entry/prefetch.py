"""`humanlike prefetch`: fetch weights and data now, so that the same settings work with offline=true."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

USAGE = """humanlike prefetch [key=value …] [-m]: build the configured backbone, data set, readout and judge once, so
that their files are in the caches; afterwards the same settings work with offline=true and no network

  humanlike prefetch backbone=resnet50
  humanlike prefetch -m backbone=resnet50,clip_vit_b32      what the jobs of a sweep need
  humanlike prefetch benchmark=sea judge=smolvlm            the vision-language model of a judge
  humanlike prefetch benchmark=all                          what all benchmarks need
  humanlike prefetch task=generator                         what `humanlike train` needs

What cannot be had is listed, and the exit status is 1. With offline=true nothing is fetched: it only says what is
missing.
"""


def main(arguments: Sequence[str]) -> None:
    """Run the command.

    Raises:
        FileNotFoundError: Naming everything that is missing.
    """
    if any(a in {"--help", "-h"} for a in arguments):
        print(USAGE)
        return
    from humanlike.entry.environment import prepare
    from humanlike.entry.sentences import sentence

    ready: dict[str, str] = {}
    missing: dict[str, str] = {}
    for config in configurations(arguments):
        prepare(config)
        for what, make in _parts(config):
            if what in ready or what in missing:
                continue
            try:
                ready[what] = make()
            except OSError as error:
                missing[what] = sentence(error)
    judges = [line for what, line in ready.items() if what.startswith("judge ") and line]
    others = [line for what, line in ready.items() if not what.startswith("judge ") and line]
    for line in filter(None, [" and ".join(others), *judges]):
        print(f"ready: {line}")
    if missing:
        told = "; ".join(f"{what}: {why}" for what, why in missing.items())
        raise FileNotFoundError(f"{len(missing)} of {len(ready) + len(missing)} parts are missing: {told}")


def configurations(arguments: Sequence[str]) -> Iterator[Any]:
    """The configuration of every job that the arguments describe; of `benchmark=all` those of its parts."""
    from humanlike.entry.conf import compose
    from humanlike.entry.overrides import expanded
    from humanlike.entry.targets import build

    flags = [a for a in arguments if a in {"-m", "--multirun"}]
    overrides = [a for a in arguments if a not in flags]
    name = "train" if any(o.startswith(("task=", "generator=")) for o in overrides) else "evaluate"
    for job in expanded(overrides, bool(flags)):
        config = compose(name, job)
        if "parts" in config.get("benchmark", {}):
            whole = build(config.benchmark)
            yield from (compose(name, whole.overrides(part, job)) for part in whole.parts)
        else:
            yield config


def _parts(config: Any) -> Iterator[tuple[str, Callable[[], str]]]:
    """Name and maker of everything that may need files; a maker returns a line for people."""
    from omegaconf import OmegaConf

    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build
    from humanlike.files import sha256_value

    @functools.cache
    def built(group: str) -> Any:
        return build(config[group])

    def key(group: str) -> str:
        plain: Any = OmegaConf.to_container(config[group], resolve=True)
        title = plain.get("name") or plain.get("architecture") or plain["_target_"].rpartition(".")[2]
        return f"{group} {title} ({sha256_value(plain)[:6]})"

    def network() -> str:
        backbone = built("backbone")
        weights = getattr(backbone, "weights_hash", None)
        return f"{backbone.name} (weights {weights[:12]})" if weights else f"{backbone.name} (recorded answers)"

    def data() -> str:
        found = built("dataset")
        return f"{found.name} ({len(getattr(found, 'images', found))} items)"

    def people() -> str:
        seeing = getattr(getattr(built("dataset"), "people", None), "backbone", None)
        if not isinstance(seeing, str) or seeing == config.backbone.get("name"):
            return ""
        other = build(compose("evaluate", [f"backbone={seeing}"]).backbone)
        return f"{other.name}, which simulated people see with (weights {other.weights_hash[:12]})"

    def readout() -> str:
        built("readout")
        return ""

    def judge() -> str:
        return _made(built("judge"), built("backbone"))

    yield key("backbone"), network
    yield key("dataset"), data
    yield f"{key('dataset')}, people", people
    if config.get("readout") is not None:
        yield key("readout"), readout
    if config.get("judge") is not None and _has_files(config.judge):
        yield f"{key('judge')} on {key('backbone')}", judge


def _has_files(config: Any) -> bool:
    """Whether a judge brings a network of its own; endpoints, which want a key, and annotations do not."""
    from hydra.utils import get_object

    from humanlike.entry.targets import check_target

    check_target(config["_target_"], "judge")
    return bool(config.get("_partial_")) or hasattr(get_object(config["_target_"]), "ready")


def _made(judge: Any, backbone: Any) -> str:
    """What of a judge is on this machine now, in one line; "" for one that reads the backbone alone."""
    made = judge(backbone=backbone) if isinstance(judge, functools.partial) else judge
    return str(getattr(made, "ready", None) or getattr(made, "source", None) or "")
