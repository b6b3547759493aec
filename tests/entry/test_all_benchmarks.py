"""`benchmark=all`: every part is a run of its own, and the table holds what the parts' own records say."""

from __future__ import annotations

import json
import subprocess
import sys

import pandas as pd
import pytest

from humanlike.entry.all_benchmarks import AllBenchmarks, run_all
from humanlike.entry.api import evaluate
from humanlike.entry.conf import compose

TINY = "backbone=random_tiny"
SMALL = ["dataset.instances=4", "dataset.concepts=[lion,snail,vase]", "dataset.judgments=2"]


def test_a_part_with_its_own_data_takes_no_settings_of_other_data():
    whole = AllBenchmarks({"sea": ["benchmark=sea"], "objects": ["benchmark=object_learning", "dataset=novel_objects"]})
    given = ["benchmark=all", "dataset.instances=4", "metric.delta=1e-7", "seed=3", "+readout.C=2", "layer=x"]
    assert whole.overrides("sea", given) == [*given[1:], "benchmark=sea"]
    assert whole.overrides("objects", given) == ["seed=3", "benchmark=object_learning", "dataset=novel_objects"]


@pytest.mark.parametrize("parts", [{}, {"a": []}, {"a": "benchmark=sea"}, {"a": ["dataset=doodles"]}])
def test_parts_must_say_what_they_are(parts):
    with pytest.raises(ValueError, match=r"benchmark.parts"):
        AllBenchmarks(parts)


def test_python_is_told_to_go_one_by_one():
    with pytest.raises(ValueError, match="evaluate them one by one: seva, sea, object_learning"):
        evaluate("random_tiny", benchmark="all")


def test_further_processes_read_and_write_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "1")
    ran = []
    run_all(compose("evaluate", ["benchmark=all"]), tmp_path, lambda part, folder: ran.append(folder.name))
    assert ran == ["seva", "sea", "object_learning"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_parts_run_and_a_failure_keeps_the_others(repository, tmp_path):
    few = '"benchmark.replicates=20"'
    parts = [
        f'benchmark.parts.seva=["benchmark=seva",{few}]',
        f'benchmark.parts.sea=["benchmark=sea",{few},"benchmark.sensitivity_draws=0","judge.n_splits=2"]',
        'benchmark.parts.object_learning=["benchmark=seva","layer=nowhere"]',
    ]
    line = [sys.executable, "evaluate.py", "benchmark=all", TINY, *SMALL, "readout.n_splits=2", *parts]
    line += ["report=false", f"hydra.run.dir={tmp_path / 'run'}", f"paths.cache={tmp_path / 'cache'}"]
    done = subprocess.run(line, cwd=repository, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1, done.stderr
    assert "object_learning failed: " in done.stderr
    assert "no layer 'nowhere'" in done.stderr
    table = pd.read_parquet(tmp_path / "run" / "benchmarks.parquet")
    assert table["part"].unique().tolist() == ["seva", "sea"]
    for part, rows in table.groupby("part"):
        scores = json.loads((tmp_path / "run" / part / "score.json").read_text())["scores"]
        assert {row.score: row.value for row in rows.itertuples()} == {
            name: entry["value"]
            for name, entry in scores.items()
            if entry["value"] is not None and not (name.endswith("_people") and name[:-7] in scores)
        }
    card = json.loads((tmp_path / "run" / "card.json").read_text())
    assert [group["facts"]["benchmark"] for group in card["groups"].values()] == ["seva", "sea"]
    assert list(card["skipped"]) == [str(tmp_path / "run" / "object_learning")]
    page = (tmp_path / "run" / "report.html").read_text()
    assert 'data-benchmark="seva"' in page
    assert "not finished" in page
    text = (tmp_path / "run" / "benchmarks.md").read_text()
    assert text.startswith("| benchmark | score | value |")
    again = subprocess.run(line, cwd=repository, capture_output=True, text=True, timeout=600)
    assert again.stdout.count("already finished, skipped") == 2
