"""People's answers to a machine's sketches beside their answers to people's sketches (SEVA, Figure 6).

Levels are matched in order: the machine's fewest strokes with people's shortest time, and so on.

Legend: K concepts, T levels, C = K · T cells (cell = concept · T + level), L labels, B replicates, J source images.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from humanlike.benchmarks.protocol import Protocol
from humanlike.benchmarks.seva_agreement import cell_distance
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.benchmarks.seva_people import code_people
from humanlike.benchmarks.study.label_divergence import (
    CellLabels,
    distance_replicates,
    rank_of_cells,
    require_same_cells,
)
from humanlike.benchmarks.study.models import PEOPLE
from humanlike.benchmarks.study.observers import only
from humanlike.benchmarks.study.people import study_items
from humanlike.stats import (
    CellDesign,
    CodedResponses,
    PeopleSwitches,
    basic,
    cell_metrics,
    image_weights,
    people_statistics,
    percentile,
)
from humanlike.stats.count_entropy import ratio
from humanlike.stats.hypothesis import INTERCEPT, LeastSquares, least_squares
from humanlike.types import Sketches

MEASURES: Mapping[str, tuple[str, ...]] = {"distance": ("distance",), "rank": ("rank",), "both": ("distance", "rank")}
"""Protocol switch `divergence` → measures."""


@dataclass(frozen=True, eq=False)
class _Side:
    """One kind of sketches: their items, people's answers and how often each image is drawn in the replicates."""

    items: SevaItems
    responses: CodedResponses
    labels: CellLabels
    weights_BKJ: np.ndarray

    @property
    def design(self) -> CellDesign:
        return self.items.design

    def accuracy(self, weights_BKJ: np.ndarray | None) -> np.ndarray:
        """(B, C) share of first guesses that are the target, per sketch, mean over sketches."""
        statistics = people_statistics(self.responses, self.items.target_N, None, PeopleSwitches())
        return cell_metrics(self.design, only(statistics, "accuracy"), weights_BKJ)["accuracy"]


def machine_sketches(
    people: Sketches,
    machine: Sketches,
    protocol: Protocol,
    *,
    replicates: int = 1000,
    rank_replicates: int = 100,
    seed: int = 0,
    on_unknown: str = "raise",
) -> dict[str, pd.DataFrame]:
    """Are a machine's sketches as recognisable as people's, and do they evoke the same labels?

    Recognisability is the accuracy of first guesses, whatever the protocol says of people's accuracy; divergence is of
    all guesses. Replicates resample source images within concepts; where both kinds of sketches are of the same images
    they are drawn together. Distances of small samples are too large, and replicates are larger still: intervals are
    centred on the estimate ("basic"), unless the protocol asks for percentiles. The regressions take cells as
    independent, as the published ones do.

    Args:
        people: People's sketches with answers.
        machine: The machine's sketches with answers, of at least one concept of `people`, at as many levels.
        protocol: Says by `divergence` which measures are computed, and by `interval` whether percentiles are asked for.
        replicates: B, for accuracies and distances.
        rank_replicates: Replicates for the rank, each of which compares all cells with all cells.
        seed: Global seed.
        on_unknown: See `code_people`.

    Returns:
        `machine_cells`: one row a cell: `concept, condition` (people's), `machine_condition, level` (1 … T),
        `people_sketches, machine_sketches` (accuracies), `fitted`, and the measures.
        `machine_levels`: `drawn_by` ("people" or the machine's name), `condition, level, estimate, ci_low, ci_high,
        interval, n` (concepts): mean accuracy (Figure 6 A).
        `machine_fit`: least squares people_sketches ~ machine_sketches × condition over cells, a row a coefficient,
        with `r2, adjusted_r2, n, note`.
        `machine_divergence`: `measure, condition, level, estimate, ci_low, ci_high, interval, n` (Figure 6 B).
        `machine_trend`: least squares measure ~ condition over cells, as `machine_fit` with `measure`.

    Raises:
        ValueError: No answers, labels in another order, no concept in common, or another number of levels.

    References:
        Mukherjee et al. 2023 (SEVA), "Evaluating machine sketch production", Figure 6. The published figure plots the
        rank under the name of the distance.
    """
    human, artificial = _sides(people, machine, replicates, seed, on_unknown)
    kind = "percentile" if protocol.interval == "percentile" else "basic"
    full = [side.accuracy(None)[0] for side in (human, artificial)]
    levels = [
        _level_rows(human.design, value_C, side.accuracy(side.weights_BKJ), kind).assign(drawn_by=name)
        for name, side, value_C in zip((PEOPLE, machine.name), (human, artificial), full, strict=True)
    ]
    cells = _cells(people.labels, human.design, artificial.design).assign(
        people_sketches=full[0], machine_sketches=full[1]
    )
    fit, cells["fitted"] = _recognisability(cells)
    divergence, trend = [], []
    for measure in MEASURES[protocol.divergence]:
        cells[measure], replicate_BC = _measure(measure, human, artificial, min(rank_replicates, replicates))
        rows = _level_rows(human.design, cells[measure].to_numpy(), replicate_BC, kind)
        divergence.append(rows.assign(measure=measure))
        trend.append(_trend(cells, measure).assign(measure=measure))
    return {
        "machine_cells": cells,
        "machine_levels": pd.concat(levels, ignore_index=True),
        "machine_fit": fit,
        "machine_divergence": pd.concat(divergence, ignore_index=True),
        "machine_trend": pd.concat(trend, ignore_index=True),
    }


