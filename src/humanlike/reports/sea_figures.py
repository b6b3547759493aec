"""Every figure of SEA, drawn from the tables of a run: what there is to draw is drawn, and nothing else.

Tables in:
    items: `sketch_id, condition, sea, reward, penalty, visual_ratio, recognition, zero_v`, one row a sketch; sketches
        without a judgment have no `sea` and are left out of every figure.
    conditions: `condition` and, of `sea, visual_ratio, recognition, reward, penalty`, mean, `_sd` and `_sem`.
    sensitivity_*: see `humanlike.reports.sea_sensitivity`.
The P-v plane is drawn in `humanlike.reports.sea_plane`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PAPER, figure_style, settle, wrapped
from humanlike.reports.sea_plane import condition_colours, efficiency_plane, sea_parameters
from humanlike.reports.sea_sensitivity import ranking_sensitivity
from humanlike.reports.sea_wording import SHORT_TITLES, TITLES, source_warning
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure
from humanlike.reports.wording import condition_label, number
from humanlike.types import Score

FIGURE_TITLES: Mapping[str, str] = {
    "sea_by_condition": "SEA, visual ratio and recognition by condition",
    "sea_reward_penalty": "Reward and penalty by condition",
    "sea_plane": "Sketches on the plane of P and v",
    "sea_distributions": "Distributions of P and of SEA",
    "sea_sensitivity": "Sensitivity of the ranking to the hyperparameters",
}
"""Name → title."""

CAPTIONS: Mapping[str, str] = {
    "sea_by_condition": "Mean ± standard deviation over sketches; behind it all sketches, the wider the more of them.",
    "sea_reward_penalty": "Means over sketches with standard errors. What is penalised: much drawn and little "
    "recognised, and not being recognised at all. The diamond is what is left, Z; a sketch is efficient where Z > 0.",
    "sea_plane": "P is how surely the model recognises a sketch, v how much of the expected is drawn; efficient "
    "sketches lie below the line v = P, towards the lower right. Contours: equal SEA under this run's hyperparameters. "
    "Rings: no element seen (v = 0), which the formula rewards almost without bound.",
    "sea_distributions": "Shares of sketches; dashed: the mean. The mean of SEA is not SEA of mean P and mean v.",
    "sea_sensitivity": "Rank agreement with the ranking under this run's hyperparameters: of sketches by Z (Kendall's "
    "τ), and of conditions by mean SEA (×: their order is another one). Each moves over the range beside it. Percent: "
    "draws that keep the order of a pair of conditions.",
}
OF_SEVERAL_RUNS: Mapping[str, tuple[str, str]] = {
    "sea_compared": (
        "Distributions of P and of SEA, run by run",
        "Shares of sketches with a known v; dashed: the mean.",
    ),
    "sea_conditions": (
        "SEA, visual ratio and recognition of all runs by condition",
        "Means with standard errors over sketches.",
    ),
}
"""Name → title and caption of the figures of gathered runs."""
SHOWN = {"sea": (-1.0, 1.0), "visual_ratio": (0.0, 1.0), "recognition": (0.0, 1.0)}
"""What is drawn by condition → its range."""
_COLUMNS = {"condition", "sea", "reward", "penalty", "visual_ratio", "recognition", "zero_v"}
_BINS, _LABEL = 20, 22
_PENALTIES = {"overdrawn": ("penalty: much drawn, little recognised", MODEL_COLOURS[3]),
              "unrecognised": ("penalty: not recognised", MODEL_COLOURS[2])}  # fmt: skip


def figure_title(name: str) -> str | None:
    """A figure's name in words; None where it is not one of SEA.

    Example:
        >>> figure_title("sea_reward_penalty"), figure_title("alignment")
        ('Reward and penalty by condition', None)
    """
    return OF_SEVERAL_RUNS[name][0] if name in OF_SEVERAL_RUNS else FIGURE_TITLES.get(name)


def figure_caption(name: str) -> str | None:
    """What to know before reading a figure; None where it is not one of SEA."""
    return OF_SEVERAL_RUNS[name][1] if name in OF_SEVERAL_RUNS else CAPTIONS.get(name)


def run_figures(score: Score) -> dict[str, Figure]:
    """The figures of one run, name → figure; none where it is not one of SEA or no sketch has a score."""
    items, tables = score.result.items, score.result.tables
    if not set(items.columns) >= _COLUMNS or not items["sea"].notna().any():
        return {}
    scored, conditions = items[items["sea"].notna()], score.result.conditions
    unit = str(score.result.details.get("conditions_unit", ""))
    by_condition = {
        condition_label(float(c), unit): scored[scored["condition"] == c] for c in np.sort(scored["condition"].unique())
    }
    parameters = sea_parameters(score.result.protocol)
    drawn = {
        "sea_by_condition": by_condition_figure(by_condition, conditions, unit=unit),
        "sea_reward_penalty": reward_and_penalty(by_condition, conditions, parameters, unit=unit),
        "sea_plane": efficiency_plane(by_condition, parameters),
        "sea_distributions": distributions(by_condition),
        "sea_sensitivity": ranking_sensitivity(tables, unit=unit),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def compared_distributions(scores: Mapping[str, Score]) -> Figure | None:
    """P and SEA of several runs, for example of data sets, with a warning where their v was made differently.

    Args:
        scores: What to call a run → the run; runs without SEA are left out.

    Returns:
        The figure; None where no run has SEA.
    """
    groups = {name: score.result.items for name, score in scores.items() if "sea" in score.result.items}
    warning = source_warning(
        {name: scores[name].result.details for name in groups}, {n: listed_elements(scores[n]) for n in groups}
    )
    return distributions({name: items[items["sea"].notna()] for name, items in groups.items()}, warning)


def listed_elements(score: Score) -> dict[str, str]:
    """Concept → its elements, comma-separated, as a run's table of concepts holds them."""
    concepts = score.result.tables.get("concepts")
    if concepts is None or "elements" not in concepts:
        return {}
    return dict(zip(concepts["concept"].astype(str), concepts["elements"].astype(str), strict=True))


