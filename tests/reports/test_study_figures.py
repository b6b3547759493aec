from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy.stats import gaussian_kde

from humanlike.reports.study_figures import study_figures
from humanlike.reports.study_figures_alignment import alignment_order, order_correlations
from humanlike.reports.study_figures_conditions import metric_by_condition, stroke_densities
from humanlike.reports.study_figures_layers import layer_profile
from humanlike.reports.study_figures_machine import divergence_by_level, recognisability, recognition_by_level
from humanlike.reports.study_observers import Observers

NAMES = [
    "strokes", "conditions_accuracy", "conditions_entropy", "conditions_snp", "alignment_accuracy",
    "alignment_entropy", "alignment_snp", "spearman", "machine_recognition", "machine_levels", "machine_distance",
    "machine_rank", "layers",
]  # fmt: skip


def _words(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()).strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_all_figures_in_order_the_same_bytes_each_time(study_tables, study_svgs):
    figures = study_svgs
    assert list(figures) == NAMES
    some = {name: study_tables[name] for name in ("models", "alignment", "rank_groups", "layers")}
    again = study_figures(some, unit="s", simulated={"people"})
    assert again == {name: figures[name] for name in again}
    for name in (n for n in NAMES if n.split("_")[0] in ("strokes", "conditions", "alignment")):
        assert "simulated" in " ".join(_words(figures[name])), name
    for name in ("conditions_accuracy", "alignment_entropy"):
        assert "twin (simulated)" in _words(figures[name])
    for name in ("machine_recognition", "machine_levels"):
        assert "simulated people" in " ".join(_words(figures[name])), name


def test_what_is_missing_is_not_drawn(study_tables):
    assert study_figures({}) == {}
    empty = {name: table.head(0) for name, table in study_tables.items()}
    assert study_figures(empty) == {}
    lacking = study_tables["conditions"].assign(
        estimate=lambda t: t["estimate"].where(t["metric"] != "snp"), chance=np.nan
    )
    figures = study_figures({"conditions": lacking})
    assert list(figures) == ["conditions_accuracy", "conditions_entropy"]
    assert "chance" not in _words(figures["conditions_accuracy"])
    people = study_tables["alignment"].query("observer == 'people'")
    assert study_figures({"alignment": people}) == {}


def test_conditions_show_every_observer_with_its_errors(study_tables):
    table = study_tables["conditions"]
    figure = metric_by_condition(table, "accuracy", Observers.of(study_tables["models"]), unit="s")
    (axis,) = figure.axes
    drawn = np.stack([c.lines[0].get_ydata() for c in axis.containers])
    rows = table[table["metric"] == "accuracy"]
    order = ["vgg19", "dino", "clip", "twin", "people"]
    np.testing.assert_allclose(drawn, rows.pivot(index="observer", columns="condition", values="estimate").loc[order])
    bars = axis.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([np.ptp(b[:, 1]) for b in bars], 0.02)
    assert {t.get_text() for t in axis.texts} == {"vgg19", "dino", "clip", "twin (simulated)", "people"}
    assert [line.get_ydata()[0] for line in axis.lines if line.get_label() == "chance"] == [0.125]


def test_chance_far_off_is_said_in_words(study_tables):
    table = study_tables["conditions"].assign(chance=9.0)
    (axis,) = metric_by_condition(table, "accuracy", Observers()).axes
    assert "↑ chance 9.00" in [t.get_text() for t in axis.texts]
    assert axis.get_ylim()[1] < 1


@pytest.mark.parametrize("count", [1, 17, 60])
def test_names_do_not_overlap_and_stay_inside(count):
    rows = [(f"model_{i}", c, "accuracy", 0.5 + 1e-4 * i, 0.01) for i in range(count) for c in (4.0, 32.0)]
    table = pd.DataFrame(rows, columns=["observer", "condition", "metric", "estimate", "std_error"])
    figure = metric_by_condition(table, "accuracy", Observers())
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [t.get_window_extent(renderer) for t in figure.axes[0].texts]
    assert len(boxes) == count
    boxes.sort(key=lambda b: b.y0)
    assert all(a.y1 <= b.y0 + 1.0 for a, b in pairwise(boxes))
    for box in boxes:
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1


def test_stroke_densities_agree_with_scipy():
    rng = np.random.default_rng(0)
    counts = {4.0: rng.poisson(30, 500), 8.0: rng.poisson(60, 500)}
    table = pd.concat([pd.DataFrame({"condition": c, "num_strokes": n}) for c, n in counts.items()])
    figure = stroke_densities(table, unit="s")
    for axis, n in zip(figure.axes, counts.values(), strict=True):
        density, mean = axis.lines
        width = max(n.std() * 500**-0.2, 0.75)
        kernel = gaussian_kde(n, bw_method=width / n.std(ddof=1))
        np.testing.assert_allclose(density.get_ydata(), kernel(density.get_xdata()), rtol=1e-9, atol=1e-12)
        assert mean.get_xdata()[0] == pytest.approx(n.mean())
        assert axis.texts[0].get_text().endswith(f"mean {n.mean():.1f}, n 500")
    assert stroke_densities(pd.DataFrame({"condition": [1.0], "num_strokes": [2.0]})) is not None


