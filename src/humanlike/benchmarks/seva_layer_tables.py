"""The tables of a profile by layer: scores along depth, and which layers were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanlike.benchmarks.seva_answers import ModelReading
from humanlike.benchmarks.seva_comparison import Estimate
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.benchmarks.seva_scores import number, score_of
from humanlike.stats.nested_choice import NestedChoice
from humanlike.types import ScoreValue


@dataclass(frozen=True)
class LayerChoice:
    """The nested choice of a layer by its alignment in one metric.

    Attributes:
        full: Choices on the full sample (B = 1).
        everything_M: (M,) every layer's alignment on all concepts, from which the naive choice takes the best.
        within_M: (M,) every layer's alignment within the folds, the scale of `estimate`.
        estimate: Held-out alignment with its interval.
        folds: Folds of the concepts; 1 where there are too few concepts.
        num_cells: Cells of people that the alignment is over.
    """

    full: NestedChoice
    everything_M: np.ndarray
    within_M: np.ndarray
    estimate: Estimate
    folds: int
    num_cells: int

    @property
    def times_chosen_M(self) -> np.ndarray:
        """(M,) in how many of the folds and repeats each layer was chosen."""
        chosen = self.full.chosen_BRF[0]
        return np.bincount(chosen[chosen >= 0], minlength=len(self.everything_M))


def top1_columns(known: Mapping[str, ModelReading], items: SevaItems, total: int) -> dict[str, np.ndarray]:
    """Columns `top1_index:LAYER` for the items table, in the data set's order, -1 for items that could not be read.

    They are integers, so that the run's digest covers the answers of every layer.
    """
    columns = {}
    for layer, reading in known.items():
        column = columns[f"top1_index:{layer}"] = np.full(total, -1, np.int64)
        column[items.rows_N] = reading.answers.top1_N
    return columns


def layer_rows(
    scores: Mapping[str, Mapping[str, ScoreValue]], depths: Mapping[str, float], choices: Mapping[str, LayerChoice]
) -> list[dict[str, Any]]:
    """One row a layer and metric: `layer, relative_depth, metric, value, ci_low, ci_high, ceiling, n, chosen`.

    `chosen` is True for the layer that most folds chose by this metric (several where they are level); the share of
    the folds is `chosen_share`, None for metrics that nothing is chosen by.
    """
    rows = []
    for i, (layer, own) in enumerate(scores.items()):
        for metric, value in own.items():
            choice = choices.get(metric.removeprefix("alignment_")) if metric.startswith("alignment_") else None
            times_M = np.zeros(len(scores), np.int64) if choice is None else choice.times_chosen_M
            decided = bool(times_M.any())
            rows.append(
                {
                    "layer": layer,
                    "relative_depth": depths[layer],
                    "metric": metric,
                    "value": value.value,
                    "ci_low": value.ci_low,
                    "ci_high": value.ci_high,
                    "ceiling": value.ceiling,
                    "n": value.n,
                    "chosen": decided and bool(times_M[i] == times_M.max()),
                    "chosen_share": float(times_M[i] / times_M.sum()) if decided else None,
                }
            )
    return rows


def layer_facts(known: Mapping[str, tuple[int, ModelReading]], depths: Mapping[str, float]) -> list[dict[str, Any]]:
    """One row a layer: its features and how its readout ended."""
    return [
        {
            "layer": layer,
            "relative_depth": depths[layer],
            "features": num_features,
            "converged": reading.converged,
            "readout": dict(reading.certificate),
        }
        for layer, (num_features, reading) in known.items()
    ]


def choice_score(choice: LayerChoice | None) -> ScoreValue:
    """The held-out alignment as a score. People's consistency is over all cells at once, so it is no ceiling of it."""
    return ScoreValue(None, unit="R2") if choice is None else score_of(choice.estimate, choice.num_cells, "R2")


def choice_record(choice: LayerChoice, layers: Sequence[str], depths: Mapping[str, float]) -> dict[str, Any]:
    """What a score keeps of a choice: every fold's, and beside it the naive one, labelled as optimistic."""
    full, known_M = choice.full, np.isfinite(choice.everything_M)
    best = int(np.where(known_M, choice.everything_M, -np.inf).argmax()) if known_M.any() else None
    folds = [
        {
            "repeat": r,
            "fold": f,
            "layer": layers[chosen],
            "relative_depth": depths[layers[chosen]],
            "alignment_where_chosen": number(full.inner_BRF[0, r, f]),
            "alignment_held_out": number(full.held_out_BRF[0, r, f]),
        }
        for r, f in np.ndindex(full.chosen_BRF.shape[1:])
        if (chosen := int(full.chosen_BRF[0, r, f])) >= 0
    ]
    return {
        "rule": "highest alignment on the concepts of all other folds",
        "folds": folds,
        "held_out": number(choice.estimate.value),
        "fixed_layers_within_folds": {
            layer: number(value) for layer, value in zip(layers, choice.within_M, strict=True)
        },
        "chosen_share": {
            layer: float(times / max(choice.times_chosen_M.sum(), 1))
            for layer, times in zip(layers, choice.times_chosen_M, strict=True)
            if times
        },
        "best_on_everything_optimistic": None
        if best is None
        else {
            "layer": layers[best],
            "alignment": number(choice.everything_M[best]),
            "within_folds": number(choice.within_M[best]),
        },
    }
