"""Per-layer profile of a model: alignment (and its other scores) against the relative depth of the layer.

Table in:
    layers: `layer, relative_depth, metric, value, ci_low, ci_high, chosen` (bool; by a rule that did not see the
        people on whom the value was computed) and, with several models, `observer`.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from humanlike.reports.figures import INK, MUTED, PAPER, figure_style, settle
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure
from humanlike.reports.study_observers import FAMILIES, LineStyle
from humanlike.reports.wording import title

_LINES: tuple[LineStyle, ...] = ("-", (0, (6, 1)), (0, (3, 1)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (2, 2)))
_LOOKS = tuple((f.colour, f.marker, line) for f, line in zip(FAMILIES, _LINES, strict=True) if f.colour != MUTED)


def layer_profile(layers: pd.DataFrame, *, name: str = "", label: str = "R²") -> Figure | None:
    """One line a metric over the depth of a model, each with its interval as a band; the chosen layer is ringed.

    Where the table holds alignments (`alignment_…`), these alone are drawn: other scores have other units.

    Args:
        layers: See the module; the rows of one model.
        name: Of the model, for the title.
        label: Of the value axis.

    Returns:
        The figure; None where no value is known.
    """
    rows = layers.assign(value=pd.to_numeric(layers["value"]).astype(float))
    rows = rows[rows["value"].notna()]
    rows = rows[~rows["metric"].astype(str).str.endswith("_corrected")]
    aligned = rows["metric"].astype(str).str.startswith("alignment_")
    rows = rows[aligned] if aligned.any() else rows
    if rows.empty:
        return None
    metrics = list(dict.fromkeys(rows["metric"]))
    with figure_style():
        figure = new_figure(5.6, 4.0)
        axis = figure.subplots()
        for k, metric in enumerate(metrics):
            colour, marker, line = _LOOKS[k % len(_LOOKS)]
            _profile_line(axis, rows[rows["metric"] == metric], title(metric), colour, marker, line)
        handles, labels = axis.get_legend_handles_labels()
        if "chosen" in rows and rows["chosen"].fillna(False).astype(bool).any():
            handles.append(_ring(label="chosen layer"))
            labels.append("chosen layer")
        axis.axhline(0, color=MUTED, linewidth=0.8)
        axis.set(xlim=(-0.03, 1.03), xlabel="relative depth (0 first layer, 1 last)", ylabel=label)
        axis.set_title(f"Layers of {name}" if name else "Layers")
        figure.legend(handles, labels, loc="outside upper left", ncols=2, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure


def _profile_line(axis: Axes, rows: pd.DataFrame, label: str, colour: str, marker: str, line: LineStyle) -> None:
    rows = rows.sort_values("relative_depth")
    x, y = rows["relative_depth"].to_numpy(float), rows["value"].to_numpy(float)
    axis.plot(
        x, y, color=colour, marker=marker, linestyle=line, linewidth=1.8, markersize=5, markeredgecolor=PAPER,
        markeredgewidth=0.6, label=label, zorder=3,
    )  # fmt: skip
    if {"ci_low", "ci_high"} <= set(rows.columns):
        low, high = rows["ci_low"].to_numpy(float), rows["ci_high"].to_numpy(float)
        axis.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
    if "chosen" in rows:
        chosen = rows["chosen"].fillna(False).to_numpy(bool)
        if chosen.any():
            axis.add_line(_ring(x[chosen], y[chosen]))


def _ring(x: ArrayLike = (), y: ArrayLike = (), label: str | None = None) -> Line2D:
    return Line2D(
        x, y, color=INK, marker="o", markersize=12, markerfacecolor="none", markeredgewidth=1.5, linestyle="none",
        label=label, zorder=4,
    )  # fmt: skip
