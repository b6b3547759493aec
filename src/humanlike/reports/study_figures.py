"""Every figure of a study, drawn from its tables: what there is to draw is drawn, and nothing else.

The tables that are read, by name; columns are said where each figure is made:
    models, conditions, strokes: `humanlike.reports.study_figures_conditions`
    alignment, noise_ceiling, rank_groups, spearman: `humanlike.reports.study_figures_alignment`
    machine_cells, machine_levels, machine_divergence: `humanlike.reports.study_figures_machine`
    layers: `humanlike.reports.study_figures_layers`
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pandas as pd
from matplotlib.figure import Figure

from humanlike.reports.figures import figure_svg
from humanlike.reports.study_figures_alignment import alignment_order, order_correlations
from humanlike.reports.study_figures_conditions import metric_by_condition, stroke_densities
from humanlike.reports.study_figures_layers import layer_profile
from humanlike.reports.study_figures_machine import (
    divergence_by_level,
    recognisability,
    recognition_by_level,
)
from humanlike.reports.study_observers import PEOPLE, Observers


def study_figures(
    tables: Mapping[str, pd.DataFrame],
    *,
    unit: str = "",
    machine_unit: str = "",
    simulated: Collection[str] = (),
) -> dict[str, str]:
    """The figures of a study as SVG texts, in the order in which they are shown.

    Args:
        tables: Name → table; those that are missing or empty give no figure.
        unit: Unit of the conditions of people's sketches.
        machine_unit: Unit of the levels of machine sketches.
        simulated: Observers that are simulated ("people" or models' names); every figure says so.

    Returns:
        Name → SVG. The names begin with the part of the study: `strokes`, `conditions_<metric>`,
        `alignment_<metric>`, `spearman`, `machine_recognition`, `machine_levels`, `machine_<measure>`,
        `layers` or `layers_<model>`.
    """
    known = {name: table for name, table in tables.items() if table is not None and len(table)}
    observers = Observers.of(known.get("models"), simulated)
    parts = (
        _stroke_figures(known, unit, observers),
        _condition_figures(known, unit, observers),
        _alignment_figures(known, observers),
        _machine_figures(known, unit, machine_unit, observers),
        _layer_figures(known, observers),
    )
    return {name: figure_svg(figure) for part in parts for name, figure in part if figure is not None}


Figures = Iterator[tuple[str, Figure | None]]


def _stroke_figures(tables: Mapping[str, pd.DataFrame], unit: str, observers: Observers) -> Figures:
    if "strokes" in tables:
        yield "strokes", stroke_densities(tables["strokes"], unit=unit, people=observers.people)


def _condition_figures(tables: Mapping[str, pd.DataFrame], unit: str, observers: Observers) -> Figures:
    if "conditions" in tables:
        table = tables["conditions"]
        for metric in dict.fromkeys(table["metric"]):
            yield f"conditions_{metric}", metric_by_condition(table, metric, observers, unit=unit)


def _alignment_figures(tables: Mapping[str, pd.DataFrame], observers: Observers) -> Figures:
    if "alignment" in tables:
        table, ranks = _with_corrected(tables["alignment"], tables.get("noise_ceiling")), tables.get("rank_groups")
        for metric in dict.fromkeys(table["metric"]):
            figure = alignment_order(table, metric, observers, rank_groups=ranks, label="adjusted R²")
            yield f"alignment_{metric}", figure
    if "spearman" in tables:
        yield "spearman", order_correlations(tables["spearman"])


def _with_corrected(alignment: pd.DataFrame, ceiling: pd.DataFrame | None) -> pd.DataFrame:
    """Alignment with the column `corrected` from the table of ceilings, where it has none of its own."""
    if "corrected" in alignment or ceiling is None or "corrected" not in ceiling:
        return alignment
    return alignment.merge(ceiling[["observer", "metric", "corrected"]], on=["observer", "metric"], how="left")


def _machine_figures(tables: Mapping[str, pd.DataFrame], unit: str, machine_unit: str, observers: Observers) -> Figures:
    people, cells, levels = observers.people, tables.get("machine_cells"), tables.get("machine_levels")
    # The axis carries people's budgets; where the machine's are the same numbers it can carry both units.
    same = (
        cells is not None and "machine_condition" in cells and (cells["machine_condition"] == cells["condition"]).all()
    )
    axis_unit = " or ".join(dict.fromkeys(u for u in (unit, machine_unit) if u)) if same else unit
    drawers = [] if levels is None else [str(name) for name in dict.fromkeys(levels["drawn_by"]) if name != PEOPLE]
    machine = drawers[0] if len(drawers) == 1 else "a machine"
    if cells is not None:
        figure = recognisability(cells, unit=unit, machine_unit=machine_unit, machine=machine, people=people)
        yield "machine_recognition", figure
    if levels is not None:
        yield "machine_levels", recognition_by_level(levels, unit=axis_unit, people=people)
    if "machine_divergence" in tables:
        table = tables["machine_divergence"]
        for measure in dict.fromkeys(table["measure"]):
            yield f"machine_{measure}", divergence_by_level(table, measure, unit=axis_unit)


def _layer_figures(tables: Mapping[str, pd.DataFrame], observers: Observers) -> Figures:
    if "layers" not in tables:
        return
    table = tables["layers"]
    if "observer" not in table:
        yield "layers", layer_profile(table)
        return
    for name in dict.fromkeys(table["observer"].astype(str)):
        if name != PEOPLE:
            yield f"layers_{name}", layer_profile(table[table["observer"] == name], name=observers.label(name))
