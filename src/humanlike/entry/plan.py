"""`humanlike plan`: what a job or a sweep will take, before it starts; what does not fit is refused with what would."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.overrides import OverrideError, expanded

if TYPE_CHECKING:
    from omegaconf import DictConfig

HELP_WORDS = frozenset({"--help", "-h"})
HELP = """\
humanlike plan [key=value …] [-m]: minutes, memory, disk, requests and tokens of an evaluation, before it starts. A few
micro-batches of the data go through the network on this machine; nothing is written and no request is sent.

  key=value         as for `humanlike evaluate`; with -m comma-separated values make a sweep, whose jobs are added up
  --memory-gb X     refuse what takes more memory (without it: more than is available here)
  --disk-gb X       refuse what takes more disk (without it: more than is free)
  --minutes X, --requests X, --tokens X    refuse what takes more

Trainings (task=…) are refused: run a few steps of one and multiply.

Expect 25 to 50% of error: minutes are those of this machine when it does nothing else.

Exit status: 0 it fits, 1 it does not, 2 wrong use.
"""
LIMITS = ("memory-gb", "disk-gb", "minutes", "requests", "tokens")


@dataclass(frozen=True)
class Plan:
    """What a job will take.

    Attributes:
        name: Its overrides.
        minutes: Wall time on this machine.
        memory: Bytes at most.
        disk: Bytes added.
        requests: Requests to an endpoint.
        tokens: Tokens that they will likely take.
        tokens_at_most: Tokens that a budget has to allow.
        notes: What has to be said.
        facts: What advice is made of: items, widest features, bytes of a micro-batch, its size, projection.
    """

    name: str
    minutes: float
    memory: int
    disk: int
    requests: int
    tokens: int
    tokens_at_most: int
    notes: tuple[str, ...]
    facts: dict[str, Any]


def main(arguments: Sequence[str]) -> None:
    """Run the command; leaves with exit status 0 or 1."""
    from humanlike.entry.conf import compose

    if HELP_WORDS & set(arguments):
        print(HELP)
        sys.exit(0)
    limits, rest = _limits(arguments)
    _refuse_training(rest)
    sweep = [a for a in rest if a in {"-m", "--multirun"}]
    jobs = expanded([a for a in rest if a not in sweep], bool(sweep))
    plans = [plan_job(compose("evaluate", job), ", ".join(job) or "defaults") for job in jobs]
    total = Plan(
        name=f"{len(plans)} jobs, one after the other",
        minutes=sum(p.minutes for p in plans),
        memory=max(p.memory for p in plans),
        disk=sum(p.disk for p in plans),
        requests=sum(p.requests for p in plans),
        tokens=sum(p.tokens for p in plans),
        tokens_at_most=sum(p.tokens_at_most for p in plans),
        notes=(),
        facts=max(plans, key=lambda p: p.memory).facts,
    )
    _show([*plans, total] if len(plans) > 1 else plans)
    refused = refusals(total, limits, Path(compose("evaluate", jobs[0]).paths.cache))
    for sentence in refused:
        print(f"does not fit: {sentence}", file=sys.stderr)
    sys.exit(1 if refused else 0)


def _refuse_training(arguments: Sequence[str]) -> None:
    if asked := [a for a in arguments if a.lstrip("+~").startswith(("task=", "task.", "generator=", "generator."))]:
        raise OverrideError(
            f"plan predicts evaluations, and {asked[0]!r} is a setting of a training; start it with "
            "task.max_epochs=1 (task=readout, presence) or task.pretrain_steps=20 task.steps=5 (task=generator) and "
            "multiply the seconds in its metrics.json"
        )


def _limits(arguments: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    limits, rest, given = dict[str, float](), [], list(arguments)
    while given:
        argument = given.pop(0)
        name, joined, value = argument.removeprefix("--").partition("=")
        if argument in {"-m", "--multirun"} or not argument.startswith("-"):
            rest.append(argument)
            continue
        if name not in LIMITS or not argument.startswith("--"):
            raise OverrideError(f"plan knows no option {argument!r}; there are {', '.join('--' + n for n in LIMITS)}")
        value = value if joined else (given.pop(0) if given else "")
        try:
            limits[name] = float(value)
        except ValueError:
            limits[name] = float("nan")
        if not limits[name] >= 0:
            raise OverrideError(f"--{name} needs a number of 0 or more, got {value!r}")
    return limits, rest


def plan_job(config: DictConfig, name: str) -> Plan:
    """Predict one evaluation.

    Raises:
        ValueError: The benchmark is made of parts, or settings do not fit.
        FileNotFoundError: Data are missing.
    """
    from humanlike.entry import plan_costs as costs
    from humanlike.entry.environment import prepare
    from humanlike.entry.targets import build
    from humanlike.types import Sketches

    if "parts" in config.benchmark:
        raise ValueError(f"plan the benchmarks one by one: benchmark={', benchmark='.join(config.benchmark.parts)}")
    prepare(config)
    data = build(config.dataset)
    backbone, known, notes = _network(config)
    if not hasattr(backbone, "transform"):
        raise ValueError("recorded answers need no plan: no network runs")
    benchmark, readout = build(config.benchmark), build(config.readout)
    items = data if isinstance(data, Sketches) else data.images
    settings, layers, backbone = _what_runs(config, backbone, benchmark, readout)
    count = len(items) + (0 if isinstance(data, Sketches) or data.warmup is None else len(data.warmup))
    cache = Path(config.paths.cache) / "features"
    known = known and isinstance(data, Sketches)
    found = costs.measured_extraction(backbone, items.images, layers, settings, cache, known)
    if count != len(items):  # warm-up images go through the network too
        share = count / len(items)
        found = costs.Extraction(
            count, found.seconds * share, found.network_s, found.loading_s, found.batch_bytes,
            int(found.stored * share), found.widths,
        )  # fmt: skip
    folds = int(getattr(readout, "n_splits", 5))
    labels = len(data.labels) if isinstance(data, Sketches) else 2
    fits = sum(costs.readout_seconds(len(items), width, labels, folds) for width in found.widths.values())
    requests = tokens = most = 0
    judge: Any = getattr(benchmark, "judge", None)
    if isinstance(data, Sketches) and hasattr(judge, "questions") and hasattr(judge, "client"):
        asked = list(judge.questions(data, benchmark.element_lists(data)))
        requests, tokens, most = costs.requests_and_tokens(judge.client, asked)
    return Plan(
        name=name,
        minutes=(found.seconds + fits + costs.START_S) / 60,
        memory=costs.memory_bytes(len(items), found, costs.resident_bytes() - found.batch_bytes),
        disk=found.stored + costs.RUN_FOLDER,
        requests=requests,
        tokens=tokens,
        tokens_at_most=most,
        notes=tuple(notes),
        facts={
            "items": len(items),
            "computed": found.items,
            "widest": max(found.widths.values(), default=0),
            "batch_bytes": found.batch_bytes,
            "micro_batch": settings.micro_batch,
            "projection": settings.projection if settings.max_features else None,
            "images_per_second": settings.micro_batch / max(found.network_s, found.loading_s, 1e-9),
        },
    )


def _network(config: DictConfig) -> tuple[Any, bool, list[str]]:
    """The network, whether it has its weights, and what to say where not."""
    from omegaconf import OmegaConf

    from humanlike.entry.targets import build

    plain = OmegaConf.to_container(config.backbone, resolve=True)
    assert isinstance(plain, dict)
    try:
        return build({**plain, "offline": True} if "offline" in plain else plain), True, []
    except FileNotFoundError:
        if plain.get("weights") is None:
            raise
        note = "its weights are not on this machine: measured with random ones; run `humanlike prefetch` first"
        return build({**plain, "weights": None}), False, [note]


def _what_runs(config: DictConfig, backbone: Any, benchmark: Any, readout: Any) -> tuple[Any, list[str], Any]:
    """Extraction settings, layers and the network as the benchmark uses them."""
    from humanlike.backbones.extraction_settings import ExtractionSettings
    from humanlike.backbones.layer_selection import select_layers
    from humanlike.backbones.layers import class_score_layer, layer_shapes
    from humanlike.backbones.whole_image import with_whole_images
    from humanlike.benchmarks.object_learning_encoding import chosen_layers
    from humanlike.entry.pipeline import LayersBenchmark

    options = {key: value for key, value in config.extraction.items()}
    encoding = getattr(benchmark, "encoding", None)
    if encoding is not None:
        backbone = with_whole_images(backbone, encoding.size) if encoding.transform == "whole" else backbone
        names = chosen_layers(backbone, encoding, [config.layer or backbone.default_layer])[0]
        return ExtractionSettings(**{**options, **encoding.options(int(config.seed))}), list(names), backbone
    if isinstance(benchmark, LayersBenchmark):
        names = select_layers(tuple(s.name for s in layer_shapes(backbone)), benchmark.layers)
        given = {key: value for key, value in options.items() if value is not None}
        return ExtractionSettings(**{**benchmark.reduction, **given}), list(names), backbone
    reads_scores = getattr(readout, "reads_class_scores", False)
    layer = config.layer or (class_score_layer(backbone) if reads_scores else backbone.default_layer)
    return ExtractionSettings(**options), [layer], backbone


def refusals(plan: Plan, limits: dict[str, float], cache: Path) -> list[str]:
    """A sentence for everything that does not fit, with a setting that would."""
    memory = limits["memory-gb"] * 1e9 if "memory-gb" in limits else available_memory()
    disk = limits["disk-gb"] * 1e9 if "disk-gb" in limits else free_disk(cache)
    found = []
    if plan.memory > memory:
        found.append(f"{_size(plan.memory)} of memory, {_size(memory)} available; {_for_memory(plan, memory)}")
    if plan.disk > disk:
        found.append(f"{_size(plan.disk)} of disk, {_size(disk)} free; {_for_disk(plan, disk)}")
    if plan.minutes > limits.get("minutes", float("inf")):
        found.append(f"{plan.minutes:.1f} minutes, {limits['minutes']:g} allowed; {_for_minutes(plan)}")
    if plan.requests > limits.get("requests", float("inf")):
        found.append(
            f"{plan.requests} requests, {limits['requests']:g} allowed; fewer items (dataset.concepts, "
            "dataset.instances), or a judge on this machine (judge=presence_head)"
        )
    if plan.tokens > limits.get("tokens", float("inf")):
        found.append(
            f"about {plan.tokens} tokens, {limits['tokens']:g} allowed; take fewer items (dataset.concepts, "
            "dataset.instances), or a judge on this machine (judge=presence_head)"
        )
    return found


def _for_memory(plan: Plan, limit: float) -> str:
    from humanlike.entry.plan_costs import BYTES_OF_FEATURES

    facts = plan.facts
    features = facts["items"] * facts["widest"] * BYTES_OF_FEATURES
    room = limit - (plan.memory - max(features, facts["batch_bytes"]))
    if room <= 0:
        return "the network and its libraries alone do not fit: take a smaller backbone, or another machine"
    if features > facts["batch_bytes"]:
        return f"extraction.max_features={_power_below(room / (facts['items'] * BYTES_OF_FEATURES))} would fit"
    size = _power_below(room / facts["batch_bytes"] * facts["micro_batch"])
    return f"extraction.micro_batch={size} would fit (it is part of a feature's identity: use one for all models)"


def _for_disk(plan: Plan, limit: float) -> str:
    facts = plan.facts
    width = _power_below(facts["widest"] * limit / plan.disk)
    return f"extraction.max_features={width} would fit, or point paths.cache at another disk"


def _for_minutes(plan: Plan) -> str:
    if plan.facts["projection"] == "gaussian":
        return "extraction.projection=srft projects fifteen times as fast (docs/projection.md)"
    return "trainer.devices=2 shares the images, trainer=gpu takes a GPU, and fewer items (dataset.instances) take less"


def _power_below(value: float) -> int:
    """The largest power of two that is not above `value`, at least 1."""
    return 1 << max(0, int(value).bit_length() - 1)


def available_memory() -> float:
    """Bytes that a new process can have: what the system says, or less where a control group allows less."""
    found = float("inf")
    info = Path("/proc/meminfo")
    if info.is_file():
        found = next(
            (int(row.split()[1]) * 1024.0 for row in info.read_text().splitlines() if row.startswith("MemAvailable")),
            found,
        )
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    group = Path("/sys/fs/cgroup/memory.max")
    if group.is_file() and (text := group.read_text().strip()).isdigit():
        found = min(found, float(text))
    return found


def free_disk(folder: Path) -> float:
    """Free bytes where a folder is, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return float(shutil.disk_usage(folder).free)


def _size(value: float) -> str:
    return f"{value / 1e9:.2f} GB" if value >= 1e8 else f"{value / 1e6:.1f} MB"


def _show(plans: Sequence[Plan]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="plan", title_justify="left")
    for column in ("job", "minutes", "memory", "disk", "requests", "tokens (at most)"):
        table.add_column(column, overflow="fold")
    for plan in plans:
        tokens = f"{plan.tokens} ({plan.tokens_at_most})" if plan.requests else "0"
        table.add_row(
            escape(plan.name), f"{plan.minutes:.1f}", _size(plan.memory), _size(plan.disk), str(plan.requests), tokens
        )
    console = Console()
    console.print(table)
    for note in dict.fromkeys(note for plan in plans for note in plan.notes):
        console.print(f"note: {note}", highlight=False, soft_wrap=True)
