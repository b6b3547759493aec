"""Further analyses of a study, each from its tables and replicates to named tables.

An analysis that the data cannot carry gives the reason in place of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from humanlike.benchmarks.protocol import Protocol, switch_values
from humanlike.benchmarks.seva_answers import people_switches
from humanlike.benchmarks.study import discrepancy
from humanlike.benchmarks.study.gaps import consistency_gaps, order_agreement
from humanlike.benchmarks.study.inference import (
    alignment_table,
    comparisons_table,
    power_table,
    rank_groups_table,
    resampled_alignments,
)
from humanlike.benchmarks.study.item_consistency import consistency_table, models_consistency
from humanlike.benchmarks.study.machine_sketches import MEASURES, machine_sketches
from humanlike.benchmarks.study.mixed_effects import mixed_effects, strokes_by_time
from humanlike.benchmarks.study.mixed_published import machine_with_published, with_published
from humanlike.benchmarks.study.models import PEOPLE
from humanlike.benchmarks.study.people import StudyPeople
from humanlike.benchmarks.study.study import SEVA_NAMES, Study, StudyResult
from humanlike.stats.crossed import PeopleUnderWeights
from humanlike.types import Sketches

POWER_REPLICATES = 200
"""Replicates over participants, and over both, for the components of variance."""

CLIPASSO_NAME = "seva_clipasso"
"""Name of the data set of machine sketches beside which the published numbers stand."""

SKETCHES = "sketches"
"""In the discrepancy table: what is about the sketches themselves."""

Tables = Mapping[str, pd.DataFrame]

Analysis = tuple[tuple[str, ...], Callable[[Study, StudyResult], Tables]]
"""Names of the tables, and what makes them."""


def analyse(study: Study, result: StudyResult, parts: Mapping[str, Analysis]) -> None:
    """Add the tables of some analyses to a result; where one cannot be made, `missing` says why."""
    for name, (makes, analysis) in parts.items():
        with result.clock(name):
            try:
                result.tables |= {k: table for k, table in analysis(study, result).items() if len(table)}
            except ValueError as error:
                result.missing |= dict.fromkeys(makes, str(error))
    if study.settings.discrepancy:
        with result.clock("discrepancy"):
            rows = [result.tables["discrepancy"], *further_switches(result, study.settings.protocol)]
            result.tables["discrepancy"] = pd.concat(rows, ignore_index=True)


def inference(study: Study, result: StudyResult) -> Tables:
    """Alignment beside its ceiling, all pairs of models, and ranks, with p-values adjusted for their number."""
    people, estimates = _people_needed(study), _full_sample(result)
    halves = people.resampled_consistency(study.settings.protocol)
    return {
        "noise_ceiling": alignment_table(estimates, result.replicates, halves),
        "comparisons": comparisons_table(estimates, result.replicates),
        "rank_groups": rank_groups_table(estimates, result.replicates),
    }


def item_consistency(study: Study, result: StudyResult) -> Tables:
    """Do models err on the same sketches as people, and as each other?"""
    settings, target_N = study.settings, study.items.target_N
    top1 = {str(name): result.top1[name].to_numpy() for name in result.top1.columns if name != "sketch_id"}
    correct, answered = ({n: of(c) for n, c in top1.items()} for of in (lambda c: c == target_N, lambda c: c >= 0))
    tables = {}
    if len(top1) > 1:
        tables["models_consistency"] = models_consistency(correct, answered).rename_axis("observer").reset_index()
    else:
        result.missing["models_consistency"] = "there is one model"
    if study.people is None:
        result.missing["item_consistency"] = "nobody judged these sketches"
        return tables
    tables["item_consistency"] = consistency_table(
        correct,
        study.people.coded.responses,
        target_N,
        study.items.design,
        answered=answered,
        resample=settings.resample,
        replicates=settings.replicates,
        seed=settings.seed,
    )
    return tables


def power(study: Study, result: StudyResult) -> Tables:
    """How many images or participants would separate every two models."""
    people = _people_needed(study)
    if study.settings.resample != "images":
        raise ValueError("the power of a study needs replicates over images alone (benchmark.resample=images)")
    _several(result, "power")
    participants = people.coded.num_participants
    if participants < 2:
        raise ValueError("the power of a study needs two participants or more")
    weighted = PeopleUnderWeights(
        study.items.design,
        people.coded.responses,
        study.items.target_N,
        study.ranks.ranks_LL,
        people_switches(study.settings.protocol),
    )
    others = [
        resampled_alignments(weighted, result.statistics, kind, POWER_REPLICATES, study.settings.seed)
        for kind in ("participants", "crossed")
    ]
    images = int(np.median(study.items.design.images_K))
    return {
        "power": power_table(_full_sample(result), result.replicates, *others, images=images, participants=participants)
    }


def gaps(study: Study, result: StudyResult) -> Tables:
    """Welch's tests of the models' gaps to people's consistency, and Spearman's ρ of the models' orders."""
    _people_needed(study)
    aligned = _full_alignment(result)
    tables = {"spearman": order_agreement(aligned)} if aligned["observer"].nunique() > 2 else {}
    if not tables:
        result.missing["spearman"] = "orders of fewer than three models say nothing"
    if not result.splits:
        raise ValueError("people's consistency with one another needs two participants or more")
    switch = study.settings.protocol.welch_test
    return {**tables, "gaps": consistency_gaps(aligned, result.replicates, result.splits, welch_test=switch)}


