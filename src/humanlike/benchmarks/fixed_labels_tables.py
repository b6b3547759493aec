"""The tables of a fixed-label result: one row an item, a cell (class × condition), a condition, a person.

Legend: N items, C cells, T conditions, P people.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from humanlike.benchmarks.fixed_labels_people import MISSING, UNSEEN, among_people, weighted_mean, with_people
from humanlike.benchmarks.fixed_labels_scores import CEILINGS, Study
from humanlike.benchmarks.seva_answers import ModelReading, NeighbourRanks
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.benchmarks.seva_tables import items_table as seva_items_table
from humanlike.stats.count_entropy import ratio
from humanlike.types import Features, Sketches

MEASURES = ("accuracy", "entropy", "jsd", *CEILINGS)
_BY_ITEM = ("accuracy", "entropy", "jsd")


def item_values(study: Study, halves_distance_N: np.ndarray) -> dict[str, np.ndarray]:
    """(N,) values of every item: the model's and people's accuracy, entropy and Jensen-Shannon distance, answers."""
    nothing_N = np.full(len(study.correct_N), np.nan)
    values = {"accuracy": study.correct_N, "entropy": study.entropy_N, "jsd": nothing_N}
    if study.people is None:
        zero_N = np.zeros(len(nothing_N), np.int64)
        absent = {f"{m}_people": nothing_N for m in _BY_ITEM}
        return {**values, **absent, "n_responses_people": zero_N, "n_missing_people": zero_N}
    answer_PN = study.people.answer_PN
    return {
        **values,
        **study.by_item(),
        "accuracy_people": ratio(study.people.right_PN.sum(0), study.people.seen_PN.sum(0)),
        "jsd_people": halves_distance_N,
        "n_responses_people": (answer_PN != UNSEEN).sum(0),
        "n_missing_people": (answer_PN == MISSING).sum(0),
    }


def items_table(
    data: Sketches, features: Features, items: SevaItems, reading: ModelReading, values: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """One row an item of the data set, in its order; items that are not scored say why in `error`.

    Returns:
        Columns `sketch_id, concept, condition, image_id, fold, target_index, top1_index, top1, correct,
        probability_target, entropy, jsd, accuracy_people, entropy_people, jsd_people, n_responses_people,
        n_missing_people, error`. An answer that the model did not give has `top1_index` -1.
    """
    ranks = NeighbourRanks(None, 0, len(data.labels))
    table = seva_items_table(data, features, items, reading, ranks, None).drop(columns="snp_rank")
    names = ["jsd", "accuracy_people", "entropy_people", "jsd_people", "n_responses_people", "n_missing_people"]
    for name in names:
        whole = name.startswith("n_")
        column = np.zeros(len(data), np.int64) if whole else np.full(len(data), np.nan)
        column[items.rows_N] = values[name]
        table[name] = column
    first = [c for c in table.columns if c not in {*names, "error"}]
    return table[[*first, *names, "error"]]


def cells_table(
    items: SevaItems, labels: tuple[str, ...], study: Study, values: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """One row a cell: `cell, concept, condition, n_items`, every measure of model and people, answers."""
    in_cell_CN = items.design.in_cell_CN
    return pd.DataFrame(
        {
            **items.cell_columns(labels),
            **_measures(study, values, in_cell_CN),
            "n_responses_people": (in_cell_CN @ values["n_responses_people"]).astype(np.int64),
        }
    )


def conditions_table(items: SevaItems, study: Study, values: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """One row a condition: `condition, n_cells, n_items`, then `m, m_sem, m_people, m_people_sem` of every measure.

    Standard errors are over items for accuracy, entropy and Jensen-Shannon distance, over people for consistencies;
    the pairs of people share members, so their mean has none.
    """
    design, groups_TN = items.design, items.design.in_condition_TN
    filled_KT = (design.items_C > 0).reshape(design.num_concepts, design.num_conditions)
    columns = {"condition": design.conditions_T, "n_cells": filled_KT.sum(0), "n_items": groups_TN.sum(1).astype(int)}
    means = _measures(study, values, groups_TN)
    for m in MEASURES:
        for name in (m, f"{m}_people"):
            columns |= {name: means[name], f"{name}_sem": _sem(name, study, values, groups_TN)}
    return pd.DataFrame(columns)


def people_record(study: Study) -> dict[str, dict[str, float | int]]:
    """Person → number of items and missing answers, accuracy, and consistency with the model over all conditions."""
    if study.people is None:
        return {}
    people, all_1N = study.people, np.ones((1, len(study.correct_N)))
    consistency = with_people(study.correct_N, people, all_1N)
    accuracy_P = ratio(people.right_PN.sum(1), people.seen_PN.sum(1))
    return {
        name: {
            "items": int(people.seen_PN[p].sum()),
            "missing": int((people.answer_PN[p] == MISSING).sum()),
            "accuracy": float(accuracy_P[p]),
            "observed_consistency": float(consistency.observed[0, p]),
            "error_consistency": float(consistency.kappa[0, p]),
        }
        for p, name in enumerate(people.participants)
    }


def _measures(study: Study, values: Mapping[str, np.ndarray], groups_GN: np.ndarray) -> dict[str, np.ndarray]:
    """(G,) value of every measure in every group of items."""
    found = {name: weighted_mean(values[name], groups_GN) for m in _BY_ITEM for name in (m, f"{m}_people")}
    nothing_G = np.full(len(groups_GN), np.nan)
    if study.people is None:
        found |= {f"{c}{end}": nothing_G for c in CEILINGS for end in ("", "_people")}
    else:
        model, pairs = (
            with_people(study.correct_N, study.people, groups_GN),
            list(among_people(study.people, groups_GN)),
        )
        found |= {
            "observed_consistency": weighted_mean(model.observed, np.ones(1)),
            "error_consistency": weighted_mean(model.kappa, np.ones(1)),
            "observed_consistency_people": np.array([weighted_mean(c.observed, np.ones(1)) for c in pairs]),
            "error_consistency_people": np.array([weighted_mean(c.kappa, np.ones(1)) for c in pairs]),
        }
    return {name: found[name] for m in (MEASURES, tuple(f"{m}_people" for m in MEASURES)) for name in m}


def _sem(name: str, study: Study, values: Mapping[str, np.ndarray], groups_TN: np.ndarray) -> np.ndarray:
    if name in values:
        rows = [values[name][group_N > 0] for group_N in groups_TN]
    elif name in CEILINGS and study.people is not None:
        model = with_people(study.correct_N, study.people, groups_TN)
        rows = list(model.observed if name == "observed_consistency" else model.kappa)
    else:
        return np.full(len(groups_TN), np.nan)
    return np.array([pd.Series(row, dtype=float).sem() for row in rows])
