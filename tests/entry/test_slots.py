"""Devices and cores that jobs on one machine share without meeting."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from humanlike.entry.slots import Slot, make_slots, visible_devices


def test_every_device_and_core_is_given_once(tmp_path):
    slots = make_slots(tmp_path, None, devices=["0", "1", "2", "3"], devices_a_job=2, cores=range(7)).slots
    assert [s.devices for s in slots] == [("0", "1"), ("2", "3")]
    assert [s.cores for s in slots] == [(0, 1, 2), (3, 4, 5)]


def test_without_devices_jobs_share_the_cores(tmp_path):
    assert len(make_slots(tmp_path, None, cores=range(8)).slots) == 4
    assert len(make_slots(tmp_path, None, cores=range(2)).slots) == 2
    assert len(make_slots(tmp_path, None, cores=range(1)).slots) == 1
    assert [s.cores for s in make_slots(tmp_path, 3, cores=[4, 5]).slots] == [(4,), (5,), (4,)]


def test_jobs_on_the_cpu_leave_devices_alone(tmp_path):
    assert all(not s.devices for s in make_slots(tmp_path, 2, devices=["0"], devices_a_job=0, cores=range(2)).slots)


def test_a_device_named_twice_serves_two_jobs(tmp_path):
    slots = make_slots(tmp_path, None, devices=[0, 0], devices_a_job=1, cores=range(4)).slots
    assert [s.devices for s in slots] == [("0",), ("0",)]


@pytest.mark.parametrize(
    ("n_jobs", "devices", "each", "message"),
    [
        (3, ["0", "1"], 1, r"n_jobs=3 jobs of 1 device\(s\) do not fit on 2 \(0, 1\): set n_jobs=2"),
        (None, ["0"], 2, "every job uses 2 devices and 1 can be shared"),
        (0, None, 0, "n_jobs must be at least 1, or null to choose, got 0"),
    ],
)
def test_what_does_not_fit_is_a_sentence(n_jobs, devices, each, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        make_slots(tmp_path, n_jobs, devices=devices, devices_a_job=each, cores=range(4))


def test_the_map_names_ranges():
    assert str(Slot(("0", "1"), (0, 1, 2, 5))) == "devices 0,1, cores 0-2,5"
    assert str(Slot((), (3,))) == "core 3"


def test_devices_are_those_that_the_process_may_see(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 5")
    assert visible_devices() == ("2", "5")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_devices() == ()


TAKE = """
import json, os, sys, time
from pathlib import Path
from humanlike.entry.slots import make_slots
slots = make_slots(Path(sys.argv[1]), 2, devices=["a", "b"], devices_a_job=1)
slot = slots.take()
assert slots.take() is slot
print(json.dumps([os.environ["CUDA_VISIBLE_DEVICES"], sorted(os.sched_getaffinity(0))]), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot confine a process to cores")
def test_processes_take_different_places_and_a_kill_frees_one(tmp_path):
    def start():
        return subprocess.Popen(
            [sys.executable, "-c", TAKE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    first, second = start(), start()
    told = [json.loads(p.stdout.readline()) for p in (first, second)]
    assert sorted(device for device, _ in told) == ["a", "b"]
    cores = os.sched_getaffinity(0)
    if len(cores) >= 2:
        assert not set(told[0][1]) & set(told[1][1])
    assert set(told[0][1]) | set(told[1][1]) <= cores
    third = start()
    first.kill()
    first.wait()
    assert json.loads(third.stdout.readline()) == told[0]
    for process in (first, second, third):
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
