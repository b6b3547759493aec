"""Does the ranking by SEA depend on its hyperparameters? Drawn from `humanlike.stats.sea_sensitivity`.

Tables in:
    sensitivity_one: `parameter, value, kendall_sketches, order_kept`, one row a value of one hyperparameter.
    sensitivity_joint: the nine values, `kendall_sketches, order_kept`, one row a draw of all at once.
    sensitivity_pairs: `higher, lower, difference, least, greatest, share_kept`, one row a pair of conditions.
    sensitivity_importance: `measure, parameter, total, total_se`, the total Sobol index of each hyperparameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, figure_style, settle
from humanlike.reports.sea_wording import SYMBOLS, parameter_label
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure
from humanlike.reports.wording import condition_label

MEASURE = "kendall_sketches"
_CHANGED, _DOUBTFUL = "#b3261e", "#d9480f"
_ON_FIELD = "#111827"  # on fields, which are as light in a dark page
_FIELDS = LinearSegmentedColormap.from_list("agreement", ["#f3c9a5", "#fdf3e7", "#cfe6f4"])
_BINS = 24


def ranking_sensitivity(tables: Mapping[str, pd.DataFrame], *, unit: str = "") -> Figure | None:
    """Rank agreement with the run's own ranking as hyperparameters move, one at a time and all at once.

    Args:
        tables: See the module; a panel whose table is absent is left out.
        unit: Unit of the condition.

    Returns:
        The figure; None where no table is there.
    """
    draw: Mapping[str, Callable[[Axes, pd.DataFrame], None]] = {
        "sensitivity_one": _one_at_a_time,
        "sensitivity_importance": _importance,
        "sensitivity_joint": _jointly,
        "sensitivity_pairs": lambda axis, table: _pairs(axis, table, unit),
    }
    there = [name for name in draw if name in tables and len(tables[name])]
    if not there:
        return None
    columns = min(2, len(there))
    lines = ceil(len(there) / columns)
    with figure_style():
        figure = new_figure(4.4 * columns, 3.4 * lines)
        axes = figure.subplots(lines, columns, squeeze=False)
        for axis in axes.flat[len(there) :]:
            axis.set_visible(False)
        for axis, name in zip(axes.flat, there, strict=False):
            draw[name](axis, tables[name])
        settle(figure)
    return figure


def _one_at_a_time(axis: Axes, table: pd.DataFrame) -> None:
    """A row a hyperparameter and a field a value: Kendall's τ, marked where the conditions' order is another one."""
    names = list(dict.fromkeys(table["parameter"]))
    width = int(table.groupby("parameter").size().max())
    least = float(table[MEASURE].min())
    fields = np.full((len(names), width), np.nan)
    for place, name in enumerate(names):
        rows = table[table["parameter"] == name].sort_values("value")
        kept = rows["order_kept"].astype("boolean").fillna(True).to_numpy(bool)
        start = (width - len(rows)) // 2  # a hyperparameter that is not moved has one value, in the middle
        for k, (tau, same) in enumerate(zip(rows[MEASURE].to_numpy(float), kept, strict=True), start=start):
            fields[place, k] = tau
            axis.text(
                k, place, f"{tau:.2f}" + ("" if same else "×"), ha="center", va="center", fontsize=6.5,
                color=_ON_FIELD if same else _CHANGED, fontweight="normal" if same else "bold",
                fontfamily="DejaVu Sans",
            )  # fmt: skip
    edges = np.arange(width + 1) - 0.5
    axis.pcolormesh(edges, np.arange(len(names) + 1) - 0.5, fields, cmap=_FIELDS, vmin=min(least, 0.9), vmax=1.0)
    _rows(axis, [parameter_label(n, table.loc[table["parameter"] == n, "value"].tolist()) for n in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xticks([0, width - 1] if width > 1 else [0], ["least", "greatest"] if width > 1 else ["value"])
    axis.tick_params(axis="x", length=0)
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.set(title="One at a time: Kendall's τ")


def _importance(axis: Axes, table: pd.DataFrame) -> None:
    rows = table[table["measure"] == MEASURE]
    place = np.arange(len(rows))
    axis.barh(place, rows["total"].to_numpy(float), 0.6, color=MODEL_COLOURS[0], alpha=0.85)
    axis.errorbar(rows["total"], place, xerr=np.nan_to_num(rows["total_se"].to_numpy(float)), fmt="none", ecolor=INK,
                  elinewidth=1.2, capsize=2.5)  # fmt: skip
    _rows(axis, [SYMBOLS.get(str(name), str(name)) for name in rows["parameter"]])
    axis.set(title="Which one matters when all move", xlabel="total share of the variance of τ (Sobol)")
    axis.set_xlim(left=0)


def _jointly(axis: Axes, table: pd.DataFrame) -> None:
    tau = table[MEASURE].dropna().to_numpy(float)
    axis.hist(tau, bins=_BINS, color=MODEL_COLOURS[0], alpha=0.8)
    axis.axvline(np.median(tau), color=INK, linestyle="--", linewidth=1.3)
    kept = table["order_kept"].astype("boolean").dropna()
    words = f"median τ {np.median(tau):.2f}"
    if len(kept):
        words += f"\norder of all conditions kept\nin {100 * kept.mean():.1f}% of {len(kept)} draws"
    axis.text(0.02, 0.97, words, transform=axis.transAxes, va="top", fontsize=LABEL_POINTS + 0.5)
    axis.set(title="All at once", xlabel="Kendall's τ of the sketches' ranking", ylabel="draws")
    axis.set_ylim(top=1.35 * axis.get_ylim()[1])  # leaves room for the words


def _pairs(axis: Axes, table: pd.DataFrame, unit: str) -> None:
    place = np.arange(len(table))
    low, high = table["least"].to_numpy(float), table["greatest"].to_numpy(float)
    axis.hlines(place, low, high, color=MODEL_COLOURS[0], linewidth=4, alpha=0.4)
    axis.plot(table["difference"], place, "o", color=MODEL_COLOURS[0], markersize=6)
    for y, right, share in zip(place, high, table["share_kept"], strict=True):
        axis.annotate(f"{100 * share:.3g}%", (right, y), (4, 0), textcoords="offset points", va="center",
                      fontsize=LABEL_POINTS, color=INK if share > 0.95 else _DOUBTFUL)  # fmt: skip
    axis.axvline(0, color=MUTED, linewidth=1.0)
    _rows(
        axis, [f"{_name(a, unit)} over {_name(b, unit)}" for a, b in zip(table["higher"], table["lower"], strict=True)]
    )
    axis.set(title="Pairs of conditions", xlabel="difference of mean SEA, all draws")
    axis.margins(x=0.24)


def _name(group: object, unit: str) -> str:
    return condition_label(float(group), unit) if isinstance(group, (int, float, np.number)) else str(group)


def _rows(axis: Axes, labels: list[str]) -> None:
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.grid(True, axis="x")
    axis.grid(False, axis="y")
