"""Processes that work together: a watch that tells all others when one of them dies.

Collective operations wait for every process. When one is killed, runs out of memory or stops, the others would wait for
half an hour and then fail with a message on sockets. Here every process leaves a sign of life in a folder that all of
them see, and looks at those of the others. Nothing is compared with a clock that another process wrote: what counts is
whether a sign changes while this process looks at it, and, on one machine, whether its owner still holds its lock,
which the system frees at death.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEAT_S, SILENT_S, APPEAR_S, GRACE_S = 0.5, 35.0, 45.0, 8.0
"""Seconds between signs; without a sign until a process counts as dead; until one must have started; and between the
discovery and the end of a process that cannot react by itself. A death is known to all within the sum of two."""
STUCK_S, STUCK_TIMES = 900.0, 10.0
"""Seconds that one piece of work may take before the process counts as stuck although it gives signs, or so many times
the longest piece so far, if that is more."""
RECORD_BYTES = 4096
RUNNING, ARRIVED, DONE, FAILED = "running", "arrived", "done", "failed"


class LostProcessError(RuntimeError):
    """A process that this one works with has died, failed or gone silent."""


class StuckProcessError(LostProcessError):
    """A process is alive, but its work does not go on."""


class ProcessWatch:
    """Signs of life of the processes of a run.

    Within `with`, a thread renews this process's sign and looks at the others'. Once one is lost, `check` and `wait`
    raise; a process that does neither for `GRACE_S` (it waits inside a collective operation) is ended by `end`.
    The thread lives on where the work hangs (in an endless loop, or in a collective operation that nobody answers). So
    the work says by `progress` that it goes on; when that fails to come, the process fails by itself.

    Args:
        folder: Folder of this run's signs, which all processes see and no other run uses at the same time.
        rank: This process.
        world_size: Number of processes.
        log: File with this process's messages, to be named to the others.
        fresh: Whether the folder's name is unique; otherwise signs may be left over from an earlier run, and one counts
            only once it was seen to change.
        end: Called with a sentence when this process must end; by default it says so and exits with status 1.

    Example:
        >>> import tempfile
        >>> with ProcessWatch(tempfile.mkdtemp(), 0, 1) as watch:
        ...     watch.wait()
    """

    def __init__(
        self,
        folder: str | Path,
        rank: int,
        world_size: int,
        *,
        log: str | Path = "",
        fresh: bool = True,
        end: Callable[[str], None] | None = None,
    ) -> None:
        self.folder, self.rank, self.world_size = Path(folder), rank, world_size
        self.lost = ""
        self.fresh = fresh
        self._end = end or say_and_exit
        self._record = {"state": RUNNING, "why": "", "count": 0, "id": uuid.uuid4().hex, "log": str(log)}
        self._record |= {"host": socket.gethostname(), "pid": os.getpid()}
        self._peers = {r: _Peer(r, self.folder / f"{r}.json", fresh) for r in range(world_size) if r != rank}
        self._worked: float | None = None  # when the work last went on; None: it need not
        self._longest, self._at = 0.0, ""
        self._handle: int | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="humanlike-process-watch", daemon=True)

    def __enter__(self) -> ProcessWatch:
        """Give the first sign.

        Raises:
            OSError: The folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        # Locked before others can see it: a sign without a lock has lost its owner.
        temporary = self.folder / f".{self.rank}.{uuid.uuid4().hex[:8]}.tmp"
        self._handle = os.open(temporary, os.O_RDWR | os.O_CREAT, 0o644)
        _lock(self._handle)
        self._write()
        os.replace(temporary, self.folder / f"{self.rank}.json")
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Leave the last sign: done, or failed with the error."""
        if error is None:
            self._leave(DONE)
        else:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Tell the others that this process fails with `error`; it gives no further signs."""
        self._record["error"] = type(error).__name__
        args = list(error.__reduce__()[1])
        self._record["args"] = args if all(isinstance(a, str | int) for a in args) and len(str(args)) < 1500 else []
        self._leave(FAILED, " ".join(f"{type(error).__name__}: {error}".split()))

    def check(self) -> None:
        """Raise LostProcessError if another process is lost."""
        if self.lost:
            raise LostProcessError(self.lost)

    def progress(self, at: str = "") -> None:
        """Say that this process's work goes on; the next call must come within `STUCK_S`, see there.

        Args:
            at: What it is at, for the message where no further call comes.
        """
        now = time.monotonic()
        if self._worked is not None:
            self._longest = max(self._longest, now - self._worked)
        self._at, self._worked = at, now

    def wait(self) -> None:
        """Wait until every process waits here or is done; those that still work may take as long as they need.

        Raises:
            LostProcessError: One was lost.
        """
        self._worked = None
        self._record["state"] = ARRIVED
        self._write()
        while not all(peer.state() in {ARRIVED, DONE} for peer in self._peers.values()):
            self.check()
            time.sleep(0.02)

    def _leave(self, state: str, why: str = "") -> None:
        if self._handle is None:
            return
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
            if self._handle is None:  # the thread has left by itself meanwhile
                return
        self._record |= {"state": state, "why": why[:1200]}
        self._write()
        os.close(self._handle)
        self._handle = None

    def _write(self) -> None:
        assert self._handle is not None
        self._record["count"] = int(str(self._record["count"])) + 1
        data = json.dumps(self._record).encode().ljust(RECORD_BYTES)
        try:
            os.pwrite(self._handle, data, 0)
        except OSError as error:  # a full disk: the run itself will say so
            self._record["why"] = str(error)

    def _run(self) -> None:
        last, lost_at = time.monotonic(), None
        while not self._stopping.wait(BEAT_S):
            self._write()
            now = time.monotonic()
            if now - last > 10 * BEAT_S:  # this process itself was suspended: what it did not see proves nothing
                for peer in self._peers.values():
                    peer.changed = now
                self._worked = now if self._worked is not None else None
            last = now
            if why := self._is_stuck(now):
                self._record |= {"error": StuckProcessError.__name__, "args": [why]}
                self._leave(FAILED, why)
                self._end(why)
                return
            if not self.lost:
                self.lost = next((why for peer in self._peers.values() if (why := self._judge(peer, now))), "")
                lost_at = now if self.lost else None
            elif lost_at is not None and now - lost_at > GRACE_S:
                self._record |= {"error": LostProcessError.__name__, "args": [self.lost]}
                self._leave(FAILED, self.lost)
                self._end(self.lost)

    def _is_stuck(self, now: float) -> str:
        """Why this process itself counts as stuck, or an empty text."""
        worked, limit = self._worked, max(STUCK_S, STUCK_TIMES * self._longest)
        if worked is None or now - worked <= limit:
            return ""
        who = f"process {self.rank + 1} of {self.world_size} ({self._record['host']}, pid {self._record['pid']})"
        return f"{who} is alive, but has been at {self._at or 'one piece of work'} for {limit:g} s"

    def _judge(self, peer: _Peer, now: float) -> str:
        """Why a process is lost, or an empty text."""
        peer.look(now)
        who = f"process {peer.rank + 1} of {self.world_size}"
        if not peer.alive:
            return f"{who} did not start within {APPEAR_S:g} s" if now - peer.changed > APPEAR_S else ""
        who += f" ({peer.record.get('host')}, pid {peer.record.get('pid')})"
        if log := peer.record.get("log"):
            who += f", whose messages are in {log},"
        if peer.state() == FAILED:
            return f"{who} failed: {peer.record.get('why')}"
        if peer.state() == DONE:
            late = peer.rank == 0 and now - peer.changed > SILENT_S
            return f"{who} finished without this one" if late else ""
        here = peer.record.get("host") == socket.gethostname()
        if here and _is_free(peer.path):
            peer.look(now)  # its last words may have come just now
            if peer.state() in {RUNNING, ARRIVED}:
                return f"{who} died without a message: it was killed, or the memory was full"
        if now - peer.changed <= SILENT_S:
            return ""
        if here and sys.platform != "win32":  # stopped but not dead: it would keep whoever started it waiting
            os.kill(int(peer.record["pid"]), signal.SIGKILL)
        return f"{who} has given no sign of life for {SILENT_S:g} s"


