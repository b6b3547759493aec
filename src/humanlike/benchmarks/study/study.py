"""Many models and people on one data set: everything that Table 3 and Figures 3 to 5 of the paper need, and more.

    models, data → one pass over the models (cells, replicates, alignment) → plain tables → analyses on these tables

Legend: B replicates.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from humanlike.benchmarks.protocol import Protocol, preset, switch_values
from humanlike.benchmarks.seva_answers import NeighbourRanks, neighbour_ranks
from humanlike.benchmarks.seva_people import code_people
from humanlike.benchmarks.seva_scores import chance_levels
from humanlike.benchmarks.study import discrepancy
from humanlike.benchmarks.study.comparison import Comparison
from humanlike.benchmarks.study.models import PEOPLE, StudyModel, models_table
from humanlike.benchmarks.study.observers import StudyResamples, model_observer
from humanlike.benchmarks.study.people import StudyPeople, stroke_counts, study_items
from humanlike.benchmarks.study.tables import (
    alignment_rows,
    by_condition,
    cell_rows,
    human_baseline,
    mean_rows,
    replicates_table,
    sketch_rows,
    strokes_by_condition,
    with_published,
)
from humanlike.stats import METRICS, SketchStatistics
from humanlike.stats.crossed import Resample
from humanlike.types import Sketches

SEVA_NAMES = ("seva",)
"""Names of data sets beside which the published numbers stand."""

REFIT_NEEDED = "not computed: the readout was not fitted again (discrepancy_refit=true, for evaluated backbones)"
"""Why the switch `cv` has no value."""


@dataclass(frozen=True)
class StudySettings:
    """What a study is told.

    Attributes:
        protocol: The switches.
        replicates: Bootstrap replicates.
        resample: What a replicate draws anew: `images`, `participants` or both (`crossed`).
        splits: Random halves of the participants.
        seed: Global seed.
        on_unknown: `raise` or `drop` guesses that are no label.
        discrepancy: Whether to compute what each switch alone changes.
    """

    protocol: Protocol = field(default_factory=lambda: preset("corrected"))
    replicates: int = 1000
    resample: Resample = "images"
    splits: int = 200
    seed: int = 0
    on_unknown: str = "raise"
    discrepancy: bool = True


@dataclass
class StudyResult:
    """What a study found.

    Attributes:
        tables: Name → table.
        missing: Name of a table that could not be made → why.
        counts: Name → whole number.
        flags: Statements that must stand next to everything.
        replicates: Metric → observer → (B,) bootstrap replicates of the alignment.
        splits: Metric → (S,) people's split-half values.
        top1: `sketch_id` and one integer column a model: what was decided.
        details: Chance levels and other facts.
        hashes: Model → digests that fix its answers.
        statistics: Model → sufficient statistics under the study's protocol.
        seconds: Part → CPU seconds.
    """

    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    replicates: dict[str, dict[str, np.ndarray]] = field(default_factory=lambda: {m: {} for m in METRICS})
    splits: dict[str, np.ndarray] = field(default_factory=dict)
    top1: pd.DataFrame = field(default_factory=pd.DataFrame)
    details: dict[str, Any] = field(default_factory=dict)
    hashes: dict[str, dict[str, str]] = field(default_factory=dict)
    statistics: dict[str, SketchStatistics] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def clock(self, part: str) -> Iterator[None]:
        """Add the CPU seconds of a block to a part."""
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.process_time() - began


class Study:
    """A data set with people's answers, ready for any number of models.

    People's side is computed once. Models are taken one after the other and forgotten, so that memory does not grow
    with their number but for their rows of the tables.

    Args:
        data: The sketches; those that nobody judged are left out where some were judged.
        settings: What the study is told.

    Raises:
        ValueError: When an answer of people is no label.
    """

    def __init__(self, data: Sketches, settings: StudySettings) -> None:
        self.settings = settings
        self.data, self.items = study_items(data)
        self.left_out = len(data) - len(self.data)
        self.ranks: NeighbourRanks = neighbour_ranks(self.data.semantic_space, len(self.data.labels))
        self.resamples = StudyResamples(self.items.design, settings.replicates, settings.seed, settings.resample)
        self.people = self._people()

    @property
    def sketch_ids(self) -> list[str]:
        """The sketches in the order of all per-item arrays."""
        return self.items.table["sketch_id"].tolist()

    def _people(self) -> StudyPeople | None:
        if self.data.responses is None:
            return None
        coded = code_people(self.data.responses, self.sketch_ids, self.data.labels, self.settings.on_unknown)
        if len(coded.responses) == 0:
            return None
        splits, seed = self.settings.splits, self.settings.seed
        return StudyPeople(coded, self.items, self.ranks, self.resamples, splits, seed)

    def run(self, models: Iterable[StudyModel], refitted: Mapping[str, StudyModel] | None = None) -> StudyResult:
        """All tables that follow from the answers alone.

        Args:
            models: Models with different names; they are taken one by one and need not all be in memory.
            refitted: Name → the same model read out with the other kind of folds (switch `cv`); None where not asked.

        Returns:
            The result with the tables `models`, `sketch_rows`, `cell_rows`, `people_by_condition` (Table 3),
            `conditions` (Figure 4), `means`, `alignment` (Figure 5 A–C), `replicates`, `strokes`,
            `strokes_by_condition` (Figure 3) and `discrepancy`, as far as the data allow; the others are in `missing`.

        Raises:
            ValueError: When there is no model, two share a name, or one answered none of the sketches.
        """
        result = StudyResult(details={"chance": self.chance()}, counts=self._counts())
        parts: dict[str, list[pd.DataFrame]] = {}
        if self.people is not None:
            _add(parts, self._of_people(self.people, result))
        seen: list[StudyModel] = []
        top1 = {"sketch_id": np.array(self.sketch_ids, dtype=object)}
        for model in models:
            if model.name in top1:
                raise ValueError(f"two models of the study are called {model.name!r}; every model needs its own name")
            _add(parts, self._of_model(model, result, top1, (refitted or {}).get(model.name)))
            seen.append(_without_answers(model))
        if not seen:
            raise ValueError(
                "a study needs at least one model; name backbones, runs, machine answers or simulated ones"
            )
        result.top1 = pd.DataFrame(top1)
        result.tables["models"] = models_table(seen)
        result.tables |= {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}
        result.counts["models"] = len(seen)
        result.hashes = {m.name: dict(m.hashes) for m in seen}
        result.flags += [f"other_images:{name}" for name in _other_images(seen)]
        result.flags = _unique(*result.flags, *self.data.flags, *_of_models(seen, self.data.flags), *self._flags())
        self._finish(result)
        return result

    def chance(self) -> dict[str, float | None]:
        """What a model that knows nothing would score."""
        ranked = self.ranks.ranks_LL is not None
        return chance_levels(self.settings.protocol, self.items.design.num_concepts, ranked)

    def _of_people(self, people: StudyPeople, result: StudyResult) -> dict[str, pd.DataFrame]:
        protocol = self.settings.protocol
        alone = Comparison(self.resamples, people.observer)
        with result.clock("people"):
            tables = self._long_rows(PEOPLE, alone)
            tables["means"], _ = mean_rows(PEOPLE, alone, protocol)
            if people.coded.num_participants > 1:
                halves = people.resampled_consistency(protocol)  # first, so that nothing computes them again
                result.splits = {metric: split.r2_S for metric, split in halves.items()}
                tables["alignment"] = human_baseline(people, protocol)
        if self.settings.discrepancy:
            with result.clock("discrepancy"):
                tables["discrepancy"] = discrepancy.people_rows(people, alone, protocol)
        return tables

    def _of_model(
        self, model: StudyModel, result: StudyResult, top1: dict[str, np.ndarray], refit: StudyModel | None
    ) -> dict[str, pd.DataFrame]:
        protocol = self.settings.protocol
        with result.clock("models"):
            answers = model.aligned(self.sketch_ids)
            observer = model_observer(answers, self.items, self.ranks, self.resamples)
            people = None if self.people is None else self.people.observer
            beside = Comparison(self.resamples, observer, people)
            result.statistics[model.name] = observer.statistics(protocol)
            tables = self._long_rows(model.name, beside)
            tables["means"], _ = mean_rows(model.name, beside, protocol)
            if people is not None:
                tables["alignment"], replicates = alignment_rows(model.name, beside, protocol)
                for metric, value_B in replicates.items():
                    result.replicates[metric][model.name] = value_B
        if (unanswered := int((answers.top1_N < 0).sum())) > 0:
            result.counts[f"unanswered_{model.name}"] = unanswered
            result.flags.append(f"unanswered:{model.name}:{unanswered}")
        if self.settings.discrepancy:
            with result.clock("discrepancy"):
                rows = discrepancy.model_rows(model.name, beside, protocol)
                tables["discrepancy"] = pd.concat([rows, self._of_folds(model.name, beside, refit)], ignore_index=True)
        if model.layers is not None:
            tables["layers"] = model.layers.copy()
            tables["layers"].insert(0, "observer", model.name)
        top1[model.name] = answers.top1_N
        return tables

    def _of_folds(self, name: str, standing: Comparison, refit: StudyModel | None) -> pd.DataFrame:
        """What the switch `cv` changes, which only a readout that was fitted again can tell."""
        protocol = self.settings.protocol
        if refit is None:
            return discrepancy.not_computed(protocol, "cv", [name], REFIT_NEEDED)
        observer = model_observer(refit.aligned(self.sketch_ids), self.items, self.ranks, self.resamples)
        other = Comparison(self.resamples, observer, None if self.people is None else self.people.observer)
        found = {
            value: discrepancy.model_scores(standing if value == protocol.cv else other, protocol)
            for value in switch_values()["cv"]
        }
        return discrepancy.rows_of(name, "cv", found, protocol)

    def _long_rows(self, name: str, comparison: Comparison) -> dict[str, pd.DataFrame]:
        protocol, observer = self.settings.protocol, comparison.model
        statistics = observer.statistics(protocol)
        return {
            "sketch_rows": sketch_rows(self.items, name, statistics),
            "cell_rows": cell_rows(self.items, self.data.labels, name, observer, protocol),
            "conditions": by_condition(self.items, name, statistics),
        }

    def _finish(self, result: StudyResult) -> None:
        tables, missing = result.tables, result.missing
        chance = pd.Series(result.details["chance"], dtype=float)
        tables["conditions"]["chance"] = tables["conditions"]["metric"].map(chance)
        if self.people is None:
            missing |= dict.fromkeys(("people_by_condition", "alignment", "replicates"), "nobody judged these sketches")
        else:
            table3 = tables["conditions"].query("observer == @PEOPLE").drop(columns="chance").reset_index(drop=True)
            tables["people_by_condition"] = with_published(table3) if self.data.name in SEVA_NAMES else table3
            tables["replicates"] = replicates_table(result.replicates)
        strokes = stroke_counts(self.data)
        if strokes is None:
            missing |= dict.fromkeys(("strokes", "strokes_by_condition"), "the data set does not count strokes")
        else:
            tables["strokes"], tables["strokes_by_condition"] = strokes, strokes_by_condition(strokes)
        if not self.settings.discrepancy:
            missing["discrepancy"] = "not asked for (discrepancy=false)"

    def _counts(self) -> dict[str, int]:
        design = self.items.design
        counts = {
            "sketches": len(self.items),
            "sketches_not_judged": self.left_out,
            "concepts": design.num_concepts,
            "conditions": design.num_conditions,
            "cells": design.num_cells,
            "cells_empty": int((design.items_C == 0).sum()),
        }
        if self.people is not None:
            coded = self.people.coded
            counts |= {"participants": coded.num_participants, "judgments": len(coded.responses), **coded.dropped}
        return counts

    def _flags(self) -> list[str]:
        told = {
            "no_people": self.people is None,
            "no_semantic_space": self.ranks.ranks_LL is None,
            f"sketches_not_judged:{self.left_out}": self.left_out > 0,
            "interval_biased_down": self.settings.protocol.interval == "percentile",
            "one_participant": self.people is not None and self.people.coded.num_participants == 1,
        }
        return [flag for flag, holds in told.items() if holds]


def _add(parts: dict[str, list[pd.DataFrame]], tables: dict[str, pd.DataFrame]) -> None:
    for name, table in tables.items():
        parts.setdefault(name, []).append(table)


def _unique(*flags: str) -> list[str]:
    return list(dict.fromkeys(flags))


def _of_models(models: Sequence[StudyModel], known: Sequence[str]) -> Iterator[str]:
    """What has to be said about single models, `flag:MODEL[:about]`; what holds for the data set is said once."""
    for model in models:
        for flag in model.flags:
            if flag not in known:
                name, colon, about = flag.partition(":")
                yield f"{name}:{model.name}{colon}{about}"


def _other_images(models: Sequence[StudyModel]) -> list[str]:
    """Models that saw other pixels than the first one that saw any; recorded and published answers do not tell."""
    seen = [(m.name, m.hashes["data"]) for m in models if "transform" in m.hashes and "data" in m.hashes]
    return [name for name, data in seen if data != seen[0][1]]


def _without_answers(model: StudyModel) -> StudyModel:
    return replace(model, answers=model.answers.iloc[:0])
