"""Extraction on several processes of which one dies, fails or stops: a named error, only its shard lost."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from filelock import FileLock

from humanlike import processes
from humanlike.backbones.extractor import FeatureExtractor
from humanlike.data.images import BadImageError
from humanlike.processes import LostProcessError, StuckProcessError

STEP = FeatureExtractor._step


@pytest.fixture
def at(monkeypatch):
    """`at(b, act)`: the process that comes to micro-batch b calls `act`."""

    def arrange(index, act):
        def step(self, batch):
            if batch["index"] == index:
                act()
            return STEP(self, batch)

        monkeypatch.setattr(FeatureExtractor, "_step", step)
        return lambda: monkeypatch.setattr(FeatureExtractor, "_step", STEP)

    return arrange


def shards(folder):
    return {p: p.stat().st_mtime_ns for p in folder.rglob("[0-9]*.safetensors")}


def raises(error):
    def act():
        raise error

    return act


@pytest.mark.parametrize(("first", "then"), [(2, 3), (3, 1), (2, 7)])
def test_a_killed_process_is_named_and_any_number_goes_on(at, extract, noise, tmp_path, within, first, then):
    data = noise(37)
    undisturbed = extract(data)
    mend = at(5, lambda: os.kill(os.getpid(), signal.SIGKILL))
    rank = 5 % first
    words = rf"process {rank + 1} of {first} .*(SIGKILL|died without a message)"
    with within(20), pytest.raises(LostProcessError, match=words):
        extract(data, first, tmp_path)
    kept = shards(tmp_path)
    assert 1 <= len(kept) < 10
    mend()
    found = extract(data, then, tmp_path)
    assert np.array_equal(found.f_ND, undisturbed.f_ND)
    assert found.hashes == undisturbed.hashes
    assert found.info["shards_computed"] == 10 - len(kept)
    assert {p: t for p, t in shards(tmp_path).items() if p in kept} == kept
    assert not list(tmp_path.rglob("processes/*")), "signs of processes are cleared away"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (BadImageError("noise_21.png", "truncated"), BadImageError, "noise_21.png: truncated"),
        (ValueError("layer 'x' gives NaN"), ValueError, "layer 'x' gives NaN"),
        (OSError(28, "cannot write a: the disk is full"), OSError, "the disk is full"),
        (ZeroDivisionError("by zero"), LostProcessError, "process [12] of 2 failed: ZeroDivisionError: by zero"),
    ],
)
def test_an_error_of_one_process_is_told_as_on_one(at, extract, noise, tmp_path, within, error, kind, words):
    at(5, raises(error))
    with within(20), pytest.raises(kind, match=words) as told:
        extract(noise(37), 2, tmp_path)
    assert "Traceback" not in str(told.value)


def test_a_stopped_process_is_found_by_its_silence(at, extract, noise, tmp_path, within, monkeypatch):
    for name, value in {"BEAT_S": 0.1, "SILENT_S": 1.5, "GRACE_S": 0.5}.items():
        monkeypatch.setattr(processes, name, value)
    at(5, lambda: os.kill(os.getpid(), signal.SIGSTOP))
    with within(30), pytest.raises(LostProcessError, match=r"process 2 of 2 .*(no sign of life|SIGKILL)"):
        extract(noise(37), 2, tmp_path)


def loop_for_ever():
    while True:
        pass


def test_a_process_in_an_endless_loop_is_named_with_what_it_is_at(at, extract, noise, tmp_path, within, monkeypatch):
    monkeypatch.setattr(processes, "BEAT_S", 0.1)
    monkeypatch.setattr(processes, "STUCK_S", 3.0)
    mend = at(5, loop_for_ever)
    with within(60), pytest.raises(StuckProcessError, match=r"process 2 of 2 .* has been at micro-batch 5 of 10 for"):
        extract(noise(37), 2, tmp_path)
    mend()
    assert extract(noise(37), 2, tmp_path).hashes == extract(noise(37)).hashes


def test_who_waits_for_the_shard_of_another_job_is_not_stuck(extract, noise, start, until, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "STUCK_S", 1.0)
    monkeypatch.setattr("humanlike.backbones.extractor.LOCK_S", 0.1)
    whole = extract(noise(37), 1, tmp_path)
    first = min(shards(tmp_path))
    first.unlink()
    holds = tmp_path / "holds"

    def holder():
        lock = FileLock(first.parent.parent / "locks" / f"{first.stem}.lock")
        with lock:
            holds.touch()
            time.sleep(4.0)

    start(holder)
    until(holds.exists)
    assert extract(noise(37), 2, tmp_path).hashes == whole.hashes


def test_others_stop_in_the_middle_of_their_work(at, extract, noise, tmp_path, within, monkeypatch):
    """The process that is left has an hour of work before it; it must not do it first."""
    monkeypatch.setattr(processes, "BEAT_S", 0.1)

    def step(self, batch):
        if self.trainer.global_rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP if batch["index"] == 5 else 0)
        else:
            time.sleep(0.5)
        return STEP(self, batch)

    monkeypatch.setattr(processes, "SILENT_S", 1.5)
    monkeypatch.setattr(FeatureExtractor, "_step", step)
    with within(30), pytest.raises(LostProcessError, match="process 2 of 2"):
        extract(noise(4 * 2 * 3600), 2, tmp_path)
