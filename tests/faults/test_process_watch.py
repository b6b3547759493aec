"""Signs of life: a death, a failure and a silence are named; clocks and left-over signs do not matter."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from humanlike import processes
from humanlike.place import ALONE, place
from humanlike.processes import (
    LostProcessError,
    ProcessWatch,
    clear_signs,
    end_with_parent,
    signs,
)

CLEAN = ("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "SLURM_STEP_ID")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Limits that a test can wait for."""
    for name, value in {"BEAT_S": 0.05, "SILENT_S": 1.0, "APPEAR_S": 1.0, "GRACE_S": 0.3}.items():
        monkeypatch.setattr(processes, name, value)


def other(folder, rank, world_size, what):
    """Another process of the run, which does `what(watch)`."""
    with ProcessWatch(folder, rank, world_size) as watch:
        what(watch)


def kill_self(watch):
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


def stop_self(watch):
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGSTOP)


def fail(watch):
    watch.fail(ValueError("noise_3.png\nis torn"))
    os._exit(1)


def hurry(watch):
    watch.wait()


def test_all_wait_for_the_last(tmp_path, start, within):
    def late(watch):
        time.sleep(0.5)
        watch.wait()

    start(other, tmp_path, 1, 3, hurry)
    start(other, tmp_path, 2, 3, late)
    began = time.monotonic()
    with within(5), ProcessWatch(tmp_path, 0, 3) as watch:
        watch.wait()
    assert time.monotonic() - began > 0.4


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (kill_self, r"process 2 of 2 \(.*, pid \d+\) died without a message"),
        (stop_self, r"process 2 of 2 \(.*, pid \d+\) has given no sign of life for 1 s"),
        (fail, r"process 2 of 2 \(.*, pid \d+\) failed: ValueError: noise_3.png is torn"),
    ],
)
def test_a_lost_process_is_named(tmp_path, start, within, what, words):
    process = start(other, tmp_path, 1, 2, what)
    with within(8), pytest.raises(LostProcessError, match=words), ProcessWatch(tmp_path, 0, 2) as watch:
        watch.wait()
    process.join(5)
    assert not process.is_alive(), "a stopped process is ended, or it would keep its starter waiting"
    assert signs(tmp_path)[0]["state"] == "failed"


def test_a_process_that_never_starts_is_named(tmp_path, within):
    words = r"process 2 of 3 did not start within 1 s"
    with within(8), pytest.raises(LostProcessError, match=words), ProcessWatch(tmp_path, 0, 3) as watch:
        watch.wait()


def test_a_process_that_hangs_elsewhere_is_ended_with_the_sentence(tmp_path, start, within, until):
    said = []
    start(other, tmp_path, 1, 2, kill_self)
    with within(8), ProcessWatch(tmp_path, 0, 2, end=said.append):
        until(lambda: said, 8)  # as if inside a collective operation
    assert "process 2 of 2" in said[0]
    assert signs(tmp_path)[0]["error"] == "LostProcessError"


def loop_for_ever(watch):
    watch.progress("micro-batch 3 of 8")
    while True:
        pass


def wait_in_vain(watch):
    watch.progress("the barrier")
    ends = socket.socketpair()
    ends[0].recv(1)  # as a collective operation that nobody answers


@pytest.mark.parametrize(("what", "at"), [(loop_for_ever, "micro-batch 3 of 8"), (wait_in_vain, "the barrier")])
def test_a_process_that_gives_signs_but_does_not_go_on_is_named(tmp_path, start, within, monkeypatch, what, at):
    monkeypatch.setattr(processes, "STUCK_S", 0.5)
    process = start(other, tmp_path, 1, 2, what)
    words = rf"process 2 of 2 .* failed: .*is alive, but has been at {at} for 0.5 s"
    with within(8), pytest.raises(LostProcessError, match=words), ProcessWatch(tmp_path, 0, 2) as watch:
        watch.wait()
    process.join(5)
    assert process.exitcode == 1, "it ends by itself"


def test_work_that_goes_on_slowly_is_not_stuck(tmp_path, start, monkeypatch):
    """Nor are those that wait for it, nor one whose pieces of work have always been longer than the limit."""
    monkeypatch.setattr(processes, "STUCK_S", 0.4)

    def slow(watch):
        for pause in (0.2, 0.3, 0.35, 0.3, 0.9):
            watch.progress("it")
            time.sleep(pause)
        watch.wait()

    process = start(other, tmp_path, 1, 2, slow)
    with ProcessWatch(tmp_path, 0, 2) as watch:
        watch.progress("little")
        watch.wait()
    process.join(5)
    assert process.exitcode == 0


