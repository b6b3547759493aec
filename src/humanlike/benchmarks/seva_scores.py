"""From what was computed to the named scores, flags and details of a SEVA result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from humanlike.benchmarks.protocol import Protocol
from humanlike.benchmarks.seva_agreement import ErrorConsistency
from humanlike.benchmarks.seva_comparison import Estimate, Estimator, Side
from humanlike.benchmarks.seva_people import PeopleSide
from humanlike.stats import METRICS, Interval, SplitHalf, gap_to_consistency, paired_cells
from humanlike.types import ScoreValue

UNITS: Mapping[str, str] = {"accuracy": "share", "entropy": "nats", "snp": "share", "jsd": "sqrt(nats)"}


@dataclass
class Report:
    """Scores, flags and details as they are collected; values that are NaN become None and are flagged."""

    scores: dict[str, ScoreValue] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


def number(value: float | None) -> float | None:
    """`value` as a float, or None where it is NaN or infinite."""
    return float(value) if value is not None and np.isfinite(value) else None


def score_of(estimate: Estimate, n: int, unit: str, **ceiling: Any) -> ScoreValue:
    """A score from an estimate; without a value there is no interval either."""
    value = number(estimate.value)
    if value is None:
        return ScoreValue(None, n=n, unit=unit, **ceiling)
    return ScoreValue(value, number(estimate.interval.low), number(estimate.interval.high), n=n, unit=unit, **ceiling)


def add_model_scores(report: Report, estimator: Estimator, model: Side) -> None:
    """Mean over cells of the model's accuracy, entropy and semantic neighbour preference."""
    for metric in METRICS:
        n = int(np.isfinite(model.full[metric]).sum())
        report.scores[metric] = score_of(estimator.cell_mean(model, metric), n, UNITS[metric])


def add_people_scores(report: Report, estimator: Estimator, people: PeopleSide) -> None:
    """The same of people, with their split-half consistency among the details."""
    for metric in METRICS:
        n = int(np.isfinite(people.side.full[metric]).sum())
        report.scores[f"{metric}_people"] = score_of(estimator.cell_mean(people.side, metric), n, UNITS[metric])
    corrected = estimator.protocol.human_baseline == "split_half_and_spearman_brown"
    report.details["human_consistency"] = {m: _consistency(s, corrected) for m, s in people.consistency.items()}


def _consistency(split: SplitHalf, corrected: bool) -> dict[str, Any]:
    raw, brown = split.interval(), split.spearman_brown_interval()
    record = {
        "split_half": number(split.mean),
        "ci_low": number(raw.low),
        "ci_high": number(raw.high),
        "spearman_brown": None,
        "reliability": number(split.reliability),
        "splits": len(split.r2_S),
    }
    if corrected:
        record |= {
            "spearman_brown": number(split.spearman_brown),
            "spearman_brown_ci_low": number(brown.low),
            "spearman_brown_ci_high": number(brown.high),
        }
    return record


def add_alignment_scores(report: Report, estimator: Estimator, people: PeopleSide, model: Side) -> None:
    """Alignment (as it is, and noise-corrected), ΔR², the gap to people's consistency, and cells left out."""
    single = estimator.design.num_conditions == 1
    gaps, degenerate, kinds = {}, {}, {}
    for metric in METRICS:
        alignment = estimator.alignment(people.side, model, metric)
        n = int(paired_cells(people.side.full[metric], model.full[metric])[0])
        split = people.consistency.get(metric)
        report.scores[f"alignment_{metric}"] = score_of(alignment, n, "R2", **_ceiling(split))
        degenerate[f"alignment_{metric}"] = alignment.interval.n_degenerate
        kinds[f"alignment_{metric}"] = alignment.interval.kind
        corrected = None if split is None else estimator.corrected(alignment, split)
        name = f"alignment_{metric}_corrected"
        report.scores[name] = ScoreValue(None, n=n, unit="R2") if corrected is None else score_of(corrected, n, "R2")
        if corrected is not None:
            kinds[name] = corrected.interval.kind
            if number(alignment.value) is not None and number(corrected.value) is None:
                report.flags.append(f"{name}_undefined")
        report.scores[f"delta_r2_{metric}"] = ScoreValue(None, n=n, unit="R2")
        if not single:
            added = estimator.added_r2(people.side, model, metric)
            report.scores[f"delta_r2_{metric}"] = score_of(added, n, "R2")
            kinds[f"delta_r2_{metric}"] = added.interval.kind
        if split is not None:
            gaps[metric] = _gap(alignment, split)
        has_metric = np.isfinite([people.side.full[metric], model.full[metric]]).any()
        if has_metric and (lost := int((estimator.design.items_C > 0).sum()) - n):
            report.flags.append(f"cells_dropped_{metric}:{lost}")
        if has_metric and number(alignment.value) is None:
            report.flags.append(f"alignment_{metric}_undefined")
    report.details["gap"] = gaps
    # A ratio-centred interval is a basic one where the ratio is not positive; that must not pass unseen.
    others = {
        name: kind
        for name, kind in kinds.items()
        if kind != estimator.protocol.interval and report.scores[name].ci_low is not None
    }
    report.details["interval"] |= {"degenerate_replicates": degenerate, "kind_of_others": others}