def mixed(study: Study, result: StudyResult) -> Tables:
    """The mixed-effects models of Section 3."""
    tables = result.tables
    fitted = mixed_effects(
        tables["sketch_rows"],
        tables["cell_rows"],
        tables.get("strokes"),
        stroke_count_model=study.settings.protocol.stroke_count_model,
    )
    if study.data.name in SEVA_NAMES:
        fitted = with_published(fitted)
    return {"mixed_fits": fitted.fits, "mixed_terms": fitted.terms, "mixed_random": fitted.random}


def of_machine_sketches(machine: Sketches) -> Analysis:
    """The analysis of people's answers to a machine's sketches."""

    def analysis(study: Study, result: StudyResult) -> Tables:
        settings = study.settings
        tables = machine_sketches(
            study.data,
            machine,
            settings.protocol,
            replicates=settings.replicates,
            seed=settings.seed,
            on_unknown=settings.on_unknown,
        )
        published = study.data.name in SEVA_NAMES and machine.name == CLIPASSO_NAME
        return machine_with_published(tables) if published else tables

    return ("machine_cells", "machine_levels", "machine_fit", "machine_divergence", "machine_trend"), analysis


ANALYSES: Mapping[str, Analysis] = {
    "inference": (("noise_ceiling", "comparisons", "rank_groups"), inference),
    "items": (("item_consistency", "models_consistency"), item_consistency),
    "gaps": (("gaps",), gaps),
    "mixed_effects": (("mixed_fits", "mixed_terms", "mixed_random"), mixed),
    "power": (("power",), power),
}
"""Analyses of every study."""


def further_switches(result: StudyResult, protocol: Protocol) -> Iterator[pd.DataFrame]:
    """Rows of the discrepancy table for switches that move further analyses and no score of an observer."""
    yield _of_stroke_model(result, protocol)
    yield _of_welch_test(result, protocol)
    yield _of_divergence(result, protocol)


def _of_stroke_model(result: StudyResult, protocol: Protocol) -> pd.DataFrame:
    switch, found = "stroke_count_model", {}
    if "strokes" not in result.tables:
        return discrepancy.not_computed(protocol, switch, [SKETCHES], "not computed: " + result.missing["strokes"])
    for value in switch_values()[switch]:
        terms = strokes_by_time(result.tables["strokes"], value).terms
        slope = terms[terms["term"] == "t"] if len(terms) else terms
        if len(slope):
            found[value] = {"strokes_per_unit_of_time": tuple(slope.iloc[0][["estimate", "ci_low", "ci_high"]])}
    if len(found) < len(switch_values()[switch]):
        return discrepancy.not_computed(protocol, switch, [SKETCHES], "not computed: a model could not be fitted")
    return discrepancy.rows_of(SKETCHES, switch, found, protocol)


def _of_welch_test(result: StudyResult, protocol: Protocol) -> pd.DataFrame:
    switch = "welch_test"
    if not result.splits:
        return discrepancy.not_computed(protocol, switch, [PEOPLE], "not computed: there are no halves of people")
    aligned, tables = _full_alignment(result), []
    tests = {
        value: consistency_gaps(aligned, result.replicates, result.splits, welch_test=value)
        for value in switch_values()[switch]
    }
    for name in aligned["observer"].unique():
        found = {}
        for value, table in tests.items():
            own = table[table["observer"] == name]
            gap = {f"gap_{r.metric}": (r.estimate, r.ci_low, r.ci_high) for r in own.itertuples()}
            found[value] = gap | {f"welch_t_{r.metric}": (r.statistic, np.nan, np.nan) for r in own.itertuples()}
        tables.append(discrepancy.rows_of(name, switch, found, protocol))
    return pd.concat(tables, ignore_index=True)


def _of_divergence(result: StudyResult, protocol: Protocol) -> pd.DataFrame:
    switch, table = "divergence", result.tables.get("machine_divergence")
    if table is None:
        return discrepancy.not_computed(protocol, switch, ["machine"], "not computed: there are no machine sketches")
    means = table.groupby("measure")["estimate"].mean()
    if set(means.index) < set(MEASURES["both"]):
        why = "not computed: both measures are needed (divergence=both)"
        return discrepancy.not_computed(protocol, switch, ["machine"], why)
    found = {
        value: {f"divergence_{m}": (means[m], np.nan, np.nan) for m in MEASURES[value]}
        for value in switch_values()[switch]
    }
    return discrepancy.rows_of("machine", switch, found, protocol)


def _people_needed(study: Study) -> StudyPeople:
    if study.people is None:
        raise ValueError("nobody judged these sketches")
    return study.people


def _several(result: StudyResult, what: str) -> None:
    if result.counts["models"] < 2:
        raise ValueError(f"{what} compares models, and there is one")


def _full_alignment(result: StudyResult) -> pd.DataFrame:
    """`observer, metric, estimate, full_sample` of the models; both are the value on the full sample."""
    table = result.tables["alignment"]
    models = table[table["observer"] != PEOPLE]
    full = models.assign(estimate=models["full_sample"])
    return full[["observer", "metric", "estimate", "full_sample"]].reset_index(drop=True)


def _full_sample(result: StudyResult) -> dict[str, dict[str, float]]:
    """Metric → model → alignment on the full sample."""
    table = _full_alignment(result)
    return {
        str(m): dict(zip(t["observer"], t["estimate"], strict=True)) for m, t in table.groupby("metric", sort=False)
    }