def by_condition_figure(
    by_condition: Mapping[str, pd.DataFrame], conditions: pd.DataFrame, *, unit: str = ""
) -> Figure | None:
    """Mean ± s.d. of SEA, v and P at each condition, with the distribution behind it.

    Args:
        by_condition: Label of a condition → its scored sketches.
        conditions: See the module.
        unit: Unit of the condition.
    """
    colours = condition_colours(len(by_condition))
    rows = {condition_label(float(row["condition"]), unit): row for row in conditions.to_dict("records")}
    with figure_style():
        figure = new_figure(3.1 * len(SHOWN), 3.2)
        for axis, (name, limits) in zip(figure.subplots(1, len(SHOWN)), SHOWN.items(), strict=True):
            bins = _BINS // 2 if name == "visual_ratio" else _BINS  # v takes few values, which leave narrow bins empty
            for place, (label, sketches) in enumerate(by_condition.items()):
                _mirrored(axis, place, sketches[name].to_numpy(float), limits, bins, colours[place])
                row = rows[label]
                axis.errorbar(
                    [place], [row[name]], yerr=[np.nan_to_num(row[f"{name}_sd"])], color=INK, marker="o", markersize=6,
                    linewidth=1.6, capsize=4, zorder=4, label=name,
                )  # fmt: skip
            _label_conditions(axis, list(by_condition))
            axis.set_title(SHORT_TITLES.get(name, TITLES[name]))
        axis = figure.axes[0]
        axis.axhline(0, color=MUTED, linewidth=0.9, zorder=1)
        settle(figure)
    return figure


def _mirrored(axis: Axes, place: int, values: np.ndarray, limits: tuple[float, float], bins: int, colour: str) -> None:
    """A histogram to both sides of a place: a kernel would draw sketches outside the range that a score can have."""
    count, edges = np.histogram(values, bins=bins, range=limits)
    half = 0.42 * count / max(int(count.max()), 1)
    y, width = np.repeat(edges, 2)[1:-1], np.repeat(half, 2)
    axis.fill_betweenx(y, place - width, place + width, color=colour, alpha=0.5, linewidth=0, zorder=2)


def _label_conditions(axis: Axes, labels: Sequence[str]) -> None:
    axis.set_xticks(range(len(labels)), labels)
    axis.set_xlim(-0.6, len(labels) - 0.4)
    axis.tick_params(axis="x", length=0)


