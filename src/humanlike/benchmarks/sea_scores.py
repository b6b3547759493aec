"""The scores of a SEA run with their intervals, and how well the judge of elements agrees with an annotation.

Legend: N used items, B replicates, M (sketch, element) pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from humanlike.benchmarks.sea_sketches import QUANTITIES, JudgedSketches, judged_sketches, means, resampled_means
from humanlike.elements.presence import Presence
from humanlike.metrics.functional.element_vqa import (
    CATEGORIES,
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
    pairs = presence.against(truth)
    row_of = {sketch: row for row, sketch in enumerate(sketches.items.table["sketch_id"])}
    pairs = pairs[pairs["sketch_id"].isin(row_of)].reset_index(drop=True)
    said_M1 = torch.from_numpy(pairs["decision"].astype("Int64").fillna(-1).to_numpy(np.int64, copy=True)[:, None])
    drawn_M1 = torch.from_numpy(pairs["annotated"].to_numpy(bool, copy=True)[:, None])
    full = element_vqa_scores(said_M1, drawn_M1)
    by_replicate = _resampled(pairs, said_M1, row_of, sketches, replicates, seed)
    scores = {}
    for name in JUDGED:
        value = float(getattr(full, name))
        interval = basic(value, getattr(by_replicate, name).numpy())
        scores[f"presence_{name}"] = _value(value, interval.low, interval.high, int(full.pairs), "share")
    facts |= _facts(pairs, data, said_M1, drawn_M1, full)
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
        found[name] = _value(value, interval.low, interval.high, int(np.isfinite(value_N).sum()), unit)
    return found


def _value(value: float, low: float, high: float, n: int, unit: str) -> ScoreValue:
    if not np.isfinite(value):
        return ScoreValue(None, n=n, unit=unit)
    if not np.isfinite([low, high]).all():
        return ScoreValue(value, n=n, unit=unit)
    return ScoreValue(value, low, high, n=n, unit=unit)


def _resampled(
    pairs: pd.DataFrame,
    said_M1: torch.Tensor,
    row_of: dict[str, int],
    sketches: JudgedSketches,
    replicates: int,
    seed: int,
) -> ElementVQAScores:
    """The judge's scores under resamples of the source images within concepts."""
    code_M = np.where(said_M1[:, 0].numpy() < 0, 2, said_M1[:, 0].numpy()) + 3 * pairs["annotated"].to_numpy(np.int64)
    row_M = pairs["sketch_id"].map(row_of).to_numpy(np.int64)
    flat = np.bincount(row_M * CATEGORIES + code_M, minlength=len(row_of) * CATEGORIES)
    table_N6 = flat.reshape(len(row_of), CATEGORIES).astype(np.float64)
    design = sketches.items.design
    weight_NB = design.weights_GB(image_weights(design, replicates, seed))[design.slot_N]
    counts_B6 = torch.from_numpy(np.rint(weight_NB.T @ table_N6).astype(np.int64))
    return scores_from_table(counts_B6[:, None, None, :])


def _facts(
    pairs: pd.DataFrame, data: Sketches, said_M1: torch.Tensor, drawn_M1: torch.Tensor, full: ElementVQAScores
) -> dict[str, Any]:
    """Averages over classes and elements, and what a judge that always says the same would reach."""
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
