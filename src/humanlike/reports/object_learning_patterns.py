"""Where models and people differ: early and late by difficulty, and one view's generalisation by transformation.

Tables in:
    phases: `backbone, layer, rule, phase` (early, late), `quartile` (all, 1 easiest … 4 hardest), `accuracy,
        accuracy_people, people_ci_low, people_ci_high`.
    one_shot: `backbone, layer, rule, transformation, level, accuracy, accuracy_people` and, where known, `std_error`,
        `people_ci_low, people_ci_high` or `std_error_people`.

References: Lee & DiCarlo, Figures 6B, 7B and 7C.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

from humanlike.reports.figures import MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR, figure_style, settle
from humanlike.reports.object_learning_curves import MAX_LINES, MODEL_KEY, accuracy_axis, legend_above
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure
from humanlike.reports.study_observers import PEOPLE

QUARTILES = {"all": "all", "1": "easiest", "2": "2nd", "3": "3rd", "4": "hardest"}
_COLUMNS = 3
_MODEL = MODEL_COLOURS[0]


def accuracy_by_phase(
    phases: pd.DataFrame, strong: pd.DataFrame | None = None, *, people: str = PEOPLE, name: str = "strong baselines"
) -> Figure | None:
    """Accuracy early and late in learning, by quarters of people's difficulty (Figure 6B).

    Args:
        phases: See the module.
        strong: `backbone, layer, rule` of the models to be set off; None sets off all.
        people: What to call people.
        name: What to call the models that are set off.

    Returns:
        The figure; None where there are no rows.
    """
    known = [p for p in ("early", "late") if (phases["phase"] == p).any()]
    if not known:
        return None
    marked = _marked(phases, strong)
    low = min(0.45, float(phases[["accuracy", "accuracy_people"]].min().min()) - 0.02)
    with figure_style():
        figure = new_figure(4.3 * len(known) + 0.4, 3.7)
        for axis, phase in zip(figure.subplots(1, len(known), squeeze=False).flat, known, strict=True):
            rows = marked[marked["phase"] == phase]
            _phase_panel(axis, rows, people, name)
            accuracy_axis(axis, low=low)
            axis.set(title=f"{phase.capitalize()} in learning", xlabel="subtasks, by people's difficulty")
        legend_above(figure, figure.axes[0])
        settle(figure)
    return figure


def _marked(table: pd.DataFrame, strong: pd.DataFrame | None) -> pd.DataFrame:
    """The table with `is_strong`."""
    if strong is None:
        return table.assign(is_strong=True)
    chosen = strong[list(MODEL_KEY)].drop_duplicates().assign(is_strong=True)
    joined = table.drop(columns="is_strong", errors="ignore").merge(chosen, on=list(MODEL_KEY), how="left")
    return joined.assign(is_strong=joined["is_strong"].eq(True))


def _phase_panel(axis: Axes, rows: pd.DataFrame, people: str, name: str) -> None:
    present = [q for q in QUARTILES if (rows["quartile"].astype(str) == q).any()]
    for place, quartile in enumerate(present):
        group = rows[rows["quartile"].astype(str) == quartile]
        person = group.iloc[0]
        y = float(person["accuracy_people"])
        ends = [float(person.get(end, np.nan)) for end in ("people_ci_low", "people_ci_high")]
        half = np.abs(np.array(ends) - y)[:, None] if np.isfinite(ends).all() else None
        axis.errorbar([place - 0.2], [y], yerr=half, fmt="s", color=PEOPLE_COLOUR, markersize=6, capsize=3,
                      label=people if place == 0 else None, zorder=4)  # fmt: skip
        strong = group["is_strong"].to_numpy(bool)
        for told, colour, size, label in ((~strong, MUTED, 3.0, "other models"), (strong, _MODEL, 4.5, name)):
            value = _some(group["accuracy"].to_numpy(float)[told])
            if len(value):
                # Points are spread by their order, so that equal values do not hide one another.
                x = place + 0.02 + 0.34 * (np.arange(len(value)) + 0.5) / len(value)
                axis.plot(x, value, "o", color=colour, markersize=size, alpha=0.7, markeredgecolor=PAPER,
                          markeredgewidth=0.3, label=label if place == 0 else None)  # fmt: skip
    axis.set_xticks(range(len(present)), [QUARTILES[q] for q in present])
    axis.set_xlim(-0.5, len(present) - 0.4)


def _some(values: np.ndarray) -> np.ndarray:
    """At most `MAX_LINES` of the values, the least and the greatest among them."""
    if len(values) <= MAX_LINES:
        return values
    return np.sort(values)[np.linspace(0, len(values) - 1, MAX_LINES).round().astype(int)]


def one_shot_pattern(
    one_shot: pd.DataFrame, strong: pd.DataFrame | None = None, *, people: str = PEOPLE, name: str = "strong baselines"
) -> Figure | None:
    """Accuracy after one view of each object, a panel a kind of transformation over its levels (Figure 7B).

    Args:
        one_shot: See the module.
        strong: `backbone, layer, rule` of the models to be drawn; None draws all.
        people: What to call people.
        name: What to call the models.

    Returns:
        The figure; None where nothing is to be drawn.
    """
    rows = _marked(one_shot, strong)
    rows = rows[rows["is_strong"]]
    kinds = list(dict.fromkeys(rows["transformation"]))
    if not kinds:
        return None
    low = min(0.45, float(rows[["accuracy", "accuracy_people"]].min().min()) - 0.03)
    top = max(1.02, float(rows["accuracy_people"].max()) + 0.03)  # corrected for lapses it can exceed 1
    with figure_style():
        lines = ceil(len(kinds) / _COLUMNS)
        figure = new_figure(8.4, 2.15 * lines + 0.6)
        grid = figure.subplots(lines, _COLUMNS, squeeze=False, sharey=True)
        for axis in grid.flat[len(kinds) :]:
            axis.set_visible(False)
        for k, (axis, kind) in enumerate(zip(grid.flat, kinds, strict=False)):
            _levels_panel(axis, rows[rows["transformation"] == kind], people, name)
            accuracy_axis(axis, low=low, top=top)
            axis.set_title(str(kind).replace("_", " "))
            axis.set_ylabel("accuracy" if k % _COLUMNS == 0 else "")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=4, fontsize=LABEL_POINTS + 0.5)
        figure.supxlabel("Levels as in the metadata, at equal distances.", fontsize=9, color=MUTED, ha="left", x=0.01)
        settle(figure)
    return figure


def _levels_panel(axis: Axes, rows: pd.DataFrame, people: str, name: str) -> None:
    levels = sorted(rows["level"].unique())
    x = np.arange(len(levels))
    for k, (_, group) in enumerate(list(rows.groupby(list(MODEL_KEY), sort=False))[:MAX_LINES]):
        table = group.set_index("level").reindex(levels)
        half = table["std_error"].to_numpy(float) if "std_error" in table else np.zeros(len(levels))
        axis.errorbar(x, table["accuracy"], yerr=np.nan_to_num(half), color=_MODEL, marker="o", markersize=4,
                      linewidth=1.3, alpha=0.8, label=name if k == 0 else None, zorder=2)  # fmt: skip
    table = rows.drop_duplicates("level").set_index("level").reindex(levels)
    axis.errorbar(x, table["accuracy_people"], yerr=_people_errors(table), color=PEOPLE_COLOUR, marker="s",
                  markersize=5, linestyle="--", linewidth=1.7, capsize=2.5, label=people, zorder=3)  # fmt: skip
    axis.set_xticks(x, [f"{level:.3g}" for level in levels], fontsize=LABEL_POINTS)
    axis.set_xlim(-0.3, len(levels) - 0.7)


def _people_errors(table: pd.DataFrame) -> np.ndarray:
    """(2, n) lengths of people's 95% intervals below and above; 0 where they are not known."""
    value = table["accuracy_people"].to_numpy(float)
    if {"people_ci_low", "people_ci_high"} <= set(table.columns):
        ends = table[["people_ci_low", "people_ci_high"]].to_numpy(float).T
        return np.maximum(np.nan_to_num(np.stack([value - ends[0], ends[1] - value])), 0)
    error = table["std_error_people"].to_numpy(float) if "std_error_people" in table else np.zeros(len(table))
    return np.tile(np.nan_to_num(error) * float(ndtri(0.975)), (2, 1))


