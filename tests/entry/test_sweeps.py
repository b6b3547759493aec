"""The folder that is tried first, and the table at the end of a sweep."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf, read_write

from humanlike.entry.conf import hydra_session
from humanlike.entry.outcomes import record_outcome, record_start
from humanlike.entry.own_process import STARTED_BY_OTHERS
from humanlike.entry.sweeps import SweepSummary, distinguishing, make_folder


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


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Begins a run as Hydra does, at noon; the folder that the run is then given."""
    for name in (*STARTED_BY_OTHERS, "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)

    def run(*overrides):
        line = [f"paths.output_dir={tmp_path}", *overrides]
        with hydra_session():
            config = hydra.compose("evaluate", line, return_hydra_config=True)
            noon = str(OmegaConf.to_container(config.hydra.run, resolve=False)["dir"])
            with read_write(config.hydra.run):
                config.hydra.run.dir = noon.replace("${now:%Y-%m-%d},${now:%H-%M-%S}", "2026-01-31,12-00-00")
            SweepSummary().on_run_start(config)
            return str(Path(config.hydra.run.dir).relative_to(tmp_path))

    return run


def test_commands_of_one_second_have_a_folder_each(begin):
    assert [begin() for _ in range(3)] == [f"evaluate/2026-01-31/12-00-00{end}" for end in ("", "-2", "-3")]


def test_of_all_that_try_at_once_one_makes_the_folder(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: make_folder(tmp_path / "a" / "run", new=True), range(64)))
    assert len(set(made)) == len(list((tmp_path / "a").iterdir())) == 64


def test_a_folder_that_somebody_has_named_is_found_again(begin, tmp_path):
    assert [begin(f"hydra.run.dir={tmp_path}/mine") for _ in range(2)] == ["mine", "mine"]


@pytest.mark.parametrize(
    "words",
    [
        {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2"},
        {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "17"},
        {"NODE_RANK": "0", "MASTER_ADDR": "a"},  # started by hand on every machine
    ],
)
def test_processes_of_one_run_share_the_folder_whoever_comes_first(begin, monkeypatch, words):
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    folders = set()
    for rank in ("1", "0"):
        for name in {"NODE_RANK"} & set(words) or {"RANK", "LOCAL_RANK", "SLURM_PROCID"}:
            monkeypatch.setenv(name, rank)
        folders.add(begin())
    assert len(folders) == 1
