"""What a study is asked for, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.benchmarks.seva import SevaBenchmark
    from humanlike.benchmarks.study.analyses import Analysis
    from humanlike.benchmarks.study.models import StudyModel
    from humanlike.types import Sketches


@dataclass(frozen=True)
class Plan:
    """A study before it is run.

    Attributes:
        data: The sketches.
        benchmark: Its protocol is the study's.
        backbones: Name → configuration of those that are evaluated.
        runs: Name → folder of the finished runs that join.
        others: Models that are known by their answers, and simulated ones.
        machine: A machine's sketches, or None.
        analyses: Name → analysis.
        missing: Table that was not asked for → why it is missing.
    """

    data: Sketches
    benchmark: SevaBenchmark
    backbones: Mapping[str, Any]
    runs: Mapping[str, Path]
    others: tuple[StudyModel, ...]
    machine: Sketches | None
    analyses: Mapping[str, Analysis]
    missing: Mapping[str, str]


def plan_of(config: DictConfig) -> Plan:
    """Build and check what a configuration names.

    Raises:
        ValueError: When something does not exist, or there is no model, or two share a name.
        FileNotFoundError: When files are missing.
    """
    from humanlike.entry.study_models import (
        chosen_backbones,
        machine_sketches_of,
        named_runs,
        published_models,
        simulated_models,
    )
    from humanlike.entry.targets import build

    backbones = chosen_backbones(config.backbones)
    runs = named_runs(config, backbones)
    benchmark, data, machine = seva_benchmark(config), build(config.dataset), machine_sketches_of(config)
    others = (*published_models(config.machine_answers, data.labels), *simulated_models(config, data))
    names = [*backbones, *runs, *(model.name for model in others)]
    if not names:
        raise ValueError("a study needs at least one model; name backbones, runs, machine_answers or simulated ones")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two models of the study are called {repeated[0]!r}; every model needs its own name")
    analyses, missing = asked_analyses(config, machine)
    return Plan(data, benchmark, backbones, runs, others, machine, analyses, missing)


def seva_benchmark(config: DictConfig) -> SevaBenchmark:
    """The configured benchmark, which must be SEVA's: its protocol is the study's.

    Raises:
        ValueError: When it is another one.
    """
    from humanlike.benchmarks.seva import SevaBenchmark
    from humanlike.entry.targets import build

    benchmark = build(config.benchmark)
    if not isinstance(benchmark, SevaBenchmark):
        raise ValueError(f"a study is of benchmark=seva, not of {type(benchmark).__name__}")
    return benchmark


def asked_analyses(config: DictConfig, machine: Sketches | None) -> tuple[dict[str, Analysis], dict[str, str]]:
    """The analyses that the configuration asks for, and which tables will be missing without the others.

    Raises:
        ValueError: On an analysis that does not exist.
    """
    from humanlike.benchmarks.study.analyses import ANALYSES, of_machine_sketches

    known, missing = dict(ANALYSES), {}
    if machine is not None:
        known["machine_sketches"] = of_machine_sketches(machine)
    else:
        missing["machine_cells"] = "no machine sketches were given (machine_sketches, machine_root)"
    names = list(known) if config.analyses == "all" else [str(name) for name in config.analyses]
    for name in names:
        if name not in known:
            raise ValueError(f"analyses names {name!r}; it can be all, or a list of {', '.join(known)}")
    for name, (tables, _) in known.items():
        if name not in names:
            missing |= dict.fromkeys(tables, "not asked for (analyses)")
    return {name: known[name] for name in names}, missing
