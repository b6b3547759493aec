"""Figures of a run: metrics by condition, alignment with people, divergence, example sketches.

Every function returns a free-standing matplotlib Figure, or None where there is nothing to show: a metric that the
data could not give is left out and named in a note below, never drawn as an empty axis. Colours are from the Okabe-
Ito palette, and model and people also differ in marker and line, so that the figures can be read without colour.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from humanlike.files import atomic_path
from humanlike.reports.gallery import Example
from humanlike.reports.wording import condition_label, condition_metrics, is_missing, people_word, short_title, title
from humanlike.types import Score, ScoreValue

INK, MUTED, GRID, PAPER = "#1f2937", "#5b6472", "#d9dee5", "#ffffff"
PEOPLE_COLOUR = "#d55e00"
MODEL_COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKERS = ("o", "D", "^", "v", "P")
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "humanlike",
}


@contextmanager
def figure_style() -> Iterator[None]:
    """The look of every figure; within it alone, so that the settings of a caller's own figures stay."""
    with mpl.rc_context(_STYLE):
        yield


def metrics_by_condition(
    models: Mapping[str, pd.DataFrame],
    metrics: Sequence[str],
    *,
    unit: str = "",
    people: str = "people",
    chance: Mapping[str, float] | None = None,
) -> Figure | None:
    """One panel a metric: means with s.e.m. over conditions, models and people, and chance (SEVA, Figure 4).

    Args:
        models: Model name → per-condition table with `condition`, `<metric>`, `<metric>_sem` and, where there
            are people, `<metric>_people`, `<metric>_people_sem`. People are drawn once, from the first table that
            has them.
        metrics: Which metrics, in order.
        unit: Unit of the condition, for the axis.
        people: What to call people in the legend.
        chance: Metric → level of chance, drawn dotted.

    Returns:
        The figure; None when no metric has a value.
    """
    drawn = [m for m in metrics if any(np.isfinite(_column(t, m)).any() for t in models.values())]
    if not drawn:
        return None
    with figure_style():
        figure, axes = _panels(len(drawn), width=3.3, height=3.1)
        for axis, metric in zip(axes, drawn, strict=True):
            _condition_panel(axis, models, metric, people)
            level = (chance or {}).get(metric)
            if level is not None and not is_missing(level):
                axis.axhline(level, color=MUTED, linestyle=":", linewidth=1.4, label="chance", zorder=1)
            axis.set_title(title(metric))
            axis.set_xlabel(f"condition ({unit})" if unit else "condition")
        _shared_legend(figure, axes)
        _note_left_out(figure, [m for m in metrics if m not in drawn])
        settle(figure)
    return figure


def _condition_panel(axis: Axes, models: Mapping[str, pd.DataFrame], metric: str, people: str) -> None:
    colours, markers = cycle(MODEL_COLOURS), cycle(_MARKERS)
    for (name, table), colour, marker in zip(models.items(), colours, markers, strict=False):
        _series(axis, table, metric, name, colour, marker, "-")
    column = f"{metric}_people"
    for table in models.values():
        if np.isfinite(_column(table, column)).any():
            _series(axis, table, column, people, PEOPLE_COLOUR, "s", "--")
            break
    x = np.unique(np.concatenate([_column(t, "condition") for t in models.values()]))
    if len(x) > 1 and x[0] > 0 and x[-1] / x[0] >= 4:
        axis.set_xscale("log", base=2)
    elif len(x) == 1:
        axis.set_xlim(x[0] - 1, x[0] + 1)
    axis.set_xticks(x, [f"{v:g}" for v in x])
    axis.minorticks_off()


def _series(axis: Axes, table: pd.DataFrame, column: str, name: str, colour: str, marker: str, line: str) -> None:
    x, y, sem = (_column(table, c) for c in ("condition", column, f"{column}_sem"))
    keep = np.isfinite(y)
    axis.errorbar(
        x[keep], y[keep], yerr=np.nan_to_num(sem[keep]), label=name, color=colour, marker=marker,
        markersize=6, linestyle=line, linewidth=1.8, capsize=3, markeredgecolor=PAPER, markeredgewidth=0.7,
    )  # fmt: skip


