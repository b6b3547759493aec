from __future__ import annotations

import errno
import json
import multiprocessing
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from humanlike.reports.event_log import EventLog, read_events


def test_events_are_json_lines_on_disk_at_once(tmp_path):
    path = tmp_path / "deep" / "log.jsonl"
    log = EventLog(path)
    log.write("start", seed=np.int64(3), loss=float("nan"), name="é\n")
    (line,) = path.read_text(encoding="utf-8").splitlines()
    event = json.loads(line)
    assert datetime.fromisoformat(event.pop("time")).utcoffset().total_seconds() == 0
    assert event == {"event": "start", "seed": 3, "loss": None, "name": "é\n"}
    log.close()
    log.write("again")
    log.close()
    assert [e["event"] for e in read_events(path)] == ["start", "again"]


@pytest.mark.parametrize("kept", [1, 5, -1])
def test_a_torn_last_line_is_left_out_and_the_log_goes_on(tmp_path, kept):
    path = tmp_path / "log.jsonl"
    with EventLog(path) as log:
        log.write("one")
        log.write("two")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:kept].rstrip(b"\n")[: len(second) - 3])
    assert [e["event"] for e in read_events(path)] == ["one"]
    with EventLog(path) as log:
        log.write("three")
    assert [e["event"] for e in read_events(path)] == ["one", "log_resumed", "three"]


def test_a_broken_line_elsewhere_is_an_error(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "a"}\nnot json\n{"event": "b"}\n')
    with pytest.raises(ValueError, match="line 2"):
        read_events(path)
    with pytest.raises(FileNotFoundError, match="no event log"):
        read_events(tmp_path / "absent")
    with pytest.raises(ValueError, match="'time'"):
        EventLog(path).write("x", time=1)


def _write_many(path, worker):
    with EventLog(path) as log:
        for i in range(100):
            log.write("tick", worker=worker, i=i, filler="x" * 300)


def test_processes_share_a_log_without_mixing_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    EventLog(path).write("start")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_many, args=(path, w)) for w in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    events = read_events(path)[1:]
    assert sorted((e["worker"], e["i"]) for e in events) == [(w, i) for w in range(3) for i in range(100)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_names_the_log(tmp_path):
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"cannot write .*log\.jsonl: the disk is full; free space") as caught:
        EventLog(tmp_path / "log.jsonl").write("started")
    assert caught.value.errno == errno.ENOSPC
