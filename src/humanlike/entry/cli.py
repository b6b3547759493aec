"""The `humanlike` command, which hands over to the module of the command that is named; `USAGE` lists them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, cast

USAGE = """humanlike: how human-like is a vision model?

  humanlike evaluate [key=value …]    score a model against people   (the same as python evaluate.py)
  humanlike train [key=value …]       train against human data       (the same as python train.py)
  humanlike study [key=value …]       many models and people: every table and figure of a paper in one folder
  humanlike gather RUN …              runs of object learning, or of SEA, together: tables, tests and figures
  humanlike report RUN …              runs of all benchmarks on one page: shares of the ceiling, rank groups, records
  humanlike survey SOURCE OUT         a page on which people order or rate sketches, without a server
  humanlike agreement RUN FILE …      how far what people answered agrees with a run's scores
  humanlike extract [key=value …]     lists of elements from a language model, with a file for people to review
  humanlike compare-elements A B …    how alike lists of elements are: by words, by meaning, with intervals
  humanlike layers BACKBONE           layers of a backbone with their shapes and relative depth
  humanlike verify RUN                replay a score from its record; name the first stage that differs
  humanlike plan [key=value …]        minutes, memory, disk, requests and tokens before starting
  humanlike prefetch [key=value …]    fetch weights and data now, so that offline=true works later
  humanlike convert KIND SRC DST      published or own files → tables and images for dataset=table

Each command answers --help. Exit status: 0 done, 1 failed, 2 wrong use, 3 finished with losses, 130 interrupted.
"""


def main() -> None:
    """Run the command line."""
    command, *rest = sys.argv[1:] or ["--help"]
    if command in {"--help", "-h", "help"}:
        print(USAGE)
        sys.exit(0)
    if command == "--version":
        from humanlike import __version__

        print(__version__)
        sys.exit(0)
    commands: dict[str, Callable[[list[str]], None]] = {
        "evaluate": _evaluate,
        "train": _train,
        "study": _study,
        "gather": _gather,
        "report": _report,
        "survey": _survey,
        "agreement": _agreement,
        "extract": _extract,
        "compare-elements": _compare_elements,
        "layers": _layers,
        "verify": _verify,
        "plan": _plan,
        "prefetch": _prefetch,
        "convert": _convert,
    }
    if command not in commands:
        import difflib

        near = difflib.get_close_matches(command, list(commands), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(commands)}"
        print(f"error: there is no command {command!r}{hint}", file=sys.stderr)
        sys.exit(2)
    commands[command](rest)


def _evaluate(arguments: list[str]) -> None:
    sys.argv = ["humanlike evaluate", *arguments]
    from humanlike.entry.evaluate import main as run

    run()


def _train(arguments: list[str]) -> None:
    sys.argv = ["humanlike train", *arguments]
    from humanlike.entry.train import main as run

    run()


def _study(arguments: list[str]) -> None:
    sys.argv = ["humanlike study", *arguments]
    from humanlike.entry.study import main as run

    run()


def _gather(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.gather import main as run

        run(arguments)


def _survey(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.survey import main as run

        run(arguments)


def _agreement(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.agreement import main as run

        run(arguments)


def _extract(arguments: list[str]) -> None:
    sys.argv = ["humanlike extract", *arguments]
    from humanlike.entry.extract import main as run

    run()


def _compare_elements(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.compare_elements import main as run

        run(arguments)


def _report(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.report import main as run

        run(arguments)


def _layers(arguments: list[str]) -> None:
    if len(arguments) < 1 or arguments[0] in {"--help", "-h"}:
        print("humanlike layers BACKBONE [key=value …]: layers with shapes and relative depth in [0, 1]")
        sys.exit(0 if arguments else 2)
    with _plain_errors(arguments):
        from rich.console import Console
        from rich.table import Table

        from humanlike.backbones.layers import layer_shapes
        from humanlike.entry.conf import compose

        backbone = _weightless(compose("evaluate", [f"backbone={arguments[0]}", *arguments[1:]]).backbone)
        if not hasattr(backbone, "layers"):
            raise ValueError(f"backbone={arguments[0]} is recorded answers, which have no layers")
        table = Table(title=f"{backbone.name}: default layer {backbone.default_layer}")
        for column in ("layer", "shape", "relative depth"):
            table.add_column(column)
        for name, shape, depth in layer_shapes(backbone):
            table.add_row(name, " × ".join(map(str, shape)), f"{depth:.3f}")
        Console().print(table)


def _weightless(config: Any) -> Any:
    """The backbone for its layers and shapes only: nothing is downloaded, and nothing computed where that can be."""
    import torch
    from omegaconf import OmegaConf

    from humanlike.entry.targets import build

    plain = dict(cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True)))
    if "weights" not in plain or OmegaConf.missing_keys(config) - {"backbone.weights"}:
        return build(config)  # which names what has no default
    print("shapes follow from the architecture, so no weights were loaded", file=sys.stderr)
    try:
        with torch.device("meta"):
            return build({**plain, "weights": None})
    except (NotImplementedError, RuntimeError, ValueError):  # some architectures compute with numbers while being built
        return build({**plain, "weights": None})


def _prefetch(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.prefetch import main as run

        run(arguments)


def _verify(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.verify import main as run

        run(arguments)


def _plan(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.plan import main as run

        run(arguments)


def _convert(arguments: list[str]) -> None:
    with _plain_errors(arguments):
        from humanlike.entry.convert import main as run

        run(arguments)


class _plain_errors:  # noqa: N801 - reads as a statement: with _plain_errors(...)
    """Turn exceptions into one sentence and exit status 1 (2 for wrong use), an interruption into status 130."""

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, SystemExit):
            return
        from humanlike.entry.launch import INTERRUPTED
        from humanlike.entry.overrides import OverrideError
        from humanlike.entry.sentences import sentence

        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            return
        if isinstance(error, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
        print(f"error: {sentence(error, 'HYDRA_FULL_ERROR=1 in the environment')}", file=sys.stderr)
        sys.exit(2 if isinstance(error, OverrideError) else 1)
