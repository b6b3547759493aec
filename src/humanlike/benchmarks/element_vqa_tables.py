"""Tables of element VQA: one row a class, a superordinate category, a condition.

Legend: N used items, G groups of them, 6 counts of pairs (see `humanlike.metrics.functional.element_vqa`).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import torch

from humanlike.benchmarks.seva_items import SevaItems
from humanlike.elements.list_files import read_list_file
from humanlike.elements.lists import known_senses, list_paths, shipped
from humanlike.metrics.functional.element_vqa import scores_from_table
from humanlike.types import Sketches

COLUMNS = ("precision", "recall", "f1", "accuracy", "balanced_accuracy", "specificity", "present_rate_bias",
           "always_present_f1", "coverage")  # fmt: skip


def score_columns(counts_G6: np.ndarray) -> dict[str, np.ndarray]:
    """`pairs`, `present_rate` and the scores `COLUMNS` of every group; NaN for 0/0."""
    counts = torch.from_numpy(np.rint(counts_G6).astype(np.int64))
    scores = scores_from_table(counts[:, None, None, :])
    pairs_G = counts.sum(dim=1).numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        present_G = counts[:, 3:].sum(dim=1).numpy() / pairs_G
    return {"pairs": pairs_G, "present_rate": present_G, **{n: getattr(scores, n).numpy() for n in COLUMNS}}


def condition_table(items: SevaItems, table_N6: np.ndarray) -> pd.DataFrame:
    """One row a condition: `condition, n_items`, then `score_columns`."""
    design = items.design
    in_condition_TN = design.in_condition_TN
    number_T = in_condition_TN.sum(axis=1).astype(np.int64)
    return pd.DataFrame(
        {"condition": design.conditions_T, "n_items": number_T, **score_columns(in_condition_TN @ table_N6)}
    )


def class_tables(data: Sketches, items: SevaItems, table_N6: np.ndarray) -> dict[str, pd.DataFrame]:
    """`classes` and, where they are known, `superordinates`.

    Args:
        data: The data set; a column `superordinate` says what a class is, else the lists of this package do.
        items: The used items.
        table_N6: Counts of every item's pairs.
    """
    kind_of = superordinates(data)
    classes = _grouped(items.table["concept"], table_N6, "concept")
    classes.insert(1, "superordinate", [kind_of.get(concept) for concept in classes["concept"]])
    kind_N = items.table["concept"].map(kind_of)
    if kind_N.isna().all():
        return {"classes": classes}
    known_N = kind_N.notna().to_numpy()
    return {"classes": classes, "superordinates": _grouped(kind_N[known_N], table_N6[known_N], "superordinate")}


def superordinates(data: Sketches) -> dict[str, str]:
    """Concept → the kind of thing it is, for concepts of which that is known."""
    if "superordinate" in data.table:
        return dict(zip(data.table["concept"], data.table["superordinate"].astype(str), strict=True))
    senses, lists, kinds = known_senses(data.name), shipped(), _shipped_kinds()
    keys = {concept: senses.get(concept, concept) for concept in sorted(set(data.table["concept"]))}
    return {concept: kinds[lists.key(key)] for concept, key in keys.items() if key in lists}


@cache
def _shipped_kinds() -> dict[str, str]:
    files = [read_list_file(path) for path in list_paths()]
    return {entry.concept: file.header["superordinate"] for file in files for entry in file.entries}


def _grouped(group_N: pd.Series, table_N6: np.ndarray, name: str) -> pd.DataFrame:
    code_N, names = pd.factorize(group_N, sort=True)
    in_group_GN = (np.arange(len(names))[:, None] == code_N).astype(np.float64)
    number_G = in_group_GN.sum(axis=1).astype(np.int64)
    return pd.DataFrame({name: names, "n_items": number_G, **score_columns(in_group_GN @ table_N6)})
