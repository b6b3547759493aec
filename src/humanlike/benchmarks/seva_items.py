"""The items of a SEVA run: which sketches are scored, in which order, and how they fall into cells and folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from humanlike.stats.cell_design import CellDesign
from humanlike.types import SKETCH_COLUMNS, Features, Sketches

DERIVED = "derived_conditions"
"""Flag of a data set whose conditions are cut or derived from shared drawings."""


@dataclass(frozen=True)
class SevaItems:
    """The N items that could be read, in an order that does not depend on the order of the data set.

    Items are sorted by `sketch_id`, so that every random draw and every floating-point sum that follows is the
    same for any permutation of the input.

    Attributes:
        rows_N: (N,) position of every used item in the data set.
        f_ND: (N, D) features.
        table: `sketch_id, concept, condition, image_id` of the used items.
        target_N: (N,) label index of the concept.
        design: The cells; `design.concept_C` is the label index of a cell's concept.
    """

    rows_N: np.ndarray
    f_ND: np.ndarray
    table: pd.DataFrame
    target_N: np.ndarray
    design: CellDesign

    def __len__(self) -> int:
        return len(self.rows_N)

    def cell_columns(self, labels: Sequence[str]) -> dict[str, np.ndarray]:
        """The columns that every table of cells begins with: `cell, concept, condition, n_items`, empty cells included.

        Args:
            labels: The labels in label order.
        """
        return {
            "cell": np.arange(self.design.num_cells),
            "concept": np.array(labels, dtype=object)[self.design.concept_C],
            "condition": self.design.condition_C,
            "n_items": self.design.items_C,
        }


def used_items(data: Sketches, features: Features) -> SevaItems:
    """The items of `data` whose features exist.

    Raises:
        ValueError: When the features do not belong to the data set, hold a NaN or an infinity, or none is left.
    """
    rows_N, f_ND = np.asarray(features.rows, np.int64), np.asarray(features.f_ND)
    _check(data, features, f_ND, rows_N)
    ids = data.table["sketch_id"].iloc[rows_N].astype(str).to_numpy(dtype=object)
    order = np.argsort(ids, kind="stable")
    rows_N = rows_N[order]
    table = data.table.iloc[rows_N][list(SKETCH_COLUMNS)].reset_index(drop=True)
    table["condition"] = pd.to_numeric(table["condition"]).astype(float)
    target_N = data.target_N[rows_N]
    image_id_N = table["image_id"].astype(str).to_numpy(dtype=object)
    design = CellDesign.from_columns(target_N, image_id_N, table["condition"].to_numpy())
    return SevaItems(rows_N, f_ND[order], table, target_N, design)


def _check(data: Sketches, features: Features, f_ND: np.ndarray, rows_N: np.ndarray) -> None:
    layer = f"{data.name}: the features of layer {features.layer!r}"
    if f_ND.ndim != 2 or len(f_ND) != len(rows_N):
        raise ValueError(f"{layer} have shape {f_ND.shape} for {len(rows_N)} items; one row an item is needed")
    if len(rows_N) == 0:
        raise ValueError(f"{data.name}: none of the {len(data)} items could be read: there is nothing to score")
    if rows_N.min() < 0 or rows_N.max() >= len(data) or len(np.unique(rows_N)) != len(rows_N):
        raise ValueError(
            f"{layer} name items {rows_N.min()} … {rows_N.max()} ({len(np.unique(rows_N))} different ones in "
            f"{len(rows_N)} rows), but the data set has {len(data)}; extract the features of this data set"
        )
    bad = np.flatnonzero(~np.isfinite(f_ND).all(1))
    if len(bad):
        raise ValueError(
            f"{layer} are not finite for {len(bad)} item(s), first {data.images.describe(int(rows_N[bad[0]]))}; "
            "check the weights and the input of the backbone"
        )


def groups_for_folds(items: SevaItems, data: Sketches, cv: str, asked: bool) -> tuple[np.ndarray | None, list[str]]:
    """The groups that the readout must keep in one fold, and what has to be said about them.

    Items derived from one source (time cuts of one drawing) are near copies of each other: on both sides of a
    fold they would let the readout recognise the drawing instead of the concept. A data set says that it is of
    this kind by the flag `derived_conditions`; then grouping is mandatory.

    Args:
        items: The used items.
        data: The data set they come from.
        cv: `stratified` or `stratified_group`.
        asked: True when the user set the switch by hand, False when it is the preset's.

    Returns:
        (N,) integer group of every item, or None for folds without groups; and flags.

    Raises:
        ValueError: When `cv=stratified` is asked by hand for derived conditions.
    """
    group_N = pd.factorize(items.table["image_id"].astype(str), sort=True)[0].astype(np.int64)
    if cv == "stratified_group":
        return group_N, []
    shared = len(np.unique(group_N)) < len(group_N)
    if shared and DERIVED in data.flags:
        if asked:
            raise ValueError(
                f"{data.name}: cv=stratified would put cuts of one drawing on both sides of a fold, because the "
                "conditions of this data set are derived from shared drawings; leave cv=null or set "
                "cv=stratified_group"
            )
        return group_N, ["cv_grouped:derived_conditions"]
    return None, ["images_shared_across_folds"] if shared else []
