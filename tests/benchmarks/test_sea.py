"""SEA of a made-up study against the formula written out with math alone; what was not judged stays missing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score

from humanlike.benchmarks.sea import SeaBenchmark
from humanlike.benchmarks.sea_tables import notes
from humanlike.data.trials import AbsentImages
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.lists import ElementLists, shipped
from humanlike.elements.presence import presence_of
from humanlike.types import Features, Sketches

ELEMENTS = {"owl": ("eye", "beak", "wing", "claw"), "violin": ("body", "neck", "string")}
IDS = [f"{concept}-{image}-{seconds}" for concept in ELEMENTS for image in range(4) for seconds in (4, 32)]
HYPER = {"alpha": 2.2, "beta": 8.0, "lam": 1.0, "eta": 0.8, "k": 2.3, "tau": 0.4, "r": 1.7, "gamma": 1.7, "delta": 1e-6}


class Known:
    """A readout whose probabilities are the features."""

    def out_of_fold_proba(self, f_ND, label_N, num_labels, group_N=None):
        return f_ND


def by_hand(P, v, alpha, beta, lam, eta, k, tau, r, gamma, delta):
    """SEA of one sketch with Python's floats."""
    u = math.log((1 + delta) / (v + delta))
    g = math.tanh(beta / 2 * math.log((P + delta) / (v + delta)))
    reward = P**gamma * u * g
    penalty = lam * v**eta * (1 - P) ** k + tau * (1 - P) ** r
    return {"economy": u, "gate": g, "reward": reward, "penalty": penalty, "sea": math.tanh(alpha * (reward - penalty))}