def alignment_bars(
    models: Mapping[str, Mapping[str, ScoreValue]],
    *,
    prefix: str = "alignment_",
    people: str = "people",
    label: str = "adjusted R²",
) -> Figure | None:
    """One panel a metric: each model's alignment with its interval, people's own consistency first (SEVA, Figure 5).

    Args:
        models: Model name → scores; the panels are the scores whose name starts with `prefix`.
        prefix: What the names of the wanted scores start with.
        people: What to call people in the labels.
        label: Of the value axis.

    Returns:
        The figure; None when no such score has a value.
    """
    named = dict.fromkeys(n for s in models.values() for n in s if n.startswith(prefix))
    names = [n for n in named if not n.endswith("_corrected")]  # the same alignment freed of noise; it is in the table
    drawn = [n for n in names if any(n in s and not is_missing(s[n].value) for s in models.values())]
    if not drawn:
        return None
    with figure_style():
        figure, axes = _panels(len(drawn), width=3.3, height=1.5 + 0.42 * (len(models) + 1))
        for axis, name in zip(axes, drawn, strict=True):
            _alignment_panel(axis, {m: s.get(name, ScoreValue(None)) for m, s in models.items()}, people)
            axis.set_title(short_title(name.removeprefix(prefix)))
            axis.set_xlabel(label)
        _note_left_out(figure, [n for n in names if n not in drawn])
        settle(figure)
    return figure


def _alignment_panel(axis: Axes, values: Mapping[str, ScoreValue], people: str) -> None:
    first = next(iter(values.values()))
    bars: list[tuple[str, float | None, tuple[float | None, float | None], str]] = []
    if not is_missing(first.ceiling):
        bars.append((f"{people}\n(split half)", first.ceiling, first.ceiling_ci or (None, None), PEOPLE_COLOUR))
    bars += [
        (m, v.value, (v.ci_low, v.ci_high), c) for (m, v), c in zip(values.items(), cycle(MODEL_COLOURS), strict=False)
    ]
    for place, (_, value, (low, high), colour) in enumerate(bars):
        if value is None or is_missing(value):
            axis.text(0, place, " not available", va="center", color=MUTED, fontsize=9)
            continue
        axis.barh(place, value, height=0.55, color=colour, alpha=0.85, linewidth=0)
        if low is not None and high is not None and not is_missing(low) and not is_missing(high):
            axis.plot([low, high], [place, place], color=INK, linewidth=1.6, marker="|", markersize=8)
    if not is_missing(first.ceiling):
        axis.axvline(float(first.ceiling or 0.0), color=PEOPLE_COLOUR, linestyle="--", linewidth=1.2, zorder=1)
    axis.axvline(0, color=MUTED, linewidth=0.8)
    axis.set_yticks(range(len(bars)), [wrapped(name) for name, *_ in bars])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(bars) - 0.4, -0.6)
    axis.grid(True, axis="x")
    axis.grid(False, axis="y")
    axis.set_xlim(right=max(1.0, axis.get_xlim()[1]))


def sketch_strip(examples: Sequence[Example], *, unit: str = "", people: str = "people") -> Figure | None:
    """Example sketches, one row a source and one column a condition, with the answers given (SEVA, Figure 2)."""
    if not examples:
        return None
    sources = list(dict.fromkeys(e.image_id for e in examples))
    conditions = sorted({e.condition for e in examples})
    with figure_style():
        size = (1.75 * len(conditions), 2.15 * len(sources) + 0.3)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(sources), len(conditions), squeeze=False)
        for axis in grid.flat:
            axis.set_axis_off()
        for e in examples:
            axis = grid[sources.index(e.image_id)][conditions.index(e.condition)]
            axis.set_axis_on()
            axis.grid(False)
            axis.imshow(np.asarray(e.image), interpolation="none")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set(visible=True, color=GRID)
            axis.set_title(f"{e.concept}, {condition_label(e.condition, unit)}", fontsize=8.5)
            mark = "✓" if e.correct else "✗"
            said = f"model: {e.answer} {mark}"
            if e.people_answer is not None:
                said += f"\n{people}: {e.people_answer}"
            if e.caption is not None:
                said += f"\n{e.caption}"
            axis.set_xlabel(said, fontsize=7.5, fontfamily="DejaVu Sans", loc="left")
        settle(figure)
    return figure


