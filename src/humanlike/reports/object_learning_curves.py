"""Learning curves: of people, subtask by subtask, of models beside people, of single participants.

Tables in:
    subtask_curves: `subtask, trial` (1, 2, …), `accuracy_people` and, where known, `accuracy` of a model.
    curves: `backbone, layer, rule, trial, accuracy, accuracy_people` and, where known, `std_error_people`: means over
        subtasks.
    individuals: `participant, accuracy, std_error` and, where known, `accuracy_model, p_adjusted`.
    individual_curves: `participant, trial, accuracy`.

References: Lee & DiCarlo, Figures 1D, 6A and 8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR, figure_style, settle
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure
from humanlike.reports.study_observers import PEOPLE, spread

MODEL_KEY = ("backbone", "layer", "rule")
CHANCE = 0.5
WINDOW = 9
"""Trials over which single curves are smoothed, for the eye alone."""
SHORT = 40
"""Sessions of fewer trials are not smoothed: a one-shot session changes its task after ten."""
MAX_LINES = 200
_SEEN = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def smoothed(values: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Moving average that keeps the first trial as it is: towards it the window shrinks, at the end it is cut off.

    Args:
        values: (…, T) values.
        window: Width, odd.

    Example:
        >>> smoothed(np.array([0.0, 3.0, 0.0, 3.0]), 3).tolist()
        [0.0, 1.0, 2.0, 1.5]
    """
    trials = values.shape[-1]
    place = np.arange(trials)
    half = np.minimum(place, window // 2)
    end = np.minimum(place + half, trials - 1) + 1
    total = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    return (total[..., end] - total[..., place - half]) / (end - place + half)


def legend_columns(labels: Sequence[str], width: float) -> int:
    """How many columns a legend above a figure has room for.

    Args:
        labels: Its texts.
        width: Of the figure in inches.

    Example:
        >>> legend_columns(["people", "chance"], 5.0), legend_columns(["a rather long name of a model"] * 3, 5.0)
        (2, 1)
    """
    longest = max((len(label) for label in labels), default=1)
    return int(np.clip(width // (0.085 * longest + 0.75), 1, max(len(labels), 1)))


def legend_above(figure: Figure, axis: Axes) -> None:
    """What one panel shows, above the figure, in as many columns as there is room for."""
    handles, labels = axis.get_legend_handles_labels()
    columns = legend_columns(labels, figure.get_figwidth())
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, fontsize=LABEL_POINTS + 0.5)


def subtask_curves(curves: pd.DataFrame, *, people: str = PEOPLE, model: str = "model") -> Figure | None:
    """Every subtask's learning curve and their mean; the hardest, middle and easiest for people are named (Figure 1D).

    Args:
        curves: See the module; a second panel shows the model where `accuracy` is there.
        people: What to call people.
        model: The model's name.

    Returns:
        The figure; None where there is nothing to draw.
    """
    panels = [(people, "accuracy_people", PEOPLE_COLOUR), (model, "accuracy", MODEL_COLOURS[0])]
    panels = [p for p in panels if p[1] in curves and curves[p[1]].notna().any()]
    if not panels or curves["trial"].nunique() < 2:
        return None
    order = curves.groupby("subtask")[panels[0][1]].mean().sort_values(kind="stable").index
    named = {str(order[0]): "hardest", str(order[len(order) // 2]): "middle", str(order[-1]): "easiest"}
    with figure_style():
        figure = new_figure(5.2 * len(panels) + 0.4, 3.9)
        for axis, (name, column, colour) in zip(
            figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True
        ):
            _subtask_panel(axis, curves.pivot(index="subtask", columns="trial", values=column), colour, named)
            axis.set_title(name)
        smoothing = f", smoothed over {WINDOW} trials" if curves["trial"].nunique() >= SHORT else ""
        figure.supxlabel(
            f"Thin lines: one subtask each{smoothing}; thick: their mean, as measured.",
            fontsize=9, color=MUTED, ha="left", x=0.01,
        )  # fmt: skip
        settle(figure)
    return figure


def _subtask_panel(axis: Axes, wide: pd.DataFrame, colour: str, named: dict[str, str]) -> None:
    trial, value_ST = (
        wide.columns.to_numpy(float),
        smoothed(wide.to_numpy(float), WINDOW if len(wide.T) >= SHORT else 1),
    )
    names = [str(s) for s in wide.index]
    for name, line in zip(names, value_ST, strict=True):
        if name not in named:
            axis.plot(trial, line, color=MUTED, linewidth=0.6, alpha=0.35)
    ends, texts = [], []
    for name, line in zip(names, value_ST, strict=True):
        if name in named:
            axis.plot(trial, line, color=INK, linewidth=1.3, linestyle="--")
            ends.append(float(line[-1]))
            texts.append(named[name])
    axis.plot(trial, wide.mean().to_numpy(float), color=colour, linewidth=2.4)
    ends.append(float(value_ST.mean(0)[-1]))
    texts.append("mean")
    accuracy_axis(axis, low=min(0.4, float(np.nanmin(value_ST))))
    bottom, top = axis.get_ylim()
    for place, text in zip(spread(ends, 0.05 * (top - bottom), bottom, top), texts, strict=True):
        weight = "bold" if text == "mean" else "normal"
        axis.annotate(
            text, (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize=LABEL_POINTS, weight=weight,
            color=colour if text == "mean" else INK,
        )  # fmt: skip
    axis.set(xlabel="trial", xlim=(trial[0], trial[-1]))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def accuracy_axis(axis: Axes, low: float = 0.4, top: float = 1.02) -> None:
    """A vertical axis of accuracies, with a line at the chance of two choices."""
    axis.axhline(CHANCE, color=MUTED, linestyle=":", linewidth=1.4, zorder=1, label="chance")
    axis.set(ylim=(low, top), ylabel="accuracy")


def model_curves(
    curves: pd.DataFrame, strong: pd.DataFrame | None = None, *, people: str = PEOPLE, name: str = "strong baselines"
) -> Figure | None:
    """Mean learning curves of models beside people, over the number of images seen before (log scale; Figure 6A).

    Args:
        curves: See the module.
        strong: `backbone, layer, rule` of the models to be set off; the others are drawn faintly. None sets off all.
        people: What to call people.
        name: What to call the models that are set off.

    Returns:
        The figure; None where there is no curve.
    """
    if curves.empty:
        return None
    wide = curves.pivot_table(index=list(MODEL_KEY), columns="trial", values="accuracy", sort=False)
    chosen = set(wide.index) if strong is None else set(strong[list(MODEL_KEY)].itertuples(index=False, name=None))
    is_strong = np.array([key in chosen for key in wide.index])
    seen = wide.columns.to_numpy(float) - 1
    with figure_style():
        figure = new_figure(5.8, 4.2)
        axis = figure.subplots()
        other = wide.to_numpy(float)[~is_strong][:MAX_LINES]
        for k, line in enumerate(other):
            axis.plot(seen, line, color=MUTED, linewidth=0.6, alpha=0.4, label="other models" if k == 0 else None)
        for k, line in enumerate(wide.to_numpy(float)[is_strong][:MAX_LINES]):
            axis.plot(seen, line, color=MODEL_COLOURS[0], linewidth=1.3, alpha=0.8, label=name if k == 0 else None)
        _people_curve(axis, curves, people)
        accuracy_axis(axis, low=min(0.45, float(np.nanmin(wide.to_numpy(float)))))
        _seen_axis(axis, float(seen[-1]))
        axis.set_title("Mean learning curves")
        legend_above(figure, axis)
        settle(figure)
    return figure


def _people_curve(axis: Axes, curves: pd.DataFrame, people: str) -> None:
    if "accuracy_people" not in curves or curves["accuracy_people"].isna().all():
        return
    table = curves.dropna(subset=["accuracy_people"]).drop_duplicates("trial").sort_values("trial")
    x, y = table["trial"].to_numpy(float) - 1, table["accuracy_people"].to_numpy(float)
    if "std_error_people" in table:
        half = table["std_error_people"].to_numpy(float)
        axis.fill_between(x, y - half, y + half, color=PEOPLE_COLOUR, alpha=0.2, linewidth=0)
    axis.plot(x, y, color=PEOPLE_COLOUR, linestyle="--", linewidth=2.2, label=people)


def _seen_axis(axis: Axes, last: float) -> None:
    """A logarithmic axis that has a place for 0."""
    axis.set_xscale("symlog", base=2, linthresh=1, linscale=0.6)
    ticks = [t for t in _SEEN if t < 0.7 * last] + [int(last)]
    axis.set_xticks(ticks, [str(t) for t in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set(xlim=(0, last), xlabel="images seen before the trial (log scale)")


def individual_differences(
    individuals: pd.DataFrame,
    curves: pd.DataFrame | None = None,
    model: pd.DataFrame | None = None,
    *,
    people: str = PEOPLE,
    name: str = "model",
    size: float = 0.05,
) -> Figure | None:
    """Single participants: their learning curves, and their mean accuracies beside the model's (Figure 8).

    Filled points are participants who are better than the model after adjusting for the number of participants.

    Args:
        individuals: See the module.
        curves: Their learning curves, or None.
        model: `trial, accuracy` of the model, means over subtasks, or None.
        people: What to call people.
        name: What to call the model.
        size: Of the tests.

    Returns:
        The figure; None where nobody is known by name.
    """
    if individuals.empty:
        return None
    rows = individuals.sort_values("accuracy", kind="stable").reset_index(drop=True)
    has_curves = curves is not None and len(curves) > 0
    with figure_style():
        figure = new_figure(9.6 if has_curves else 5.2, max(3.8, 0.125 * len(rows) + 1.3))
        axes = list(figure.subplots(1, 1 + has_curves, squeeze=False).flat)
        if curves is not None and has_curves:
            _participant_curves(axes[0], curves, [str(p) for p in rows["participant"].iloc[[0, -1]]])
        if model is not None and has_curves:
            axes[0].plot(model["trial"], model["accuracy"], color=MODEL_COLOURS[0], linewidth=1.8)
        _participant_points(axes[-1], rows, people, name, size)
        legend_above(figure, axes[-1])
        settle(figure)
    return figure


def _participant_curves(axis: Axes, curves: pd.DataFrame, ends: Sequence[str]) -> None:
    wide = curves.pivot_table(index="participant", columns="trial", values="accuracy")
    trial, value_ST = wide.columns.to_numpy(float), smoothed(wide.to_numpy(float))
    for name, line in zip(wide.index, value_ST, strict=True):
        marked = str(name) in ends
        axis.plot(trial, line, color=PEOPLE_COLOUR if marked else MUTED, linewidth=1.8 if marked else 0.7,
                  alpha=1.0 if marked else 0.6, linestyle="--" if marked else "-")  # fmt: skip
        if marked:
            axis.annotate(f" {name}", (trial[-1], line[-1]), fontsize=LABEL_POINTS, va="center", annotation_clip=False)
    accuracy_axis(axis, low=0.45)
    axis.set(xlabel="trial", xlim=(trial[0], trial[-1]), title=f"Means over subtasks, smoothed over {WINDOW} trials")


def _participant_points(axis: Axes, rows: pd.DataFrame, people: str, name: str, size: float) -> None:
    y, x = np.arange(len(rows)), rows["accuracy"].to_numpy(float)
    p = rows["p_adjusted"].to_numpy(float) if "p_adjusted" in rows else np.full(len(rows), np.nan)
    model = rows["accuracy_model"].to_numpy(float) if "accuracy_model" in rows else np.full(len(rows), np.nan)
    better = (p <= size) & (x > model)
    half = rows["std_error"].to_numpy(float) if "std_error" in rows else np.zeros(len(rows))
    axis.errorbar(x, y, xerr=half, fmt="none", ecolor=PEOPLE_COLOUR, elinewidth=1.0, zorder=2)
    for told, face, label in ((better, PEOPLE_COLOUR, f"{people}, better than the model"), (~better, PAPER, people)):
        if told.any():
            axis.plot(
                x[told], y[told], "s", color=PEOPLE_COLOUR, markerfacecolor=face, markersize=5, label=label, zorder=3
            )
    if np.isfinite(model).any():
        axis.axvline(float(np.nanmean(model)), color=MODEL_COLOURS[0], linewidth=1.6, label=name, zorder=1)
    axis.set_yticks(
        y, [str(name) for name in rows["participant"]], fontsize=min(LABEL_POINTS, 6.5 if len(rows) > 30 else 7.0)
    )
    axis.set(xlabel="mean accuracy (± s.e. over subtasks)", ylim=(-0.7, len(rows) - 0.3), title="Participants")
    axis.grid(True, axis="x")
    axis.grid(False, axis="y")
