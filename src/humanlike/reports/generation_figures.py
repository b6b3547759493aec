"""Figures of generated sketches: gains under critic and judges, recognisability against elements, credit of strokes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PEOPLE_COLOUR, figure_style, settle
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure
from humanlike.types import Score

FIGURE_TITLES: Mapping[str, str] = {
    "generation_gains": "Before and after, under the critic and under the judges",
    "generation_pareto": "Recognisability against elements drawn",
    "generation_credit": "What strokes cost and save",
}
"""Name → title."""

CAPTIONS: Mapping[str, str] = {
    "generation_gains": "Means over sketches, from before (ring) to after (dot), with the 95% interval of the gain. A "
    "gain that only the critic sees is no gain.",
    "generation_pareto": "Each mark is a sketch under the first judge: P against the share of its concept's elements "
    "that are seen (mean probability). Steps: the best P that a set reaches with at most so many elements. Diamonds: "
    "means of the reference by condition.",
    "generation_credit": "Each mark is a stroke left out of its sketch, under the first judge: what that costs in P "
    "and saves in v. Crosses were pruned.",
}
MEASURES = {"sea": "SEA", "recognition": "recognition P", "visual_ratio": "visual ratio v"}
COLOURS = {"before": MODEL_COLOURS[3], "after": MODEL_COLOURS[0], "reference": PEOPLE_COLOUR}
MARKERS = {"before": "s", "after": "o", "reference": "^"}


def figure_title(name: str) -> str | None:
    """A figure's title, None for one of another benchmark."""
    return FIGURE_TITLES.get(name)


def figure_caption(name: str) -> str | None:
    """A figure's caption, None for one of another benchmark."""
    return CAPTIONS.get(name)


def run_figures(score: Score) -> dict[str, Figure]:
    """Every figure that the tables of a run allow; none where it is not one of generated sketches."""
    tables, details = score.result.tables, score.result.details.get("generation")
    if details is None or "pareto" not in tables:
        return {}
    found: dict[str, Figure] = {}
    if "comparison" in tables:
        found["generation_gains"] = gains(tables["comparison"])
    judge = str(details["judges"][0])
    reference = tables["reference_conditions"]
    unit = str(details.get("reference_unit", ""))
    found["generation_pareto"] = pareto(tables["pareto"], reference[reference["network"] == judge], unit)
    if "credit" in tables:
        found["generation_credit"] = credit(tables["credit"])
    return found


def gains(comparison: pd.DataFrame) -> Figure:
    """A panel a measure, a row a network, from before to after."""
    networks = list(dict.fromkeys(zip(comparison["network"], comparison["role"], strict=True)))
    with figure_style():
        figure = new_figure(3.3 * len(MEASURES) + 0.9, 0.5 * len(networks) + 1.2)
        axes = figure.subplots(1, len(MEASURES), squeeze=False, sharey=True)[0]
        for axis, (measure, title) in zip(axes, MEASURES.items(), strict=True):
            rows = comparison[comparison["measure"] == measure].set_index("network")
            for place, (network, role) in enumerate(networks):
                row = {c: float(rows[c].loc[network]) for c in ("before", "after", "gain_low", "gain_high")}
                colour = MODEL_COLOURS[2] if role == "critic" else MODEL_COLOURS[0]
                axis.plot([row["before"], row["after"]], [place, place], color=colour, linewidth=1.6)
                axis.plot(row["before"], place, "o", color=colour, markerfacecolor="white", markersize=7)
                axis.plot(row["after"], place, "o", color=colour, markersize=7)
                low, high = row["before"] + row["gain_low"], row["before"] + row["gain_high"]
                axis.plot([low, high], [place, place], color=colour, linewidth=6, alpha=0.25, solid_capstyle="butt")
            axis.set_title(title)
            axis.grid(True, axis="x")
            axis.grid(False, axis="y")
            axis.margins(x=0.12)
        axes[0].set_yticks(range(len(networks)), [f"{name}\n({role})" for name, role in networks])
        axes[0].set_ylim(len(networks) - 0.5, -0.5)
        settle(figure)
    return figure


def pareto(table: pd.DataFrame, reference: pd.DataFrame, unit: str = "") -> Figure:
    """Sketches of all sets on the plane of elements and P, with their fronts and the reference's conditions."""
    with figure_style():
        figure = new_figure(6.4, 4.6)
        axis = figure.subplots()
        for name, own in table.groupby("set", sort=False):
            _front(axis, own, str(name))
        many = len(reference) > 1
        axis.plot(
            reference["soft_ratio"], reference["recognition"], "-" if many else "", color=INK, linewidth=1,
            marker="D", markersize=6, zorder=5, label="reference, mean by condition",
        )  # fmt: skip
        for row in reference.to_dict("records") if many else ():
            place = (row["soft_ratio"], row["recognition"])
            axis.annotate(
                f"{row['condition']:g} {unit}".strip(), place, (7, -3), textcoords="offset points", color=INK,
                fontsize=LABEL_POINTS, zorder=6,
            )  # fmt: skip
        axis.set(xlim=(-0.02, 1.02), ylim=(-0.03, 1.03), xlabel="share of elements seen", ylabel="recognition P")
        figure.legend(loc="outside upper left", ncols=4, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure


def _front(axis: Axes, own: pd.DataFrame, name: str) -> None:
    colour, faint = COLOURS.get(name, MUTED), name == "reference"
    axis.plot(
        own["soft_ratio"], own["recognition"], MARKERS.get(name, "v"), color=colour, markersize=3.5 if faint else 5,
        alpha=0.25 if faint else 0.6, markeredgewidth=0, label=f"{name} (n {len(own)})",
    )  # fmt: skip
    front = own[own["front"]].sort_values("soft_ratio")
    x, y = front["soft_ratio"].to_numpy(), front["recognition"].to_numpy()
    style = {"before": "--", "reference": ":"}.get(name, "-")
    axis.step(np.append(x, 1.0), np.append(y, y[-1]), where="post", color=colour, linewidth=1.6, linestyle=style)


def credit(table: pd.DataFrame) -> Figure:
    """Strokes by what leaving them out costs in P and saves in v."""
    with figure_style():
        figure = new_figure(5.6, 3.9)
        axis = figure.subplots()
        for kept, marker, label in ((True, "o", "kept"), (False, "x", "pruned")):
            own = table[table["kept"] == kept]
            axis.plot(
                own["saved_ratio"], own["cost_recognition"], marker, color=MODEL_COLOURS[0 if kept else 3],
                markersize=5, alpha=0.75, linestyle="", label=f"{label} ({len(own)})",
            )  # fmt: skip
        axis.axhline(0, color=MUTED, linewidth=0.8)
        axis.axvline(0, color=MUTED, linewidth=0.8)
        axis.set(xlabel="saves in v", ylabel="costs in P")
        figure.legend(loc="outside upper left", ncols=2)
        settle(figure)
    return figure
