"""Figures of people's answers to machine sketches: recognisability (SEVA, Figure 6 A), divergence of labels (6 B).

Tables in:
    machine_cells: `concept, condition, people_sketches, machine_sketches` (people's top-1 accuracy on the sketches that
        people and that the machine drew) and, where known, `machine_condition` and `fitted`.
    machine_levels: `drawn_by` ("people" or the machine's name), `condition, estimate, ci_low, ci_high`.
    machine_divergence: `measure` ("distance" or "rank"), `condition, estimate, ci_low, ci_high`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR, figure_style, settle
from humanlike.reports.study_figures_conditions import LABEL_POINTS, condition_axis, new_figure
from humanlike.reports.study_observers import PEOPLE
from humanlike.reports.wording import condition_label

MEASURES = {
    "distance": "Jensen-Shannon distance of label distributions",
    "rank": "Rank of the nearest cell of the same concept (1 is nearest)",
}


def recognisability(
    cells: pd.DataFrame, *, unit: str = "", machine_unit: str = "", machine: str = "a machine", people: str = PEOPLE
) -> Figure | None:
    """Each cell's accuracy on sketches by people against that on sketches by the machine, one panel a level.

    The dashed line is equality; the full line is the fitted regression (column `fitted`).

    Returns:
        The figure; None where no cell has both.
    """
    rows = cells[cells["people_sketches"].notna() & cells["machine_sketches"].notna()]
    if rows.empty:
        return None
    levels = np.sort(rows["condition"].unique())
    columns = 2 if len(levels) > 1 else 1
    lines = -(-len(levels) // columns)
    with figure_style():
        figure = new_figure(5.6, 0.7 + 2.5 * lines)
        axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat
        for axis, level in zip(axes, levels, strict=False):
            part = rows[rows["condition"] == level].sort_values("machine_sketches")
            axis.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1.0, label="equally recognisable")
            axis.plot(
                part["machine_sketches"], part["people_sketches"], color=MODEL_COLOURS[0], marker="o", markersize=4.5,
                alpha=0.55, markeredgecolor=PAPER, markeredgewidth=0.4, linestyle="none", label="one concept",
            )  # fmt: skip
            if "fitted" in part and part["fitted"].notna().any():
                axis.plot(part["machine_sketches"], part["fitted"], color=INK, linewidth=1.8, label="regression")
            axis.set_title(_level_title(part, unit, machine_unit), fontsize=10)
            axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
            axis.grid(True, axis="both")
        for axis in list(figure.axes)[len(levels) :]:
            axis.set_axis_off()
        figure.supxlabel(f"accuracy on sketches by {machine}", fontsize=10)
        figure.supylabel(f"accuracy on sketches by {people}", fontsize=10)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure


def _level_title(part: pd.DataFrame, unit: str, machine_unit: str) -> str:
    """Both budgets of a level, as in `4 s, 4 strokes`."""
    own = condition_label(float(part["condition"].iloc[0]), unit)
    if "machine_condition" not in part:
        return own
    return f"{own}, {condition_label(float(part['machine_condition'].iloc[0]), machine_unit)}"


def recognition_by_level(levels: pd.DataFrame, *, unit: str = "", people: str = PEOPLE) -> Figure | None:
    """People's mean accuracy on sketches by people and by machines at each level, with intervals.

    Returns:
        The figure; None where nothing is known.
    """
    rows = levels[levels["estimate"].notna()]
    if rows.empty:
        return None
    with figure_style():
        figure = new_figure(5.6, 3.4)
        axis = figure.subplots()
        drawers = dict.fromkeys(rows["drawn_by"])
        markers = iter("oD^v")
        colours = iter([MODEL_COLOURS[0], INK, MUTED])
        for name in drawers:
            own = name == PEOPLE
            look = (PEOPLE_COLOUR, "s", "--") if own else (next(colours), next(markers), "-")
            _interval_line(axis, rows[rows["drawn_by"] == name], f"drawn by {people if own else name}", *look)
        condition_axis(axis, np.sort(rows["condition"].unique()).astype(float), unit, "budget")
        axis.set_title("Accuracy of people's first guess")
        figure.legend(loc="outside upper left", ncols=3, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure


def divergence_by_level(divergence: pd.DataFrame, measure: str, *, unit: str = "") -> Figure | None:
    """How far the labels given to machine sketches are from those given to people's, at each level, with intervals.

    Returns:
        The figure; None where the measure was not computed.
    """
    rows = divergence[(divergence["measure"] == measure) & divergence["estimate"].notna()]
    if rows.empty:
        return None
    with figure_style():
        figure = new_figure(5.6, 3.2)
        axis = figure.subplots()
        _interval_line(axis, rows, "mean over concepts", MODEL_COLOURS[0], "o", "-")
        condition_axis(axis, np.sort(rows["condition"].unique()).astype(float), unit, "budget")
        axis.set_title(MEASURES.get(measure, measure))
        settle(figure)
    return figure


def _interval_line(axis: Axes, rows: pd.DataFrame, label: str, colour: str, marker: str, line: str) -> None:
    rows = rows.sort_values("condition")
    x, y = rows["condition"].to_numpy(float), rows["estimate"].to_numpy(float)
    around = np.stack([y - rows["ci_low"].to_numpy(float), rows["ci_high"].to_numpy(float) - y])
    axis.errorbar(
        x, y, yerr=np.clip(np.nan_to_num(around), 0, None), label=label, color=colour, marker=marker, linestyle=line,
        markersize=6, linewidth=1.8, capsize=3, markeredgecolor=PAPER, markeredgewidth=0.7,
    )  # fmt: skip
