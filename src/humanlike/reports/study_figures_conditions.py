"""Figures over the conditions of a study: stroke counts (SEVA, Figure 3) and each metric's course (Figure 4).

Tables in:
    strokes: `condition, num_strokes`, one row a sketch.
    conditions: `observer, condition, metric, estimate, std_error` and, where known, `chance` (one level a metric);
        people's rows have the observer "people".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR, figure_style, settle
from humanlike.reports.study_observers import PEOPLE, Family, Observers, spread
from humanlike.reports.wording import condition_label, number, title

LABEL_POINTS = 8.0
_LINE_INCHES = 0.145
_SHOWN_SHARE = 0.995
_LEAST_WIDTH = 0.75


def new_figure(width: float, height: float) -> Figure:
    """An empty figure without a display, laid out so that nothing is cut off."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def condition_axis(axis: Axes, conditions: np.ndarray, unit: str, name: str = "condition") -> None:
    """Label an axis by its conditions; those that span a factor of four or more stand at equal ratios."""
    if len(conditions) > 1 and conditions[0] > 0 and conditions[-1] / conditions[0] >= 4:
        axis.set_xscale("log", base=2)
    axis.set_xticks(conditions, [f"{v:g}" for v in conditions])
    axis.minorticks_off()
    axis.set_xlabel(f"{name} ({unit})" if unit else name)


def family_legend(figure: Figure, families: Sequence[Family], more: Sequence[Any] = (), columns: int = 3) -> None:
    """A legend above the figure that says what each colour, marker and line stands for."""
    handles = [
        Line2D([], [], color=f.colour, marker=f.marker, linestyle=f.line, markersize=5, label=f.name) for f in families
    ]
    figure.legend(handles=[*handles, *more], loc="outside upper left", ncols=columns, fontsize=LABEL_POINTS + 0.5)


def metric_by_condition(
    conditions: pd.DataFrame, metric: str, observers: Observers, *, unit: str = ""
) -> Figure | None:
    """A metric's mean (± s.e.m.) over the conditions: every model, people, and chance (SEVA, Figure 4).

    Each line is named at its right end; the figure grows with the number of models, so that the names stay apart.

    Returns:
        The figure; None where the metric has no value.
    """
    rows = conditions[(conditions["metric"] == metric) & conditions["estimate"].notna()]
    if rows.empty:
        return None
    names = [str(o) for o in dict.fromkeys(rows["observer"]) if o != PEOPLE]
    if (rows["observer"] == PEOPLE).any():
        names.append(PEOPLE)  # drawn last, above the models
    inner = max(2.6, _LINE_INCHES * len(names))
    with figure_style():
        figure = new_figure(5.6, inner + 1.15)
        axis = figure.subplots()
        ends = [_course(axis, rows[rows["observer"] == name], observers.family(name), name == PEOPLE) for name in names]
        more = _chance_line(axis, rows)
        x = np.sort(rows["condition"].unique()).astype(float)
        condition_axis(axis, x, unit)
        axis.set_title(title(metric))
        _name_lines(axis, names, ends, observers, x, inner)
        family_legend(figure, observers.families(names), more)
        settle(figure)
    return figure


def _chance_line(axis: Axes, rows: pd.DataFrame) -> list[Line2D]:
    """The level of chance; where it is so far off that it would press the lines together, it is said in words."""
    level = float(rows["chance"].iloc[0]) if "chance" in rows else nan
    if not isfinite(level):
        return []
    low, high = axis.get_ylim()
    off = max(low - level, level - high, 0.0)
    if off > 0.6 * (high - low):
        edge, arrow = (0.02, "↓") if level < low else (0.98, "↑")
        axis.text(
            0.5, edge, f"{arrow} chance {number(level, 2)}", transform=axis.transAxes, color=MUTED, ha="center",
            va="bottom" if level < low else "top", fontsize=LABEL_POINTS, fontfamily="DejaVu Sans",
        )  # fmt: skip
        return []
    return [axis.axhline(level, color=MUTED, linestyle=":", linewidth=1.4, label="chance", zorder=1)]


