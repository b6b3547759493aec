"""The scores of a fixed-label study under any weights of items and people, and their crossed bootstrap.

Legend: N items, L labels, P people, T conditions, B replicates, Q pairs of people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from humanlike.benchmarks.fixed_labels_people import (
    Consistency,
    PeopleAnswers,
    among_people,
    pairs_of_people,
    weighted_mean,
    with_people,
)
from humanlike.benchmarks.seva_agreement import cell_distance
from humanlike.metrics.functional import response_entropy
from humanlike.metrics.functional.response import EntropyEstimator
from humanlike.rng import generator
from humanlike.stats import CellDesign, Interval, basic, image_weights
from humanlike.stats.count_entropy import ratio
from humanlike.types import ScoreValue

UNITS = {
    "accuracy": "share",
    "accuracy_people": "share",
    "accuracy_difference": "share",
    "observed_consistency": "share",
    "error_consistency": "kappa",
    "entropy": "nats",
    "entropy_people": "nats",
    "jsd": "sqrt(nats)",
}
CEILINGS = ("observed_consistency", "error_consistency")
_OVER_PEOPLE = (*CEILINGS, "accuracy_people", "accuracy_difference")
_BLOCK = 64


@dataclass(frozen=True, eq=False)
class Study:
    """Model and people on the same items.

    Attributes:
        design: Cells and source images of the items.
        correct_N: (N,) 1.0 where the model is right.
        proba_NL: (N, L) the model's distribution over the labels; a row of zeros where it gave no answer.
        entropy_N: (N,) entropy of these rows, NaN where it says nothing.
        people: People's answers, or None.
        estimator: Of the entropy of people's answers to an item.
    """

    design: CellDesign
    correct_N: np.ndarray
    proba_NL: np.ndarray
    entropy_N: np.ndarray
    people: PeopleAnswers | None
    estimator: EntropyEstimator

    def by_item(self, weight_P: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """(N,) people's entropy, and the Jensen-Shannon distance between the model's and people's answers."""
        assert self.people is not None
        counts_NL = self.people.label_counts(self.proba_NL.shape[1], weight_P)
        entropy_N = response_entropy(torch.from_numpy(counts_NL), self.estimator).numpy()
        return {"entropy_people": entropy_N, "jsd": cell_distance(self.proba_NL, counts_NL)}


def scores_under(study: Study, weight_BN: np.ndarray, weight_BP: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Every score for B sets of weights: how often each item and each person counts (whole numbers; None: all once).

    Consistencies are means over people (or pairs) within a condition, then over conditions: pooled conditions of
    different difficulty would look like agreement.

    Returns:
        Score → (B,); ceilings, the consistency of people with each other, as `NAME_people`.
    """
    scores = {
        "accuracy": weighted_mean(study.correct_N, weight_BN),
        "entropy": weighted_mean(study.entropy_N, weight_BN),
    }
    people = study.people
    if people is None:
        return scores
    weight_BP = np.ones((len(weight_BN), len(people.participants))) if weight_BP is None else weight_BP
    seen_BP = weight_BN @ people.seen_PN.T
    own_BP = ratio(weight_BN @ people.right_PN.T, seen_BP)
    model_BP = ratio(weight_BN @ (people.seen_PN * study.correct_N).T, seen_BP)
    scores["accuracy_people"] = weighted_mean(own_BP, weight_BP)
    scores["accuracy_difference"] = weighted_mean(model_BP - own_BP, weight_BP)
    by_condition: dict[str, list[np.ndarray]] = {f"{c}{end}": [] for c in CEILINGS for end in ("", "_people")}
    a_Q, b_Q = pairs_of_people(people)
    for in_condition_N in study.design.in_condition_TN:
        masked_BN = weight_BN * in_condition_N
        for name, value_B in _means(with_people(study.correct_N, people, masked_BN), weight_BP).items():
            by_condition[name].append(value_B)
        pairs = [
            _means(c, weight_P[a_Q] * weight_P[b_Q])
            for c, weight_P in zip(among_people(people, masked_BN), weight_BP, strict=True)
        ]
        for name in CEILINGS:
            by_condition[f"{name}_people"].append(np.array([float(p[name]) for p in pairs]))
    for name, values in by_condition.items():
        scores[name] = weighted_mean(np.stack(values, -1), np.ones(len(values)))
    by_item = [study.by_item(None if (w == 1).all() else w) for w in weight_BP]
    for name in ("entropy_people", "jsd"):
        scores[name] = weighted_mean(np.stack([v[name] for v in by_item]), weight_BN)
    return scores


def _means(consistency: Consistency, weight: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "observed_consistency": weighted_mean(consistency.observed, weight),
        "error_consistency": weighted_mean(consistency.kappa, weight),
    }


def crossed_bootstrap(study: Study, replicates: int, seed: int) -> dict[str, np.ndarray]:
    """(B,) replicates of every score: source images resampled within concepts, and people, independently.

    Pairs of a person with herself, which a resample of people brings, are no pairs; a person drawn twice counts twice.
    """
    num_people = 0 if study.people is None else len(study.people.participants)
    parts: list[dict[str, np.ndarray]] = []
    for start in range(0, replicates, _BLOCK):
        count = min(_BLOCK, replicates - start)
        weights_GB = study.design.weights_GB(image_weights(study.design, count, seed, start))
        weight_BN = weights_GB[study.design.slot_N].T
        weight_BP = None
        if num_people:
            drawn = [generator(seed, "people_bootstrap", b).integers(num_people, size=num_people) for b in
                     range(start, start + count)]  # fmt: skip
            weight_BP = np.stack([np.bincount(d, minlength=num_people) for d in drawn]).astype(np.float64)
        parts.append(scores_under(study, weight_BN, weight_BP))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def score_values(
    full: dict[str, np.ndarray], replicates: dict[str, np.ndarray], n: dict[str, int]
) -> dict[str, ScoreValue]:
    """Scores with centred 95% intervals, and ceilings with theirs; what could not be computed is None."""
    values = {}
    for name, unit in UNITS.items():
        if name not in full:
            values[name] = ScoreValue(None, n=0, unit=unit)
            continue
        value, interval = _estimate(name, full, replicates)
        ceiling, ceiling_interval = None, None
        if name in CEILINGS:
            ceiling, ceiling_interval = _estimate(f"{name}_people", full, replicates)
        values[name] = ScoreValue(
            value,
            *_bounds(value, interval),
            ceiling=ceiling,
            ceiling_ci=None if ceiling is None or ceiling_interval is None else _pair(ceiling_interval),
            n=n["people"] if name in _OVER_PEOPLE else n["items"],
            unit=unit,
        )
    return values


def _estimate(
    name: str, full: dict[str, np.ndarray], replicates: dict[str, np.ndarray]
) -> tuple[float | None, Interval]:
    value = float(full[name][0])
    return (value if np.isfinite(value) else None), basic(value, replicates[name])


def _bounds(value: float | None, interval: Interval) -> tuple[float | None, float | None]:
    pair = None if value is None else _pair(interval)
    return (None, None) if pair is None else pair


def _pair(interval: Interval) -> tuple[float, float] | None:
    return (interval.low, interval.high) if np.isfinite([interval.low, interval.high]).all() else None
