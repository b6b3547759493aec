from __future__ import annotations

import io

import pytest

from humanlike.backbones import progress
from humanlike.backbones.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_every_ten_seconds(clock):
    stream = io.StringIO()
    report = Progress(100, "features", stream=stream)
    for second in range(1, 26):
        clock[0] = second
        report.advance(4)
    report.close()
    assert stream.getvalue().splitlines() == [
        "features 40/100 images, 4.0 images/s, 0:15 left",
        "features 80/100 images, 4.0 images/s, 0:05 left",
        "features 100/100 images, 4.0 images/s, 0:00 left",
    ]


def test_a_short_run_says_nothing_in_a_log(clock):
    stream = io.StringIO()
    report = Progress(10, "features", stream=stream)
    clock[0] = 1.0
    report.advance(10)
    report.close()
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_on_one_line(clock):
    stream = Terminal()
    report = Progress(10, "features", stream=stream)
    clock[0] = 1.0
    report.advance(5)
    report.close()
    assert "[##########          ] 5/10 images, 5.0 images/s, 0:01 left" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_silence_can_be_asked_for(clock):
    stream = Terminal()
    report = Progress(10, "features", enabled=False, stream=stream)
    clock[0] = 30.0
    report.advance(10)
    report.close()
    assert stream.getvalue() == ""