@pytest.fixture
def study():
    """16 sketches of two concepts at two times, annotated, and probabilities as features."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        [(i, i.split("-")[0], float(i.split("-")[2]), i.rsplit("-", 1)[0]) for i in IDS],
        columns=["sketch_id", "concept", "condition", "image_id"],
    )
    rows = [(sketch, element, bool(rng.random() < 0.6)) for sketch in IDS for element in ELEMENTS[sketch.split("-")[0]]]
    data = Sketches(
        name="made up",
        table=table,
        labels=("owl", "violin"),
        images=AbsentImages(tuple(IDS)),
        condition_unit="s",
        elements=pd.DataFrame(rows, columns=["sketch_id", "element", "drawn"]),
    )
    p_N = rng.uniform(0.02, 0.98, len(IDS))
    target_N = data.target_N
    f_NL = np.stack([np.where(target_N == label, p_N, 1 - p_N) for label in range(2)], axis=1)
    features = Features(f_NL, np.arange(len(IDS)), {}, "known", {"weights": "w", "features": "f"})
    return data, features, p_N


def lists(data):
    return ElementLists.from_annotation(data)


def run(study, presence=None, **options):
    data, features, _ = study
    benchmark = SeaBenchmark(**{"replicates": 50, "sensitivity_draws": 0, **options})
    elements = lists(data)
    judged = AnnotationJudge().judge(data, elements) if presence is None else presence
    return benchmark.scored(data, features, Known(), judged, elements)


def test_every_sketch_is_scored_by_the_formula(study):
    data, _, p_N = study
    result = run(study)
    drawn = data.elements.groupby("sketch_id")["drawn"].mean()
    expected = pd.DataFrame([by_hand(p, float(drawn[i]), **HYPER) for i, p in zip(IDS, p_N, strict=True)], index=IDS)
    items = result.items.set_index("sketch_id")
    for name in expected:
        np.testing.assert_allclose(items[name], expected[name], rtol=0, atol=1e-12)
        assert result.scores[name].value == pytest.approx(expected[name].mean(), abs=1e-12)
    np.testing.assert_allclose(items["visual_ratio"], drawn[IDS])
    np.testing.assert_allclose(items["recognition"], p_N)
    by_time = expected.groupby([float(i.split("-")[2]) for i in IDS])["sea"]
    np.testing.assert_allclose(result.conditions["sea"], by_time.mean(), atol=1e-12)
    np.testing.assert_allclose(result.conditions["sea_sd"], by_time.std(), atol=1e-12)
    np.testing.assert_allclose(result.conditions["sea_sem"], by_time.sem(), atol=1e-12)
    by_concept = expected.groupby([i.split("-")[0] for i in IDS])["sea"].mean()
    concepts = result.tables["concepts"].set_index("concept")
    np.testing.assert_allclose(concepts["sea"], by_concept[concepts.index], atol=1e-12)
    assert concepts.loc["owl", "elements"] == "eye, beak, wing, claw"
    assert result.scores["sea"].ci_low < result.scores["sea"].value < result.scores["sea"].ci_high
    diagnosed = result.conditions[["n_efficient", "n_overdrawn", "n_not_recognisable"]].sum(axis=1)
    assert diagnosed.tolist() == result.conditions["n_scored"].tolist() == [8, 8]


def test_hyperparameters_move_the_score_and_are_written_beside_it(study):
    data, _, p_N = study
    changed = {**HYPER, "delta": 1e-7, "tau": 0.3}
    result = run(study, metric={"delta": 1e-7, "tau": 0.3, "beta": None})
    drawn = data.elements.groupby("sketch_id")["drawn"].mean()
    expected = [by_hand(p, float(drawn[i]), **changed)["sea"] for i, p in zip(IDS, p_N, strict=True)]
    np.testing.assert_allclose(result.items["sea"], expected, atol=1e-12)
    assert result.protocol["delta"] == 1e-7
    assert result.protocol["preset"] == "own"
    assert run(study).protocol["preset"] == "published"
    with pytest.raises(ValueError, match="SEA has no hyperparameter 'alfa'; it has alpha, beta"):
        SeaBenchmark(metric={"alfa": 1.0})


def test_what_was_not_judged_is_missing_and_never_empty(study):
    data, _, p_N = study
    elements = lists(data)
    names = [elements[c] for c in data.table["concept"]]
    p = [[1.0] * len(row) for row in names]
    p[0] = [math.nan] * 4
    p[1] = [1.0, math.nan, 0.0, 0.0]
    p[2] = [0.0] * 4
    presence = presence_of(IDS, names, p, "a judge", reasons={(IDS[0], e): "refused" for e in names[0]})
    result = run(study, presence)
    items = result.items.set_index("sketch_id")
    assert items.loc[IDS[0], "sea"] != items.loc[IDS[0], "sea"]
    assert items.loc[IDS[:3], "diagnosis_index"].tolist()[:2] == [-1, -1]
    assert items["zero_v"].tolist() == [0, 0, 1, *[0] * 13]
    assert items.loc[IDS[2], "sea"] == pytest.approx(by_hand(p_N[2], 0.0, **HYPER)["sea"], abs=1e-12)
    assert result.scores["sea"].n == 14
    assert result.scores["recognition"].n == 16
    assert {"zero_v:1", "sketches_not_judged:2", "judgments_missing:5"} <= set(result.flags)
    assert result.counts["judgments_missing"] == 5
    assert result.details["judge"]["missing"] == {"refused": 4, "no probability": 1}
    lenient = run(study, presence, min_judged=0.5)
    assert lenient.items.set_index("sketch_id").loc[IDS[1], "visual_ratio"] == pytest.approx(1 / 3)
    assert lenient.scores["sea"].n == 15


def test_the_judge_is_held_against_the_annotation(study):
    data, _, _ = study
    elements = lists(data)
    rng = np.random.default_rng(2)
    names = [elements[c] for c in data.table["concept"]]
    presence = presence_of(IDS, names, [rng.random(len(row)).tolist() for row in names], "a judge")
    result = run(study, presence)
    pairs = presence.table.merge(data.elements, on=["sketch_id", "element"])
    said, drawn = pairs["decision"].astype(bool), pairs["drawn"]
    assert result.scores["presence_f1"].value == pytest.approx(f1_score(drawn, said))
    assert result.scores["presence_precision"].value == pytest.approx(precision_score(drawn, said))
    assert result.scores["presence_balanced_accuracy"].value == pytest.approx(balanced_accuracy_score(drawn, said))
    assert result.scores["presence_present_rate_bias"].value == pytest.approx(said.mean() - drawn.mean())
    by_class = [f1_score(g["drawn"], g["decision"].astype(bool)) for _, g in pairs.groupby(pairs["sketch_id"].str[:3])]
    assert result.details["judge"]["f1_macro_class"] == pytest.approx(np.mean(by_class))
    by_element = pairs.groupby([pairs["sketch_id"].str[:3], "element"])
    f1s = [f1_score(g["drawn"], g["decision"].astype(bool), zero_division=np.nan) for _, g in by_element]
    assert result.details["judge"]["f1_macro_element"] == pytest.approx(np.nanmean(f1s))
    annotated = run(study)
    assert result.scores["sea_annotated"].value == pytest.approx(annotated.scores["sea"].value, abs=1e-12)
    assert "presence_f1" not in annotated.scores
    low, high = result.scores["presence_f1"].ci_low, result.scores["presence_f1"].ci_high
    assert low < result.scores["presence_f1"].value < high
    assert result.tables["judgments"]["annotated"].astype(bool).tolist() == data.elements["drawn"].tolist()


def test_the_order_of_the_data_does_not_matter(study):
    data, features, p_N = study
    order = np.random.default_rng(0).permutation(len(IDS))
    turned = data.select(order)
    f_ND = features.f_ND[order]
    again = run((turned, replace(features, f_ND=f_ND), p_N[order]))
    first = run(study)
    assert {n: s.value for n, s in again.scores.items()} == {n: s.value for n, s in first.scores.items()}
    assert {n: s.ci_low for n, s in again.scores.items()} == {n: s.ci_low for n, s in first.scores.items()}


def test_a_fall_is_explained_by_what_moved():
    row = {"sea": 0.5, "reward": 0.4, "penalty": 0.1, "visual_ratio": 0.5, "recognition": 0.7}
    later = {"sea": 0.2, "reward": 0.2, "penalty": 0.05, "visual_ratio": 0.75, "recognition": 0.75}
    table = pd.DataFrame([{"condition": 4.0, **row}, {"condition": 8.0, **row}, {"condition": 16.0, **later}])
    said = "SEA falls from 8 to 16 s (0.500 to 0.200): reward −0.200, penalty −0.050, visual ratio +0.250, recognition"
    assert notes(table, "s") == [f"{said} +0.050."]
    assert notes(table.iloc[:2], "s") == []


def test_lists_come_from_where_they_were_asked_from(study, tmp_path):
    data, _, _ = study
    assert SeaBenchmark().element_lists(data).origin == "annotation:made up"
    assert SeaBenchmark(elements="shipped").element_lists(data).origin == "shipped"
    own = tmp_path / "mine.yaml"
    own.write_text("owl: [eye, beak, wing, ear]\n")
    with pytest.raises(ValueError, match=r"no elements for 1 of 2 labels: 'violin' has no list in user:mine.yaml"):
        SeaBenchmark(elements=own).element_lists(data)
    bare = replace(data, elements=None)
    assert SeaBenchmark().element_lists(bare).origin == "shipped"
    half = replace(data, elements=data.elements[data.elements["sketch_id"].str.startswith("owl")])
    completed = SeaBenchmark().element_lists(half)
    assert completed.origin == "annotation:made up+shipped"
    assert completed["owl"] == ELEMENTS["owl"]


class Pixels:
    """Two kinds of pictures that any network tells apart."""

    def __init__(self, labels):
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def load(self, index):
        image = Image.new("RGB", (32, 32), "white")
        image.paste((0, 0, 0) if self.labels[index] else (200, 0, 0), (4, 4, 10 + index, 20))
        return image

    def content_hash(self, index):
        return f"{self.labels[index]}/{index}"

    def describe(self, index):
        return f"picture {index}"


def test_sensitivity_tables_come_along(study):
    result = run(study, sensitivity_draws=8)
    one = result.tables["sensitivity_one"]
    assert set(one["parameter"]) == set(HYPER)
    at_published = one[np.isclose(one["value"], one["parameter"].map(HYPER))]
    np.testing.assert_allclose(at_published["spearman_sketches"], 1.0)
    assert len(result.tables["sensitivity_joint"]) == 16
    assert not any(name.startswith("sensitivity") for name in run(study).tables)
    with pytest.raises(ValueError, match="power of two"):
        SeaBenchmark(sensitivity_draws=100)


def test_a_network_and_a_cross_fitted_judge_end_to_end(study, tmp_path):
    from functools import partial

    from humanlike.backbones.vision import TimmBackbone
    from humanlike.elements.presence_judges import CrossFittedJudge
    from humanlike.entry.pipeline import run_benchmark
    from humanlike.readouts import LogisticReadout

    data = replace(study[0], images=Pixels(study[0].target_N.tolist()))
    backbone = TimmBackbone("test_resnet", weights=None, transform={"size": 32})
    judge = partial(CrossFittedJudge, n_splits=2)
    benchmark = SeaBenchmark(judge, replicates=20, sensitivity_draws=0)
    score = run_benchmark(backbone, data, benchmark, LogisticReadout(n_splits=2), cache_dir=tmp_path)
    assert score.benchmark == "sea"
    assert score.result.counts["items_scored"] == 16
    assert score.scores["presence_f1"].value is not None
    assert "out of 2 folds of made up" in score.result.details["judge"]["source"]
    assert score.layer == backbone.default_layer


def test_judges_of_the_configuration_look_through_the_runs_backbone(study, tmp_path):
    from humanlike.backbones.features import extract_features
    from humanlike.backbones.vision import TimmBackbone
    from humanlike.elements.presence_file import save_presence_head
    from humanlike.elements.presence_fit import fit_presence
    from humanlike.elements.presence_head import PresenceHead
    from humanlike.elements.presence_judges import HeadJudge
    from humanlike.entry.targets import build

    data = replace(study[0], images=Pixels(study[0].target_N.tolist()))
    backbone = TimmBackbone("test_resnet", weights=None, transform={"size": 32})
    layer = backbone.default_layer
    features = extract_features(backbone, data, [layer])[layer]
    width, lists_of_data = features.f_ND.shape[1], ElementLists.from_annotation(data)
    head = fit_presence(PresenceHead(width, lists_of_data, backbone=backbone, layer=layer), data, features)
    save_presence_head(tmp_path / "head.safetensors", head)
    judge = build(
        {
            "_target_": "humanlike.elements.presence_judges.HeadJudge.from_file",
            "_partial_": True,
            "file": str(tmp_path / "head.safetensors"),
            "on_seen": "allow",
        }
    )(backbone=backbone)
    assert isinstance(judge, HeadJudge)
    assert (judge.backbone, judge.layer) == (backbone, layer)
    presence = judge.judge(data, lists_of_data, features)
    assert presence.coverage == 1.0
    with pytest.raises(ValueError, match="on_seen is 'sometimes'"):
        HeadJudge.from_file(tmp_path / "head.safetensors", on_seen="sometimes")


def test_what_a_label_means_can_be_told(study):
    data = study[0]
    both = replace(
        data, table=data.table.assign(concept=data.table["concept"].replace("owl", "mouse")), labels=("mouse", "violin")
    )
    with pytest.raises(ValueError, match=r"'mouse' names several things .*benchmark\.senses.*benchmark\.elements=FILE"):
        SeaBenchmark(elements="shipped").element_lists(both)
    lists_of_both = SeaBenchmark(elements="shipped", senses={"mouse": "mouse2"}).element_lists(both)
    assert lists_of_both["mouse"] == shipped()["mouse2"]


def test_steps_say_whom_recognition_is_of_where_sketches_were_not_judged():
    row = {"sea": 0.5, "reward": 0.4, "penalty": 0.1, "visual_ratio": 0.5, "recognition": 0.7, "n_items": 4}
    table = pd.DataFrame(
        [{**row, "condition": 4.0, "n_scored": 4}, {**row, "condition": 8.0, "sea": 0.1, "n_scored": 3}]
    )
    assert notes(table, "s")[0].endswith("recognition +0.000 (of all sketches, judged or not).")
    assert notes(table.assign(n_scored=4), "s")[0].endswith("recognition +0.000.")
