"""The tables of a SEVA result: one row an item, one row a cell, one row a condition."""

from __future__ import annotations

import numpy as np
import pandas as pd

from humanlike.benchmarks.seva_answers import ModelReading, NeighbourRanks
from humanlike.benchmarks.seva_comparison import Side
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.benchmarks.seva_scores import PeopleSide
from humanlike.stats import METRICS, CellDesign, condition_summary
from humanlike.types import SKETCH_COLUMNS, Features, Sketches

MEASURES = (*METRICS, "jsd")


def items_table(
    data: Sketches,
    features: Features,
    items: SevaItems,
    reading: ModelReading,
    ranks: NeighbourRanks,
    people: PeopleSide | None,
) -> pd.DataFrame:
    """One row an item of the data set, in its order; items that could not be read carry the reason in `error`.

    Returns:
        Columns `sketch_id, concept, condition, image_id, fold, target_index, top1_index, top1, correct, snp_rank,
        probability_target, entropy, accuracy_people, entropy_people, n_responses_people, error`. `snp_rank` is the
        semantic rank of the top-1 label seen from the target: 0 when correct, -1 where it is not ranked. Failed items
        have `fold`, `top1_index` and `snp_rank` -1 and `correct` 0.
    """
    top1_N = reading.answers.top1_N
    by_item = people.by_item if people is not None else {}
    unknown_N = np.full(len(items), np.nan)
    used: dict[str, tuple[np.ndarray, float]] = {
        "fold": (reading.fold_N, -1),
        "target_index": (items.target_N, -1),
        "top1_index": (top1_N, -1),
        "correct": ((top1_N == items.target_N).astype(np.int64), 0),
        "snp_rank": (_snp_rank(top1_N, items.target_N, ranks), -1),
        "probability_target": (reading.probability_target_N, np.nan),
        "entropy": (reading.answers.entropy_N, np.nan),
        "accuracy_people": (by_item.get("accuracy", unknown_N), np.nan),
        "entropy_people": (by_item.get("entropy", unknown_N), np.nan),
        "n_responses_people": (by_item.get("n_responses", np.zeros(len(items), np.int64)), 0),
    }
    table = data.table[list(SKETCH_COLUMNS)].reset_index(drop=True)
    table["condition"] = pd.to_numeric(table["condition"]).astype(float)
    for name, (value_N, absent) in used.items():
        column = np.full(len(data), absent, dtype=value_N.dtype)
        column[items.rows_N] = value_N
        table[name] = column
    table["target_index"] = data.target_N
    names = np.array([*data.labels, None], dtype=object)  # index -1 is no answer
    top1 = pd.Series(names[table["top1_index"].to_numpy()], dtype=object)
    table.insert(list(table.columns).index("correct"), "top1", top1)
    table["error"] = pd.Series(_errors(len(data), items, features), dtype=object)
    return table


def _snp_rank(top1_N: np.ndarray, target_N: np.ndarray, ranks: NeighbourRanks) -> np.ndarray:
    if ranks.ranks_LL is None:
        return np.where(top1_N == target_N, 0, -1)
    return np.where(top1_N == target_N, 0, ranks.ranks_LL[target_N, top1_N])


def _errors(num_items: int, items: SevaItems, features: Features) -> np.ndarray:
    error = np.full(num_items, None, dtype=object)
    for row in np.setdiff1d(np.arange(num_items), items.rows_N):
        error[row] = str(features.failed.get(int(row), "not among the extracted features"))
    return error


def cells_table(
    items: SevaItems, labels: tuple[str, ...], model: Side, distance_C: np.ndarray, people: PeopleSide | None
) -> pd.DataFrame:
    """One row a cell, empty cells included (their values are NaN).

    Args:
        items: The used items.
        labels: The labels in label order.
        model: The model's cells.
        distance_C: (C,) Jensen-Shannon distance between the model's top-1 labels and all guesses of people.
        people: People's cells, or None.

    Returns:
        Columns `cell, concept, condition, n_items`, a column a measure, one with `_people`, and `n_responses_people`,
        the number of judgments. `jsd_people` is the distance between random halves of the participants.
    """
    design = items.design
    columns: dict[str, np.ndarray] = {
        **items.cell_columns(labels),
        **{metric: model.full[metric][0] for metric in METRICS},
        "jsd": distance_C,
    }
    if people is None:
        columns |= {f"{m}_people": np.full(design.num_cells, np.nan) for m in MEASURES}
        judgments_C = np.zeros(design.num_cells, np.int64)
    else:
        columns |= {f"{metric}_people": people.side.full[metric][0] for metric in METRICS}
        columns["jsd_people"] = people.halves_distance_C
        cell_R = design.cell_N[people.coded.responses.item_R]
        judgments_C = np.bincount(cell_R, minlength=design.num_cells)
    return pd.DataFrame({**columns, "n_responses_people": judgments_C})


def conditions_table(items: SevaItems, model: Side, distance_C: np.ndarray, people: PeopleSide | None) -> pd.DataFrame:
    """One row a condition: means and standard errors as in the paper's Table 3.

    Accuracy and entropy are averaged over sketches, semantic neighbour preference and Jensen-Shannon distance over
    concepts.

    Returns:
        Columns `condition, n_cells, n_items`, then `m, m_sem, m_people, m_people_sem` for every measure m.
    """
    design = items.design
    filled_KT = (design.items_C > 0).reshape(design.num_concepts, design.num_conditions)
    table = pd.DataFrame(
        {
            "condition": design.conditions_T,
            "n_cells": filled_KT.sum(0),
            "n_items": design.items_C.reshape(filled_KT.shape).sum(0),
        }
    )
    nothing_C = np.full(design.num_cells, np.nan)
    own = {m: (s.mean_T, s.sem_T) for m, s in condition_summary(design, model.statistics).items()}
    own["jsd"] = _over_concepts(design, distance_C)
    theirs = {m: _over_concepts(design, nothing_C) for m in MEASURES}
    if people is not None:
        theirs |= {m: (s.mean_T, s.sem_T) for m, s in condition_summary(design, people.side.statistics).items()}
        theirs["jsd"] = _over_concepts(design, people.halves_distance_C)
    for m in MEASURES:
        table[m], table[f"{m}_sem"] = own[m]
        table[f"{m}_people"], table[f"{m}_people_sem"] = theirs[m]
    return table


def _over_concepts(design: CellDesign, value_C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over concepts of a cell value, (T,) each."""
    frame = pd.DataFrame(value_C.reshape(design.num_concepts, design.num_conditions))
    return frame.mean().to_numpy(), frame.sem().to_numpy()
