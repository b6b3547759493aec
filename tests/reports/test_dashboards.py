"""Loggers of jobs that are killed and go on: read back from each logger's own files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from humanlike.reports.dashboard_history import EventLogger, Row, Shown, logged_rows
from humanlike.reports.dashboards import CsvRun, TensorBoardRun, WandbRun
from humanlike.reports.event_log import EventLog
from humanlike.reports.tracking import begin, finish, log_result
from humanlike.reports.wandb_file import WandbFile, read_wandb_file

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

LOSS = {step: 1 / (1 + step) for step in range(40)}


def test_the_log_tells_what_was_shown_since_a_start_from_nothing(tmp_path):
    log = EventLog(tmp_path / "log.jsonl")
    logger = EventLogger(log)
    log.write("started", resume=False)
    logger.log_metrics({"old": 1.0}, step=0)
    log.write("started", resume=False)
    logger.log_metrics({"loss": 3.0, "epoch": 0}, step=1)
    logger.log_metrics({"val_loss": 4.0, "epoch": 0}, step=1)
    log.write("started", resume=True)
    logger.log_metrics({"loss": 3.5, "epoch": 0}, step=1)
    logger.log_metrics({"loss": 2.0, "epoch": 1}, step=2)
    logger.log_metrics({"result/seconds": 2.0})
    assert logged_rows(tmp_path / "log.jsonl") == [
        Row(1, {"loss": 3.0, "epoch": 0.0}),
        Row(1, {"val_loss": 4.0}),
        Row(2, {"loss": 2.0, "epoch": 1.0}),
    ]
    assert logged_rows(tmp_path / "nothing.jsonl") == []


def test_shown_passes_what_belongs_to_no_step():
    shown = Shown([Row(3, {"loss": 1.0})])
    assert shown.fresh({"loss": 2.0}, 3) == {}
    assert shown.fresh({"loss": 2.0, "other": 1.0}, 3) == {"other": 1.0}
    assert shown.fresh({"loss": 2.0}, None) == {"loss": 2.0}


def test_csv_keeps_the_rows_of_the_job_that_was_killed(tmp_path):
    rows = [Row(step, {"loss": LOSS[step]}) for step in range(6)]
    first = CsvRun(tmp_path)
    for row in rows[:3]:
        first.log_metrics(row.values, row.step)
    first.save()  # and is killed; its log held six rows
    second = CsvRun(tmp_path)
    begin([second], {"seed": 1}, rows)
    for step in range(4, 9):  # from a checkpoint at step 4
        second.log_metrics({"loss": LOSS[step]}, step)
    finish([second], 0)
    with open(tmp_path / "metrics.csv", newline="") as handle:
        read = [(int(row["step"]), float(row["loss"])) for row in csv.DictReader(handle)]
    assert read == [(step, LOSS[step]) for step in range(9)]


def test_csv_in_a_folder_that_had_a_run_says_nothing_of_deleted_files(tmp_path, recwarn):
    for _ in range(2):
        logger = CsvRun(tmp_path)
        logger.log_metrics({"loss": 1.0}, step=0)
        logger.save()
    assert not [w for w in recwarn if "exists and is not empty" in str(w.message)]


def test_tensorboard_gets_what_a_kill_has_taken(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    rows = [Row(step, {"loss": LOSS[step]}) for step in range(6)]
    first = TensorBoardRun(tmp_path)
    for row in rows[:3]:
        first.log_metrics(row.values, row.step)
    first.experiment.flush()
    second = TensorBoardRun(tmp_path)
    begin([second], {"seed": 1}, rows)
    for step in range(4, 9):
        second.log_metrics({"loss": LOSS[step]}, step)
    finish([second], 0)
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert [e.step for e in events.Scalars("loss")] == list(range(9))


CONFIG = {"seed": 1, "api_key": "sk-secret", "nested": {"list": [1, 2]}}
JOB = f"""
import os, signal, sys
from humanlike.reports.dashboard_history import EventLogger
from humanlike.reports.dashboards import WandbRun
from humanlike.reports.event_log import EventLog
from humanlike.reports.tracking import begin
folder, stop = sys.argv[1], int(sys.argv[2])
log = EventLog(folder + "/log.jsonl")
loggers = [EventLogger(log), WandbRun(folder + "/wandb", name="run")]
begin(loggers, {CONFIG!r})
for step in range(stop):
    for logger in loggers:
        logger.log_metrics({{"loss": 1 / (1 + step)}}, step)
