"""The folder that is tried first, and the table at the end of a sweep."""

from __future__ import annotations

import time

import pytest
from omegaconf import OmegaConf

from humanlike.entry.outcomes import record_outcome, record_start
from humanlike.entry.sweeps import SweepSummary, distinguishing


@pytest.mark.parametrize("event", ["on_run_start", "on_multirun_start"])
def test_a_folder_that_cannot_be_written_is_a_sentence(event, tmp_path, capsys):
    (tmp_path / "file").touch()
    folder = f"{tmp_path}/file/run"
    config = OmegaConf.create({"hydra": {"run": {"dir": folder}, "sweep": {"dir": folder}}})
    with pytest.raises(SystemExit) as left:
        getattr(SweepSummary(), event)(config)
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: cannot use the folder {folder} (Not a directory); point paths.output_dir")
    assert said.count("\n") == 1


def test_the_table_names_what_differs_and_why_a_job_failed(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    summary = SweepSummary()
    config = OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}})
    record_outcome(tmp_path / "old", 0, "seed=7")
    time.sleep(0.02)  # file systems count time in coarse steps
    summary.on_multirun_start(config)
    record_outcome(tmp_path / "a", 0, "dataset.labels=[a,b],seed=0")
    record_outcome(tmp_path / "b", 1, "dataset.labels=[a,b],seed=1", "no layer [x]")
    record_start(tmp_path / "c", "dataset.labels=[a,b],seed=2")
    record_outcome(tmp_path / "d", 0, "dataset.labels=[a,b],seed=3", skipped=True)
    summary.on_multirun_end(config)
    said = capsys.readouterr().err
    assert SweepSummary.status == 3
    monkeypatch.setattr(SweepSummary, "status", None)
    assert "seed=1 │ failed: no layer [x] │ b" in " ".join(said.split())
    assert "seed=0 │ done │ a" in " ".join(said.split())
    assert "seed=2 │ died: it began and left no result │ c" in " ".join(said.split())
    assert "seed=3 │ done before │ d" in " ".join(said.split())
    assert "2 of 4 jobs did not end well; the same command again repeats only these" in said
    assert "labels" not in said
    assert "seed=7" not in said


def test_what_tells_jobs_apart():
    assert distinguishing(["a=1,b=[x,y]", "a=1,b=z,+c.d=2"]) == ["b=[x,y]", "b=z, +c.d=2"]
    assert distinguishing(["a=1,b=2"]) == ["a=1, b=2"]
    assert distinguishing([""]) == ["(defaults)"]
    assert distinguishing([]) == []
