"""Replicates of a score for all models of a group on the same resamples, from the tables that their runs keep.

A score is recomputed from the items before it is resampled: where that does not give the recorded value, the items do
not hold what the score was made from, and no replicates are given.

Legend: M models, B replicates, N items, C cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix

from humanlike.reports.card.groups import Entry, Group
from humanlike.stats import CellDesign, alignment_r2, image_weights
from humanlike.stats.comparison import Centring
from humanlike.stats.intervals import widened
from humanlike.types import Score

REPLICATES = 1_000
TOLERANCE = 1e-9
_SEVA = {
    "alignment_accuracy": ("alignment", "correct"),
    "alignment_entropy": ("alignment", "entropy"),
    "accuracy": ("cells", "correct"),
}
PER_ITEM: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "seva": _SEVA,
    "seva_layers": _SEVA,
    "sea": {
        "sea": ("items", "sea"),
        "recognition": ("items", "recognition"),
        "visual_ratio": ("items", "visual_ratio"),
        "accuracy": ("items", "correct"),
    },
    "fixed_labels": {"accuracy": ("items", "correct")},
}
"""Benchmark → score → (how it follows from the items, column): R² of cells with people's, mean of cells or of items."""
_PEOPLE = {"correct": "accuracy_people", "entropy": "entropy_people"}
_KEYS = ["sketch_id", "concept", "image_id", "condition"]


class NotPairedError(ValueError):
    """Why models cannot be compared on the same resamples."""


@dataclass(frozen=True)
class Paired:
    """A score of several models under the same resamples.

    Attributes:
        replicates_MB: One row a model, in the order of the entries.
        centring: How replicates are moved to the estimates.
        over: What was resampled.
    """

    replicates_MB: np.ndarray
    centring: Centring
    over: str


class GroupItems:
    """The items of all runs of a group, read once.

    Args:
        group: The group.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self._tables: dict[str, pd.DataFrame] = {}
        self._weights: tuple[CellDesign, csr_matrix, np.ndarray] | None = None

    def paired(self, score: str) -> Paired:
        """Replicates of a score.

        Args:
            score: Its name.

        Raises:
            NotPairedError: The runs keep nothing from which they can be made.
        """
        if self.group.benchmark == "object_learning":
            return _simulated_sessions(self.group, score)
        known = PER_ITEM.get(self.group.benchmark, {})
        if score not in known or "study" in self.group.facts:
            raise NotPairedError("the runs keep no items from which this score can be resampled")
        kind, column = known[score]
        rows = [
            np.mean([self._replicates(run, kind, column, score) for run in entry.runs], axis=0)
            for entry in self.group.entries
        ]
        centring: Centring = "ratio_centred" if kind == "alignment" else "basic"
        return Paired(np.stack(rows), centring, "source images within concepts")

    def _replicates(self, run: Score, kind: str, column: str, score: str) -> np.ndarray:
        table = self._table(run)
        if column not in table:
            raise NotPairedError(f"{_items_file(run)} has no column {column}")
        value_N = table[column].to_numpy(float, na_value=np.nan)
        if kind == "alignment":
            return self._alignment(run, table, value_N, column, score)
        design, slots, weights_GB = self._resamples()
        statistic_B = _mean_of_cells if kind == "cells" else _mean_of_items
        _require_recorded(run, score, statistic_B(design, value_N, np.ones((len(value_N), 1)))[0])
        return widened(statistic_B(design, value_N, slots @ weights_GB), design.resampling_spread)

    def _alignment(self, run: Score, table: pd.DataFrame, value_N: np.ndarray, column: str, score: str) -> np.ndarray:
        design, slots, weights_GB = self._resamples()
        people = _PEOPLE[column]
        if people not in table or table[people].isna().all():
            raise NotPairedError("the items hold no people's answers")
        people_N = table[people].to_numpy(float, na_value=np.nan)
        whole, weights_NB = np.ones((len(value_N), 1)), slots @ weights_GB
        for people_weight_N in _people_weights(table):
            full = _cells(design, people_N, whole, people_weight_N), _cells(design, value_N, whole)
            found = float(alignment_r2(*full, design.condition_C)[0])
            if _is_recorded(run, score, found):
                sides = _cells(design, people_N, weights_NB, people_weight_N), _cells(design, value_N, weights_NB)
                return widened(alignment_r2(*sides, design.condition_C), design.resampling_spread)
        raise NotPairedError(f"the items do not give the recorded {score} under this protocol")

    def _resamples(self) -> tuple[CellDesign, csr_matrix, np.ndarray]:
        """Design, (N, G) item → its source image, and weights of images, the same for all runs."""
        if self._weights is None:
            table = self._table(self.group.entries[0].first)
            design = CellDesign.from_columns(*(table[c].to_numpy() for c in ("concept", "image_id", "condition")))
            weights_GB = design.weights_GB(image_weights(design, REPLICATES, seed=0))
            shape = (len(design), len(weights_GB))
            slots = csr_matrix((np.ones(len(design)), (np.arange(len(design)), design.slot_N)), shape=shape)
            self._weights = design, slots, weights_GB
        return self._weights

    def _table(self, run: Score) -> pd.DataFrame:
        """A run's items in the order of their ids, which must be those of the group's first run."""
        folder = str(run.run_dir)
        if folder not in self._tables:
            file = _items_file(run)
            if not file.is_file():
                raise NotPairedError(f"{file} is not there")
            columns = {column for _, column in PER_ITEM[self.group.benchmark].values()}
            table = _read(file, [*_KEYS, *sorted(columns), *_PEOPLE.values(), "n_responses_people"])
            if self._tables:
                first = next(iter(self._tables.values()))
                if not first["sketch_id"].equals(table["sketch_id"]):
                    raise NotPairedError("the runs are not of the same items")
                table = table.drop(columns=_KEYS)  # as in the first run: two hundred runs have many texts
            self._tables[folder] = table
        return self._tables[folder]


def _items_file(run: Score) -> Path:
    return Path(str(run.run_dir)) / "items.parquet"


def _read(file: Path, wanted: Sequence[str]) -> pd.DataFrame:
    """The columns of a table that are there, in the order of the ids."""
    try:
        here = [c for c in wanted if c in pq.read_schema(file).names]
        return pd.read_parquet(file, columns=here).sort_values("sketch_id", ignore_index=True)
    except (OSError, ValueError, KeyError) as error:
        raise NotPairedError(f"{file} cannot be read ({' '.join(str(error).split())})") from error


def _people_weights(table: pd.DataFrame) -> list[np.ndarray]:
    """People's cells are means over items, or over all answers, as the protocol has it."""
    found = [np.ones(len(table))]
    if "n_responses_people" in table:
        found.append(table["n_responses_people"].to_numpy(float))
    return found