os.kill(os.getpid(), signal.SIGKILL)
"""


def read_finished(path: Path) -> WandbFile:
    """The file of a run that was ended: the process of wandb that writes it may be a moment behind `finish`."""
    for _ in range(200):
        if (found := read_wandb_file(path)).exit_code is not None:
            break
        time.sleep(0.05)
    return found


def wandb_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.wandb"), key=lambda path: path.parent.name)


@pytest.fixture
def wandb_home(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB_API_KEY", "WANDB_SWEEP_ID", "WANDB_RUN_ID", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    import wandb

    wandb.teardown()  # it keeps the environment of its first run for the life of the process


@pytest.mark.slow
def test_a_killed_wandb_run_goes_on_with_the_same_id_and_a_contiguous_history(wandb_home):
    killed = subprocess.run(
        [sys.executable, "-c", JOB, str(wandb_home), "900"], capture_output=True, text=True, timeout=120, check=False
    )
    assert killed.returncode == -9, killed.stderr
    log = EventLog(wandb_home / "log.jsonl")
    loggers = [EventLogger(log), WandbRun(wandb_home / "wandb", name="run")]
    begin(loggers, CONFIG, logged_rows(log.path))
    for step in range(800, 1000):  # from a checkpoint at step 800
        for logger in loggers:
            logger.log_metrics({"loss": 1 / (1 + step)}, step)
    finish(loggers, 0)
    paths = wandb_files(wandb_home)
    first, second = read_wandb_file(paths[0]), read_finished(paths[1])
    assert len({path.name for path in paths}) == 1
    assert second.run_id == (wandb_home / "wandb" / "run_id").read_text().strip()
    assert (first.exit_code, second.exit_code) == (None, 0)
    assert 0 < len(first.history) < 900  # a kill takes what was not on disk
    history = [*first.history, *second.history]
    told = [(row["trainer/global_step"], row["loss"]) for row in history if "loss" in row]
    assert told == [(step, 1 / (1 + step)) for step in range(1000)]
    assert [row["_step"] for row in history] == list(range(len(history)))
    assert second.config["nested"] == {"list": [1, 2]}
    assert second.config["api_key"] == "***"
    assert not any(b"sk-secret" in path.read_bytes() for path in wandb_home.rglob("*") if path.is_file())


def test_a_job_that_begins_again_within_a_second_finds_all_its_files(wandb_home):
    folder = wandb_home / "wandb"
    folder.mkdir()
    (folder / "run_id").write_text("abc\n")
    names = ["20260131_120000-abc", *(f"20260131_120000-abc-{i}" for i in (1, 2, 10)), "20260131_120001-abc"]
    for name in [*names, "20260131_120000-abcd"]:
        path = folder / "wandb" / f"offline-run-{name}" / f"run-{name.split('-')[1]}.wandb"
        path.parent.mkdir(parents=True)
        path.touch()
    assert [path.parent.name for path in WandbRun(folder)._earlier] == [f"offline-run-{name}" for name in names]


def test_wandb_file_equals_wandbs_own_reader(wandb_home):
    run = WandbRun(wandb_home, name="as it is called", group="sweep", tags=["a"])
    run.experiment.define_metric("seva/by_condition/*", step_metric="seva/condition")
    run.log_metrics({"loss": 0.5}, 3)
    run.experiment.log({"seva/condition": 4.0, "seva/by_condition/accuracy": 0.25, "long": "x" * 70_000})
    log_result([run], {"val_loss": 0.5, "nested": {"p": 1}, "resumed": True, "name": "x", "flags": ["made_up"]})
    finish([run], 3)
    (path,) = wandb_files(wandb_home)
    mine = read_finished(path)
    inspect = subprocess.run(
        [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    theirs = [json.loads(line) for line in inspect.stdout.splitlines()]
    assert {r["exit"]["exit_code"] for r in theirs if r["type"] == "exit"} == {mine.exit_code} == {3}
    (run_record,) = [r["run"] for r in theirs if r["type"] == "run"]
    assert (mine.run_id, mine.name, mine.group) == (
        run_record["run_id"], run_record["display_name"], run_record["run_group"],
    )  # fmt: skip
    assert sum(r["type"] == "history" for r in theirs) == len(mine.history) == 2
    assert mine.history[1]["long"] == "x" * 70_000
    assert mine.axes["seva/by_condition/*"] == "seva/condition"
    assert {k: v for k, v in mine.summary.items() if k.startswith("result")} == {
        "result/val_loss": 0.5, "result/nested/p": 1.0, "result/flags": ["made_up"],
    }  # fmt: skip


def test_wandb_disabled_writes_nothing_and_starts_nothing(wandb_home):
    run = WandbRun(wandb_home, mode="disabled")
    begin([run], {"seed": 1})
    run.log_metrics({"loss": 0.5}, 3)
    finish([run], 0)
    assert not list(wandb_home.rglob("*.wandb"))


def test_wandb_online_without_an_account_says_so_before_anything_is_computed(wandb_home, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("HOME", str(wandb_home))
    monkeypatch.setenv("NETRC", str(wandb_home / "netrc"))
    with pytest.raises(wandb.errors.UsageError, match="API key"):
        begin([WandbRun(wandb_home, mode="online")], {"seed": 1})


def test_offline_rules_out_the_network_whatever_the_mode(wandb_home):
    run = WandbRun(wandb_home, mode="online", offline=True)
    begin([run], {"seed": 1})
    finish([run], 0)
    assert read_finished(wandb_files(wandb_home)[0]).exit_code == 0


def test_a_sweeps_agent_gives_the_id(wandb_home, monkeypatch):
    monkeypatch.setenv("WANDB_RUN_ID", "agents01")
    assert WandbRun(wandb_home / "a").version != "agents01"
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep001")
    assert WandbRun(wandb_home / "b").version == "agents01"


def test_an_unknown_mode_and_a_foreign_file_are_named(tmp_path):
    with pytest.raises(ValueError, match="offline, online, disabled, got 'onlin'"):
        WandbRun(tmp_path, mode="onlin")
    (tmp_path / "run-x.wandb").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"run-x\.wandb is no file of a wandb run"):
        read_wandb_file(tmp_path / "run-x.wandb")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_wandb_file(tmp_path / "absent.wandb")