def _ceiling(split: SplitHalf | None) -> dict[str, Any]:
    if split is None or number(split.mean) is None:
        return {}
    interval = split.interval()
    known = np.isfinite([interval.low, interval.high]).all()
    return {"ceiling": split.mean, "ceiling_ci": (interval.low, interval.high) if known else None}


def _gap(alignment: Estimate, split: SplitHalf) -> dict[str, Any]:
    gap = gap_to_consistency(alignment.full_sample, alignment.replicates_B, split.r2_S)
    return {
        "difference": number(gap.difference),
        "ci_low": number(gap.interval.low),
        "ci_high": number(gap.interval.high),
        "welch_t": number(gap.welch_t),
        "welch_df": number(gap.welch_df),
        "welch_p": number(gap.welch_p),
    }


def add_agreement_scores(
    report: Report, distance_C: np.ndarray, people: PeopleSide, consistency: ErrorConsistency, around: Interval
) -> None:
    """Jensen-Shannon distance of label distributions, and error consistency with the interval around it."""
    for name, value_C in (("jsd", distance_C), ("jsd_people", people.halves_distance_C)):
        known = value_C[np.isfinite(value_C)]
        report.scores[name] = ScoreValue(float(known.mean()) if len(known) else None, n=len(known), unit=UNITS["jsd"])
    report.scores["error_consistency"] = ScoreValue(
        value=number(consistency.value),
        ci_low=number(around.low),
        ci_high=number(around.high),
        ceiling=number(consistency.ceiling),
        n=consistency.participants,
        unit="kappa",
    )
    report.details["error_consistency"] = {
        "ceiling_kind": consistency.ceiling_kind,
        "pairs_mean": number(consistency.pairs_mean),
        "each_with_others": number(consistency.each_with_others),
        "participants": consistency.participants,
        "pairs": consistency.pairs,
        "common_items_median": number(consistency.common_items_median),
        "repeated_judgments": consistency.repeated_judgments,
    }


def add_absent_people(report: Report) -> None:
    """Every score that needs people is null, with one flag."""
    report.flags.append("no_people")
    units = {f"{m}_people": UNITS[m] for m in UNITS}
    units |= {f"{kind}_{m}": "R2" for kind in ("alignment", "delta_r2") for m in METRICS}
    units |= {f"alignment_{m}_corrected": "R2" for m in METRICS}
    units |= {"jsd": UNITS["jsd"], "error_consistency": "kappa"}
    report.scores |= {name: ScoreValue(None, n=0, unit=unit) for name, unit in units.items()}
    report.details |= {"human_consistency": {}, "gap": {}}


def chance_levels(protocol: Protocol, num_concepts: int, ranked: bool) -> dict[str, float | None]:
    """What a model that knows nothing would score, where that is a number.

    A uniform choice among the K concepts that occur: accuracy 1/K, entropy log K of its probabilities; the entropy of
    pooled hard labels depends on their number (16 labels reach log 16 at most). Uniform errors give a semantic
    neighbour preference of 0.5 under the exact variant; under the published one it depends on the number of errors.
    """
    entropy = float(np.log(num_concepts)) if protocol.model_entropy == "per_sketch" else None
    exact = ranked and protocol.model_snp == "exact"
    return {"accuracy": 1 / num_concepts, "entropy": entropy, "snp": 0.5 if exact else None}
