"""Evaluation of generated sketches: folders, readings, credit by brute force, whole runs and their page."""

from __future__ import annotations

import copy
import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest
import torch

from humanlike.benchmarks.generation import GenerationBenchmark, split_by_source
from humanlike.benchmarks.generation_credit import stroke_credit
from humanlike.benchmarks.generation_evaluation import evaluated
from humanlike.benchmarks.generation_readings import read
from humanlike.benchmarks.generation_sketches import SketchSet
from humanlike.data.doodles import doodles
from humanlike.data.drawing import Drawing
from humanlike.data.render import render, render_gray
from humanlike.data.stroke_formats import drawing_to_quickdraw
from humanlike.data.strokes import Strokes
from humanlike.data.svg import drawing_to_svg
from humanlike.elements.critic import fit_critic
from humanlike.elements.critic_scratch import doodle_judge_of
from humanlike.metrics.functional.sea import sea_terms
from humanlike.reports.generation_page import render_page, write_comparison, write_pages
from humanlike.types import Score

CONCEPTS = ["lion", "mouse", "taxi"]
SMALL = {"instances": 4, "calibration_instances": 2, "held_out_instances": 2, "steps": 8, "width": 4, "size": 32}


@pytest.fixture(scope="module")
def data():
    return doodles(CONCEPTS, instances=6, judgments=0, size=48)


@pytest.fixture(scope="module")
def backbone(smooth_backbone):
    return smooth_backbone


@pytest.fixture(scope="module")
def critic(backbone, data):
    return fit_critic(backbone, data)


@pytest.fixture(scope="module")
def judge(data):
    return doodle_judge_of(data, seed=3, **SMALL)


@pytest.fixture(scope="module")
def drawings(data):
    """Two drawings a concept, of another seed, and their concepts."""
    other = doodles(CONCEPTS, instances=2, conditions=[32], judgments=0, seed=5)
    return [other.images.drawing(i) for i in range(len(other))], other.table["concept"].tolist()


@pytest.fixture
def folder(drawings, tmp_path):
    """The drawings as SVG, PNG and ndjson, with concepts in the names of folders, files and words."""
    (tmp_path / "Lion").mkdir()
    for i, (drawing, concept) in enumerate(zip(*drawings, strict=True)):
        if concept == "lion":
            (tmp_path / "Lion" / f"{i}.svg").write_text(drawing_to_svg(drawing))
        elif concept == "mouse":
            render(drawing, 64).save(tmp_path / f"mouse_{i:02d}.png")
        else:
            line = json.dumps({"word": "TAXI", "drawing": drawing_to_quickdraw(drawing)})
            with (tmp_path / "more.ndjson").open("a") as file:
                file.write(line + "\n")
    (tmp_path / "notes.txt").write_text("not a sketch")
    return tmp_path


def test_folders_of_all_formats_are_read(folder, drawings):
    found = SketchSet.of_folder(folder, CONCEPTS, "after")
    assert sorted(found.concepts) == sorted(drawings[1])
    assert dict(found.dropped) == {"not a sketch file": 1}
    kinds = {c: d is not None for c, d in zip(found.concepts, found.drawings, strict=True)}
    assert kinds == {"lion": True, "mouse": False, "taxi": True}
    assert np.isnan(found.strokes_N[np.array(found.concepts) == "mouse"]).all()
    canvas = found.canvases(64).numpy()
    lion, mouse = found.concepts.index("lion"), found.concepts.index("mouse")
    original = drawings[0][drawings[1].index("lion")]
    assert np.abs(canvas[lion] / 255 - render_gray(original, 64)).max() < 0.02  # coordinates of the file have 4 digits
    mice = [render_gray(d, 64) for d, c in zip(*drawings, strict=True) if c == "mouse"]
    np.testing.assert_array_equal(canvas[mouse] / np.float32(255), mice[0])


def test_concepts_that_nobody_knows_are_told(tmp_path):
    (tmp_path / "lino_3.svg").write_text(drawing_to_svg(Drawing.from_polylines([[(0, 0), (1, 1)]])))
    with pytest.raises(ValueError, match="did you mean lion"):
        SketchSet.of_folder(tmp_path, CONCEPTS, "after")
    with pytest.raises(FileNotFoundError):
        SketchSet.of_folder(tmp_path / "absent", CONCEPTS, "after")
    (tmp_path / "lino_3.svg").rename(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="no sketch in"):
        SketchSet.of_folder(tmp_path, CONCEPTS, "after")


def test_sets_from_memory(drawings, data):
    strokes = Strokes.from_drawings(drawings[0])
    found = SketchSet.of_strokes(strokes, drawings[1], "after")
    assert found.ids[:2] == ("lion-000", "lion-001")
    assert found.strokes_N.tolist() == [d.num_strokes for d in strokes.to_drawings()]
    reference = SketchSet.of_sketches(data.select([5, 1]), "reference")
    assert reference.drawings[0].digest() == data.images.drawing(5).digest()
    with pytest.raises(ValueError, match="twice"):
        SketchSet("x", ("a", "a"), ("lion",) * 2, tuple(drawings[0][:2]), (None, None))