class _Peer:
    """What this process has seen of another."""

    def __init__(self, rank: int, path: Path, fresh: bool) -> None:
        self.rank, self.path, self.alive, self._fresh = rank, path, False, fresh
        self.record: dict[str, Any] = {}
        self.changed = time.monotonic()

    def look(self, now: float) -> None:
        record = read_sign(self.path)
        if not record or record == self.record:
            return
        self.alive = self.alive or self._fresh or bool(self.record)
        self.record, self.changed = record, now

    def state(self) -> str:
        record = read_sign(self.path)
        if record:
            return str(record["state"]) if self.alive or self._fresh else ""
        return DONE if self.alive and not self.path.exists() else ""  # the first process has tidied up


def read_sign(path: Path) -> dict[str, Any]:
    """What a process left in its sign; empty where there is none, or where it is just being written."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def signs(folder: Path) -> dict[int, dict[str, Any]]:
    """Rank → sign of all processes that left one in `folder`."""
    return {int(p.stem): found for p in sorted(folder.glob("[0-9]*.json")) if (found := read_sign(p))}


def clear_signs(folder: Path) -> None:
    """Remove the folders of runs below `folder` whose processes, all of this machine, are dead."""
    for run in folder.glob("*"):
        left = signs(run)
        here = all(sign.get("host") == socket.gethostname() for sign in left.values())
        if left and here and all(_is_free(run / f"{rank}.json") for rank in left):
            shutil.rmtree(run, ignore_errors=True)


def end_with_parent(end: Callable[[str], None] | None = None) -> None:
    """End this process when the one that started it dies; a thread looks every second."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        (end or say_and_exit)("the process that started this one has died")

    threading.Thread(target=look, name="humanlike-parent-watch", daemon=True).start()


def say_and_exit(message: str) -> None:
    """Say why, and end this process at once, whatever it waits for."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    os._exit(1)


def _lock(handle: int) -> None:
    """Lock a file for the life of this process; such a lock is not inherited by processes that are started later."""
    if sys.platform != "win32":
        import fcntl

        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_free(path: Path) -> bool:
    """Whether nobody on this machine holds the lock of `path`; False where that cannot be known."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