def test_the_log_of_the_lost_process_is_named(tmp_path, start):
    def logged(folder):
        with ProcessWatch(folder, 1, 2, log="run/processes/1.log") as watch:
            kill_self(watch)

    start(logged, tmp_path)
    words = r"whose messages are in run/processes/1.log, died"
    with pytest.raises(LostProcessError, match=words), ProcessWatch(tmp_path, 0, 2) as watch:
        watch.wait()


def test_wrong_clocks_lose_nobody(tmp_path, start, monkeypatch):
    """Times of files and the wall clock are wrong by days in both directions, and jump."""

    def skewed(watch):
        for jump in (-3e5, 3e5, 0.0) * 10:
            os.utime(tmp_path / "1.json", (time.time() + jump, time.time() + jump))
            watch.check()
            time.sleep(0.05)
        watch.wait()

    monkeypatch.setattr(time, "time", lambda: 12.0)
    process = start(other, tmp_path, 1, 2, skewed)
    with ProcessWatch(tmp_path, 0, 2) as watch:
        watch.wait()
    process.join(5)
    assert process.exitcode == 0


def test_signs_of_an_earlier_run_are_not_taken_for_this_one(tmp_path, start, within):
    """A fixed port gives two runs in turn the same folder; the first was killed."""
    process = start(other, tmp_path, 1, 2, kill_self)
    process.join(5)
    assert signs(tmp_path)[1]["state"] == "running"

    def again(folder):
        time.sleep(0.5)
        with ProcessWatch(folder, 1, 2, fresh=False) as watch:
            watch.wait()

    start(again, tmp_path)
    with within(8), ProcessWatch(tmp_path, 0, 2, fresh=False) as watch:
        watch.wait()


def test_a_second_that_the_first_forgot_is_told(tmp_path, start, within):
    start(other, tmp_path, 0, 2, lambda watch: time.sleep(0.2))
    said = []
    with within(8), ProcessWatch(tmp_path, 1, 2, end=said.append):
        deadline = time.monotonic() + 6
        while not said and time.monotonic() < deadline:
            time.sleep(0.02)
    assert "finished without this one" in said[0]


def test_only_signs_of_the_dead_are_cleared(tmp_path, start, until):
    alive, dead = tmp_path / "alive", tmp_path / "dead"
    start(other, alive, 0, 2, lambda watch: time.sleep(30))
    killed = start(other, dead, 0, 2, kill_self)
    killed.join(5)
    until(lambda: (alive / "0.json").exists())
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "0.json").write_text(json.dumps({"host": "another-machine", "state": "running"}))
    clear_signs(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alive", "foreign"]


def test_a_process_ends_with_the_one_that_started_it(tmp_path, start, until):
    pid = tmp_path / "pid"

    def parent():
        if os.fork() == 0:
            end_with_parent()
            pid.write_text(str(os.getpid()))
            time.sleep(60)
        time.sleep(0.5)
        os._exit(0)

    start(parent).join(10)
    child = int(pid.read_text())

    def gone():
        try:
            return Path(f"/proc/{child}/stat").read_text().split(")")[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(gone, 10)


@pytest.mark.parametrize(
    ("environment", "rank", "size", "starter"),
    [
        ({}, 0, 1, ""),
        ({"RANK": "2", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "1"}, 2, 4, "torchrun"),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "1", "SLURM_JOB_ID": "7"}, 1, 3, "srun"),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}, 0, 1, ""),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "5", "NODE_RANK": "0"}, 1, 2, "trainer"),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, 1000, 0, "hand"),
        ({"NODE_RANK": "1"}, 1000, 0, "hand"),
        ({"NODE_RANK": "0", "LOCAL_RANK": "1"}, 1, 0, "hand"),
        ({"NODE_RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "NNODES": "2"}, 3, 4, "trainer"),
    ],
)
def test_a_process_knows_its_place(monkeypatch, environment, rank, size, starter):
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = place()
    assert (found.rank, found.world_size, found.starter) == (rank, size, starter)
    assert found.is_first == (rank == 0)
    assert (found == ALONE) == (starter == "")