def score_figures(score: Score, examples: Sequence[Example] = ()) -> dict[str, Figure]:
    """The standard figures of one run, name → figure; those without data are absent."""
    conditions, details = score.result.conditions, score.result.details
    unit, people = str(details.get("conditions_unit", "")), people_word(score)
    metrics = condition_metrics(conditions)
    table = {score.backbone: conditions}
    figures = {
        "by_condition": metrics_by_condition(
            table, [m for m in metrics if m != "jsd"], unit=unit, people=people, chance=details.get("chance")
        ),
        "alignment": alignment_bars({score.backbone: score.scores}, people=people),
        "divergence": metrics_by_condition(table, [m for m in metrics if m == "jsd"], unit=unit, people=people),
        "layers": _layers(details.get("layers"), score.backbone),
        "sketches": sketch_strip(examples, unit=unit, people=people),
    }
    if own := {**_object_learning(score), **_sea(score), **_generation(score)}:
        del figures["by_condition"]  # the benchmark's own figures show the same, made for what it measures
    return {name: figure for name, figure in (figures | own).items() if figure is not None}


def _object_learning(score: Score) -> dict[str, Figure | None]:
    from humanlike.reports.object_learning_figures import (
        run_figures,
    )  # drawn in the style of this module, as layers are

    return {**run_figures(score)}


def _sea(score: Score) -> dict[str, Figure | None]:
    from humanlike.reports.sea_figures import run_figures  # drawn in the style of this module, as layers are

    return {**run_figures(score)}


def _generation(score: Score) -> dict[str, Figure | None]:
    from humanlike.reports.generation_figures import run_figures  # drawn in the style of this module, as layers are

    return {**run_figures(score)}


def _layers(rows: Sequence[Mapping[str, Any]] | None, name: str) -> Figure | None:
    if not rows:
        return None
    from humanlike.reports.study_figures_layers import layer_profile  # it is drawn in the style of this module

    return layer_profile(pd.DataFrame(rows), name=name)


def figure_svg(figure: Figure) -> str:
    """A figure as SVG text in which words are text, without a date, so that equal figures are equal bytes."""
    buffer = io.StringIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def figure_rgb(figure: Figure, dpi: int = 120) -> np.ndarray:
    """A figure as pixels: (height, width, 3) uint8."""
    buffer = io.BytesIO()
    with figure_style():
        figure.savefig(buffer, format="png", dpi=dpi)
    return np.array(Image.open(buffer).convert("RGB"))


def write_figure(path: str | Path, figure: Figure) -> None:
    """Write a figure atomically; the suffix of `path` (`.png`, `.pdf`, …) sets the format; see `figure_svg` for SVG."""
    with atomic_path(path) as temporary, figure_style():
        figure.savefig(temporary, dpi=160)


def _column(table: pd.DataFrame, name: str) -> np.ndarray:
    if name not in table.columns:
        return np.full(len(table), np.nan)
    return pd.to_numeric(table[name], errors="coerce").to_numpy(float, na_value=np.nan)


def _panels(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(max(width * count, 4.2), height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, count, squeeze=False).flat)


def settle(figure: Figure) -> None:
    """Lay the figure out once and for all: repeated layouts drift by a pixel, and files would depend on their order."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _shared_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    entries: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(list(entries.values()), list(entries), loc="outside upper left", ncols=min(len(entries), 6))


def _note_left_out(figure: Figure, names: Sequence[str]) -> None:
    if names:
        words = ", ".join(title(name) for name in names)
        figure.supxlabel(f"Not available for this data: {words}.", fontsize=9, color=MUTED, ha="left", x=0.01)


def wrapped(name: str, width: int = 16) -> str:
    """A label broken into lines of about `width` characters, after underscores, slashes, dashes and spaces."""
    lines: list[str] = []
    for text in name.split("\n"):
        lines.append("")
        for part in re.split(r"(?<=[_/ -])", text):
            if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return "\n".join(lines)
