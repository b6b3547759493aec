"""`humanlike gather RUN …`: finished runs of one benchmark → tables, figures and a report in one folder."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from humanlike.entry.gathered_folder import FoundRuns, folder_to_write, found_runs, of_one_benchmark

SWEEP: Mapping[str, Any] = {"convention": "paper", "strong": 0.01, "ranked": 100}
"""Settings of object learning alone → their defaults."""


def main(arguments: Sequence[str]) -> None:
    """Run the command: exit status 0 when everything is written, 2 for wrong use; errors pass through as exceptions."""
    parser = _parser()
    given = parser.parse_args(arguments)
    folder = folder_to_write(given.output, "--output")
    benchmark, runs = of_one_benchmark(found_runs(given.runs), given.benchmark, list(GATHERERS))
    set_here = [f"--{name}" for name in SWEEP if getattr(given, name) is not None]
    if set_here and benchmark != "object_learning":
        parser.error(f"{', '.join(set_here)}: for runs of object learning, but these are of {benchmark}")
    if given.responses is not None and benchmark != "sea":
        parser.error(f"--responses: for runs of sea, but these are of {benchmark}")
    print("\n".join(GATHERERS[benchmark](runs, folder, given)))
    print(f"written to {folder}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="humanlike gather",
        description="Join finished runs of one benchmark. benchmark=object_learning: leaderboard, analysis of "
        "variance, score by depth, rank groups, strong baselines beside people, both experiments. benchmark=sea: "
        "scores and conditions of data sets, networks and judges side by side, with a warning where v was made "
        "differently, and how alike every two rank the sketches. benchmark=element_vqa: judges of elements in one "
        "table with rank groups. "
        "Figures and one report.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run's folder, or a folder that holds runs")
    parser.add_argument("--output", default="outputs/gather", help="folder to write (default: %(default)s)")
    parser.add_argument("--benchmark", choices=list(GATHERERS),
                        help="take the runs of this benchmark alone (default: all must be of one)")  # fmt: skip
    parser.add_argument("--responses", metavar="FILE",
                        help="sea: people's orders or ratings, held against SEA of every run")  # fmt: skip
    sweep = parser.add_argument_group("object learning")
    sweep.add_argument("--convention", choices=["paper", "v2", "paper_text"],
                       help=f"whose score orders the models (default: {SWEEP['convention']})")  # fmt: skip
    sweep.add_argument("--strong", type=float, metavar="SHARE",
                       help=f"share of the models called strong baselines (default: {SWEEP['strong']})")  # fmt: skip
    sweep.add_argument("--ranked", type=int, metavar="N",
                       help=f"best models that are compared pair by pair (default: {SWEEP['ranked']})")  # fmt: skip
    return parser


def _object_learning(runs: FoundRuns, folder: Path, given: argparse.Namespace) -> list[str]:
    from humanlike.benchmarks.object_learning_sweep import SweepSettings
    from humanlike.entry.gather_object_learning import gather_object_learning

    chosen = {name: default if (v := getattr(given, name)) is None else v for name, default in SWEEP.items()}
    settings = SweepSettings(chosen["convention"], strong_share=chosen["strong"], ranked=chosen["ranked"])
    return gather_object_learning(runs, folder, settings)


def _sea(runs: FoundRuns, folder: Path, given: argparse.Namespace) -> list[str]:
    from humanlike.entry.gather_sea import gather_sea

    return gather_sea(runs, folder, given.responses)


def _element_vqa(runs: FoundRuns, folder: Path, given: argparse.Namespace) -> list[str]:
    from humanlike.entry.gather_element_vqa import gather_element_vqa

    del given
    return gather_element_vqa(runs, folder)


GATHERERS: Mapping[str, Callable[[FoundRuns, Path, argparse.Namespace], list[str]]] = {
    "object_learning": _object_learning,
    "sea": _sea,
    "element_vqa": _element_vqa,
}
"""Benchmark → what joins its runs."""
