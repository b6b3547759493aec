"""`humanlike gather` for element VQA: several judges in one table with rank groups."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.element_vqa import ElementVQABenchmark
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.lists import ElementLists
from humanlike.elements.presence import elements_by_item, presence_of
from humanlike.entry.gather import main
from humanlike.reports.run_folder import write_run
from humanlike.types import Features, Score


def run_of(data, name, wrong, seed):
    """A judge that is wrong at a rate."""
    lists = ElementLists.from_annotation(data)
    names, rng = elements_by_item(data, lists), np.random.default_rng(seed)
    truth = AnnotationJudge().judge(data, lists).table
    drawn = dict(zip(zip(truth["sketch_id"], truth["element"], strict=True), truth["decision"], strict=True))
    ids = data.table["sketch_id"].tolist()
    p = [[float(bool(drawn[i, e]) != (rng.random() < wrong)) for e in r] for i, r in zip(ids, names, strict=True)]
    features = Features(np.zeros((len(data), 1)), np.arange(len(data)), {}, "none", {})
    presence = presence_of(ids, names, p, name)
    result = ElementVQABenchmark(AnnotationJudge(), replicates=50).scored(data, features, presence, lists)
    return Score("element_vqa", "1", data.name, "net", "none", result, {"seed": 0}, {"config": "c"}, {},
                 "2026-01-02T03:04:05+00:00", 1.0, f"digest {name}")  # fmt: skip


def test_judges_become_one_table(tmp_path, capsys):
    data = doodles(concepts=["lion", "owl", "taxi"], instances=5, judgments=0)
    runs = {"one": ("judge one", 0.05, 1), "two": ("judge two", 0.055, 4), "three": ("judge three", 0.45, 3)}
    scores = {key: run_of(data, *settings) for key, settings in runs.items()}
    for key, score in scores.items():
        write_run(score, tmp_path / "runs" / key, {}, figures={})
    out = tmp_path / "out"
    main([str(tmp_path / "runs"), "--output", str(out)])
    said = capsys.readouterr().out
    best = scores["one"].scores["f1"]
    assert f"judge one: F1 {best.value:.3f} ({best.ci_low:.3f} to {best.ci_high:.3f}), group a" in said
    ranks = pd.read_parquet(out / "tables" / "ranks.parquet").set_index(["score", "run"])
    assert ranks.loc[("f1", "judge three"), "rank"] == 3
    assert ranks.loc[("f1", "judge one"), "letters"] == ranks.loc[("f1", "judge two"), "letters"] == "a"
    table = pd.read_parquet(out / "tables" / "scores.parquet").set_index(["run", "score"])
    assert table.loc[("judge two", "recall"), "value"] == pytest.approx(scores["two"].scores["recall"].value, abs=0)
    markdown = (out / "tables.md").read_text()
    assert "Qwen2.5-VL" in markdown
    assert markdown.index("judge one") < markdown.index("judge three")
    page = (out / "report.html").read_text()
    assert "Judges of elements: doodles" in page
    assert "mPLUG-Owl3" in page
    record = json.loads((out / "gather.json").read_text())
    assert record["counts"] == {"judges": 3, "data_sets": 1}
    with pytest.raises(SystemExit):
        main([str(tmp_path / "runs"), "--responses", "answers.csv"])
    assert "--responses: for runs of sea, but these are of element_vqa" in capsys.readouterr().err
