"""Which runs can be compared: groups of one benchmark, version, data, people and protocol, and the models in them.

A *group* holds runs whose numbers may stand in one ranking; what sets two groups of a benchmark apart is said in words.
An *entry* is a model in a group: its runs with different seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from humanlike.files import json_ready
from humanlike.reports.wording import is_simulated
from humanlike.types import Score

ORDER = ("seva", "seva_layers", "sea", "object_learning", "fixed_labels", "generation")
"""Benchmarks in the order of the page; others follow."""
OF_MODELS: Mapping[str, tuple[str, ...]] = {"object_learning": ("rules", "layers", "widest", "store")}
"""Benchmark → switches that say which models are tried and what stays on disk, not how a model is scored."""
NAMES_OF_PRESETS = ("preset", "overridden", "name")
PEOPLE_COUNTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("seva", "seva_layers"), ("participants", "judgments")),
    "object_learning": ("people_sessions",),
    "generation": ("items_reference",),
}
"""Benchmark → counts of people's answers (of generation, of people's sketches) that runs must have in common."""
MOST_TOLD = 5
_TELLING = ("layer", "readout", "precision", "projection", "weights")
"""What tells models with one backbone apart, the most telling first."""


@dataclass(frozen=True)
class Entry:
    """A model in a group.

    Attributes:
        label: What it is called on the whole page.
        runs: Its runs, one a seed, in the order of seeds.
    """

    label: str
    runs: tuple[Score, ...]

    @property
    def first(self) -> Score:
        """The run of the lowest seed."""
        return self.runs[0]


@dataclass(frozen=True)
class Group:
    """Runs that can be compared.

    Attributes:
        key: Short name on the page, as in "g1".
        facts: What all runs of the group share, name → text.
        entries: Models, in the order of their labels.
        apart: Why this is not one group with others of its benchmark; "" where it is the only one.
        notes: What else to know of comparing its models.
    """

    key: str
    facts: Mapping[str, str]
    entries: tuple[Entry, ...]
    apart: str = ""
    notes: tuple[str, ...] = ()

    @property
    def benchmark(self) -> str:
        """Name of the benchmark."""
        return self.facts["benchmark"]

    @property
    def name(self) -> str:
        """Benchmark, data set and, of a study, that it is one."""
        experiment = self.facts.get("protocol.experiment", "")
        parts = [self.benchmark, self.facts["dataset"], experiment, "study" if "study" in self.facts else ""]
        return " · ".join(part.replace("_", " ") for part in parts if part)

    @property
    def simulated(self) -> bool:
        """Whether its people are a simulation."""
        return any(is_simulated(run) for entry in self.entries for run in entry.runs)


def readout_of(score: Score) -> str:
    """What turned features into answers; the trained readout does not name itself."""
    readout = score.result.details.get("readout") or {}
    return str(readout.get("readout") or readout.get("solver") or "none")


def group_runs(runs: Sequence[Score]) -> tuple[list[Group], list[str]]:
    """Sort runs into groups, and those of one model with several seeds into entries.

    Args:
        runs: Runs, whose tables are not looked at.

    Returns:
        Groups in the order of the page, and a sentence for every run that was given twice.
    """
    by_facts: dict[tuple, list[Score]] = {}
    facts_of: dict[tuple, dict[str, str]] = {}
    for run in runs:
        facts = comparable_facts(run)
        by_facts.setdefault(tuple(facts.items()), []).append(run)
        facts_of[tuple(facts.items())] = facts
    keys = sorted(by_facts, key=lambda key: (_place(facts_of[key]), -len(by_facts[key]), key))
    models, dropped = [], []
    for key in keys:
        found, twice = _models(by_facts[key])
        models.append(found)
        dropped += twice
    labels = _labels(models)
    groups = []
    for number, (key, found, names) in enumerate(zip(keys, models, labels, strict=True), 1):
        entries = [Entry(label, tuple(own)) for label, own in zip(names, found, strict=True)]
        entries.sort(key=lambda entry: entry.label.lower())
        apart = _apart(key, keys, facts_of)
        groups.append(Group(f"g{number}", facts_of[key], tuple(entries), apart, tuple(_notes(entries))))
    return groups, dropped


def comparable_facts(score: Score) -> dict[str, str]:
    """What two runs must have in common for their numbers to be ranked together.

    Switches of the protocol count by value, not by the name of the preset. A presence head that was trained on the
    features of the very network that it judges for counts as one kind of judge.
    """
    details, facts = score.result.details, dict[str, str]()
    facts |= {"benchmark": score.benchmark, "version": score.benchmark_version, "dataset": score.dataset}
    facts |= {"data hash": str(json_ready(score.hashes.get("data"))), "people simulated": str(is_simulated(score))}
    if "study" in details:
        facts["study"] = str(details["study"])
    left_out = (*NAMES_OF_PRESETS, *OF_MODELS.get(score.benchmark, ()))
    facts |= dict(sorted(_flat(score.result.protocol, left_out, "protocol")))
    counts = score.result.counts
    of_people = ("items_total", *PEOPLE_COUNTS.get(score.benchmark, ()))
    facts |= {name.replace("_", " "): str(counts[name]) for name in of_people if counts.get(name) is not None}
    judge = details.get("judge") or {}
    if details.get("elements"):
        facts["elements"] = str(details["elements"].get("source"))
    if judge:
        own = f" on {score.backbone} {score.layer} "
        facts["judge"] = str(judge.get("source")).replace(own, " on each model's own features ")
        facts["threshold of presence"] = str(judge.get("threshold"))
    learner = (details.get("object_learning") or {}).get("reference") or {}
    if learner:
        facts["rule of learning"] = str(learner.get("rule"))
    made = details.get("generation") or {}
    facts |= {name: str(made[name]) for name in ("critic", "judges", "reference") if made.get(name)}
    return facts


def _flat(value: Any, left_out: Sequence[str], path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, entry in value.items():
            if name not in left_out:
                yield from _flat(entry, left_out, f"{path}.{name}")
    else:
        yield path, str(json_ready(value))


def _place(facts: Mapping[str, str]) -> tuple[int, str]:
    name = facts["benchmark"]
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def _identity(score: Score) -> dict[str, str]:
    extraction = score.result.details.get("extraction") or {}
    return {
        "layer": score.layer,
        "readout": readout_of(score),
        "precision": str(extraction.get("dtype", "")),
        "projection": str(extraction.get("projection") or ""),
        "weights": str(json_ready(score.hashes.get("weights")) or "")[:8],
    }


def _models(runs: Sequence[Score]) -> tuple[list[list[Score]], list[str]]:
    """Runs by model; of a run that is there twice the newest; equal seeds with different answers are two models."""
    by_model: dict[tuple, dict[tuple, list[Score]]] = {}
    for run in sorted(runs, key=lambda r: (r.started, r.run_dir or ""), reverse=True):
        key = (run.backbone, *_identity(run).values())
        by_model.setdefault(key, {}).setdefault(tuple(sorted(run.seeds.items())), []).append(run)
    found, dropped = [], []
    for seeds in by_model.values():
        first: list[Score] = []
        for _, own in sorted(seeds.items(), key=lambda item: str(item[0])):
            distinct = {run.digest: run for run in reversed(own)}
            dropped += [
                f"{run.run_dir} is the run of {distinct[run.digest].run_dir} once more, which is newer, and is left out"
                for run in own
                if run is not distinct[run.digest]
            ]
            newest, *older = sorted(distinct.values(), key=lambda r: r.started, reverse=True)
            first.append(newest)
            found += [[run] for run in older]
        found.append(first)
    return found, dropped


def _labels(groups: Sequence[Sequence[Sequence[Score]]]) -> list[list[str]]:
    """What models are called: the backbone, what tells its models in a group apart, the folder as a last resort."""
    suffixes: dict[str, list[str]] = {}
    for name in {own[0].backbone for group in groups for own in group}:
        inside = [[_identity(own[0]) for own in group if own[0].backbone == name] for group in groups]
        chosen: list[str] = []
        for fact in _TELLING:
            before, after = _collisions(inside, chosen), _collisions(inside, [*chosen, fact])
            chosen = [*chosen, fact] if after < before else chosen
        suffixes[name] = chosen
    labels = []
    for group in groups:
        names = []
        for own in group:
            identity = _identity(own[0])
            names.append(" · ".join([own[0].backbone, *(identity[f] for f in suffixes[own[0].backbone])]))
        labels.append(
            [
                f"{name} · {Path(own[0].run_dir or '').name}" if names.count(name) > 1 else name
                for name, own in zip(names, group, strict=True)
            ]
        )
    return labels


def _collisions(groups: Sequence[Sequence[Mapping[str, str]]], chosen: Sequence[str]) -> int:
    return sum(len(own) - len({tuple(i[f] for f in chosen) for i in own}) for own in groups)


def _apart(key: tuple, keys: Sequence[tuple], facts_of: Mapping[tuple, Mapping[str, str]]) -> str:
    """How a group differs from the first other one of its benchmark."""
    own = facts_of[key]
    others = [k for k in keys if k != key and facts_of[k]["benchmark"] == own["benchmark"]]
    if not others:
        return ""
    same_data = [k for k in others if facts_of[k]["dataset"] == own["dataset"]]
    if not same_data:
        return f"No other runs of {own['benchmark'].replace('_', ' ')} are of this data set, so it is ranked by itself."
    nearest = min(same_data, key=lambda k: len(_differences(own, facts_of[k])))
    told = _differences(own, facts_of[nearest])
    shown = "; ".join(
        f"{name.removeprefix('protocol.').replace('_', ' ')} ({_short(a)} here, {_short(b)} there)"
        for name, a, b in told[:MOST_TOLD]
    )
    more = f"; and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    return f"Not ranked with the runs of group g{keys.index(nearest) + 1}, from which these differ in {shown}{more}."


def _differences(own: Mapping[str, str], other: Mapping[str, str]) -> list[tuple[str, str, str]]:
    names = dict.fromkeys([*own, *other])
    return [(n, own.get(n, "nothing"), other.get(n, "nothing")) for n in names if own.get(n) != other.get(n)]


def _short(text: str) -> str:
    hexadecimal = len(text) == 64 and all(c in "0123456789abcdef" for c in text)
    return text[:12] if hexadecimal else text if len(text) <= 60 else text[:57] + "…"


def _notes(entries: Sequence[Entry]) -> Iterator[str]:
    several = sum(len(entry.runs) > 1 for entry in entries)
    if several:
        yield (
            f"{several} model(s) were run with several seeds: a value is the mean over seeds, and its interval reaches "
            "from the lowest to the highest end of the seeds' intervals."
        )
    judge = str((entries[0].first.result.details.get("judge") or {}).get("source", ""))
    if len(entries) > 1 and f" on {entries[0].first.backbone} {entries[0].first.layer} " in judge:
        yield (
            "Which elements are present was judged by a head on each model's own features, so that models differ in "
            "judging as well as in recognising."
        )