def _cells(
    design: CellDesign, value_N: np.ndarray, weights_NB: np.ndarray, own_N: np.ndarray | None = None
) -> np.ndarray:
    """(B, C) weighted means of cells, items without a value left out."""
    known_N = np.isfinite(value_N)
    weight_N = known_N.astype(float) if own_N is None else np.where(known_N, own_N, 0.0)
    where, shape = (design.cell_N, np.arange(len(design))), (design.num_cells, len(design))
    total = csr_matrix((np.where(known_N, value_N, 0.0) * weight_N, where), shape=shape) @ weights_NB
    count = csr_matrix((weight_N, where), shape=shape) @ weights_NB
    return np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan).T


def _mean_of_cells(design: CellDesign, value_N: np.ndarray, weights_NB: np.ndarray) -> np.ndarray:
    value_BC = _cells(design, value_N, weights_NB)
    known = np.isfinite(value_BC)
    return np.where(known, value_BC, 0.0).sum(1) / np.maximum(known.sum(1), 1)


def _mean_of_items(design: CellDesign, value_N: np.ndarray, weights_NB: np.ndarray) -> np.ndarray:
    del design
    known_N = np.isfinite(value_N)
    return (np.where(known_N, value_N, 0.0) @ weights_NB) / np.maximum(known_N.astype(float) @ weights_NB, 1e-300)


def _is_recorded(run: Score, score: str, found: float) -> bool:
    recorded = run.scores[score].value
    return recorded is not None and abs(found - recorded) <= TOLERANCE * max(1.0, abs(recorded))


def _require_recorded(run: Score, score: str, found: float) -> None:
    if not _is_recorded(run, score, found):
        raise NotPairedError(f"the items do not give the recorded {score} under this protocol")


def _simulated_sessions(group: Group, score: str) -> Paired:
    """The replicates of squared errors that runs of object learning keep, on one resample of people's sessions."""
    convention = str(group.entries[0].first.result.protocol.get("convention", "paper"))
    if score != f"msen_{convention}":
        raise NotPairedError("runs keep replicates of their convention's squared error alone")
    rows = [np.mean([_kept_replicates(run) for run in entry.runs], axis=0) for entry in group.entries]
    if len({len(row) for row in rows}) > 1 or _seeds_differ(group.entries):
        raise NotPairedError("the replicates of these runs are not of one resample of people")
    return Paired(np.stack(rows), "basic", "people's and the model's sessions")


def _seeds_differ(entries: Sequence[Entry]) -> bool:
    return len({tuple(sorted(str(sorted(run.seeds.items())) for run in entry.runs)) for entry in entries}) > 1


def _kept_replicates(run: Score) -> np.ndarray:
    file = Path(str(run.run_dir)) / "replicates.parquet"
    if not file.is_file():
        raise NotPairedError(f"{file} is not there")
    reference = run.result.details["object_learning"]["reference"]
    table = pd.read_parquet(file, filters=[("layer", "==", reference["layer"]), ("rule", "==", reference["rule"])])
    columns = [c for c in table.columns if str(c).startswith("r") and str(c)[1:].isdigit()]
    if len(table) != 1 or not columns:
        raise NotPairedError(f"{file} has {len(table)} rows of layer {reference['layer']}, rule {reference['rule']}")
    return table[columns].to_numpy(float)[0]
