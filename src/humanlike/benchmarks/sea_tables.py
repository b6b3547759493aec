"""The tables of a SEA result: one row an item, a cell (concept × condition), a condition, a concept, a judgment.

Legend: N used items, G groups.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from humanlike.benchmarks.sea_sketches import QUANTITIES, JudgedSketches, means
from humanlike.benchmarks.seva_answers import ModelReading, NeighbourRanks
from humanlike.benchmarks.seva_tables import items_table as seva_items_table
from humanlike.elements.lists import ElementLists
from humanlike.elements.presence import Presence
from humanlike.metrics.functional.sea import DIAGNOSES
from humanlike.types import Features, Sketches

MEASURES = (*QUANTITIES[:5], "accuracy")
"""What stands in the tables of cells and conditions."""


def items_table(data: Sketches, features: Features, sketches: JudgedSketches, reading: ModelReading) -> pd.DataFrame:
    """One row an item of the data set, in its order; items that could not be read say why in `error`.

    Returns:
        Columns `sketch_id, concept, condition, image_id, fold, target_index, top1_index, top1, correct, num_elements,
        num_judged, num_present, zero_v, diagnosis_index` (-1: no score), `diagnosis, sea, reward, penalty,
        visual_ratio, recognition, economy, gate, z, error`.
    """
    ranks = NeighbourRanks(None, 0, len(data.labels))
    table = seva_items_table(data, features, sketches.items, reading, ranks, None)
    table = table[["sketch_id", "concept", "condition", "image_id", "fold", "target_index", "top1_index", "top1",
                   "correct", "error"]].copy()  # fmt: skip
    rows_N = sketches.items.rows_N
    whole = {
        "num_elements": (sketches.elements_N, 0),
        "num_judged": (sketches.judged_N, 0),
        "num_present": (sketches.present_N, 0),
        "zero_v": (sketches.zero_v_N.astype(np.int64), 0),
        "diagnosis_index": (sketches.diagnosis_N, -1),
    }
    for name, (value_N, absent) in whole.items():
        column = np.full(len(data), absent, np.int64)
        column[rows_N] = value_N
        table[name] = column
    names = np.array([*DIAGNOSES, None], dtype=object)  # index -1 is no diagnosis
    table["diagnosis"] = pd.Series(names[table["diagnosis_index"].to_numpy()], dtype=object)
    for name in (*QUANTITIES, "z"):
        value = np.full(len(data), np.nan)
        value[rows_N] = sketches.value_QN[name]
        table[name] = value
    return table[[*(c for c in table.columns if c != "error"), "error"]]


def cells_table(sketches: JudgedSketches, labels: Sequence[str], correct_N: np.ndarray) -> pd.DataFrame:
    """One row a cell: `cell, concept, condition, n_items, n_scored`, then the means of `MEASURES`."""
    in_cell_CN = sketches.items.design.in_cell_CN
    return pd.DataFrame(
        {
            **sketches.items.cell_columns(labels),
            "n_scored": (in_cell_CN @ sketches.scored_N).astype(np.int64),
            **_means(sketches, correct_N, in_cell_CN),
        }
    )


def conditions_table(sketches: JudgedSketches, correct_N: np.ndarray) -> pd.DataFrame:
    """One row a condition: counts, then `m, m_sd, m_sem` of every measure, and how many sketches got each diagnosis."""
    design = sketches.items.design
    in_condition_TN = design.in_condition_TN
    table = pd.DataFrame({"condition": design.conditions_T, **_counts(sketches, in_condition_TN)})
    values = _values(sketches, correct_N)
    for name, mean_T in _means(sketches, correct_N, in_condition_TN).items():
        rows = [pd.Series(values[name][group_N > 0], dtype=float) for group_N in in_condition_TN]
        table[name] = mean_T
        table[f"{name}_sd"] = [row.std() for row in rows]
        table[f"{name}_sem"] = [row.sem() for row in rows]
    return table


def concepts_table(
    sketches: JudgedSketches, labels: Sequence[str], correct_N: np.ndarray, elements: ElementLists
) -> pd.DataFrame:
    """One row a concept: counts, means, standard deviation of SEA, diagnoses, its elements and where they are from."""
    design = sketches.items.design
    in_concept_KN = design.in_concept_KN
    names = np.array(labels, dtype=object)[design.concepts_K]
    sea_N = sketches.value_QN["sea"]
    return pd.DataFrame(
        {
            "concept": names,
            **_counts(sketches, in_concept_KN),
            **_means(sketches, correct_N, in_concept_KN),
            "sea_sd": [pd.Series(sea_N[group_N > 0], dtype=float).std() for group_N in in_concept_KN],
            "elements": [", ".join(elements.elements.get(name, ())) for name in names],
            "elements_from": [elements.provenance.get(name) for name in names],
        }
    )


def notes(conditions: pd.DataFrame, unit: str) -> list[str]:
    """A sentence for every step to a larger budget at which SEA falls: what moved, so that nobody has to guess."""
    said = []
    rows = conditions.dropna(subset=["sea"]).to_dict(orient="records")
    for before, after in itertools.pairwise(rows):
        if after["sea"] >= before["sea"]:
            continue
        change = {name: after[name] - before[name] for name in MEASURES[1:5]}
        judged = all(row.get("n_scored") == row.get("n_items") for row in (before, after))
        of_all = "" if judged else " (of all sketches, judged or not)"
        moved = ", ".join(f"{name.replace('_', ' ')} {value:+.3f}" for name, value in change.items())
        said.append(
            f"SEA falls from {before['condition']:g} to {after['condition']:g} {unit}".rstrip()
            + f" ({before['sea']:.3f} to {after['sea']:.3f}): {moved}{of_all}."
        )
    return [text.replace("-", "−") for text in said]


def judgments_table(presence: Presence, truth: Presence | None) -> pd.DataFrame:
    """One row a (sketch, element): probability, decision, why it is missing and, where people said so, `annotated`."""
    table = presence.table
    if truth is None:
        return table
    known = truth.table[["sketch_id", "element", "decision"]].rename(columns={"decision": "annotated"})
    return table.merge(known, on=["sketch_id", "element"], how="left", validate="one_to_one")


def _values(sketches: JudgedSketches, correct_N: np.ndarray) -> dict[str, np.ndarray]:
    return {**{name: sketches.value_QN[name] for name in MEASURES[:-1]}, "accuracy": correct_N.astype(np.float64)}


def _means(sketches: JudgedSketches, correct_N: np.ndarray, in_group_GN: np.ndarray) -> dict[str, np.ndarray]:
    return {name: means(value_N, in_group_GN) for name, value_N in _values(sketches, correct_N).items()}


def _counts(sketches: JudgedSketches, in_group_GN: np.ndarray) -> dict[str, np.ndarray]:
    told = {
        "n_items": np.ones(len(sketches.items), bool),
        "n_scored": sketches.scored_N,
        **{f"n_{name}": sketches.diagnosis_N == code for code, name in enumerate(DIAGNOSES)},
        "n_zero_v": sketches.zero_v_N,
        "n_missing": sketches.missing_N,
    }
    return {name: (in_group_GN @ one_N).astype(np.int64) for name, one_N in told.items()}
