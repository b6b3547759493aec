"""Scores of many models: their distribution, against depth and rule, their parts, and the two experiments' relation.

Tables in, of one experiment:
    board: `backbone, layer, relative_depth, rule, is_strong`, a score, and, where known, `accuracy, consistency,
        accuracy_people, consistency_ceiling_low, consistency_ceiling_high`.
    reference: a row of the summary: `floor, random_guess`.
    experiments: `high_variation, one_shot, is_strong`, a row a model.

References: Lee & DiCarlo, Figures 3, 4, 5B and 7D.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR, figure_style, settle
from humanlike.reports.object_learning_curves import legend_above
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure
from humanlike.reports.study_observers import FAMILIES, PEOPLE
from humanlike.reports.wording import is_missing

MSEN = "MSEₙ"
STRONG = "strong baselines"
MAX_NAMED_NETWORKS = 5
_MODEL = MODEL_COLOURS[0]


def score_distribution(
    board: pd.DataFrame, score: str, reference: Mapping[str, Any], *, label: str = "", name: str = STRONG
) -> Figure | None:
    """All models' scores as a histogram, and rule by rule, with the lowest possible score and a guesser's (Figure 3).

    Args:
        board: See the module.
        score: Column of the score.
        reference: `floor` and `random_guess`; those that are missing are not drawn.
        label: What the score is, for the axis.
        name: What to call the models that are set off.

    Returns:
        The figure; None below two models.
    """
    rows = board[board[score].notna()]
    if len(rows) < 2:
        return None
    rules = list(rows.groupby("rule")[score].median().sort_values(kind="stable").index)
    with figure_style():
        figure = new_figure(6.2, 2.9 + 0.26 * len(rules))
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 0.26 * len(rules) + 0.3))
        value, strong = rows[score].to_numpy(float), rows["is_strong"].to_numpy(bool)
        is_log = _score_scale(lower, value, reference)
        edges = _edges(value, is_log)
        upper.hist([value[~strong], value[strong]], bins=edges.tolist(), stacked=True, color=[MUTED, _MODEL],
                   label=["models", name], edgecolor=PAPER, linewidth=0.4)  # fmt: skip
        upper.set(ylabel="models", title="Scores of all models")
        upper.tick_params(axis="x", labelbottom=False)
        for axis in (upper, lower):
            _reference_lines(axis, reference)
        _rule_strips(lower, rows, rules, score)
        lower.set_xlabel(_low_is_good(label or MSEN, is_log))
        figure.legend(
            *upper.get_legend_handles_labels(), loc="outside upper left", ncols=4, fontsize=LABEL_POINTS + 0.5
        )
        settle(figure)
    return figure


def _score_scale(axis: Axes, value: np.ndarray, reference: Mapping[str, Any]) -> bool:
    """A logarithmic axis where everything is positive; says whether."""
    known = [float(reference[k]) for k in ("floor", "random_guess") if not is_missing(reference.get(k))]
    is_log = bool((value > 0).all())
    if is_log:
        axis.set_xscale("log")
        ends = [*value, *(k for k in known if k > 0)]
        axis.set_xlim(min(ends) * 0.85, max(ends) * 1.18)
        _plain_ticks(axis.xaxis, max(ends) / min(ends))
    return is_log


def _plain_ticks(axis: Axis, ratio: float) -> None:
    """Numbers of a logarithmic axis without powers, at 1, 2 and 5 where it spans little."""
    axis.set_major_formatter(mpl.ticker.FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(mpl.ticker.NullFormatter())
    if ratio < 50:
        axis.set_major_locator(mpl.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))


def _edges(value: np.ndarray, is_log: bool) -> np.ndarray:
    count = int(np.clip(2 * np.sqrt(len(value)), 8, 60))
    low, high = float(value.min()), float(value.max())
    if low == high:
        low, high = (low * 0.9, high * 1.1) if is_log else (low - 0.5, high + 0.5)
    return np.geomspace(low, high, count + 1) if is_log else np.linspace(low, high, count + 1)


def _reference_lines(axis: Axes, reference: Mapping[str, Any]) -> None:
    floor, guess = reference.get("floor"), reference.get("random_guess")
    low_end = axis.get_xlim()[0]
    if floor is not None and not is_missing(floor) and (axis.get_xscale() != "log" or floor > 0):
        axis.axvline(float(floor), color=PEOPLE_COLOUR, linestyle="--", linewidth=1.5, label="noise floor", zorder=1)
    if guess is not None and not is_missing(guess) and float(guess) > low_end:
        axis.axvline(float(guess), color=INK, linestyle=":", linewidth=1.5, label="random guessing", zorder=1)


def _rule_strips(axis: Axes, rows: pd.DataFrame, rules: list[str], score: str) -> None:
    for place, rule in enumerate(rules):
        group = rows[rows["rule"] == rule]
        value, strong = group[score].to_numpy(float), group["is_strong"].to_numpy(bool)
        axis.plot(value[~strong], np.full((~strong).sum(), place), "|", color=MUTED, markersize=7, alpha=0.6)
        axis.plot(value[strong], np.full(strong.sum(), place), "|", color=_MODEL, markersize=9, markeredgewidth=1.6)
        axis.plot([np.median(value)], [place], "o", color=INK, markersize=3.5)
    axis.set_yticks(range(len(rules)), [str(r).replace("_", " ") for r in rules])
    axis.set_ylim(len(rules) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(False, axis="y")


def _low_is_good(label: str, is_log: bool) -> str:
    return f"{label}{', log scale' if is_log else ''} (low: like people; dots are medians)"


def score_by_depth(board: pd.DataFrame, score: str, reference: Mapping[str, Any], *, label: str = "") -> Figure | None:
    """Score against relative depth, a line a network; bands span the update rules (Figure 4C).

    Up to five networks have a look of their own; of more, the best is set off and the others are drawn alike.

    Returns:
        The figure; None where no network has two layers.
    """
    rows = board[board[score].notna()]
    layers = rows.groupby("backbone")["layer"].nunique()
    names = [n for n in rows.groupby("backbone")[score].min().sort_values(kind="stable").index if layers[n] > 1]
    if not names:
        return None
    with figure_style():
        figure = new_figure(6.0, 4.2)
        axis = figure.subplots()
        few = len(names) <= MAX_NAMED_NETWORKS
        for k, name in reversed(list(enumerate(names))):
            family = FAMILIES[k % len(FAMILIES)]
            look = (family.colour, family.marker, family.line) if few or k == 0 else (MUTED, "", "-")
            shown = str(name) if few or k == 0 else "other networks" if k == 1 else None
            _depth_line(axis, rows[rows["backbone"] == name], score, look, shown, few or k == 0)
        if (rows[score] > 0).all():
            axis.set_yscale("log")
            _plain_ticks(axis.yaxis, rows[score].max() / rows[score].min())
        _horizontal_lines(axis, reference)
        axis.set(xlim=(-0.03, 1.03), xlabel="relative depth (0 first layer, 1 last)", title="Score by depth")
        axis.set_ylabel(f"{label or MSEN} (low: like people)")
        handles, labels = axis.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside upper left", ncols=3, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure


def _depth_line(axis: Axes, rows: pd.DataFrame, score: str, look: tuple, label: str | None, set_off: bool) -> None:
    grouped = rows.groupby("layer", sort=False)
    table = grouped.agg(x=("relative_depth", "mean"), y=(score, "mean"), low=(score, "min"), high=(score, "max"))
    table = table.sort_values("x", kind="stable")
    colour, marker, line = look
    axis.plot(table["x"], table["y"], color=colour, marker=marker, linestyle=line, linewidth=1.9 if set_off else 0.9,
              markersize=5, markeredgecolor=PAPER, markeredgewidth=0.6, alpha=1.0 if set_off else 0.6, label=label,
              zorder=3 if set_off else 2)  # fmt: skip
    if set_off:
        axis.fill_between(table["x"], table["low"], table["high"], color=colour, alpha=0.15, linewidth=0)


def _horizontal_lines(axis: Axes, reference: Mapping[str, Any]) -> None:
    floor, guess = reference.get("floor"), reference.get("random_guess")
    if guess is not None and not is_missing(guess):
        axis.axhline(float(guess), color=INK, linestyle=":", linewidth=1.5, label="random guessing", zorder=1)
    if floor is not None and not is_missing(floor) and (axis.get_yscale() != "log" or floor > 0):
        axis.axhline(float(floor), color=PEOPLE_COLOUR, linestyle="--", linewidth=1.5, label="noise floor", zorder=1)


def rules_by_layer(board: pd.DataFrame, score: str, *, label: str = "") -> Figure | None:
    """Rules × layers of the best network, scores as colours (Figure 4A).

    Returns:
        The figure; None where that network has one layer or one rule only.
    """
    rows = board[board[score].notna()]
    if rows.empty:
        return None
    name = rows.sort_values(score, kind="stable")["backbone"].iloc[0]
    of_best = rows[rows["backbone"] == name]
    wide = of_best.pivot_table(index="rule", columns="layer", values=score)
    if min(wide.shape) < 2:
        return None
    depth = of_best.groupby("layer")["relative_depth"].first()
    wide = wide[depth.loc[list(wide.columns)].sort_values(kind="stable").index]
    with figure_style():
        figure = new_figure(min(2.6 + 0.42 * wide.shape[1], 11.0), 2.1 + 0.27 * len(wide))
        axis = figure.subplots()
        positive = bool((wide.to_numpy() > 0).all())
        norm = mpl.colors.LogNorm() if positive else mpl.colors.Normalize()
        mesh = axis.pcolormesh(wide.to_numpy(float), cmap="cividis_r", norm=norm, edgecolors=PAPER, linewidth=0.4)
        axis.set_xticks(np.arange(wide.shape[1]) + 0.5, [str(c) for c in wide.columns], rotation=60, ha="right",
                        rotation_mode="anchor", fontsize=LABEL_POINTS - 1)  # fmt: skip
        axis.set_yticks(np.arange(len(wide)) + 0.5, [str(r).replace("_", " ") for r in wide.index])
        axis.tick_params(length=0)
        axis.grid(False)
        axis.spines[:].set_visible(False)
        axis.invert_yaxis()
        axis.set_title(str(name), loc="left")
        axis.set_xlabel("layers, the first to the left", fontsize=LABEL_POINTS)
        bar = figure.colorbar(mesh, ax=axis, shrink=0.9, format=mpl.ticker.FuncFormatter(lambda v, _: f"{v:.2g}"))
        bar.ax.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        bar.set_label(label or MSEN, fontsize=LABEL_POINTS)
        settle(figure)
    return figure


def accuracy_and_consistency(
    board: pd.DataFrame,
    score: str = "",
    people_range: tuple[float, float] | None = None,
    *,
    people: str = PEOPLE,
    name: str = STRONG,
    label: str = "",
) -> Figure | None:
    """Overall accuracy against consistency with people's order of difficulty, a point a model (Figure 5B).

    Args:
        board: See the module.
        score: Column of the score that colours the points; those of strong baselines have a ring.
        people_range: 95% range of people's accuracy, or None.
        people: What to call people.
        name: What to call the models that are set off.
        label: What the score is, for the bar of colours.

    Returns:
        The figure; None where no model has both.
    """
    if not {"accuracy", "consistency"} <= set(board.columns):
        return None
    rows = board.dropna(subset=["accuracy", "consistency"])
    if rows.empty:
        return None
    first = rows.iloc[0]
    with figure_style():
        figure = new_figure(6.0, 4.2)
        axis = figure.subplots()
        low, high = first.get("consistency_ceiling_low"), first.get("consistency_ceiling_high")
        if low is not None and high is not None and not is_missing(low) and not is_missing(high):
            axis.axhspan(float(low), float(high), color=PEOPLE_COLOUR, alpha=0.18, linewidth=0,
                         label=f"{people}, repeated (95%)")  # fmt: skip
        if people_range is not None and np.isfinite(people_range).all():
            axis.axvspan(*people_range, color=PEOPLE_COLOUR, alpha=0.18, linewidth=0)
        if not is_missing(first.get("accuracy_people")):
            axis.axvline(float(first["accuracy_people"]), color=PEOPLE_COLOUR, linestyle="--", linewidth=1.6,
                         label=f"accuracy of {people}")  # fmt: skip
        _consistency_points(figure, axis, rows, score, name, label)
        axis.axhline(0, color=MUTED, linewidth=0.8)
        axis.set(xlabel="accuracy over all trials and subtasks", ylabel="consistency (Spearman's ρ over subtasks)")
        axis.set_title("Accuracy and consistency")
        legend_above(figure, axis)
        settle(figure)
    return figure


def _consistency_points(figure: Figure, axis: Axes, rows: pd.DataFrame, score: str, name: str, label: str) -> None:
    """Points in the colour of their score, the worst first, so that good ones are not hidden."""
    coloured = score in rows and bool(rows[score].notna().all()) and rows[score].nunique() > 1
    ordered = rows.sort_values(score, ascending=False, kind="stable") if coloured else rows
    strong = ordered["is_strong"].to_numpy(bool)
    x, y = ordered["accuracy"].to_numpy(float), ordered["consistency"].to_numpy(float)
    if coloured:
        value = ordered[score].to_numpy(float)
        norm = mpl.colors.LogNorm() if (value > 0).all() else mpl.colors.Normalize()
        points = axis.scatter(x, y, s=20, c=value, cmap="cividis_r", norm=norm, edgecolors=PAPER, linewidths=0.4,
                              label="models", zorder=3)  # fmt: skip
        bar = figure.colorbar(points, ax=axis, shrink=0.9, format=mpl.ticker.FuncFormatter(lambda v, _: f"{v:.2g}"))
        bar.ax.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        bar.set_label(label or MSEN, fontsize=LABEL_POINTS)
    else:
        axis.plot(x, y, "o", color=MUTED, markersize=4.5, alpha=0.6, label="models", zorder=3)
    if strong.any():
        axis.plot(x[strong], y[strong], "o", markersize=7.5, markerfacecolor="none", markeredgecolor=_MODEL,
                  markeredgewidth=1.3, label=name, zorder=4)  # fmt: skip


def two_experiments(experiments: pd.DataFrame, floors: Mapping[str, float], *, label: str = "") -> Figure | None:
    """Scores of the two experiments, a point a model (Figure 7D).

    Args:
        experiments: See the module.
        floors: Experiment → lowest possible score; those that are missing or not positive are not drawn.
        label: What the score is, for the axes.

    Returns:
        The figure; None where there is no model.
    """
    if experiments.empty:
        return None
    with figure_style():
        figure = new_figure(4.9, 4.6)
        axis = figure.subplots()
        strong = experiments["is_strong"].to_numpy(bool)
        for told, colour in ((~strong, MUTED), (strong, _MODEL)):
            axis.plot(experiments["high_variation"][told], experiments["one_shot"][told], "o", color=colour,
                      markersize=4.5, alpha=0.75, markeredgecolor=PAPER, markeredgewidth=0.4)  # fmt: skip
        if (experiments[["high_variation", "one_shot"]] > 0).to_numpy().all():
            axis.set(xscale="log", yscale="log")
            for side, column in ((axis.xaxis, "high_variation"), (axis.yaxis, "one_shot")):
                _plain_ticks(side, experiments[column].max() / experiments[column].min())
        for experiment, draw in (("high_variation", axis.axvline), ("one_shot", axis.axhline)):
            floor = floors.get(experiment, np.nan)
            if floor > 0:
                draw(floor, color=PEOPLE_COLOUR, linestyle="--", linewidth=1.4)
        name = label or MSEN
        axis.set(xlabel=f"{name}, many views", ylabel=f"{name}, one view", title="The two experiments")
        axis.grid(True, axis="both")
        points = [(MUTED, "models"), (_MODEL, "strong baselines")]
        handles = [Line2D([], [], color=c, marker="o", linestyle="none", markersize=5, label=t) for c, t in points]
        handles.append(Line2D([], [], color=PEOPLE_COLOUR, linestyle="--", label="noise floor"))
        figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure
