"""Figures of alignment with people: each metric's models in order (SEVA, Figure 5 A-C) and how orders agree (5 D).

Tables in:
    alignment: `observer, metric, estimate, ci_low, ci_high` and, where computed, `corrected`: the R² freed of the noise
        of people's cells. The rows of the observer "people" are people's consistency: split half with its interval,
        and `spearman_brown` where computed.
    noise_ceiling: `observer, metric, corrected`, for an `alignment` without that column.
    rank_groups: `observer, metric, rank` (1 + number of models that are better) and, where known, `rank_high` (the
        lowest place the model may have) and `letters` (models that cannot be told apart share one).
    spearman: `first, second, rho`, one row a pair of metrics, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR, figure_style, settle
from humanlike.reports.study_figures_conditions import LABEL_POINTS, family_legend, new_figure
from humanlike.reports.study_observers import PEOPLE, Observers
from humanlike.reports.wording import number, short_title, title

_ROW_INCHES = 0.2


def alignment_order(
    alignment: pd.DataFrame,
    metric: str,
    observers: Observers,
    *,
    rank_groups: pd.DataFrame | None = None,
    label: str = "R²",
) -> Figure | None:
    """The models' alignment on one metric, best first, with intervals, against people's own consistency.

    The band and its line are how well one half of people predicts the other (split half, with its interval); the
    dotted line is the same for all of people (Spearman-Brown). On the right stand the places each model may have, and
    letters that it shares with the models it cannot be told from.

    Args:
        alignment: See the module.
        metric: Which metric.
        observers: How models are drawn.
        rank_groups: Ranks; None where none were made.
        label: Of the value axis.

    Returns:
        The figure; None where no model has a value.
    """
    rows = alignment[alignment["metric"] == metric]
    rows = rows[rows["estimate"].notna()].sort_values(["estimate", "observer"], ascending=[False, True])
    own, rows = rows[rows["observer"] == PEOPLE], rows[rows["observer"] != PEOPLE]
    if rows.empty:
        return None
    ceiling: dict[Any, Any] = {} if own.empty else own.iloc[0].to_dict()
    ranks = _ranks(rank_groups, metric)
    names = rows["observer"].astype(str).tolist()
    with figure_style():
        figure = new_figure(5.6, 1.5 + _ROW_INCHES * (len(names) + 1))
        axis = figure.subplots()
        more = _people_band(axis, ceiling, observers)
        for place, row in enumerate(rows.to_dict("records"), start=1):
            more_here = _model_row(axis, place, row, observers)
            more += [handle for handle in more_here if handle.get_label() not in {m.get_label() for m in more}]
        first = [observers.people] if ceiling else []
        places = ([0] if ceiling else []) + list(range(1, len(names) + 1))
        axis.set_yticks(places, first + [observers.label(n) for n in names], fontsize=LABEL_POINTS)
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(len(names) + 0.7, -0.7 if ceiling else 0.3)
        axis.axvline(0, color=MUTED, linewidth=0.8, zorder=1)
        axis.grid(True, axis="x")
        axis.grid(False, axis="y")
        axis.set_title(title(metric))
        axis.set_xlabel(label)
        _write_ranks(axis, names, ranks)
        family_legend(figure, observers.families(names), more, columns=2)
        settle(figure)
    return figure


def _people_band(axis: Axes, ceiling: Mapping[Any, Any], observers: Observers) -> list:
    """People's consistency as a band with lines; gives the legend's entries."""
    if not ceiling:
        return []
    value, low, high = ceiling["estimate"], ceiling.get("ci_low", nan), ceiling.get("ci_high", nan)
    handles: list[Line2D | Patch] = []
    if isfinite(low) and isfinite(high):
        axis.axvspan(low, high, color=PEOPLE_COLOUR, alpha=0.15, linewidth=0, zorder=0)
        axis.plot([low, high], [0, 0], color=PEOPLE_COLOUR, linewidth=2.2)
    axis.axvline(value, color=PEOPLE_COLOUR, linestyle="--", linewidth=1.2, zorder=1)
    axis.plot([value], [0], color=PEOPLE_COLOUR, marker="s", markersize=7, linestyle="none")
    handles.append(
        Line2D([], [], color=PEOPLE_COLOUR, marker="s", linestyle="--", label=f"{observers.people}, split half")
    )
    whole = ceiling.get("spearman_brown", nan)
    if isfinite(whole):
        axis.axvline(whole, color=PEOPLE_COLOUR, linestyle=":", linewidth=1.6, zorder=1)
        axis.plot([whole], [0], color=PAPER, marker="s", markersize=7, markeredgecolor=PEOPLE_COLOUR, linestyle="none")
        handles.append(
            Line2D(
                [], [], color=PEOPLE_COLOUR, marker="s", markerfacecolor=PAPER, linestyle=":",
                label=f"{observers.people}, Spearman-Brown",
            )
        )  # fmt: skip
    return handles


def _model_row(axis: Axes, place: int, row: Mapping[Any, Any], observers: Observers) -> list[Line2D]:
    """One model's point and interval, and a hollow point where there is a corrected value."""
    family = observers.family(str(row["observer"]))
    low, high, corrected = row.get("ci_low", nan), row.get("ci_high", nan), row.get("corrected", nan)
    if isfinite(low) and isfinite(high):
        axis.plot([low, high], [place, place], color=family.colour, linewidth=1.6, solid_capstyle="butt")
    if isfinite(corrected):
        axis.plot(
            [corrected], [place], color=family.colour, marker=family.marker, markersize=5, markerfacecolor=PAPER,
            linestyle="none",
        )  # fmt: skip
    axis.plot([row["estimate"]], [place], color=family.colour, marker=family.marker, markersize=6, linestyle="none")
    if not isfinite(corrected):
        return []
    return [Line2D([], [], color=INK, marker="o", markerfacecolor=PAPER, linestyle="none", label="corrected for noise")]


