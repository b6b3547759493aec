"""The plane of recognition P and visual ratio v: where SEA is the same, the line v = P, and the sketches on it."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, figure_style, settle
from humanlike.reports.sea_wording import SYMBOLS
from humanlike.reports.study_figures_conditions import LABEL_POINTS, new_figure

LEVELS = (-0.8, -0.4, 0.0, 0.4, 0.8)
"""Contours of SEA."""
MAX_SKETCHES = 500
"""At most so many sketches are drawn a panel."""
_COLUMNS = 4
_GRID = 81
_RAMP = (MODEL_COLOURS[3], MODEL_COLOURS[2], MODEL_COLOURS[0])


def condition_colours(count: int) -> list[str]:
    """Colours of ordered groups, from light to dark, that can be told apart on white and on black.

    Example:
        >>> condition_colours(3), condition_colours(1)
        (['#e69f00', '#cc79a7', '#0072b2'], ['#0072b2'])
    """
    if count == 1:
        return [_RAMP[-1]]
    anchors = np.array([to_rgb(colour) for colour in _RAMP])
    at = np.linspace(0, len(_RAMP) - 1, count)
    channels = [np.interp(at, np.arange(len(_RAMP)), anchors[:, c]) for c in range(3)]
    return [to_hex(tuple(rgb)) for rgb in np.stack(channels, axis=1).tolist()]


def sea_parameters(protocol: Mapping[str, Any]) -> dict[str, float]:
    """The hyperparameters that a run's protocol states."""
    return {name: float(protocol[name]) for name in SYMBOLS if name in protocol}


def sea_on_grid(parameters: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """SEA over the plane.

    Args:
        parameters: Hyperparameters by name.

    Returns:
        P (n,), v (m,), closest together near 0, where SEA rises most, and SEA (m, n).
    """
    from humanlike.metrics.functional.sea import sea_terms  # brings torch, which other reports do without

    P = np.linspace(0, 1, _GRID)
    v = np.union1d(np.linspace(0, 1, _GRID), np.geomspace(1e-3, 0.02, 8))
    return P, v, sea_terms(P[None, :], v[:, None], **parameters).sea.numpy()  # type: ignore[arg-type]


def efficiency_plane(by_condition: Mapping[str, pd.DataFrame], parameters: Mapping[str, float]) -> Figure:
    """The plane with the sketches on it, a panel a condition.

    Args:
        by_condition: Label of a condition → its scored sketches (`sketch_id, recognition, visual_ratio, zero_v`).
        parameters: Hyperparameters of the contours.
    """
    colours = condition_colours(len(by_condition))
    grid = sea_on_grid(parameters)
    columns = min(_COLUMNS, len(by_condition))
    lines = ceil(len(by_condition) / columns)
    with figure_style():
        figure = new_figure(2.65 * columns + 0.5, 2.85 * lines + 0.75)
        figure.set_layout_engine("compressed")  # the panels are square
        axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for axis in axes.flat[len(by_condition) :]:
            axis.set_visible(False)
        for axis, (label, sketches), colour in zip(axes.flat, by_condition.items(), colours, strict=False):
            _background(axis, *grid)
            drawn = _some(sketches)
            axis.plot(
                drawn["recognition"], drawn["visual_ratio"], "o", color=colour, markersize=3.6, alpha=0.45,
                markeredgewidth=0, zorder=3, label="sketches",
            )  # fmt: skip
            blank = sketches[sketches["zero_v"] == 1].head(MAX_SKETCHES)
            axis.plot(
                blank["recognition"], blank["visual_ratio"], "o", color=INK, markersize=8, markerfacecolor="none",
                markeredgewidth=1.3, zorder=4, label="zero_v",
            )  # fmt: skip
            shown = f"{len(drawn)} of {len(sketches)}" if len(drawn) < len(sketches) else f"{len(sketches)}"
            axis.set_title(f"{label}  (n {shown})", fontsize=9.5)
            axis.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        figure.supxlabel("recognition P", fontsize=10, color=INK)
        figure.supylabel("visual ratio v", fontsize=10, color=INK)
        count = sum(int((sketches["zero_v"] == 1).sum()) for sketches in by_condition.values())
        figure.legend(handles=_legend(count), loc="outside upper left", ncols=4, fontsize=LABEL_POINTS + 0.5)
        settle(figure)
    return figure


def _background(axis: Axes, P: np.ndarray, v: np.ndarray, sea: np.ndarray) -> None:
    contours = axis.contour(
        P, v, sea, LEVELS, colors=[INK if level == 0 else MUTED for level in LEVELS],
        linewidths=[1.5 if level == 0 else 0.7 for level in LEVELS], linestyles="solid", zorder=1,
    )  # fmt: skip
    # Where efficient and other sketches lie; left to itself a label may stand where all contours meet.
    at = [(float(P[np.abs(sea[row] - level).argmin()]), float(v[row]))
          for level in LEVELS for row in [int(np.abs(v - (0.3 if level >= 0 else 0.85)).argmin())]]  # fmt: skip
    axis.clabel(contours, fmt=lambda level: f"{level:g}".replace("-", "−"), fontsize=7, inline_spacing=2, manual=at)
    for words in contours.labelTexts:
        if words.get_text().startswith("−"):
            words.set_rotation(0)  # along an upright line the sign could not be told from the line
    axis.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1.1, zorder=2, label="v = P")
    axis.grid(False)


def _some(sketches: pd.DataFrame) -> pd.DataFrame:
    """At most `MAX_SKETCHES` of the sketches, drawn at random."""
    if len(sketches) <= MAX_SKETCHES:
        return sketches
    from humanlike.rng import generator  # brings torch

    chosen = generator(0, "reports", "plane").choice(len(sketches), MAX_SKETCHES, replace=False)
    return sketches.iloc[np.sort(chosen)]


def _legend(zero_v: int) -> list[Line2D]:
    handles = [
        Line2D([], [], color=INK, linestyle="--", linewidth=1.1, label="v = P, as much drawn as recognised"),
        Line2D([], [], color=INK, linewidth=1.5, label="SEA = 0"),
        Line2D([], [], color=MUTED, linewidth=0.7, label="equal SEA"),
    ]
    if zero_v:
        words = f"v = 0 ({zero_v})"
        handles.append(Line2D([], [], color=INK, marker="o", markerfacecolor="none", markersize=8, linestyle="",
                              label=words))  # fmt: skip
    return handles