def test_readings_are_the_critics(critic, drawings):
    found = SketchSet.of_drawings(*drawings, "after")
    canvas = found.canvases(48)
    seen = read(critic, canvas, found.concepts, batch=4)
    for i in range(len(found)):
        x = (canvas[i].float() / 255)[None, None].expand(1, 3, -1, -1)
        with torch.no_grad():
            reading = critic(x, [found.concepts[i]])
        P, present = float(reading.log_p_B.exp()), torch.sigmoid(reading.presence_logits_BE)[reading.mask_BE]
        v = float((present >= 0.5).float().mean())
        assert seen.recognition_N[i] == pytest.approx(P, rel=1e-4)
        assert seen.visual_ratio_N[i] == pytest.approx(v)
        assert seen.soft_ratio_N[i] == pytest.approx(float(present.mean()), rel=1e-4)
        assert seen.sea_N[i] == pytest.approx(float(sea_terms(seen.recognition_N[i], v).sea), rel=1e-6)


def worth(critic, drawing, concept, size):
    """(P, v, SEA) of one drawing, on its own."""
    canvas = torch.from_numpy(np.array(render(drawing, size).convert("L"))).float()[None, None] / 255
    with torch.no_grad():
        reading = critic(canvas.expand(1, 3, -1, -1), [concept])
    P = float(reading.log_p_B.exp())
    v = float(torch.sigmoid(reading.presence_logits_BE)[reading.mask_BE].double().mean())
    return P, v, float(sea_terms(P, v).sea)


def test_credit_and_pruning_are_brute_force(critic, drawings):
    drawing, concept = drawings[0][0], drawings[1][0]
    drawing = Drawing(drawing.strokes[:7])
    found = stroke_credit(critic, drawing, concept, size=48, tolerance=0.1)
    whole = worth(critic, drawing, concept, 48)
    for row in found.table.to_dict("records"):
        rest = Drawing(tuple(s for i, s in enumerate(drawing.strokes) if i != row["stroke"]))
        P, v, sea = worth(critic, rest, concept, 48)
        assert row["cost_recognition"] == pytest.approx(whole[0] - P, abs=1e-5)
        assert row["saved_ratio"] == pytest.approx(whole[1] - v, abs=1e-5)
        assert row["gain_sea"] == pytest.approx(sea - whole[2], abs=1e-4)
    kept, current = list(range(7)), whole
    while len(kept) > 1:
        options = [[k for k in kept if k != s] for s in kept]
        values = [worth(critic, Drawing(tuple(drawing.strokes[k] for k in o)), concept, 48) for o in options]
        allowed = [i for i, value in enumerate(values) if value[0] >= 0.9 * whole[0]]
        best = max(allowed, key=lambda i: values[i][2], default=None)
        if best is None or values[best][2] <= current[2]:
            break
        kept, current = options[best], values[best]
    assert found.table.loc[found.table["kept"], "stroke"].tolist() == kept
    assert found.after["sea"] == pytest.approx(current[2], abs=1e-4)
    assert found.pruned.num_strokes == len(kept)
    with pytest.raises(ValueError, match="no stroke to leave out"):
        stroke_credit(critic, Drawing(()), concept)


def test_reference_and_fit_share_no_source(data):
    kept, held = split_by_source(data, 0.25, seed=0)
    assert not set(kept.table["image_id"]) & set(held.table["image_id"])
    assert len(kept) + len(held) == len(data)
    assert held.table.groupby("concept")["image_id"].nunique().eq(2).all()  # a quarter of 6, rounded
    with pytest.raises(ValueError, match="one source only"):
        split_by_source(doodles(CONCEPTS, instances=1, judgments=0), 0.25, 0)


@pytest.fixture(scope="module")
def result(critic, judge, drawings, data):
    """The same drawings before and after, but that two of them lost all but three strokes."""
    shorter = [Drawing(d.strokes[:3]) if i < 2 else d for i, d in enumerate(drawings[0])]
    sets = [
        SketchSet.of_drawings(drawings[0], drawings[1], "before"),
        SketchSet.of_drawings(shorter, drawings[1], "after"),
    ]
    reference = data.select(np.arange(0, len(data), 3))
    condition = reference.table["condition"].to_numpy(float)
    return evaluated(
        sets, critic, [judge], SketchSet.of_sketches(reference, "reference"), condition_M=condition, condition_unit="s",
        sizes=(32, 48), credit=2, replicates=50,
    )  # fmt: skip


def test_scores_are_means_of_readings(result, drawings):
    readings = result.tables["readings"]
    for name, role, part in (("sea", "judge", "after"), ("sea_critic_before", "critic", "before")):
        own = readings[(readings["role"] == role) & (readings["set"] == part)]
        assert result.scores[name].value == pytest.approx(own["sea"].mean())
    gain = {r: result.scores[f"gain_sea{s}"].value for r, s in (("judge", ""), ("critic", "_critic"))}
    assert result.scores["hack_gap"].value == pytest.approx(gain["critic"] - gain["judge"])
    assert result.scores["strokes"].value < result.scores["strokes_before"].value
    assert result.scores["gain_sea"].value == pytest.approx(
        result.scores["sea"].value - result.scores["sea_before"].value
    )
    assert result.counts["items_used"] == len(drawings[0])
    assert set(result.tables["networks"]["size"]) == {32, 48}


