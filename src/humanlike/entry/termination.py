"""Jobs that are told to end, or whose time is over: what fails after that is no failure of their own.

Slurm's `scancel` and preemption send SIGTERM to all processes of a job, to helpers of dashboards too, and kill what is
left some seconds later. submitit lets the signal pass, so that a job would see its helpers die and report a failure of
its own, and a job that is requeued would count as failed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_told: list[int] = []
_over: list[TimeoutError] = []


def notice_the_end() -> None:
    """Remember from now on that SIGTERM came; whatever handled it before still does."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)
    if getattr(before, "notices", False):
        return

    def told(number: int, frame: Any) -> None:
        _told.append(number)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            leave_if_told()

    told.notices = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGTERM, told)


def leave_if_told() -> None:
    """End this process, as one that was killed, when it was told to end; its job's outcome stays open."""
    if not _told:
        return
    print("told to end: what was computed so far is kept; run the same command again to go on", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(128 + _told[0])


@contextmanager
def deadline(minutes: float | None) -> Iterator[None]:
    """Raise TimeoutError in the block when it takes longer."""
    _over.clear()
    if minutes is None or not hasattr(signal, "setitimer"):
        yield
        return

    def over(*_: object) -> None:
        _over.append(TimeoutError(f"the job took longer than hydra.launcher.timeout_min={minutes:g}"))
        raise _over[0]

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, minutes * 60)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def first_cause(error: Exception) -> Exception:
    """The error, or that the time was over where that came first: an import that is cut in two says other things."""
    return _over[0] if _over else error