def reward_and_penalty(
    by_condition: Mapping[str, pd.DataFrame],
    conditions: pd.DataFrame,
    parameters: Mapping[str, float],
    *,
    unit: str = "",
) -> Figure:
    """Mean reward above, both parts of the mean penalty below zero, and what is left of them, at each condition.

    Args:
        by_condition: Label of a condition → its scored sketches.
        conditions: See the module.
        parameters: The run's hyperparameters, which say how the penalty is parted.
        unit: Unit of the condition.
    """
    rows = {condition_label(float(row["condition"]), unit): row for row in conditions.to_dict("records")}
    reward = np.array([rows[label]["reward"] for label in by_condition], float)
    penalty = np.array([rows[label]["penalty"] for label in by_condition], float)
    unrecognised = np.array(
        [float((parameters["tau"] * (1 - s["recognition"]) ** parameters["r"]).mean()) for s in by_condition.values()]
    )
    parts = {"overdrawn": penalty - unrecognised, "unrecognised": unrecognised}
    sem = {n: np.nan_to_num([rows[label][f"{n}_sem"] for label in by_condition]) for n in ("reward", "penalty")}
    x, start = np.arange(len(by_condition)), np.minimum(reward, 0)
    with figure_style():
        figure = new_figure(max(4.6, 1.0 * len(x) + 1.2), 3.6)
        axis = figure.subplots()
        handles = [axis.bar(x, reward, 0.6, color=MODEL_COLOURS[0], label="reward")]
        below = start
        for name, (label, colour) in _PENALTIES.items():
            handles.append(axis.bar(x, -parts[name], 0.6, bottom=below, color=colour, label=label))
            below = below - parts[name]
        for y, error in ((reward, sem["reward"]), (below, sem["penalty"])):
            axis.errorbar(x, y, yerr=error, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
        left = axis.plot(
            x, reward - penalty, "D", color=INK, markersize=6, markeredgecolor=PAPER, label="Z, what is left"
        )
        axis.axhline(0, color=INK, linewidth=0.9)
        _label_conditions(axis, list(by_condition))
        axis.set_ylabel("mean over sketches")
        figure.legend(handles=[*handles, *left], loc="outside upper left", ncols=2, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure


def distributions(groups: Mapping[str, pd.DataFrame], warning: str = "") -> Figure | None:
    """Histograms of P and of SEA, a row a group: conditions of a run, or data sets.

    Args:
        groups: Name → scored sketches.
        warning: Sentence below the figure.

    Returns:
        The figure; None without sketches.
    """
    known = {name: rows for name, rows in groups.items() if len(rows)}
    if not known:
        return None
    colours = condition_colours(len(known))
    with figure_style():
        figure = new_figure(7.6, 0.8 + 1.05 * len(known) + (0.3 if warning else 0))
        grid = figure.subplots(len(known), 2, squeeze=False, sharex="col")
        for k, (axes, (name, rows)) in enumerate(zip(grid, known.items(), strict=True)):
            for axis, column in zip(axes, ("recognition", "sea"), strict=True):
                _histogram(axis, rows[column].to_numpy(float), SHOWN[column], colours[k], is_share=column == "sea")
            axes[0].set_ylabel(wrapped(name, _LABEL), rotation=0, ha="right", va="center")
        grid[0][0].set_title("Recognition P")
        grid[0][1].set_title("SEA")
        if warning:
            figure.supxlabel(warning, fontsize=8, color=MUTED, ha="left", x=0.01, wrap=True)
        settle(figure)
    return figure


def _histogram(axis: Axes, values: np.ndarray, limits: tuple[float, float], colour: str, *, is_share: bool) -> None:
    count, edges = np.histogram(values, bins=_BINS, range=limits)
    share = count / max(len(values), 1)
    axis.stairs(share, edges, color=colour, fill=True, alpha=0.55)
    axis.stairs(share, edges, color=colour, linewidth=1.2)
    axis.axvline(values.mean(), ymax=0.76, color=INK, linestyle="--", linewidth=1.3)
    fullest = (edges[int(count.argmax())] + edges[int(count.argmax()) + 1]) / 2
    more = f"above 0: {100 * (values > 0).mean():.0f}%" if is_share else f"mode {number(fullest, 2)}"
    axis.set_ylim(0, 1.45 * share.max())  # leaves a line for the words
    axis.text(
        0.5, 0.97, f"mean {number(values.mean(), 2)}, {more}, n {len(values)}", transform=axis.transAxes, ha="center",
        va="top", fontsize=LABEL_POINTS,
    )  # fmt: skip
    axis.set_xlim(limits)
    axis.set_xticks(np.linspace(*limits, 5))
    axis.set_yticks([])
    axis.grid(False)
    axis.spines["left"].set_visible(False)
