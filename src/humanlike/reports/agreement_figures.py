"""Figures of scores held against people: everybody's share of accepted orders, or mean ratings over the score."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from humanlike.benchmarks.human_agreement import PUBLISHED_AGREEMENT, HumanAgreement
from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR, figure_style, settle, wrapped
from humanlike.rng import generator

FIGURES = {
    "ranking": (
        "accepted",
        "How many orders people accept",
        "A dot is a person's share of judgments that have the score's order; the diamond is the mean over all "
        "judgments with its 95% interval. The band is what people reach among themselves, lower to upper bound, and "
        "the dotted line is chance.",
    ),
    "acceptance": (
        "acceptance",
        "How many shown orders people accept",
        "A dot is a person's share of orders accepted, of those shown in the score's order and of controls in another; "
        "the diamond is the mean over all judgments with its 95% interval. Dotted lines are the published "
        "shares for SEA.",
    ),
    "rating": (
        "ratings",
        "Mean ratings over the score",
        "A dot is a sketch; diamonds are means of bins with equally many sketches, with 95% intervals.",
    ),
}
"""Kind → name, title and caption of its figure."""


def agreement_figure(found: HumanAgreement) -> Figure:
    """The figure of one kind of study; see `FIGURES`."""
    with figure_style():
        figure = _ratings(found) if found.kind == "rating" else _accepted(found)
        settle(figure)
    return figure


def _accepted(found: HumanAgreement) -> Figure:
    shown = {"accepted": "{}", "controls_accepted": "{}, controls"}
    table = found.agreement[found.agreement["measure"].isin(shown)].reset_index(drop=True)
    figure, axes = _sheet(1, max(3.6, 1.5 * len(table) + 1.6), 3.6)
    axis = axes[0]
    people = found.tables["participants"]
    first = table.iloc[0]
    if np.isfinite(first["ceiling"]):
        axis.axhspan(first["ceiling"], max(first["ceiling_high"], first["ceiling"] + 0.004), color=PEOPLE_COLOUR,
                     alpha=0.18, lw=0, label="people among themselves")  # fmt: skip
    published = list(PUBLISHED_AGREEMENT.values()) if found.kind == "acceptance" else []
    for k, height in enumerate([*published, *found.agreement["chance"][:1].dropna()]):
        label = ("published" if published else "chance") if k == 0 else None
        axis.axhline(height, color=MUTED, linestyle=":", linewidth=1.4, label=label)
    for i, row in table.iterrows():
        own = people.loc[people["score"] == row["score"], row["measure"]].dropna().to_numpy()
        place = float(str(i))
        spread = generator(0, "agreement figure", str(row["score"])).uniform(-0.18, 0.18, len(own))
        axis.plot(place + spread, own, "o", color=PEOPLE_COLOUR, markersize=4.5, alpha=0.65, markeredgewidth=0,
                  label="a person" if place == 0 else None)  # fmt: skip
        _diamond(axis, place, row["value"], row["ci_low"], row["ci_high"], "all judgments" if place == 0 else None)
    axis.set_xticks(
        range(len(table)), [wrapped(shown[m].format(s)) for s, m in zip(table["score"], table["measure"], strict=True)]
    )
    axis.set_xlim(-0.6, len(table) - 0.4)
    axis.set_ylim(-0.02, 1.02)
    axis.set_ylabel("orders accepted")
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def _ratings(found: HumanAgreement) -> Figure:
    sketches = found.tables["sketches"]
    names = list(dict.fromkeys(found.agreement["score"]))[:4]
    figure, axes = _sheet(len(names), max(3.9, 3.4 * len(names)), 3.5)
    bins = found.tables.get("bins", pd.DataFrame({"score": []}))
    for axis, name in zip(axes, names, strict=True):
        axis.plot(sketches[name], sketches["mean_rating"], "o", color=PEOPLE_COLOUR, markersize=4.5, alpha=0.6,
                  markeredgewidth=0, label="a sketch")  # fmt: skip
        for k, row in enumerate(bins[bins["score"] == name].to_dict("records")):
            label = "a bin" if k == 0 else None
            _diamond(axis, row["mean_score"], row["mean_rating"], row["ci_low"], row["ci_high"], label)
        axis.set_xlabel(wrapped(name, 28))
        axis.set_ylabel("mean rating")
        axis.legend(loc="best")
    return figure


def _diamond(axis: Axes, x: float, value: float, low: float, high: float, label: str | None) -> None:
    known = np.isfinite(low) and np.isfinite(high)
    error = [[max(value - low, 0)], [max(high - value, 0)]] if known else None
    axis.errorbar([x], [value], yerr=error, fmt="D", color=MODEL_COLOURS[0], ecolor=INK, markersize=7, capsize=4,
                  markeredgecolor=PAPER, markeredgewidth=0.7, label=label, zorder=3)  # fmt: skip


def _sheet(panels: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, panels, squeeze=False).flat)
