"""All that the report card says, computed before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from humanlike.reports.card.groups import Group, group_runs
from humanlike.reports.card.ranks import Ranking, rankings
from humanlike.reports.card.series import condition_rows, layer_rows
from humanlike.reports.card.sketches import Picture, pictures
from humanlike.reports.card.values import CardValue, entry_values, ranked_scores
from humanlike.types import Score

SWITCH_COLUMNS = ("benchmark", "dataset", "first", "second", "switches", "model", "score", "value_first",
                  "value_second", "change")  # fmt: skip


@dataclass(frozen=True)
class Card:
    """The content of a report card.

    Attributes:
        groups: Runs that can be compared, group by group.
        values: Key of a group → label of a model → score → value.
        scores: Key of a group → scores its models can be ordered by, the headline first; empty where nothing is known.
        rankings: Key of a group → score → order of its models; empty for a group of one model.
        conditions: Means by condition; see `series.condition_rows`.
        layers: Scores by layer; see `series.layer_rows`.
        pictures: Key of a group → example sketches.
        switches: The same models on the same data under protocols that differ, score by score.
        discrepancy: Name of a study → its table of what each switch alone changes.
        skipped: (folder, why) of what was given and could not be read.
        left_out: A sentence for every run that was given twice.
    """

    groups: tuple[Group, ...]
    values: Mapping[str, Mapping[str, Mapping[str, CardValue]]]
    scores: Mapping[str, Sequence[str]]
    rankings: Mapping[str, Mapping[str, Ranking]]
    conditions: pd.DataFrame
    layers: pd.DataFrame
    pictures: Mapping[str, Sequence[Picture]]
    switches: pd.DataFrame
    discrepancy: Mapping[str, pd.DataFrame]
    skipped: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def models(self) -> list[str]:
        """Labels of all models."""
        return sorted({entry.label for group in self.groups for entry in group.entries}, key=str.lower)

    @property
    def num_runs(self) -> int:
        """Number of runs on the card."""
        return sum(len(entry.runs) for group in self.groups for entry in group.entries)

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks, in the order of the page."""
        return list(dict.fromkeys(group.benchmark for group in self.groups))


def build_card(
    runs: Sequence[Score],
    discrepancy: Mapping[str, pd.DataFrame] | None = None,
    skipped: Sequence[tuple[str, str]] = (),
) -> Card:
    """Compare runs with one another.

    Args:
        runs: Runs, and models of studies; their folders are read for items, replicates, layers and sketches.
        discrepancy: Name of a study → its table of switches.
        skipped: What could not be read.

    Raises:
        ValueError: There are no runs.
    """
    if not runs:
        raise ValueError("there is no finished run to report; name folders that hold a score.json or a study.json")
    groups, left_out = group_runs(runs)
    values = {g.key: {e.label: entry_values(e) for e in g.entries} for g in groups}
    scores = {g.key: ranked_scores(g) for g in groups}
    return Card(
        groups=tuple(groups),
        values=values,
        scores=scores,
        rankings={g.key: rankings(g, values[g.key], scores[g.key]) for g in groups},
        conditions=_joined([condition_rows(g) for g in groups]),
        layers=_joined([layer_rows(g) for g in groups]),
        pictures={g.key: pictures(g) for g in groups},
        switches=pd.DataFrame(_switch_rows(groups, values, scores), columns=[*SWITCH_COLUMNS]),
        discrepancy=discrepancy or {},
        skipped=tuple(skipped),
        left_out=tuple(left_out),
    )


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else tables[0]


def _switch_rows(
    groups: Sequence[Group],
    values: Mapping[str, Mapping[str, Mapping[str, CardValue]]],
    scores: Mapping[str, Sequence[str]],
) -> Iterator[tuple]:
    """Models in two groups that differ in switches of the protocol alone."""
    for a, b in combinations(groups, 2):
        differing = [n for n in {**a.facts, **b.facts} if a.facts.get(n) != b.facts.get(n)]
        if not differing or not all(n.startswith("protocol.") for n in differing):
            continue
        told = "; ".join(
            f"{n.removeprefix('protocol.')}: {a.facts.get(n, 'nothing')} → {b.facts.get(n, 'nothing')}"
            for n in differing
        )
        for label in values[a.key]:
            for score in scores[a.key]:
                one, two = (values[g.key].get(label, {}).get(score) for g in (a, b))
                if one is not None and two is not None and one.value is not None and two.value is not None:
                    yield (
                        a.benchmark, a.facts["dataset"], a.key, b.key, told, label, score, one.value, two.value,
                        two.value - one.value,
                    )  # fmt: skip
