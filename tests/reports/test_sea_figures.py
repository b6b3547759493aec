"""Figures, tables and words of SEA: what is drawn is what the tables hold, by formulas written out here once more."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from rich.console import Console

from humanlike.benchmarks.sea_scores import JUDGED, QUANTITIES
from humanlike.reports import wording
from humanlike.reports.figures import figure_svg, score_figures, sketch_strip
from humanlike.reports.gallery import Example, gallery_examples
from humanlike.reports.html import render_report
from humanlike.reports.sea_figures import (
    CAPTIONS,
    FIGURE_TITLES,
    compared_distributions,
    distributions,
    figure_caption,
    figure_title,
    run_figures,
)
from humanlike.reports.sea_plane import LEVELS, MAX_SKETCHES, condition_colours, efficiency_plane, sea_parameters
from humanlike.reports.sea_sensitivity import ranking_sensitivity
from humanlike.reports.sea_wording import source_notes, source_warning
from humanlike.reports.tables import score_line, score_summary
from humanlike.types import BenchmarkResult, Responses, Score, ScoreValue, Sketches

CONDITIONS = (4.0, 8.0, 16.0, 32.0)
MEASURES = ("sea", "reward", "penalty", "visual_ratio", "recognition", "accuracy")
PARAMETERS = {
    "alpha": 2.2, "beta": 8.0, "lam": 1.0, "eta": 0.8, "k": 2.3, "tau": 0.4, "r": 1.7, "gamma": 1.7, "delta": 1e-6,
}  # fmt: skip


def terms(P, v, alpha, beta, lam, eta, k, tau, r, gamma, delta):
    """Reward, both parts of the penalty and SEA, as the paper has them."""
    gate = np.tanh(beta / 2 * np.log((P + delta) / (v + delta)))
    reward = P**gamma * np.log((1 + delta) / (v + delta)) * gate
    drawn, unrecognised = lam * v**eta * (1 - P) ** k, tau * (1 - P) ** r
    return reward, drawn, unrecognised, np.tanh(alpha * (reward - drawn - unrecognised))


def words(figure) -> list[str]:
    root = ElementTree.fromstring(figure_svg(figure))
    return ["".join(e.itertext()).strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture(scope="module")
def items() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for concept in ("bear", "cup", "fish"):
        for source in range(6):
            for i, condition in enumerate(CONDITIONS):
                V = int(rng.binomial(8, 0.2 + 0.12 * i))
                rows.append(
                    {
                        "sketch_id": f"{concept}-{source}@{condition:g}", "concept": concept, "condition": condition,
                        "image_id": f"{concept}-{source}", "top1": "cup", "correct": int(concept == "cup"),
                        "num_elements": 8, "num_judged": 8, "num_present": V, "visual_ratio": V / 8,
                        "recognition": rng.beta(0.3 + 0.2 * i, 0.7), "error": None,
                    }
                )  # fmt: skip
    items = pd.DataFrame(rows).astype({"error": object})
    items.loc[0, ["num_present", "visual_ratio"]] = 0
    reward, drawn, unrecognised, sea = terms(items["recognition"], items["visual_ratio"], **PARAMETERS)
    items = items.assign(reward=reward, penalty=drawn + unrecognised, z=reward - drawn - unrecognised, sea=sea)
    items["zero_v"] = (items["num_present"] == 0).astype(int)
    missing = ["reward", "penalty", "z", "sea", "visual_ratio"]
    items.loc[5, missing] = np.nan
    items.loc[5, ["num_judged", "num_present", "zero_v"]] = [3, 0, 0]
    return items.assign(accuracy=items["correct"].astype(float))


@pytest.fixture(scope="module")
def sea_score(items) -> Score:
    grouped = items.groupby("condition")[list(MEASURES)]
    conditions = grouped.mean()
    for name in MEASURES:
        conditions[f"{name}_sd"], conditions[f"{name}_sem"] = grouped.std()[name], grouped.sem()[name]
    counts = ("n_scored", "n_efficient", "n_overdrawn", "n_not_recognisable", "n_zero_v", "n_missing")
    conditions = conditions.assign(**dict.fromkeys(counts, 3)).reset_index()
    names = [*QUANTITIES, "accuracy", *(f"presence_{n}" for n in JUDGED), "sea_annotated", "visual_ratio_annotated"]
    concepts = pd.DataFrame({"concept": ["bear", "cup"], "sea": [0.25, -0.5], "elements": ["ear, paw", "handle"]})
    result = BenchmarkResult(
        scores={name: ScoreValue(0.123, 0.1, 0.2, n=71, unit="sea" if "sea" in name else "share") for name in names},
        cells=items.groupby(["concept", "condition"])[["sea"]].mean().reset_index(),
        items=items,
        conditions=conditions,
        counts={"items_total": 72, "items_zero_v": 1},
        flags=("zero_v:1", "sketches_not_judged:1", "judgments_missing:5", "sketches_without_elements:2"),
        protocol={"preset": "published", **PARAMETERS, "min_judged": 1.0},
        details={
            "elements": {"source": "shipped@0123", "concepts": 3},
            "judge": {"source": "a head", "threshold": 0.5, "coverage": 0.99, "present_rate": 0.6,
                      "always_present_f1": 0.75},
            "conditions_unit": "s",
        },
        tables={"concepts": concepts},
    )  # fmt: skip
    return Score("sea", "1", "doodles", "net", "last", result, {}, {}, {}, "2026", 1.0, "ab" * 32)


@pytest.fixture(scope="module")
def figures(sea_score):
    return run_figures(sea_score)


@pytest.fixture
def sensitivity() -> dict[str, pd.DataFrame]:
    one = pd.DataFrame(
        {"parameter": ["alpha"] * 3 + ["k"], "value": [4.4, 1.1, 2.2, 2.3], "kendall_sketches": [0.9, 0.8, 1.0, 0.7],
         "order_kept": pd.array([True, False, True, None], "boolean")}
    )  # fmt: skip
    joint = pd.DataFrame({"kendall_sketches": [0.5, 0.6, 0.6, 0.9], "order_kept": [True, True, True, False]})
    pairs = pd.DataFrame({"higher": [32.0, "own"], "lower": [4.0, "other"], "difference": [0.3, 0.1],
                          "share_kept": [1.0, 0.75], "least": [0.1, -0.2], "greatest": [0.5, 0.2]})  # fmt: skip
    importance = pd.DataFrame({"measure": ["kendall_sketches", "kendall_sketches", "margin"], "total_se": 0.1,
                               "parameter": ["alpha", "lam", "alpha"], "total": [0.0, 0.6, 0.9]})  # fmt: skip
    return {f"sensitivity_{n}": t for n, t in
            {"one": one, "joint": joint, "pairs": pairs, "importance": importance}.items()}  # fmt: skip


def test_a_run_of_sea_has_its_figures_in_order_and_others_have_none(sea_score, figures, score, sensitivity):
    full = replace(sea_score, result=replace(sea_score.result, tables=sensitivity))
    assert list(score_figures(full)) == list(FIGURE_TITLES) == list(CAPTIONS)
    assert list(figures) == [*FIGURE_TITLES][:4]
    assert run_figures(score) == {}
    blank = sea_score.result.items.assign(sea=np.nan)
    assert run_figures(replace(sea_score, result=replace(sea_score.result, items=blank))) == {}
    assert figure_title("accuracy") is figure_caption("accuracy") is None


def test_means_and_deviations_are_the_conditions_table_s(sea_score, figures):
    axes = figures["sea_by_condition"].axes
    table = sea_score.result.conditions
    for axis, name in zip(axes, ("sea", "visual_ratio", "recognition"), strict=True):
        bars = [c for c in axis.containers if c.get_label() == name]
        points = np.concatenate([c.lines[0].get_xydata() for c in bars])
        np.testing.assert_allclose(points, np.column_stack([range(4), table[name]]), rtol=1e-12)
        ends = np.array([c.lines[2][0].get_segments()[0][:, 1] for c in bars])
        low, high = table[name] - table[f"{name}_sd"], table[name] + table[f"{name}_sd"]
        np.testing.assert_allclose(ends, np.column_stack([low, high]), rtol=1e-12)


def test_behind_the_means_are_the_sketches(figures, items):
    axis = figures["sea_by_condition"].axes[0]
    shape = axis.collections[0].get_paths()[0].vertices
    values = items.loc[(items["condition"] == 4) & items["sea"].notna(), "sea"]
    count, edges = np.histogram(values, 20, (-1, 1))
    for number, low, high in zip(count, edges[:-1], edges[1:], strict=True):
        inside = shape[np.isclose(shape[:, 1], low) | np.isclose(shape[:, 1], high)]
        assert inside[:, 0].max() >= 0.42 * number / count.max() - 1e-12
    assert np.ptp(shape[:, 0]) == pytest.approx(0.84)


def test_reward_stands_above_and_both_penalties_below(figures, items):
    (axis,) = figures["sea_reward_penalty"].axes
    known = items[items["sea"].notna()]
    reward, drawn, unrecognised, _ = terms(known["recognition"], known["visual_ratio"], **PARAMETERS)
    expected = pd.DataFrame({"reward": reward, "drawn": drawn, "un": unrecognised}).groupby(known["condition"]).mean()
    bars = [c for c in axis.containers if hasattr(c, "patches")]
    heights = np.array([[p.get_height() for p in c.patches] for c in bars]).T
    np.testing.assert_allclose(heights, expected * [1, -1, -1], rtol=1e-9)
    under = np.minimum(expected["reward"], 0)
    np.testing.assert_allclose([p.get_y() for p in bars[1].patches], under, atol=1e-12)
    np.testing.assert_allclose([p.get_y() for p in bars[2].patches], under - expected["drawn"], rtol=1e-9)
    (diamonds,) = [line for line in axis.lines if line.get_marker() == "D"]
    np.testing.assert_allclose(diamonds.get_ydata(), known.groupby("condition")["z"].mean(), rtol=1e-9)


def test_every_scored_sketch_lies_on_the_plane(figures, items):
    axes = figures["sea_plane"].axes
    assert len(axes) == 4
    for axis, condition in zip(axes, CONDITIONS, strict=True):
        known = items[(items["condition"] == condition) & items["sea"].notna()]
        lines = {line.get_label(): line.get_xydata() for line in axis.lines}
        np.testing.assert_array_equal(lines["sketches"], known[["recognition", "visual_ratio"]])
        np.testing.assert_array_equal(lines["v = P"], [[0, 0], [1, 1]])
        blank = known[known["num_present"] == 0]
        np.testing.assert_array_equal(lines["zero_v"], blank[["recognition", "visual_ratio"]])
        assert axis.get_title(loc="left") == f"{condition:g} s  (n {len(known)})"
    total = int(items["zero_v"].sum())
    assert total > 0
    assert f"v = 0 ({total})" in words(figures["sea_plane"])


@pytest.mark.parametrize("changed", [{}, {"beta": 3.0, "gamma": 1.0, "tau": 0.8}])
def test_contours_are_where_sea_is_their_level(sea_score, items, changed):
    parameters = sea_parameters({**sea_score.result.protocol, **changed})
    axis = efficiency_plane({"8 s": items[items["condition"] == 8]}, parameters).axes[0]
    (contours,) = [c for c in axis.collections if hasattr(c, "levels")]
    assert tuple(contours.levels) == LEVELS
    for level, path in zip(LEVELS, contours.get_paths(), strict=True):
        P, v = path.vertices[path.vertices[:, 1] > 0.05].T
        assert len(P) > 20
        np.testing.assert_allclose(terms(P, v, **{**PARAMETERS, **changed})[3], level, atol=0.02)


def test_of_very_many_sketches_some_are_drawn_and_all_are_counted():
    rng = np.random.default_rng(1)
    many = pd.DataFrame({"recognition": rng.random(900), "visual_ratio": rng.random(900), "zero_v": 0})
    (axis,) = efficiency_plane({"all": many}, PARAMETERS).axes
    drawn = next(line for line in axis.lines if line.get_label() == "sketches").get_xydata()
    assert len({tuple(p) for p in drawn}) == MAX_SKETCHES
    assert {tuple(p) for p in drawn} <= {tuple(p) for p in many[["recognition", "visual_ratio"]].to_numpy()}
    assert axis.get_title(loc="left") == "all  (n 500 of 900)"


def test_colours_of_conditions_are_told_apart():
    for count in (1, 2, 5, 9):
        assert len(set(condition_colours(count))) == count


def test_distributions_are_shares_of_sketches(figures, items):
    axes = np.array(figures["sea_distributions"].axes).reshape(4, 2)
    known = items[items["sea"].notna()]
    for row, condition in zip(axes, CONDITIONS, strict=True):
        group = known[known["condition"] == condition]
        for axis, column, low in zip(row, ("recognition", "sea"), (0, -1), strict=True):
            count, edges = np.histogram(group[column], 20, (low, 1))
            data = axis.patches[0].get_data()
            np.testing.assert_allclose(data.values, count / len(group))
            np.testing.assert_allclose(data.edges, edges)
            assert axis.lines[0].get_xdata()[0] == pytest.approx(group[column].mean())
        said = row[1].texts[0].get_text()
        assert f"above 0: {100 * (group['sea'] > 0).mean():.0f}%, n {len(group)}" in said
        mode = float(re.search(r"mode ([\d.]+)", row[0].texts[0].get_text())[1])
        count = [
            ((group["recognition"] >= low) & (group["recognition"] < low + 0.05)).sum() for low in np.arange(20) / 20
        ]
        assert mode == pytest.approx(np.argmax(count) / 20 + 0.025, abs=0.0051)
    assert distributions({"none": known.head(0)}) is None


def test_runs_are_compared_with_a_warning_where_v_was_made_differently(sea_score, score):
    details = {**sea_score.result.details, "elements": {"source": "annotation:parts@99", "concepts": 3}}
    other = replace(sea_score, result=replace(sea_score.result, details=details))
    alike = compared_distributions({"a": sea_score, "b": sea_score, "seva": score})
    assert [axis.get_ylabel() for axis in alike.axes[::2]] == ["a", "b"]
    assert "cannot be compared" not in " ".join(words(alike))
    text = " ".join(words(compared_distributions({"a": sea_score, "b": other})))
    assert "cannot be compared: v comes from different lists of elements" in text
    assert compared_distributions({"seva": score}) is None
    long = compared_distributions(
        {"a data set · a network with a long name · a presence head": sea_score, "b": sea_score}
    )
    assert max(map(len, long.axes[0].get_ylabel().split("\n"))) <= 24  # else no room is left for the panels
    assert source_warning({"a": details, "b": {}}).count("unknown") == 2


def test_sensitivity_shows_its_tables(sensitivity):
    figure = ranking_sensitivity(sensitivity, unit="s")
    one, importance, joint, pairs = figure.axes
    fields = one.collections[0].get_array().reshape(2, 3)
    np.testing.assert_array_equal(fields.filled(np.nan), [[0.8, 1.0, 0.9], [np.nan, 0.7, np.nan]])
    assert [t.get_text() for t in one.texts] == ["0.80×", "1.00", "0.90", "0.70"]
    assert [t.get_text() for t in one.get_yticklabels()] == ["α 1.1 to 4.4", "k 2.3"]
    assert [p.get_width() for p in importance.patches] == [0.0, 0.6]
    assert [t.get_text() for t in importance.get_yticklabels()] == ["α", "λ"]
    assert sum(p.get_height() for p in joint.patches) == 4
    assert "kept\nin 75.0% of 4 draws" in joint.texts[0].get_text()
    assert [t.get_text() for t in pairs.get_yticklabels()] == ["32 s over 4 s", "own over other"]
    assert [t.get_text() for t in pairs.texts] == ["100%", "75%"]
    np.testing.assert_array_equal(pairs.lines[0].get_xdata(), [0.3, 0.1])
    np.testing.assert_array_equal([s[:, 0] for s in pairs.collections[0].get_segments()], [[0.1, 0.5], [-0.2, 0.2]])


def test_sensitivity_without_a_table_or_with_one_condition(sensitivity):
    assert ranking_sensitivity({}) is None
    alone = sensitivity["sensitivity_joint"].assign(order_kept=pd.array([None] * 4, "boolean"))
    (axis,) = ranking_sensitivity({"sensitivity_joint": alone}).axes
    assert axis.texts[0].get_text() == "median τ 0.60"


def test_one_condition_is_drawn(sea_score):
    items = sea_score.result.items
    result = replace(
        sea_score.result, items=items[items["condition"] == 8], conditions=sea_score.result.conditions.loc[[1]]
    )
    figures = run_figures(replace(sea_score, result=result))
    assert len(figures) == 4
    assert "8 s" in words(figures["sea_by_condition"])


class _White:
    def __len__(self):
        return 72

    def load(self, index):
        return Image.new("RGB", (40, 40), "white")

    def content_hash(self, index):
        return str(index)

    def describe(self, index):
        return str(index)


def test_sketches_carry_their_scores_and_no_guesses(sea_score, items):
    table = items[["sketch_id", "concept", "condition", "image_id"]]
    guesses = pd.DataFrame({"participant": "p", "sketch_id": table["sketch_id"], "guess_1": "fish"})
    guesses = guesses.assign(**{f"guess_{k}": None for k in range(2, 6)})
    data = Sketches("white", table, ("bear", "cup", "fish"), _White(), responses=Responses(guesses))
    examples = gallery_examples(data, items, count=99)
    assert len(examples) == 72
    rows = items.set_index("sketch_id")
    for e in examples:
        row = rows.loc[e.sketch_id]
        if np.isnan(row["sea"]):
            assert e.caption == f"SEA missing (3 of 8 judged), P {row['recognition']:.2f}"
        else:
            sea = f"{row['sea']:.2f}".replace("-", "−")
            assert e.caption == f"SEA {sea}, P {row['recognition']:.2f}, V/E {row['num_present']}/8"
        assert e.people_answer is None
    page = render_report(sea_score, figures={}, examples=examples[:4])
    assert all(f">{e.caption}</span>" in page for e in examples[:4])
    strip = " ".join(t for axis in sketch_strip(examples[:4]).axes for t in [axis.get_xlabel()])
    assert all(e.caption in strip for e in examples[:4])
    assert Example("a", "a", "a", 1.0, examples[0].image, "b", False).caption is None


def test_the_page_shows_figures_tables_and_who_made_v(sea_score, figures):
    page = render_report(sea_score, figures={name: figure_svg(figure) for name, figure in figures.items()})
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    for name in figures:
        assert f"<b>{FIGURE_TITLES[name]}.</b>" in page
    assert "in shipped@0123 (3 concepts), judged by a head." in text
    assert "99.0% of the elements could be judged." in text
    assert "reaches F1 0.750 and balanced accuracy 0.5" in text
    row = sea_score.result.conditions.iloc[0]
    assert f"{row['sea']:.2f} ± {row['sea_sd']:.2f}".replace("-", "−") in text
    assert {"ear, paw", "Concept by concept", "Not recognisable"} <= set(re.split(r"\s*<[^>]+>\s*", page))
    assert source_notes({"judge": {}, "elements": {}}) == source_notes({}) == []


def test_every_score_and_flag_has_words(sea_score):
    for row in wording.score_rows(sea_score):
        assert row.meaning, row.name
        assert row.title == wording.TITLES[row.name]
        assert row.unit != "sea"
    for flag in sea_score.result.flags:
        sentence = wording.flag_sentence(flag)
        assert sentence.startswith(flag.partition(":")[2]), flag
        assert sentence.endswith(".")
    assert "v = 0" in wording.flag_sentence("zero_v:1")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_console_breaks_no_entry(sea_score, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(score_summary(sea_score))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    for row in sea_score.result.conditions.to_dict("records"):
        for name in MEASURES:
            assert f"{row[name]:.3f} ± {row[f'{name}_sem']:.3f}".replace("-", "−") in text
    assert "│ model" not in text
    assert width < 80 or "Judge, bias to present" in text
    assert score_line(sea_score).startswith("  SEA 0.123, Reward 0.123,")
    assert "Judge" not in score_line(sea_score)
