"""`humanlike study` from outside: the folder it leaves, resume, further models, failures and errors."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys

import pandas as pd
import pytest

from humanlike.entry.conf import compose
from humanlike.entry.launch import Job
from humanlike.entry.study import study_job
from humanlike.entry.study_folder import SCHEMA, read_study
from humanlike.entry.study_models import ALL_MARKED, chosen_backbones

SMALL = (
    "backbones=[random_tiny]",
    "dataset.concepts=5",
    "dataset.instances=5",
    "benchmark.replicates=20",
    "benchmark.splits=4",
    "extraction.num_workers=0",
)
TABLES = {
    "models", "sketch_rows", "cell_rows", "conditions", "means", "alignment", "people_by_condition", "replicates",
    "strokes", "strokes_by_condition", "discrepancy", "noise_ceiling", "comparisons", "rank_groups", "spearman", "gaps",
    "power", "item_consistency", "models_consistency",
}  # fmt: skip
FAST = "analyses=[inference,items,gaps,power]"


@pytest.fixture(scope="module")
def finished(command):
    """A finished study in its folder, and what it printed."""
    folder, printed = command.home / "study", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("HUMANLIKE_CACHE", command.environment["HUMANLIKE_CACHE"])
        job = Job(study_job)
        assert job.run(compose("study", [*SMALL, FAST]), folder) == 0, job.why
    return folder, printed.getvalue()


@pytest.mark.slow
def test_the_command(command):
    folder = command.home / "by_command"
    line = [sys.executable, "-m", "humanlike", "study", *SMALL, f"hydra.run.dir={folder}"]
    done = subprocess.run(
        line, cwd=command.home, env=command.environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"written to {folder}" in done.stdout
    assert set(read_study(folder)[1]) == TABLES | {"mixed_fits", "mixed_terms", "mixed_random"}


def test_the_folder_holds_every_table_twice_and_a_record(finished):
    folder, printed = finished
    record, tables = read_study(folder)
    assert record["schema"] == SCHEMA
    assert set(tables) == TABLES
    assert record["tables"] == {name: len(table) for name, table in tables.items()}
    for name, table in tables.items():
        assert len(pd.read_csv(folder / "tables" / f"{name}.csv")) == len(table)
    assert "not asked for" in record["missing"]["mixed_fits"]
    assert "machine" in record["missing"]["machine_cells"]
    assert len(record["digest"]) == 64
    assert "simulated" in printed
    assert "model 1 of 1: random_tiny" in printed
    assert printed.count("Semantic neighbour preference") == 0  # one line a model, not its tables
    assert (folder / "report.html").read_text().count("simulat") > 1
    assert list((folder / "figures").glob("alignment_*.svg"))


def test_simulated_models_and_people_are_said_so(finished):
    record, tables = read_study(finished[0])
    assert record["simulated_people"] is True
    models = tables["models"].set_index("observer")
    assert models["simulated"].to_dict() == {
        "random_tiny": False, "simulated_close": True, "simulated_middling": True, "simulated_far": True,
    }  # fmt: skip
    assert {"simulated_participants", "simulated_model:simulated_far"} <= set(record["flags"])


def test_an_evaluated_backbone_has_its_ordinary_run(finished):
    run = json.loads((finished[0] / "models/random_tiny/score.json").read_text())
    aligned = read_study(finished[0])[1]["alignment"].set_index(["observer", "metric"])["estimate"]
    assert run["schema"] == "humanlike.score/1"
    assert aligned["random_tiny", "accuracy"] == pytest.approx(run["scores"]["alignment_accuracy"]["value"])


def test_a_rerun_skips_what_is_finished_and_goes_on_past_a_failure(finished, command, monkeypatch, capsys):
    folder, _ = finished
    before = read_study(folder)
    score = (folder / "models/random_tiny/score.json").stat().st_mtime_ns
    monkeypatch.setenv("HUMANLIKE_CACHE", command.environment["HUMANLIKE_CACHE"])
    job = Job(study_job)
    asked = [
        *SMALL[1:], "backbones=[ecoset_resnet50,random_tiny]", "offline=true",
        "runs={again: %s}" % (folder / "models/random_tiny"), "analyses=[]", "discrepancy=false", "report=false",
        "simulated={}",
    ]  # fmt: skip
    assert job.run(compose("study", asked), folder) == 3
    assert "1 of 2 backbones had losses" in job.why
    assert "already finished, skipped" in capsys.readouterr().out
    assert (folder / "models/random_tiny/score.json").stat().st_mtime_ns == score
    record, tables = read_study(folder)
    assert list(tables["models"]["observer"]) == ["random_tiny", "again"]
    assert "ecoset_resnet50" in record["models_failed"]
    assert "not asked for" in record["missing"]["discrepancy"]
    assert not (folder / "tables" / "power.csv").exists()
    assert not (folder / "report.html").exists()  # that of the study before says other things
    assert not list((folder / "figures").glob("*"))
    aligned = tables["alignment"].set_index(["metric", "observer"])["estimate"].unstack()
    pd.testing.assert_series_equal(aligned["random_tiny"], aligned["again"], check_names=False)
    was = before[1]["alignment"].query("observer == 'random_tiny'").set_index("metric")["estimate"]
    pd.testing.assert_series_equal(aligned["random_tiny"], was.sort_index(), check_names=False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["backbones=[random_tinny]"], "did you mean random_tiny"),
        (["backbones=some"], "it is a list of names, or seva_table2"),
        (["runs=[/nowhere]"], "holds no score.json"),
        (["runs={mine: /nowhere}"], "holds no score.json"),
        (["benchmark=fixed_labels"], "a study is of benchmark=seva"),
        (["backbones=[]", "simulated={}"], "needs at least one model"),
        (["backbones=[]", "analyses=[inferrence]"], "analyses names 'inferrence'"),
        (["backbones=[]", "machine_answers=/nowhere"], "where no .parquet file is"),
        (["backbones=[]", "machine_sketches=sevaclipasso"], "did you mean"),
        (["backbones=[]", "machine_sketches=seva_clipasso"], "name it with machine_root=FOLDER"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_computed(tmp_path, capsys, arguments, sentence):
    job = Job(study_job)
    assert job.run(compose("study", [*SMALL[:3], "analyses=[]", *arguments]), tmp_path) == 1
    assert sentence in job.why
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_further_process_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("SLURM_PROCID", "1")
    (tmp_path / "study.json").write_text("of the first process")
    study_job(compose("study", [*SMALL[1:], "backbones=[]", "simulated={one: 0.8}", "analyses=[]"]), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["study.json"]


def test_the_paper_is_seventeen_models_on_seva():
    config = compose("study", ["experiment=seva_paper", "dataset.root=somewhere"])
    assert config.backbones == ALL_MARKED
    assert config.dataset.name == "seva"
    marked = chosen_backbones(ALL_MARKED)
    assert len(marked) == 17
    assert all(info["info"]["paradigm"] for info in marked.values())
