"""The numbers of an entry: means over seeds, and what share of people's own consistency they reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from humanlike.reports.card.groups import Entry, Group
from humanlike.reports.wording import is_missing, number, score_rows
from humanlike.stats.ratio import ratio_interval
from humanlike.types import Score, ScoreValue

HEADLINES: Mapping[str, tuple[str, ...]] = {
    "seva": ("alignment_accuracy", "alignment_entropy", "alignment_snp", "error_consistency", "accuracy", "jsd"),
    "seva_layers": ("alignment_accuracy", "nested_alignment_accuracy", "alignment_entropy", "alignment_snp",
                    "error_consistency", "accuracy"),
    "sea": ("sea", "recognition", "visual_ratio", "accuracy", "presence_f1"),
    "object_learning": ("msen_paper", "msen_v2", "consistency", "accuracy", "test_accuracy"),
    "fixed_labels": ("error_consistency", "observed_consistency", "accuracy", "jsd"),
    "generation": ("sea", "gain_sea", "hack_gap", "recognition", "accuracy", "jsd"),
}  # fmt: skip
"""Benchmark → scores that models can be ordered by, the first of those with values being the headline."""
LOWER_IS_BETTER = ("msen", "jsd", "noise_floor", "hack_gap", "frechet", "kernel", "lapse_rate", "gap_")
"""What the names of scores begin with of which less is better."""
ERRORS = ("msen",)


@dataclass(frozen=True)
class CardValue:
    """A score of an entry.

    Attributes:
        value: Mean over seeds, or None.
        low: Lower end of its 95% interval; over seeds the lowest.
        high: Upper end; over seeds the highest.
        ceiling: People's own consistency, or None.
        fraction: value / ceiling; None where there is no ceiling.
        fraction_low: Lower end of its interval.
        fraction_high: Upper end.
        reason: Why there is no fraction, or no interval of it; "" where nothing is missing.
        people: People's value of the same score, or None.
        n: What it was computed from.
        unit: Its unit.
        seeds: Number of seeds.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    ceiling: float | None = None
    fraction: float | None = None
    fraction_low: float | None = None
    fraction_high: float | None = None
    reason: str = ""
    people: float | None = None
    n: int | None = None
    unit: str = ""
    seeds: int = 1


def lower_is_better(name: str) -> bool:
    """Whether the best value of a score is the lowest."""
    return name.startswith(LOWER_IS_BETTER)


def ranked_scores(group: Group) -> list[str]:
    """Scores by which the models of a group can be ordered, the headline first; only those with a value."""
    known = {
        name: True
        for entry in group.entries
        for row in score_rows(entry.first)
        for name in (row.name,)
        if not is_missing(row.model.value)
    }
    wanted = HEADLINES.get(group.benchmark)
    return [n for n in wanted if n in known] if wanted else list(known)[:6]


def entry_values(entry: Entry) -> dict[str, CardValue]:
    """Every score of an entry but people's, in the order of its first run."""
    return {row.name: _summary(entry, row.name) for row in score_rows(entry.first)}


def _summary(entry: Entry, name: str) -> CardValue:
    found = [(run, run.scores[name]) for run in entry.runs if name in run.scores]
    known = [(run, v) for run, v in found if not is_missing(v.value)]
    first_run, first = found[0]
    if not known:
        return CardValue(None, reason=_no_value(first_run), n=first.n, unit=first.unit, seeds=len(found))
    value = _mean([v.value for _, v in known])
    low, high = _end([v.ci_low for _, v in known], min), _end([v.ci_high for _, v in known], max)
    whole = ScoreValue(
        value, low, high, _mean([v.ceiling for _, v in known]), _widest([v.ceiling_ci for _, v in known])
    )
    fraction, fraction_low, fraction_high, reason = fraction_of_ceiling(first_run, name, whole)
    return CardValue(
        value, low, high, whole.ceiling, fraction, fraction_low, fraction_high, reason,
        _mean([v.value for run, _ in known if (v := run.scores.get(f"{name}_people")) is not None]),
        first.n, first.unit, len(known),
    )  # fmt: skip


def fraction_of_ceiling(
    score: Score, name: str, value: ScoreValue
) -> tuple[float | None, float | None, float | None, str]:
    """A score as a share of people's consistency with one another.

    Args:
        score: The run, for the reason where there is no such share.
        name: Name of the score.
        value: Its value.

    Returns:
        Fraction, ends of its interval, and why something of that is missing.
    """
    given = (score.result.details.get("fraction_of_ceiling") or {}).get(name)
    if given is not None:
        known = [None if is_missing(v) else float(v) for v in given]
        return known[0], known[1], known[2], "" if known[0] is not None else "people's halves do not predict each other"
    if value.value is None:
        return None, None, None, _no_value(score)
    if value.ceiling is None or is_missing(value.ceiling):
        return None, None, None, no_ceiling(score, name)
    if value.ceiling <= 0:
        return None, None, None, "people's consistency is not above 0, so there is no share of it"
    fraction = value.value / value.ceiling
    if value.ci_low is None or value.ci_high is None:
        return fraction, None, None, "the score has no interval"
    around, reason = value.ceiling_ci, ""
    if around is None or is_missing(around[0]) or is_missing(around[1]):
        around, reason = (value.ceiling, value.ceiling), "the ceiling has no interval and is taken as exact"
    low, high = ratio_interval(value.value, value.ci_low, value.ci_high, value.ceiling, *around)
    if math.isnan(low):
        return fraction, None, None, "people's consistency cannot be told from 0, so the share has no interval"
    return fraction, low, high, reason


def no_ceiling(score: Score, name: str) -> str:
    """Why a score has no ceiling."""
    if "no_people" in score.result.flags:
        return "the data set has no people's answers"
    if score.benchmark in ("sea", "generation"):
        return "people are not scored on SEA, so it has no ceiling"
    if name.startswith(ERRORS):
        floor = score.scores.get("noise_floor")
        least = (
            "" if floor is None or floor.value is None else f": a perfect model is expected at {number(floor.value, 5)}"
        )
        return f"an error has a floor, not a ceiling{least}"
    return "how consistent people are with one another on this score is not measured"


def _no_value(score: Score) -> str:
    return "the data set has no people's answers" if "no_people" in score.result.flags else "the run has no such value"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(v) for v in values if v is not None and not is_missing(v)]
    # One seed is shown as it is: a mean must not move its last digit.
    return None if not known else known[0] if len(known) == 1 else math.fsum(known) / len(known)


def _end(values: Sequence[float | None], which: Callable[[list[float]], float]) -> float | None:
    known = [float(v) for v in values if v is not None and not is_missing(v)]
    return which(known) if known and len(known) == len(values) else None


def _widest(intervals: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [i for i in intervals if i is not None]
    return (min(i[0] for i in known), max(i[1] for i in known)) if known and len(known) == len(intervals) else None
