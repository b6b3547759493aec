"""A job that fails after its process was told to end leaves its outcome open."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal

import pytest
from omegaconf import OmegaConf

from humanlike.entry.launch import Job
from humanlike.entry.termination import deadline, notice_the_end


def ended_by(folder, told, before=signal.SIG_DFL):
    """Exit status of a process whose job fails after a signal, or without one."""

    def task(config, folder):
        if told:
            os.kill(os.getpid(), signal.SIGTERM)
        raise RuntimeError("the helper is gone")

    def child():
        signal.signal(signal.SIGTERM, before)
        notice_the_end()
        notice_the_end()
        Job(task).recorded(OmegaConf.create({"a": 1}), folder, "a=1")

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    return process.exitcode


@pytest.mark.parametrize("before", [signal.SIG_DFL, lambda *_: None], ids=["default", "passed over"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_fails_after_the_signal_is_no_failure(tmp_path, before):
    assert ended_by(tmp_path, told=True, before=before) == 128 + signal.SIGTERM
    assert json.loads((tmp_path / "outcome.json").read_text())["status"] is None


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_fails_without_it_is_one(tmp_path):
    assert ended_by(tmp_path, told=False) == 0
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    assert (outcome["status"], outcome["why"].startswith("RuntimeError: the helper is gone")) == (1, True)


def test_what_fails_because_time_is_over_says_so(tmp_path):
    def task(config, folder):
        try:
            while True:
                pass
        except TimeoutError:
            raise AttributeError("a module that was cut in two") from None

    with deadline(0.001):
        Job(task).recorded(OmegaConf.create({"a": 1}), tmp_path, "a=1")
    assert json.loads((tmp_path / "outcome.json").read_text())["why"].startswith("the job took longer than")
    with deadline(None):
        assert Job(lambda *_: 1 / 0).recorded(OmegaConf.create({"a": 1}), tmp_path, "a=1") == 1
    assert "ZeroDivisionError" in json.loads((tmp_path / "outcome.json").read_text())["why"]