def test_sets_that_are_the_same_have_no_gain(critic, judge, drawings):
    sets = [SketchSet.of_drawings(*drawings, name) for name in ("before", "after")]
    found = evaluated(
        sets, critic, [judge], SketchSet.of_drawings(*drawings, "reference"), sizes=(32,), credit=0, replicates=20
    )
    for name in ("gain_sea", "gain_sea_critic", "hack_gap"):
        assert found.scores[name].value == 0
        assert (found.scores[name].ci_low, found.scores[name].ci_high) == (0, 0)
    assert found.scores["jsd"].value == pytest.approx(0, abs=1e-9)
    assert found.scores["frechet"].value == pytest.approx(0, abs=1e-3)


def test_networks_of_one_name_are_told_apart(critic, judge, drawings, data):
    reference = SketchSet.of_sketches(data.select(range(6)), "reference")
    sets = [SketchSet.of_drawings(*drawings, "after")]
    settings = {"sizes": (48,), "credit": 0, "replicates": 10, "condition_M": np.full(6, 4.0)}
    apart = evaluated(sets, critic, [judge], reference, **settings)
    namesake = copy.copy(judge)
    namesake.name = critic.name
    found = evaluated(sets, critic, [namesake], reference, **settings)
    assert set(found.tables["readings"]["network"]) == {critic.name, f"{critic.name} (2)"}
    assert {k: s.value for k, s in found.scores.items()} == {k: s.value for k, s in apart.scores.items()}
    assert found.tables["pareto"]["condition"].notna().sum() == 6
    assert namesake.name == critic.name


def test_a_run_from_folders(backbone, data, folder, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")

    def judge_of(sketches, cache_dir):
        return doodle_judge_of(sketches, cache_dir=cache_dir, seed=3, **SMALL)

    benchmark = GenerationBenchmark(folder, judges=[judge_of], sizes=(32,), credit=1, replicates=10)
    found = benchmark.run_backbone(backbone, data, cache_dir=cache)
    assert found.result.counts["items_used"] == 6
    assert "comparison" not in found.result.tables
    assert found.hashes["weights"] == backbone.weights_hash
    pair = GenerationBenchmark(folder, folder, judges=[judge_of], sizes=(32,), credit=0, replicates=10)
    again = pair.run_backbone(backbone, data, cache_dir=cache).result
    assert again.scores["hack_gap"].value == 0
    with pytest.raises(ValueError, match="sketches=FOLDER"):
        GenerationBenchmark(judges=[judge_of]).run_backbone(backbone, data)
    for setting, folders in (("sketches", ("absent",)), ("before", (folder, "absent"))):
        with pytest.raises(FileNotFoundError, match=rf"no folder or zip file absent: {setting}= must name a folder"):
            GenerationBenchmark(*folders, judges=[judge_of]).run_backbone(backbone, data)
    with pytest.raises(ValueError, match="needs a judge"):
        GenerationBenchmark(folder, judges=[])


def test_the_page_needs_nothing_else(result, tmp_path):
    score = Score("generation", "1", "doodles", "smooth", "output", result, {"seed": 0}, {}, {}, "now", 1.0, "0" * 64)
    html = render_page(score)
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", html)
    assert "@import" not in html
    assert "url(" not in html.replace("url(#", "")
    assert html.count('<h3 class="concept">') == 3
    assert "Hack gap" in html
    assert html.count("stroke-dasharray:2 2") == int((~result.tables["credit"]["kept"]).sum())
    write_pages(tmp_path, score)
    assert (tmp_path / "before_after.html").is_file()
    pruned = sorted((tmp_path / "sketches").glob("*.pruned.svg"))
    assert len(pruned) == len(result.tables["pruned"])
    one = result.tables["pruned"]["sketch_id"].iloc[0]
    own = {
        name: table[table["sketch_id"] == one] for name, table in result.tables.items() if name in ("pruned", "credit")
    }
    renamed = {name: pd.concat([t.assign(sketch_id=i) for i in ("a/b", "a-b", "A b")]) for name, t in own.items()}
    alike = dataclasses.replace(result, tables={**result.tables, **renamed})
    write_comparison(tmp_path / "alike", alike, "doodles")
    assert len({path.name.casefold() for path in (tmp_path / "alike" / "sketches").glob("*.pruned.svg")}) == 3
    write_comparison(tmp_path / "again", result, "doodles")
    assert (tmp_path / "again" / "before_after.html").read_text() == html
    counts = [Strokes.from_svg(path).to_drawings()[0].num_strokes for path in pruned]
    assert sorted(counts) == sorted(result.tables["pruned"]["strokes_kept"])
    assert isinstance(result.tables["pareto"], pd.DataFrame)
