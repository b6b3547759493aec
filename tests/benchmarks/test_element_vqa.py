"""Judges of elements against the annotation: scikit-learn's scores, the published table, judges of every kind."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, precision_score, recall_score

from humanlike.backbones.vision import TimmBackbone
from humanlike.benchmarks.element_vqa import ElementVQABenchmark
from humanlike.benchmarks.element_vqa_comparison import judge_ranks
from humanlike.benchmarks.element_vqa_published import PRESENT_RATE, published_table
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.lists import ElementLists
from humanlike.elements.presence import elements_by_item, presence_of
from humanlike.rng import generator
from humanlike.types import Score


class Erring:
    """Errs at random at known rates, and leaves some questions unanswered."""

    def __init__(self, false_positive=0.0, false_negative=0.0, silent=0.0, seed=0):
        self.rates, self.silent, self.seed = (false_positive, 1 - false_negative), silent, seed

    def judge(self, sketches, elements, features=None):
        truth = AnnotationJudge().judge(sketches, elements).table
        drawn = dict(zip(zip(truth["sketch_id"], truth["element"], strict=True), truth["decision"], strict=True))
        rng, names, ids = (
            generator(self.seed, "erring"),
            elements_by_item(sketches, elements),
            sketches.table["sketch_id"],
        )
        p = [
            [np.nan if rng.random() < self.silent else float(rng.random() < self.rates[int(drawn[i, e])]) for e in row]
            for i, row in zip(ids, names, strict=True)
        ]
        return presence_of(ids.tolist(), names, p, f"erring {self.seed}")


@pytest.fixture(scope="module")
def data():
    return doodles(concepts=["lion", "owl", "taxi", "chair"], instances=8, judgments=0)


@pytest.fixture(scope="module")
def backbone():
    return TimmBackbone("test_resnet", weights=None, transform={"size": 32})


def scored(data, judge, backbone, **options):
    found = ElementVQABenchmark(judge, replicates=100).run_backbone(backbone, data, **options)
    return Score("element_vqa", "1", data.name, backbone.name, found.layer, found.result, {"seed": 0}, {"config": "c"},
                 {}, "2026-01-01T00:00:00+00:00", 1.0, f"d{id(judge)}")  # fmt: skip


@pytest.fixture(scope="module")
def erring(data, backbone):
    return scored(data, Erring(0.2, 0.1, silent=0.05), backbone)


def test_scores_are_scikit_learns(data, erring):
    lists = ElementLists.from_annotation(data)
    said = Erring(0.2, 0.1, silent=0.05).judge(data, lists).table.merge(data.elements, on=["sketch_id", "element"])
    known = said[said["decision"].notna()]
    drawn, called = known["drawn"].astype(bool), known["decision"].astype(bool)
    expected = {
        "precision": precision_score(drawn, called),
        "recall": recall_score(drawn, called),
        "f1": f1_score(drawn, called),
        "accuracy": accuracy_score(drawn, called),
        "specificity": recall_score(~drawn, ~called),
        "balanced_accuracy": balanced_accuracy_score(drawn, called),
        "present_rate_bias": called.mean() - drawn.mean(),
        "coverage": len(known) / len(said),
        "accuracy_over_all": (drawn == called).sum() / len(said),
        "f1_gain": f1_score(drawn, called) - f1_score(drawn, np.ones(len(drawn), bool)),
    }
    scores = erring.scores
    for name, value in expected.items():
        assert scores[name].value == pytest.approx(value, abs=1e-12), name
        assert scores[name].ci_low <= value <= scores[name].ci_high
    assert scores["f1"].n == scores["f1_macro_class"].n == len(known) < len(said)
    assert scores["coverage"].n == scores["accuracy_over_all"].n == len(said)
    concept = known["sketch_id"].map(data.table.set_index("sketch_id")["concept"])
    by_class = [f1_score(g["drawn"].astype(bool), g["decision"].astype(bool)) for _, g in known.groupby(concept)]
    assert scores["f1_macro_class"].value == pytest.approx(np.mean(by_class))
    classes = erring.result.tables["classes"].set_index("concept")
    np.testing.assert_allclose(classes["f1"], by_class)
    assert classes.loc["lion", "superordinate"] == "mammal"
    kinds = erring.result.tables["superordinates"].set_index("superordinate")
    assert kinds["pairs"].sum() == len(said)
    for condition, own in known.groupby(known["sketch_id"].map(data.table.set_index("sketch_id")["condition"])):
        row = erring.result.conditions.set_index("condition").loc[condition]
        assert row["recall"] == pytest.approx(recall_score(own["drawn"].astype(bool), own["decision"].astype(bool)))
    counts = erring.result.items[["true_absent", "false_present", "false_absent", "true_present"]].sum()
    assert counts["true_present"] == int((drawn & called).sum())
    assert counts["false_present"] == int((~drawn & called).sum())
    assert f"judgments_missing:{int(said['decision'].isna().sum())}" in erring.result.flags


def test_the_published_table_is_consistent_with_itself():
    table = published_table().set_index("judge")
    models = table.drop("always present")
    assert len(models) == 9
    f1 = 2 * models["precision"] * models["recall"] / (models["precision"] + models["recall"])
    assert (f1 - models["f1"]).abs().max() < 0.0015
    # accuracy = π R + (1 - π) - π R (1 - P)/P, so every row implies a rate π of present elements.
    implied = (1 - models["accuracy"]) / (1 - models["recall"] + models["recall"] * (1 / models["precision"] - 1))
    assert implied.median() == pytest.approx(PRESENT_RATE, abs=0.01)
    assert (models["f1"] < table.loc["always present", "f1"]).sum() == 5


def test_the_page_holds_the_judge_beside_the_published_ones(erring):
    from humanlike.reports.html import render_report

    page = render_report(erring, figures={})
    for text in ("GPT-4o", "0.935", "always present, on these sketches", f"{erring.scores['f1'].value:.3f}", "mammal"):
        assert text in page


def test_judges_are_grouped_by_what_can_be_told_apart(data, backbone):
    judges = {"good": Erring(0.05, 0.05), "same": Erring(0.05, 0.05, seed=3), "bad": Erring(0.5, 0.4, seed=2)}
    scores = {name: scored(data, judge, backbone) for name, judge in judges.items()}
    ranks = judge_ranks(scores, replicates=200).set_index(["score", "run"])
    for name in ("f1", "accuracy", "balanced_accuracy"):
        assert ranks.loc[(name, "bad"), "rank"] == 3
        assert ranks.loc[(name, "good"), "letters"] == ranks.loc[(name, "same"), "letters"]
        assert ranks.loc[(name, "good"), "rank_high"] == 2
        assert ranks.loc[(name, "good"), "value"] == pytest.approx(scores["good"].scores[name].value, abs=1e-12)
    flags = scores["bad"].result.flags
    assert "not_better_than_always_present" in flags
    items = scores["same"].result.items
    other = replace(scores["same"], result=replace(scores["same"].result, items=items.assign(true_present=0)))
    with pytest.raises(ValueError, match="held against other annotations of sketch"):
        judge_ranks({"good": scores["good"], "other": other})
    apart = replace(other, result=replace(other.result, items=items.assign(sketch_id="x" + items["sketch_id"])))
    with pytest.raises(ValueError, match="have no sketch in common"):
        judge_ranks({"good": scores["good"], "other": apart})


def test_judges_that_look_through_a_network(data, backbone, tmp_path):
    from humanlike.elements.presence_judges import CrossFittedJudge

    head = scored(data, partial(CrossFittedJudge, n_splits=2), backbone, cache_dir=tmp_path)
    assert head.layer == backbone.default_layer
    assert head.scores["balanced_accuracy"].value > 0.5
    assert head.scores["f1"].value > head.scores["always_present_f1"].value


def test_a_contrastive_judge_on_real_sketches(shared_data, tmp_path):
    import torch

    from humanlike.backbones.callable import CallableBackbone
    from humanlike.data.sketch_parts import sketch_parts
    from humanlike.elements.contrastive import ContrastivePresence

    class Words:
        """A random vector a sentence."""

        weights_hash, logit_scale = "words", 20.0

        def embed(self, texts):
            rows = [np.random.default_rng(list(text.encode())).normal(size=48) for text in texts]
            return torch.nn.functional.normalize(torch.tensor(np.array(rows), dtype=torch.float32), dim=1)

    data = sketch_parts(shared_data / "sketch_parts")
    eyes = CallableBackbone(torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten()), {"size": 16}, name="eyes")
    score = scored(data, ContrastivePresence(eyes, Words(), layer="output"), eyes, cache_dir=tmp_path)
    truth = data.elements["drawn"].astype(bool)
    assert score.result.counts["pairs"] == len(truth)
    rate = truth.mean()
    assert score.scores["always_present_f1"].value == pytest.approx(2 * rate / (1 + rate))
    # A judge with random words knows nothing: it stays near one half.
    assert abs(score.scores["balanced_accuracy"].value - 0.5) < 0.15
    assert score.result.details["judge"]["source"].startswith("contrastive presence")


def test_what_a_judge_says_of_itself_stands_in_the_record(data, backbone):
    class Telling(Erring):
        def judge(self, sketches, elements, features=None):
            said = super().judge(sketches, elements)
            return replace(said, facts={"revision": "c" * 40, "mass_outside_mean": 0.25, "flags": ["judge_leans"]})

    score = scored(data, Telling(0.2, 0.1), backbone)
    judge = score.result.details["judge"]
    assert (judge["revision"], judge["mass_outside_mean"]) == ("c" * 40, 0.25)
    assert judge["source"] == "erring 0"
    assert judge["pairs"] == score.result.counts["pairs"]
    assert "judge_leans" in score.result.flags


def test_silence_is_no_way_to_a_better_rank(data, backbone):
    from humanlike.reports.element_vqa_gathered import gathered_warnings

    class Silent(Erring):
        """Answers what it would get right, and is silent about half of the rest."""

        def judge(self, sketches, elements, features=None):
            said, truth = super().judge(sketches, elements), AnnotationJudge().judge(sketches, elements)
            wrong = (said.table["decision"] != truth.table["decision"]).to_numpy()
            table = said.table.copy()
            rows = np.flatnonzero(wrong)[::2]
            table.loc[rows, ["probability", "decision"]] = [np.nan, pd.NA]
            table.loc[rows, "reason"] = "refused"
            return replace(said, table=table)

    runs = {"open": scored(data, Erring(0.3, 0.3), backbone), "silent": scored(data, Silent(0.3, 0.3), backbone)}
    ranks = judge_ranks(runs, replicates=200).set_index(["score", "run"])["rank"]
    assert ranks["accuracy", "silent"] < ranks["accuracy", "open"]
    assert ranks["accuracy_over_all", "silent"] == ranks["accuracy_over_all", "open"]
    (said,) = gathered_warnings(runs)
    assert "answered between" in said
    assert "(silent) and 100.0% (open)" in said
    assert gathered_warnings({"open": runs["open"], "again": runs["open"]}) == []


def test_what_cannot_be_judged_is_refused(data, backbone):
    with pytest.raises(ValueError, match="judge=annotation is what judges are held against"):
        scored(data, AnnotationJudge(), backbone)
    with pytest.raises(ValueError, match="no annotation of elements"):
        scored(replace(data, elements=None), Erring(), backbone)
    with pytest.raises(ValueError, match="needs a judge"):
        ElementVQABenchmark(None)
    with pytest.raises(ValueError, match="replicates is 1"):
        ElementVQABenchmark(Erring(), replicates=1)
    with pytest.raises(TypeError, match="needs sketches, got DataFrame"):
        ElementVQABenchmark(Erring()).run_backbone(backbone, pd.DataFrame())
