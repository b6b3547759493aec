"""What each switch of the protocol alone changes in every score, and the presets side by side.

A variant of a protocol differs from it in one switch. Scores that a switch cannot move have no row for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from humanlike.benchmarks.protocol import PRESETS, Protocol, switch_values
from humanlike.benchmarks.seva_comparison import Estimate
from humanlike.benchmarks.study.comparison import Comparison
from humanlike.benchmarks.study.models import PEOPLE
from humanlike.benchmarks.study.people import StudyPeople
from humanlike.stats import METRICS

COLUMNS = ("switch", "value", "observer", "score", "estimate", "change", "ci_low", "ci_high", "standing", "note")
"""Columns of the discrepancy table."""


@dataclass(frozen=True)
class Variant:
    """A protocol under the name of what makes it differ.

    Attributes:
        switch: Name of the switch, or `preset`.
        value: Its value, or the preset's name.
        protocol: The protocol.
        standing: True for the study's own protocol.
    """

    switch: str
    value: str
    protocol: Protocol
    standing: bool


def variants(protocol: Protocol) -> list[Variant]:
    """Every value of every switch, the others as in `protocol`; then the presets.

    Example:
        >>> from humanlike.benchmarks.protocol import preset
        >>> [v.value for v in variants(preset("corrected")) if v.switch == "no_error_cell"]
        ['missing', 'one']
    """
    own = protocol.switches
    single = [
        Variant(switch, value, protocol.overridden({switch: value}), own[switch] == value)
        for switch, values in switch_values().items()
        for value in values
    ]
    presets = [Variant("preset", p.name, p, p.switches == own) for p in PRESETS.values()]
    return single + presets


Scores = Mapping[str, tuple[float, float, float]]
"""Score → value and interval ends (NaN where it has none)."""


def people_scores(people: StudyPeople, comparison: Comparison, protocol: Protocol) -> Scores:
    """Means over cells and consistency of people.

    Args:
        people: People.
        comparison: Of people alone.
        protocol: The protocol.
    """
    scores = _means(comparison, protocol)
    for metric, split in people.consistency(protocol).items():
        interval = split.interval()
        scores[f"consistency_{metric}"] = (split.mean, interval.low, interval.high)
        if protocol.human_baseline == "split_half_and_spearman_brown":
            brown = split.spearman_brown_interval()
            scores[f"consistency_{metric}_spearman_brown"] = (split.spearman_brown, brown.low, brown.high)
    return scores


def model_scores(comparison: Comparison, protocol: Protocol) -> Scores:
    """Means over cells of a model, its alignment and what it adds over the condition."""
    scores = _means(comparison, protocol)
    if comparison.has_people:
        for metric in METRICS:
            scores[f"alignment_{metric}"] = _ends(comparison.alignment(metric, protocol))
            scores[f"delta_r2_{metric}"] = _ends(comparison.added_r2(metric, protocol))
    return scores


def _means(comparison: Comparison, protocol: Protocol) -> dict[str, tuple[float, float, float]]:
    return {metric: _ends(comparison.cell_mean(metric, protocol)) for metric in METRICS}


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.interval.low, estimate.interval.high


def compared(observer: str, of_variant: Iterable[tuple[Variant, Scores]], standing: Scores) -> pd.DataFrame:
    """An observer's rows of the discrepancy table.

    Args:
        observer: Its name.
        of_variant: Its scores under every variant.
        standing: Its scores under the study's protocol.

    Returns:
        Columns as in `COLUMNS`. `change` is the estimate less that under the study's protocol. A score that a switch
        leaves as it is for all its values (interval included) has no row for this switch, but for the presets all.
    """
    rows = [row for variant, scores in of_variant for row in _rows(observer, variant, scores, standing)]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    ends = table[["estimate", "ci_low", "ci_high"]].round(12).fillna(np.inf)  # not known, at all values, is no change
    differs = (ends.groupby([table["switch"], table["score"]]).transform("nunique") > 1).any(axis=1)
    appears = table.groupby(["switch", "score"])["value"].transform("size")
    all_values = table.groupby("switch")["value"].transform("nunique")
    moved = differs | (appears < all_values) | (table["switch"] == "preset")
    return table[moved].reset_index(drop=True)


def _rows(observer: str, variant: Variant, scores: Scores, standing: Scores) -> Iterator[tuple]:
    for score, (value, low, high) in scores.items():
        before = standing[score][0] if score in standing else np.nan
        note = "" if np.isfinite(value) else "not defined"
        yield (
            variant.switch,
            variant.value,
            observer,
            score,
            value,
            value - before,
            low,
            high,
            variant.standing,
            note,
        )


def _computable(comparison: Comparison, protocol: Protocol) -> list[Variant]:
    """The variants without a jackknife where participants are resampled: it leaves out images alone."""
    of_images = comparison.resamples.kind == "images"
    return [v for v in variants(protocol) if of_images or v.protocol.interval != "jackknife"]


def people_rows(people: StudyPeople, comparison: Comparison, protocol: Protocol) -> pd.DataFrame:
    """People's rows of the discrepancy table."""
    asked = _computable(comparison, protocol)
    # Presets first: they set several switches at once, so that fewer halves have to be computed for single ones.
    scored = [(v, people_scores(people, comparison, v.protocol)) for v in reversed(asked)]
    return compared(PEOPLE, reversed(scored), people_scores(people, comparison, protocol))


def model_rows(name: str, comparison: Comparison, protocol: Protocol) -> pd.DataFrame:
    """A model's rows of the discrepancy table."""
    scored = [(v, model_scores(comparison, v.protocol)) for v in _computable(comparison, protocol)]
    return compared(name, scored, model_scores(comparison, protocol))


def not_computed(protocol: Protocol, switch: str, observers: Iterable[str], why: str) -> pd.DataFrame:
    """Rows that say that a switch's effect was not computed, and why: no value is ever invented."""
    rows = [
        (switch, value, observer, "", np.nan, np.nan, np.nan, np.nan, protocol.switches[switch] == value, why)
        for value in switch_values()[switch]
        for observer in observers
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def rows_of(observer: str, switch: str, found: Mapping[str, Scores], protocol: Protocol) -> pd.DataFrame:
    """Rows of a switch whose effect was computed elsewhere.

    Args:
        observer: What they are about.
        switch: The switch.
        found: Each of its values → scores.
        protocol: The study's protocol.
    """
    standing = found[protocol.switches[switch]]
    scored = [(v, found[v.value]) for v in variants(protocol) if v.switch == switch]
    return compared(observer, scored, standing)