def test_alignment_is_sorted_against_people_with_ranks(study_tables):
    table = study_tables["alignment"].sample(frac=1, random_state=0)
    observers = Observers.of(study_tables["models"])
    figure = alignment_order(table, "accuracy", observers, rank_groups=study_tables["rank_groups"])
    (axis,) = figure.axes
    labels = [t.get_text() for t in axis.get_yticklabels()]
    assert labels == ["people", "vgg19", "dino", "clip", "twin (simulated)"]
    assert [t.get_text() for t in axis.texts] == [
        "rank", "alike", "1–2", "a", "1–3", "ab", "2–3", "b", "4", "c",
    ]  # fmt: skip
    points = {round(float(line.get_xdata()[0]), 6) for line in axis.lines if len(line.get_xdata()) == 1}
    assert {0.9, 0.95, 0.8, 0.84, 0.5, 0.54} <= points
    band = axis.patches[0].get_extents().transformed(axis.transData.inverted())
    assert (band.x0, band.x1) == pytest.approx((0.85, 0.93))


def test_alignment_without_people_ranks_or_correction(study_tables):
    table = study_tables["alignment"].query("observer != 'people'").drop(columns=["corrected", "spearman_brown"])
    (axis,) = alignment_order(table, "snp", Observers()).axes
    assert len(axis.get_yticklabels()) == 4
    assert not axis.texts
    assert not axis.patches


def test_corrected_values_may_stand_in_the_table_of_ceilings(study_tables, study_svgs):
    alignment = study_tables["alignment"]
    parted = {
        "models": study_tables["models"],
        "rank_groups": study_tables["rank_groups"],
        "alignment": alignment.drop(columns="corrected"),
        "noise_ceiling": alignment.loc[alignment["observer"] != "people", ["observer", "metric", "corrected"]],
    }
    drawn = study_figures(parted, unit="s", simulated={"people"})
    assert drawn["alignment_accuracy"] == study_svgs["alignment_accuracy"]


def test_correlations_show_the_lower_half_and_their_sign(study_tables):
    figure = order_correlations(study_tables["spearman"])
    assert sorted(t.get_text() for t in figure.axes[0].texts) == ["1.00", "1.00", "−0.40"]
    assert [bool(p.get_hatch()) for p in figure.axes[0].patches] == [False, True, False]
    assert order_correlations(study_tables["spearman"].assign(rho=np.nan)) is None
    assert order_correlations(study_tables["spearman"].head(1)) is None


def test_machine_figures_show_cells_fit_and_levels(study_tables):
    cells = study_tables["machine_cells"]
    figure = recognisability(cells, unit="s", machine="CLIPasso")
    assert len(figure.axes) == 4
    for axis, (_, part) in zip(figure.axes, cells.groupby("condition"), strict=True):
        _, points, fit = axis.lines
        part = part.sort_values("machine_sketches")
        np.testing.assert_allclose(points.get_xydata(), part[["machine_sketches", "people_sketches"]])
        np.testing.assert_allclose(fit.get_ydata(), part["fitted"])
    machine = recognisability(cells.assign(machine_condition=5.0), unit="s", machine_unit="strokes")
    assert machine.axes[0].get_title(loc="left") == "4 s, 5 strokes"
    assert len(recognisability(cells.drop(columns="fitted")).axes[0].lines) == 2
    assert len(recognisability(cells[cells["condition"] < 32]).axes) == 4
    (axis,) = recognition_by_level(study_tables["machine_levels"]).axes
    assert [c.get_label() for c in axis.containers] == ["drawn by people", "drawn by CLIPasso"]
    (axis,) = divergence_by_level(study_tables["machine_divergence"], "rank").axes
    np.testing.assert_allclose(axis.containers[0].lines[0].get_ydata(), [1.875, 1.75, 1.5, 1.0])
    assert divergence_by_level(study_tables["machine_divergence"], "other") is None


def test_the_chosen_layer_is_ringed(study_tables):
    (axis,) = layer_profile(study_tables["layers"]).axes
    ring = axis.lines[1]
    assert ring.get_xydata().tolist() == [[0.5, 0.6]]
    other = study_tables["layers"].assign(metric="entropy", value=9.0)
    (axis,) = layer_profile(pd.concat([study_tables["layers"], other])).axes
    assert max(line.get_ydata().max() for line in axis.lines[:2]) == 0.6
    named = pd.concat([study_tables["layers"].assign(observer=name) for name in ("a", "b")])
    assert list(study_figures({"layers": named})) == ["layers_a", "layers_b"]
    assert layer_profile(study_tables["layers"].assign(value=np.nan)) is None
