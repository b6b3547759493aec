"""`humanlike report`: what is found below folders, what is skipped with its reason, and what is written."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from humanlike.entry import cli
from humanlike.entry.report_runs import find_runs
from humanlike.files import write_json
from humanlike.reports.run_folder import score_record, write_table
from humanlike.types import BenchmarkResult, Score, ScoreValue


def score_of(backbone: str, value: float, seed: int = 0) -> Score:
    """A run of SEVA on four sketches, whose accuracy its items give."""
    right = [1, 1, 0, 0] if value == 0.5 else [1, 1, 1, 0]
    items = pd.DataFrame({"sketch_id": list("abcd"), "concept": ["owl", "owl", "cup", "cup"], "correct": right})
    items = items.assign(condition=[4.0, 8.0] * 2, image_id=["i", "i", "j", "j"])
    conditions = pd.DataFrame({"condition": [4.0, 8.0], "accuracy": [value, value], "accuracy_sem": [0.1, 0.1]})
    scores = {
        "accuracy": ScoreValue(value, value - 0.2, value + 0.2, n=4),
        "alignment_accuracy": ScoreValue(0.4, 0.3, 0.5, 0.8, (0.75, 0.85), 4, "R2"),
    }
    result = BenchmarkResult(
        scores, pd.DataFrame({"cell": ["x"]}), items, conditions, {"items_total": 4}, (), {"preset": "corrected"}
    )
    hashes, started = {"data": "d" * 64, "weights": backbone}, f"2026-01-0{seed + 1}T00:00:00+00:00"
    return Score("seva", "1", "doodles", backbone, "pool", result, {"seed": seed}, hashes, {"humanlike": "0"},
                 started, 1.0, f"{backbone}{seed}")  # fmt: skip


def written(score: Score, folder: Path) -> Path:
    write_table(folder / "items.parquet", score.result.items)
    write_json(folder / "score.json", score_record(score))
    return folder


@pytest.fixture
def sweep(tmp_path):
    """A sweep of two networks with two seeds, beside what no page can show."""
    root = tmp_path / "sweep"
    for name, value in (("net_a", 0.5), ("net_b", 0.75)):
        for seed in (0, 1):
            written(score_of(name, value, seed), root / f"backbone={name},seed={seed}")
    return root


def report(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["humanlike", "report", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as left:
        return int(left.code or 0)
    return 0


def test_a_sweep_becomes_a_page_and_files(sweep, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    assert report(monkeypatch, sweep, "--output", out) == 0
    said = capsys.readouterr().out
    assert "2 model(s), 4 run(s), 1 group(s)" in said
    assert re.search(r"g1 .*: the best of 2 models is net_\w, with .* \(0.50 of the ceiling\)", said)
    scores = pd.read_parquet(out / "tables" / "scores.parquet").set_index(["model", "score"])
    assert scores.loc[("net_b", "accuracy"), "value"] == 0.75
    assert scores.loc[("net_b", "accuracy"), "seeds"] == 2
    assert scores.loc[("net_a", "alignment_accuracy"), "fraction_of_ceiling"] == 0.5
    again = pd.read_csv(out / "tables" / "scores.csv").set_index(["model", "score"])
    assert again["value"].to_dict() == scores["value"].to_dict()
    assert "| net_a |" in (out / "report_card.md").read_text()
    assert r"net\_a &" in (out / "latex" / "g1.tex").read_text()
    record = json.loads((out / "card.json").read_text())
    assert record["schema"] == "humanlike.card/1"
    assert record["models"] == ["net_a", "net_b"]
    assert record["skipped"] == {}
    page = (out / "report.html").read_text()
    assert 'data-model="net_b"' in page
    # A second card over the same folder takes the place of the first, and its own files are no runs.
    assert report(monkeypatch, sweep, out, "--output", out) == 3
    assert f"skipped {out}: it holds no score.json and no study.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"score.json": "{broken"}, "score.json is not JSON"),
        ({"score.json": '{"schema": "humanlike.score/9"}'}, "has the schema 'humanlike.score/9'"),
        (
            {"score.json": '{"schema": "humanlike.score/1", "benchmark": "seva"}'},
            "its record lacks what a finished run has",
        ),
        ({"log.jsonl": ""}, "the run is not finished (no score.json); run its command again"),
        ({"study.json": '{"schema": "x"}'}, "has the schema 'x'"),
        ({"study.json": "no"}, "study.json is not JSON"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_written(sweep, tmp_path, monkeypatch, capsys, files, why):
    for name, text in files.items():
        (sweep / "bad").mkdir(exist_ok=True)
        (sweep / "bad" / name).write_text(text)
    assert report(monkeypatch, sweep, "--output", tmp_path / "out") == 3
    said = capsys.readouterr()
    assert f"skipped {sweep / 'bad'}: " in said.err
    assert why in said.err
    assert "2 model(s), 4 run(s)" in said.out
    assert why.replace("'", "&#39;") in (tmp_path / "out" / "report.html").read_text()
    assert str(sweep / "bad") in json.loads((tmp_path / "out" / "card.json").read_text())["skipped"]


def test_a_failed_job_is_named_with_its_error(sweep):
    outcome = {"status": 1, "overrides": "backbone=net_c", "why": "no layer 'nowhere'", "finished": 1.0}
    write_json(sweep / "failed" / "outcome.json", outcome)
    found = find_runs([sweep])
    assert found.skipped == [(str(sweep / "failed"), "the run failed: no layer 'nowhere'")]
    assert len(found.runs) == 4


@pytest.mark.parametrize("field", [{"value": "0.5"}, {"value": True}, {"ceiling": "x"}])
def test_a_score_that_is_no_number_is_refused(sweep, field):
    path = sweep / "backbone=net_a,seed=0" / "score.json"
    record = json.loads(path.read_text())
    record["scores"]["accuracy"] |= field
    path.write_text(json.dumps(record))
    found = find_runs([sweep])
    assert len(found.runs) == 3
    assert "scores.accuracy must hold numbers, got" in found.skipped[0][1]


def test_patterns_files_and_folders_given_twice(sweep, tmp_path):
    everything = [sweep, f"{sweep}/*seed=0", sweep / "backbone=net_a,seed=1" / "score.json", sweep]
    assert len(find_runs(everything).runs) == 4
    assert not find_runs(everything).skipped
    assert len(find_runs([f"{tmp_path}/**/*seed=0"]).runs) == 2
    assert find_runs([tmp_path / "absent"]).skipped[0][1] == "it is no folder, and as a pattern it fits none"
    (tmp_path / "empty").mkdir()
    assert "it holds no score.json and no study.json" in find_runs([tmp_path / "empty"]).skipped[0][1]


def test_links_in_a_circle_are_followed_once(sweep):
    for name in ("one", "two", "three"):
        (sweep / name).symlink_to(sweep, target_is_directory=True)
    found = find_runs([sweep])
    assert (len(found.runs), found.skipped) == (4, [])


def test_a_copy_of_a_run_counts_once(sweep, tmp_path, monkeypatch):
    shutil.copytree(sweep / "backbone=net_a,seed=0", sweep / "copy")
    assert report(monkeypatch, sweep, "--output", tmp_path / "out") == 0
    assert len(json.loads((tmp_path / "out" / "card.json").read_text())["left_out"]) == 1


def test_what_stands_where_a_folder_should_be_is_named(sweep, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    for output in ("file", "file/out"):
        assert report(monkeypatch, sweep, "--output", tmp_path / output) == 1
        assert f"--output is {tmp_path / output}, but {tmp_path / 'file'} is a file" in capsys.readouterr().err


def test_nothing_to_report_is_an_error_with_a_way_out(tmp_path, monkeypatch, capsys):
    assert report(monkeypatch, tmp_path, "--output", tmp_path / "out") == 1
    assert "error: there is no finished run to report; name folders that hold a score.json" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert report(monkeypatch) == 2


def test_other_protocols_stand_in_a_group_of_their_own(sweep, tmp_path, monkeypatch, capsys):
    score = score_of("net_a", 0.5)
    other = replace(score, result=replace(score.result, protocol={"preset": "paper_code", "cv": "stratified"}))
    written(replace(other, digest="other"), sweep / "other")
    assert report(monkeypatch, sweep, "--output", tmp_path / "out") == 0
    assert "2 group(s)" in capsys.readouterr().out
    groups = json.loads((tmp_path / "out" / "card.json").read_text())["groups"]
    assert groups["g2"]["apart"] == (
        "Not ranked with the runs of group g1, from which these differ in cv (stratified here, nothing there)."
    )
    switches = pd.read_parquet(tmp_path / "out" / "tables" / "switches.parquet")
    assert set(switches["switches"]) == {"cv: nothing → stratified"}


@pytest.mark.slow
def test_help_answers_at_once(repository):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "humanlike", "report", "--help"],
        cwd=repository, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "Exit status: 0 done, 1 failed, 2 wrong use, 3 done, but a folder could not be read" in " ".join(
        done.stdout.split()
    )
    assert not {"torch", "pandas", "matplotlib"} & {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