def _write_ranks(axis: Axes, names: list[str], ranks: Mapping[str, tuple[str, str]]) -> None:
    """Ranks and letters at the right margin, under heads; a line parts neighbours whose first ranks differ."""
    if not ranks:
        return
    right = axis.get_yaxis_transform()
    look: dict[str, Any] = {"transform": right, "va": "center", "fontsize": LABEL_POINTS}
    lettered = any(letters for _, letters in ranks.values())
    axis.text(1.02, 0, "rank", color=MUTED, **look)
    if lettered:
        axis.text(1.12, 0, "alike", color=MUTED, **look)
    for place, name in enumerate(names, start=1):
        rank, letters = ranks.get(name, ("–", ""))
        axis.text(1.02, place, rank, **look)
        axis.text(1.12, place, letters, **look)
        before = ranks.get(names[place - 2], ("–", ""))[0]
        if place > 1 and rank.split("–")[0] != before.split("–")[0]:
            axis.plot([0, 1], [place - 0.5, place - 0.5], transform=right, color=MUTED, linewidth=0.5, zorder=1)


def _ranks(rank_groups: pd.DataFrame | None, metric: str) -> dict[str, tuple[str, str]]:
    """Model → its rank, or range of ranks, and the letters it shares with the models it cannot be told from."""
    if rank_groups is None:
        return {}
    rows = rank_groups[(rank_groups["metric"] == metric) & (rank_groups["rank"] > 0)]
    known = {}
    for row in rows.to_dict("records"):
        low, high = int(row["rank"]), int(row.get("rank_high", row["rank"]))
        known[str(row["observer"])] = (f"{low}" if high <= low else f"{low}–{high}", str(row.get("letters", "")))
    return known


def order_correlations(spearman: pd.DataFrame) -> Figure | None:
    """Spearman's ρ between the orders of the models on each pair of metrics (SEVA, Figure 5 D).

    Returns:
        The figure; None where there are not two metrics with a value.
    """
    names = list(dict.fromkeys([*spearman["first"], *spearman["second"]]))
    place = {name: i for i, name in enumerate(names)}
    rho = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(rho, 1.0)
    for row in spearman.to_dict("records"):
        i, j = place[row["first"]], place[row["second"]]
        rho[i, j] = rho[j, i] = row["rho"]
    if len(names) < 2 or not np.isfinite(rho[~np.eye(len(names), dtype=bool)]).any():
        return None
    with figure_style():
        figure = new_figure(0.95 * len(names) + 1.4, 0.75 * len(names) + 1.0)
        axis = figure.subplots()
        for (i, j), value in np.ndenumerate(rho):
            if i >= j:
                _correlation_cell(axis, i, j, value)
        words = [short_title(name).replace(" ", "\n") for name in names]
        axis.set_xticks(range(len(names)), words)
        axis.set_yticks(range(len(names)), words)
        axis.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5))
        axis.tick_params(length=0)
        axis.grid(False)
        axis.spines[:].set_visible(False)
        axis.set_title("Do metrics order models alike?  Spearman's ρ")
        settle(figure)
    return figure


def _correlation_cell(axis: Axes, i: int, j: int, value: float) -> None:
    """A square whose side grows with |ρ|, filled where ρ is positive and hatched where negative, with the number."""
    if np.isfinite(value):
        side = 0.92 * np.sqrt(abs(value))
        shade = {"facecolor": MODEL_COLOURS[0], "alpha": 0.28} if value >= 0 else {"facecolor": "none", "hatch": "////"}
        axis.add_patch(
            _square(j, i, side, edgecolor=MODEL_COLOURS[0] if value >= 0 else PEOPLE_COLOUR, linewidth=1.0, **shade)
        )
    axis.text(j, i, number(float(value), 2), ha="center", va="center", color=INK)


def _square(x: float, y: float, side: float, **look: Any) -> Rectangle:
    return Rectangle((x - side / 2, y - side / 2), side, side, **look)