def one_shot_by_kind(
    one_shot: pd.DataFrame,
    strong: pd.DataFrame | None = None,
    intervals: pd.DataFrame | None = None,
    *,
    people: str = PEOPLE,
    name: str = "strong baselines",
) -> Figure | None:
    """Accuracy after one view by kind of transformation, levels averaged, sorted by people's lead (Figure 7C).

    Args:
        one_shot: See the module.
        strong: See `one_shot_pattern`.
        intervals: `transformation, people_ci_low, people_ci_high`, for people's error bars.
        people: What to call people.
        name: What to call the models.
    """
    rows = _marked(one_shot, strong)
    rows = rows[rows["is_strong"]]
    if rows.empty:
        return None
    by_model = rows.groupby(["transformation", *MODEL_KEY], sort=False)[["accuracy", "accuracy_people"]].mean()
    wide = by_model["accuracy"].unstack("transformation")
    person = by_model["accuracy_people"].groupby(level="transformation").first()
    order = (person - wide.mean()).sort_values(ascending=False, kind="stable").index
    ends = pd.DataFrame({"accuracy_people": person.loc[order]})
    if intervals is not None:
        first = intervals.drop_duplicates("transformation").set_index("transformation")
        ends = ends.join(first[["people_ci_low", "people_ci_high"]])
    error = _people_errors(ends)
    with figure_style():
        figure = new_figure(5.4, 1.4 + 0.33 * len(order))
        axis = figure.subplots()
        for place, kind in enumerate(order):
            value = wide[kind].dropna().to_numpy(float)
            offsets = place + 0.12 * np.linspace(-1, 1, len(value)) if len(value) > 1 else np.array([place])
            axis.plot(value, offsets, "o", color=_MODEL, markersize=4.5, alpha=0.75, markeredgecolor=PAPER,
                      markeredgewidth=0.3, label=name if place == 0 else None)  # fmt: skip
            axis.errorbar([person[kind]], [place], xerr=error[:, [place]], fmt="s", color=PEOPLE_COLOUR, markersize=7,
                          capsize=3, zorder=3, label=people if place == 0 else None)  # fmt: skip
        axis.set_yticks(range(len(order)), [str(kind).replace("_", " ") for kind in order])
        axis.set_ylim(len(order) - 0.5, -0.5)
        axis.tick_params(axis="y", length=0)
        axis.grid(True, axis="x")
        axis.set(xlabel="accuracy after one view, levels averaged", title="People's lead, greatest first")
        legend_above(figure, axis)
        settle(figure)
    return figure
