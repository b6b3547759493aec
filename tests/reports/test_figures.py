from __future__ import annotations

import io
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.reports.figures import (
    INK,
    MODEL_COLOURS,
    PAPER,
    PEOPLE_COLOUR,
    alignment_bars,
    figure_rgb,
    figure_svg,
    metrics_by_condition,
    score_figures,
    sketch_strip,
    write_figure,
)
from humanlike.types import ScoreValue

SVG = "{http://www.w3.org/2000/svg}"


def _words(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()).strip() for e in root.iter(f"{SVG}text")]


def _drawn(axis, label):
    (container,) = [c for c in axis.containers if c.get_label() == label]
    points = container.lines[0].get_xydata()
    (bars,) = container.lines[2]
    return points, np.array([s[:, 1] for s in bars.get_segments()])


def test_conditions_show_means_and_standard_errors(score):
    table = score.result.conditions
    figure = metrics_by_condition({"net": table}, ["accuracy", "snp"], unit="s", chance={"accuracy": 0.125})
    accuracy, snp = figure.axes
    points, bars = _drawn(accuracy, "net")
    np.testing.assert_allclose(points, table[["condition", "accuracy"]], rtol=1e-12)
    mean, sem = table["accuracy"], table["accuracy_sem"]
    np.testing.assert_allclose(bars, np.stack([mean - sem, mean + sem], axis=1), rtol=1e-12)
    points, _ = _drawn(snp, "people")
    np.testing.assert_allclose(points[:, 1], table["snp_people"], rtol=1e-12)
    assert {"Accuracy", "Semantic neighbour preference", "net", "people", "chance", "condition (s)", "32"} <= set(
        _words(figure_svg(figure))
    )
    assert [line.get_ydata()[0] for line in accuracy.lines if line.get_label() == "chance"] == [0.125]


def test_a_metric_without_values_is_left_out_with_a_note(score_without_people):
    figures = score_figures(score_without_people)
    assert set(figures) == {"by_condition"}
    assert len(figures["by_condition"].axes) == 2
    words = _words(figure_svg(figures["by_condition"]))
    assert "Not available for this data: Semantic neighbour preference." in words
    assert not any("people" in word for word in words)


def test_nothing_to_show_is_no_figure():
    table = pd.DataFrame({"condition": [1.0], "sea": [None], "sea_sem": [None]})
    assert metrics_by_condition({"m": table}, ["sea"]) is None
    assert alignment_bars({"m": {"alignment_snp": ScoreValue(None)}}) is None
    assert sketch_strip([]) is None


def test_alignment_puts_people_first_and_keeps_negative_values(score):
    other = {n: ScoreValue(None) for n in score.scores if n.startswith("alignment_")}
    figure = alignment_bars({"a_model": score.scores, "b_model": other})
    assert len(figure.axes) == 3
    first, last = figure.axes[0], figure.axes[2]
    assert [bar.get_width() for bar in first.patches] == pytest.approx([0.88, 0.62])
    assert [bar.get_width() for bar in last.patches] == pytest.approx([0.88, -0.02])
    labels = [t.get_text().replace("\n", " ") for t in first.get_yticklabels()]
    assert labels == ["people (split half)", "a_model", "b_model"]
    assert last.get_xlim()[0] < -0.1
    words = _words(figure_svg(figure))
    assert words.count("not available") == 3


def test_simulated_people_are_named_in_every_figure_with_people(score, make_examples):
    figures = score_figures(score, make_examples(2))
    assert list(figures) == ["by_condition", "alignment", "divergence", "sketches"]
    for name in ("by_condition", "alignment", "sketches"):
        assert "simulated" in " ".join(_words(figure_svg(figures[name]))), name


def test_a_score_by_layers_has_their_profile(score):
    row = {"metric": "alignment_accuracy", "ci_low": None, "ci_high": None}
    rows = [
        {"layer": "a", "relative_depth": 0.0, "value": 0.2, "chosen": False, **row},
        {"layer": "b", "relative_depth": 1.0, "value": 0.4, "chosen": True, **row},
        {"layer": "c", "relative_depth": 0.5, "value": None, "chosen": False, **row},
    ]
    layered = replace(score, result=replace(score.result, details={**score.result.details, "layers": rows}))
    (axis,) = score_figures(layered)["layers"].axes
    assert axis.lines[0].get_xydata().tolist() == [[0.0, 0.2], [1.0, 0.4]]


def test_one_condition_and_odd_conditions_are_drawn(score):
    table = score.result.conditions
    for conditions in ([0.0], [0.5, 1.0], [0.0, 1.0, 2.0]):
        part = table.head(len(conditions)).assign(condition=conditions)
        figure = metrics_by_condition({"m": part}, ["accuracy"])
        assert figure_rgb(figure).std() > 0


def test_svg_is_the_same_bytes_each_time_and_global_settings_stay(score):
    before = dict(mpl.rcParams)
    svgs = [figure_svg(alignment_bars({"net": score.scores})) for _ in range(2)]
    assert svgs[0] == svgs[1]
    assert dict(mpl.rcParams) == before


def test_pyplot_is_not_touched():
    code = "import sys, humanlike.reports.figures; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pixels_agree_with_a_png_of_the_same_figure(score, tmp_path):
    figure = score_figures(score)["alignment"]
    write_figure(tmp_path / "f.png", figure)
    saved = np.asarray(Image.open(tmp_path / "f.png").convert("RGB"))
    np.testing.assert_array_equal(figure_rgb(figure, dpi=160), saved)
    buffer = io.BytesIO((tmp_path / "f.png").read_bytes())
    assert Image.open(buffer).format == "PNG"


def _luminance(colour: str) -> float:
    channel = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _contrast(a: str, b: str) -> float:
    low, high = sorted([_luminance(a), _luminance(b)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_meets_wcag():
    assert _contrast(INK, PAPER) >= 7
    assert _contrast(PEOPLE_COLOUR, PAPER) >= 3
    assert _contrast(MODEL_COLOURS[0], PAPER) >= 3
