"""The scores of a SEA run with their intervals, and how well the judge of elements agrees with an annotation.

Legend: N used items, B replicates, M (sketch, element) pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from humanlike.benchmarks.sea_sketches import QUANTITIES, JudgedSketches, judged_sketches, means, resampled_means
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.elements.presence import Presence
from humanlike.metrics.functional.element_vqa import (
    CATEGORIES,
    UNPARSEABLE,
    ElementVQAScores,
    element_vqa_scores,
    scores_from_table,
)
from humanlike.stats import basic, image_weights
from humanlike.types import ScoreValue, Sketches

UNITS = {
    "sea": "sea",
    "reward": "",
    "penalty": "",
    "visual_ratio": "share",
    "recognition": "probability",
    "economy": "nats",
    "gate": "",
    "accuracy": "share",
}
JUDGED = ("f1", "balanced_accuracy", "precision", "recall", "specificity", "accuracy", "present_rate_bias")
"""Scores of the judge that get an interval."""


def score_values(sketches: JudgedSketches, correct_N: np.ndarray, replicates: int, seed: int) -> dict[str, ScoreValue]:
    """Means over sketches with centred 95% intervals (source images resampled within concepts)."""
    values = {name: sketches.value_QN[name] for name in QUANTITIES} | {"accuracy": correct_N.astype(np.float64)}
    return _with_intervals(sketches, values, replicates, seed)


def presence_scores(
    presence: Presence, truth: Presence | None, data: Sketches, sketches: JudgedSketches, replicates: int, seed: int
) -> tuple[dict[str, ScoreValue], dict[str, Any]]:
    """Scores of the judge against an annotation, SEA as the annotation has it, and facts for the record.

    Args:
        presence: What the judge said.
        truth: The annotation of the same elements; None where there is none, or where it is the judge itself.
        data: The sketches.
        sketches: The sketches as judged.
        replicates: Bootstrap replicates.
        seed: Global seed.

    Returns:
        `presence_f1`, … (see `JUDGED`), `sea_annotated` and `visual_ratio_annotated`; nothing without an annotation.
    """
    facts: dict[str, Any] = {"coverage": presence.coverage, "missing": dict(presence.missing)}
    if truth is None:
        return {}, facts
    pairs = of_used_sketches(presence.against(truth), sketches.items)
    said_M1 = answer_codes(pairs)
    drawn_M1 = torch.from_numpy(pairs["annotated"].to_numpy(bool, copy=True)[:, None])
    full = element_vqa_scores(said_M1, drawn_M1)
    counts_B6 = resampled_counts(counts_by_sketch(pairs, sketches.items), sketches.items, replicates, seed)
    by_replicate = scores_from_table(counts_B6[:, None, None, :])
    scores = {}
    for name in JUDGED:
        value = float(getattr(full, name))
        interval = basic(value, getattr(by_replicate, name).numpy())
        scores[f"presence_{name}"] = score_value(value, interval.low, interval.high, int(full.pairs), "share")
    facts |= judge_facts(pairs, data, said_M1, drawn_M1, full)
    annotated = judged_sketches(
        sketches.items, sketches.value_QN["recognition"], truth, sketches.parameters, min_judged=1.0
    )
    values = {f"{name}_annotated": annotated.value_QN[name] for name in ("sea", "visual_ratio")}
    return {**scores, **_with_intervals(sketches, values, replicates, seed)}, facts


def _with_intervals(
    sketches: JudgedSketches, values: dict[str, np.ndarray], replicates: int, seed: int
) -> dict[str, ScoreValue]:
    drawn = resampled_means(sketches, values, replicates, seed)
    found = {}
    for name, value_N in values.items():
        value = float(means(value_N, np.ones((1, len(value_N))))[0])
        interval = basic(value, drawn[name])
        unit = UNITS[name.removesuffix("_annotated")]
        found[name] = score_value(value, interval.low, interval.high, int(np.isfinite(value_N).sum()), unit)
    return found


def score_value(value: float, low: float, high: float, n: int, unit: str) -> ScoreValue:
    """A score; without what is not finite."""
    if not np.isfinite(value):
        return ScoreValue(None, n=n, unit=unit)
    if not np.isfinite([low, high]).all():
        return ScoreValue(value, n=n, unit=unit)
    return ScoreValue(value, low, high, n=n, unit=unit)


def answer_codes(pairs: pd.DataFrame) -> torch.Tensor:
    """(M, 1) decisions of `Presence.against` as codes 0, 1, and -1 for no answer."""
    return torch.from_numpy(pairs["decision"].astype("Int64").fillna(-1).to_numpy(np.int64, copy=True)[:, None])


def counts_by_sketch(pairs: pd.DataFrame, items: SevaItems) -> np.ndarray:
    """(N, 6) pairs of every sketch by 3 × annotated present + code of the answer; see `confusion_table`."""
    row_of = {sketch: row for row, sketch in enumerate(items.table["sketch_id"])}
    said_M = answer_codes(pairs)[:, 0].numpy()
    code_M = np.where(said_M < 0, UNPARSEABLE, said_M) + 3 * pairs["annotated"].to_numpy(np.int64)
    row_M = pairs["sketch_id"].map(row_of).to_numpy(np.int64)
    return np.bincount(row_M * CATEGORIES + code_M, minlength=len(row_of) * CATEGORIES).reshape(-1, CATEGORIES)


def resampled_counts(table_N6: np.ndarray, items: SevaItems, replicates: int, seed: int) -> torch.Tensor:
    """(B, 6) pairs of all sketches under resamples of the source images within concepts."""
    weight_NB = items.design.weights_GB(image_weights(items.design, replicates, seed))[items.design.slot_N]
    return torch.from_numpy(np.rint(weight_NB.T @ table_N6.astype(np.float64)).astype(np.int64))


def of_used_sketches(pairs: pd.DataFrame, items: SevaItems) -> pd.DataFrame:
    """The pairs whose sketch could be read."""
    return pairs[pairs["sketch_id"].isin(set(items.table["sketch_id"]))].reset_index(drop=True)


def judge_facts(
    pairs: pd.DataFrame, data: Sketches, said_M1: torch.Tensor, drawn_M1: torch.Tensor, full: ElementVQAScores
) -> dict[str, Any]:
    """Averages over classes and elements, and what a judge that always says the same would reach.

    Args:
        pairs: See `Presence.against`.
        data: The sketches.
        said_M1: See `answer_codes`.
        drawn_M1: (M, 1) bool annotation.
        full: Scores of all pairs.
    """
    concept_of = dict(zip(data.table["sketch_id"], data.table["concept"], strict=True))
    concept_M = pairs["sketch_id"].map(concept_of).astype(str)
    class_M = torch.from_numpy(concept_M.factorize(sort=True)[0].astype(np.int64))
    element_M = torch.from_numpy((concept_M + "\x00" + pairs["element"]).factorize(sort=True)[0].astype(np.int64))
    # Every pair is a row of its own, so that a group of rows is a class or an element of a class.
    by_class = element_vqa_scores(said_M1, drawn_M1, average="macro_class", class_N=class_M)
    by_element = element_vqa_scores(said_M1, drawn_M1, average="macro_class", class_N=element_M)
    return {
        "pairs": int(full.pairs),
        "present_rate": float(full.always_present_precision),
        "always_present_f1": float(full.always_present_f1),
        "always_same_balanced_accuracy": 0.5,
        "f1_macro_class": float(by_class.f1),
        "balanced_accuracy_macro_class": float(by_class.balanced_accuracy),
        "f1_macro_element": float(by_element.f1),
        "balanced_accuracy_macro_element": float(by_element.balanced_accuracy),
    }