def _sides(people: Sketches, machine: Sketches, replicates: int, seed: int, on_unknown: str) -> tuple[_Side, _Side]:
    if people.labels != machine.labels:
        raise ValueError(f"{people.name} and {machine.name} need the same labels in the same order")
    for data in (people, machine):
        if data.responses is None or len(data.responses.table) == 0:
            raise ValueError(f"{data.name} has no answers of people; the comparison is of people's answers")
    judged = [study_items(data)[0] for data in (people, machine)]
    shared = set(judged[0].table["concept"]) & set(judged[1].table["concept"])
    if not shared:
        raise ValueError(f"{people.name} and {machine.name} have no judged concept in common")
    kept = [data.select(np.flatnonzero(data.table["concept"].isin(shared))) for data in judged]
    items = [study_items(data)[1] for data in kept]
    require_same_cells(items[0].design, items[1].design)
    together = _images(items[0]) == _images(items[1])
    sides = []
    for number, (data, used) in enumerate(zip(kept, items, strict=True)):
        assert data.responses is not None  # checked above
        coded = code_people(data.responses, used.table["sketch_id"].tolist(), data.labels, on_unknown).responses
        # Other replicate numbers are other draws.
        weights_BKJ = image_weights(used.design, replicates, seed, start=0 if together else number * replicates)
        sides.append(_Side(used, coded, CellLabels(used.design, coded, len(data.labels)), weights_BKJ))
    return sides[0], sides[1]


def _images(items: SevaItems) -> set[tuple[str, str]]:
    return set(zip(items.table["concept"].astype(str), items.table["image_id"].astype(str), strict=True))


def _cells(labels: tuple[str, ...], people: CellDesign, machine: CellDesign) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "concept": np.asarray(labels, dtype=object)[people.concept_C],
            "condition": people.condition_C,
            "machine_condition": machine.condition_C,
            "level": np.tile(np.arange(1, people.num_conditions + 1), people.num_concepts),
        }
    )


def _measure(measure: str, people: _Side, machine: _Side, rank_replicates: int) -> tuple[np.ndarray, np.ndarray]:
    """(C,) value and (B, C) replicates of a measure."""
    sides = people.labels, machine.labels
    if measure == "distance":
        drawn_BC = distance_replicates(*sides, people.weights_BKJ, machine.weights_BKJ)
        return cell_distance(*(labels.table() for labels in sides)), drawn_BC
    pairs = zip(people.weights_BKJ[:rank_replicates], machine.weights_BKJ[:rank_replicates], strict=True)
    return rank_of_cells(*sides), np.stack([rank_of_cells(*sides, *pair) for pair in pairs])


def _level_rows(design: CellDesign, value_C: np.ndarray, replicate_BC: np.ndarray, kind: str) -> pd.DataFrame:
    """One row a level: mean over the concepts that have a value, with its interval."""
    shape = (design.num_concepts, design.num_conditions)
    mean_T, n_T = _mean_over_concepts(value_C.reshape(1, *shape))
    mean_BT, _ = _mean_over_concepts(replicate_BC.reshape(-1, *shape))
    rows = []
    for level, condition in enumerate(design.conditions_T):
        estimate = float(mean_T[0, level])
        drawn_B = mean_BT[:, level]
        interval = percentile(drawn_B) if kind == "percentile" else basic(estimate, drawn_B)
        row = {"condition": condition, "level": level + 1, "estimate": estimate}
        row |= {"ci_low": interval.low, "ci_high": interval.high, "interval": interval.kind}
        rows.append(row | {"n": int(n_T[0, level]), "replicates": len(drawn_B) - interval.n_degenerate})
    return pd.DataFrame(rows)


def _mean_over_concepts(value_BKT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = np.isfinite(value_BKT)
    n_BT = known.sum(axis=1)
    return ratio(np.where(known, value_BKT, 0.0).sum(axis=1), n_BT), n_BT


def _recognisability(cells: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """The regression of Figure 6 A, and its (C,) fitted values; NaN with a note where the cells cannot carry it."""
    machine, condition = (cells[name].to_numpy(np.float64) for name in ("machine_sketches", "condition"))
    columns = {"machine_sketches": machine}
    if len(np.unique(condition)) > 1:
        columns |= {"condition": condition, "machine_sketches:condition": machine * condition}
    fit, table = _fit(cells["people_sketches"].to_numpy(np.float64), columns)
    if fit is None:
        return table, np.full(len(cells), np.nan)
    estimate = fit.terms.set_index("term")["estimate"]
    return table, estimate[INTERCEPT] + sum(estimate[name] * column for name, column in columns.items())


def _trend(cells: pd.DataFrame, measure: str) -> pd.DataFrame:
    value, condition = (cells[name].to_numpy(np.float64) for name in (measure, "condition"))
    return _fit(value, {"condition": condition})[1]


def _fit(outcome: np.ndarray, columns: Mapping[str, np.ndarray]) -> tuple[LeastSquares | None, pd.DataFrame]:
    """A least-squares fit and its table; where there is none, one row a term without numbers that says why."""
    try:
        fit = least_squares(outcome, columns)
    except ValueError as error:
        terms = pd.DataFrame({"term": [INTERCEPT, *columns]})
        for name in ("estimate", "std_error", "statistic", "df", "p_value", "ci_low", "ci_high", "r2", "adjusted_r2"):
            terms[name] = np.nan
        return None, terms.assign(n=int(np.isfinite(outcome).sum()), note=f"not fitted: {error}")
    return fit, fit.terms.assign(r2=fit.r2, adjusted_r2=fit.adjusted_r2, n=fit.n, note="")