def _course(axis: Axes, rows: pd.DataFrame, family: Family, is_people: bool) -> tuple[float, float]:
    """Draw one observer's line; gives its last point."""
    rows = rows.sort_values("condition")
    x, y = rows["condition"].to_numpy(float), rows["estimate"].to_numpy(float)
    sem = rows["std_error"].to_numpy(float)
    axis.errorbar(
        x, y, yerr=np.nan_to_num(sem), color=family.colour, marker=family.marker, linestyle=family.line,
        markersize=6.5 if is_people else 4.5, linewidth=2.6 if is_people else 1.2, elinewidth=1.4 if is_people else 0.8,
        markeredgecolor=PAPER, markeredgewidth=0.6, zorder=4 if is_people else 3,
    )  # fmt: skip
    return float(x[-1]), float(y[-1])


def _name_lines(
    axis: Axes, names: Sequence[str], ends: Sequence[tuple[float, float]], observers: Observers, x: np.ndarray,
    inches: float,
) -> None:  # fmt: skip
    """Write every observer's name to the right of the axis, with a hair line to the end of its line."""
    low, high = axis.get_ylim()
    axis.set_ylim(low, high)
    gap = (high - low) * 0.95 * _LINE_INCHES / inches
    places = spread([y for _, y in ends], gap, low + gap / 2, high - gap / 2)
    right = axis.get_yaxis_transform()
    axis.margins(x=0.04)
    for name, (_, y), place in zip(names, ends, places, strict=True):
        family = observers.family(name)
        axis.plot([1.0, 1.06], [y, place], transform=right, color=family.colour, linewidth=0.6, clip_on=False)
        axis.text(
            1.07, place, observers.label(name), transform=right, color=family.colour, va="center",
            fontsize=LABEL_POINTS, fontweight="bold" if name == PEOPLE else "normal",
        )  # fmt: skip


def stroke_densities(strokes: pd.DataFrame, *, unit: str = "", people: str = PEOPLE) -> Figure | None:
    """The density of stroke counts at each condition, one above the other, with their means (SEVA, Figure 3).

    Densities are Gaussian kernel estimates, as wide as Scott's rule says and at least three quarters of a stroke. The
    axis ends where 99.5% of the sketches of every condition are shown; means are of all sketches.

    Returns:
        The figure; None where there are no counts.
    """
    known = strokes[strokes["num_strokes"].notna()]
    if known.empty:
        return None
    values = np.sort(known["condition"].unique())
    groups = [np.unique(known.loc[known["condition"] == c, "num_strokes"], return_counts=True) for c in values]
    end = max(_quantile(x, n, _SHOWN_SHARE) for x, n in groups) + 1
    grid = np.linspace(0, end, 400)
    with figure_style():
        figure = new_figure(5.6, 0.8 + 0.85 * len(values))
        axes = figure.subplots(len(values), 1, sharex=True, squeeze=False)[:, 0]
        for axis, condition, (x, n) in zip(axes, values, groups, strict=True):
            mean = float(np.average(x, weights=n))
            density = _density(x, n, grid)
            axis.fill_between(grid, density, color=MODEL_COLOURS[0], alpha=0.35, linewidth=0)
            axis.plot(grid, density, color=MODEL_COLOURS[0], linewidth=1.2)
            axis.axvline(mean, color=PEOPLE_COLOUR, linestyle="--", linewidth=1.6)
            axis.text(
                0.99, 0.9, f"{condition_label(float(condition), unit)}: mean {number(mean, 1)}, n {int(n.sum())}",
                transform=axis.transAxes, ha="right", va="top", color=INK,
            )  # fmt: skip
            axis.set(yticks=[], ylim=(0, 1.1 * max(density.max(), 1e-12)), xlim=(0, end))
            axis.spines["left"].set_visible(False)
        axes[0].set_title(f"Strokes of a sketch ({people})")
        axes[-1].set_xlabel("strokes")
        settle(figure)
    return figure


def _density(x: np.ndarray, n: np.ndarray, grid: np.ndarray) -> np.ndarray:
    total = n.sum()
    deviation = np.sqrt(np.average((x - np.average(x, weights=n)) ** 2, weights=n))
    # Counts are whole: a narrower kernel would draw a peak at every count.
    width = max(deviation * total**-0.2, _LEAST_WIDTH)
    kernels = np.exp(-0.5 * ((grid[:, None] - x) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    return kernels @ (n / total)


def _quantile(x: np.ndarray, n: np.ndarray, share: float) -> float:
    return float(x[np.searchsorted(np.cumsum(n) / n.sum(), share)])
