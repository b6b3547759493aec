"""Figures of object learning: what is drawn is what the tables hold, and nothing is drawn that they lack."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from humanlike.reports.figures import figure_svg, score_figures
from humanlike.reports.html import render_report
from humanlike.reports.object_learning_curves import (
    individual_differences,
    model_curves,
    smoothed,
    subtask_curves,
)
from humanlike.reports.object_learning_figures import figure_caption, figure_title, run_figures, sweep_figures
from humanlike.reports.object_learning_patterns import accuracy_by_phase, one_shot_by_kind, one_shot_pattern
from humanlike.reports.object_learning_scores import (
    accuracy_and_consistency,
    rules_by_layer,
    score_by_depth,
    score_distribution,
    two_experiments,
)
from humanlike.types import BenchmarkResult, Score, ScoreValue

NAMES = [
    f"{name}_{experiment}"
    for experiment in ("high_variation", "one_shot")
    for name in ("scores", "depth", "rules_by_layer", "accuracy_consistency")
] + ["subtask_curves", "curves", "phases", "one_shot", "one_shot_kinds", "individuals", "experiments"]


def words(svg):
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()).strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture(scope="module")
def board(tables):
    rows = tables["leaderboard"]
    return rows[rows["experiment"] == "high_variation"]


@pytest.fixture(scope="module")
def score(inputs):
    models = inputs["models"].query("backbone == 'resnet50' and experiment == 'high_variation'")
    own = {name: inputs[name][inputs[name]["backbone"] == "resnet50"] for name in ("curves", "phases")}
    own |= {"models": models, "subtask_curves": inputs["subtask_curves"], "individuals": inputs["individuals"]}
    details = {
        "object_learning": {
            "experiment": "high_variation", "convention": "paper", "reference": {"layer": "block8", "rule": "square"},
        }
    }  # fmt: skip
    none = pd.DataFrame({"condition": [0.0]})
    result = BenchmarkResult(
        {"msen_paper": ScoreValue(0.008)}, none, none, none, {"items_total": 1}, ("simulated_participants",),
        {"preset": "paper"}, details, own,
    )  # fmt: skip
    return Score(
        "object_learning", "1", "novel_objects", "resnet50", "block8", result, {}, {}, {}, "2026", 1.0, "0" * 64
    )


def test_every_figure_of_a_sweep_in_order(tables):
    figures = sweep_figures(tables, people="simulated people")
    assert list(figures) == NAMES
    for name in ("curves", "phases", "one_shot", "individuals", "subtask_curves", "accuracy_consistency_one_shot"):
        assert "simulated people" in " ".join(words(figure_svg(figures[name]))), name
    assert {"model", "simulated people"} <= set(words(figure_svg(figures["subtask_curves"])))
    for name in NAMES:
        assert figure_title(name)
        assert "{" not in figure_caption(name, "people")


def test_what_is_missing_is_not_drawn(tables, board):
    assert sweep_figures({}) == {}
    assert sweep_figures({name: table.head(0) for name, table in tables.items()}) == {}
    assert score_distribution(board.head(1), "msen_paper", {}) is None
    assert score_by_depth(board.query("layer == 'block0'"), "msen_paper", {}) is None
    assert rules_by_layer(board.query("rule == 'mae'"), "msen_paper") is None
    assert rules_by_layer(board.assign(msen_paper=np.nan), "msen_paper") is None
    assert accuracy_and_consistency(board.drop(columns="consistency")) is None
    assert accuracy_and_consistency(board.assign(consistency=np.nan)) is None
    assert two_experiments(tables["experiments"].head(0), {}) is None
    assert model_curves(tables["curves"].head(0)) is None
    assert individual_differences(tables["individuals"].head(0)) is None
    assert accuracy_by_phase(tables["phases"].head(0)) is None
    nobody = pd.DataFrame([{"backbone": "x", "layer": "y", "rule": "z"}])
    assert one_shot_pattern(tables["one_shot"], nobody) is None
    assert one_shot_by_kind(tables["one_shot"], nobody) is None
    assert subtask_curves(tables["subtask_curves"].query("trial == 1")) is None


def test_distribution_counts_every_model_and_marks_the_reference_lines(board):
    upper, lower = score_distribution(board, "msen_paper", {"floor": 0.0027, "random_guess": 0.1134}).axes
    assert sum(patch.get_height() for patch in upper.patches) == len(board)
    vertical = {round(float(line.get_xdata()[0]), 6) for line in lower.lines if len(set(line.get_xdata())) == 1}
    assert {0.0027, 0.1134} <= vertical
    medians = board.groupby("rule")["msen_paper"].median().sort_values(kind="stable")
    assert [t.get_text() for t in lower.get_yticklabels()] == [r.replace("_", " ") for r in medians.index]
    dots = [float(line.get_xdata()[0]) for line in lower.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots, medians)


def test_negative_scores_have_a_linear_axis(board):
    shifted = board.assign(msen_v2=board["msen_paper"] - 0.02)
    figure = score_distribution(shifted, "msen_v2", {"floor": 0.0, "random_guess": np.nan})
    assert figure.axes[1].get_xscale() == "linear"
    assert score_by_depth(shifted, "msen_v2", {}).axes[0].get_yscale() == "linear"
    assert rules_by_layer(shifted, "msen_v2") is not None


def test_depth_shows_means_over_rules(board):
    (axis,) = score_by_depth(board, "msen_paper", {"floor": 0.0027}).axes
    lines = {line.get_label(): line for line in axis.lines}
    assert {"alexnet", "resnet50", "vgg16", "noise floor"} <= set(lines)
    expected = board[board["backbone"] == "vgg16"].groupby("relative_depth")["msen_paper"].mean()
    np.testing.assert_allclose(lines["vgg16"].get_xdata(), expected.index)
    np.testing.assert_allclose(lines["vgg16"].get_ydata(), expected)


def test_of_many_networks_the_best_is_set_off(board):
    many = pd.concat([board.assign(backbone=board["backbone"] + str(k)) for k in range(4)])
    (axis,) = score_by_depth(many, "msen_paper", {}).axes
    labels = [line.get_label() for line in axis.lines if not line.get_label().startswith("_")]
    assert sorted(labels) == ["other networks", "resnet500"]


def test_curves_are_the_tables(tables, board):
    strong = board[board["is_strong"]]
    (axis,) = model_curves(tables["curves"], strong).axes
    lines = {line.get_label(): line for line in axis.lines}
    people = tables["curves"].drop_duplicates("trial")
    np.testing.assert_allclose(lines["people"].get_ydata(), people["accuracy_people"])
    np.testing.assert_allclose(lines["people"].get_xdata(), people["trial"] - 1)
    blue = [line for line in axis.lines if line.get_color() == lines["strong baselines"].get_color()]
    assert len(blue) == len(strong)


def test_smoothing_is_a_moving_average_that_keeps_the_first_trial():
    value = np.random.default_rng(0).random((3, 30))
    out = smoothed(value, 5)
    np.testing.assert_allclose(out[:, 0], value[:, 0])
    np.testing.assert_allclose(out[:, 1], value[:, :3].mean(axis=1))
    np.testing.assert_allclose(out[:, -1], value[:, -3:].mean(axis=1))
    np.testing.assert_allclose(out[:, 2:-2], np.stack([np.convolve(v, np.ones(5) / 5, "valid") for v in value]))
    np.testing.assert_allclose(smoothed(np.full(7, 0.4)), 0.4)


def test_phases_show_people_with_their_intervals(tables):
    figure = accuracy_by_phase(tables["phases"])
    early = figure.axes[0]
    assert [t.get_text() for t in early.get_xticklabels()] == ["all", "easiest", "2nd", "3rd", "hardest"]
    rows = tables["phases"].query("phase == 'early'").drop_duplicates("quartile")
    points = [float(c.lines[0].get_ydata()[0]) for c in early.containers]
    np.testing.assert_allclose(points, rows["accuracy_people"])
    bars = [np.ptp(c.lines[2][0].get_segments()[0][:, 1]) for c in early.containers]
    np.testing.assert_allclose(bars, 0.04)


def test_one_shot_has_a_panel_a_kind_with_levels_in_order(tables, board):
    strong = board[board["is_strong"]].head(1)
    figure = one_shot_pattern(tables["one_shot"], strong)
    panels = [axis for axis in figure.axes if axis.get_visible()]
    assert len(panels) == 9
    shuffled = one_shot_pattern(tables["one_shot"].sample(frac=1, random_state=0), strong)
    titles = {a.get_title(loc="left"): a.containers[-1] for a in shuffled.axes}
    for axis in panels:
        people = axis.containers[-1]
        value = people.lines[0].get_ydata().astype(float)
        np.testing.assert_allclose(value, titles[axis.get_title(loc="left")].lines[0].get_ydata().astype(float))
        half = [np.ptp(s[:, 1]) / 2 for s in people.lines[2][0].get_segments()]
        np.testing.assert_allclose(half, 1.959964 * 0.012, rtol=1e-6)


def test_participants_above_the_model_are_filled(tables):
    figure = individual_differences(tables["individuals"], tables["individual_curves"])
    points = {line.get_label(): line for line in figure.axes[-1].lines}
    better = tables["individuals"].query("p_adjusted <= 0.05 and accuracy > accuracy_model")["accuracy"]
    np.testing.assert_allclose(points["people, better than the model"].get_xdata(), np.sort(better))
    assert len(individual_differences(tables["individuals"]).axes) == 1


def test_a_run_draws_its_tables_and_its_page_shows_them(score):
    figures = score_figures(score)
    names = ["subtask_curves", "scores", "rules_by_layer", "depth", "accuracy_consistency", "curves", "phases",
             "individuals"]  # fmt: skip
    assert list(figures) == list(run_figures(score)) == names
    assert "resnet50, square" in words(figure_svg(figures["curves"]))
    page = render_report(score, figures={n: figure_svg(f) for n, f in figures.items()})
    assert "Mean learning curves (Figure 6 A)" in page
    assert 'aria-label="Score by depth (Figure 4 C)"' in page
    assert "simulated people" in page
    assert "http-equiv" in page
    assert "<script src" not in page
    assert "0.00800" in page


def test_other_runs_have_no_such_figures(score):
    other = replace(score, result=replace(score.result, details={}))
    assert run_figures(other) == {}
    assert figure_title("by_condition") is None
    assert figure_caption("by_condition", "people") is None
