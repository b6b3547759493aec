"""A job of a sweep that runs on several processes gets a process of its own, as if it had been started alone.

Lightning starts the further processes of `strategy=ddp` by repeating the command line, which inside a sweep would
repeat the sweep. Here the job becomes a command line of its own: `python -m humanlike.entry.own_process SETTINGS`, in
the same folder, with a port that no other job of this machine has, and with an environment that the next job does not
inherit.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from humanlike.processes import end_with_parent

MODULE = "HUMANLIKE_MODULE"  # of the task whose `main` is run
OVERRIDES = "HUMANLIKE_SWEEP_OVERRIDES"  # of the job, as the sweep names them
PORTS = range(20_000, 30_000)  # below those that systems give to outgoing connections
STARTED_BY_OTHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_RANK")


def processes_a_node(trainer: Mapping[str, Any]) -> int:
    """Processes that a Lightning trainer runs on one machine.

    Args:
        trainer: Its configuration: `devices` as a number, a list, text of either, or "auto" or -1 for all accelerators.

    Example:
        >>> processes_a_node({"devices": 2}), processes_a_node({"devices": "0,3"})
        (2, 2)
    """
    from humanlike.entry.slots import visible_devices

    devices = trainer.get("devices", 1)
    if isinstance(devices, str) and "," in devices:
        devices = [part for part in devices.split(",") if part.strip()]
    if isinstance(devices, Sequence) and not isinstance(devices, str):
        return len(devices)
    if devices in ("auto", -1, "-1"):
        return 1 if trainer.get("accelerator") == "cpu" else max(1, len(visible_devices()))
    return int(devices)


def needs_own_process(trainer: Mapping[str, Any]) -> bool:
    """Whether a job would start processes itself, here and now."""
    by_slurm = "SLURM_PROCID" in os.environ and int(os.environ.get("SLURM_NTASKS", "1")) > 1
    if by_slurm or any(name in os.environ for name in STARTED_BY_OTHERS):
        return False
    return processes_a_node(trainer) > 1


def run_alone(module: str, overrides: Sequence[str], config_dirs: Sequence[str], folder: Path, dirname: str) -> int:
    """Run one job as a command of its own; its outcome is written into `folder` by itself.

    Args:
        module: The task's module, which has a `main`.
        overrides: Settings of the job.
        config_dirs: Further folders of configuration files.
        folder: The job's folder.
        dirname: The job's overrides as the sweep names them.

    Returns:
        The exit status; negative: the signal that ended it.
    """
    where = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    flags = [part for path in config_dirs for part in ("--config-dir", path)]
    command = [sys.executable, "-m", "humanlike.entry.own_process", *flags, *overrides, f"hydra.run.dir='{where}'"]
    with reserved_port() as port:
        environment = {**os.environ, "MASTER_PORT": str(port), MODULE: module, OVERRIDES: dirname}
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        try:
            return process.wait()
        finally:  # whatever ended the waiting, nothing of the job goes on
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def reserved_port() -> Iterator[int]:
    """A TCP port that is free, and that no other job of this machine is given before the block ends."""
    from filelock import FileLock, Timeout

    folder = Path(tempfile.gettempdir()) / f"humanlike-ports-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    folder.mkdir(parents=True, exist_ok=True)
    first = os.getpid() % len(PORTS)  # jobs that begin together mostly try different ones
    for port in (*PORTS[first:], *PORTS[:first]):
        lock = FileLock(folder / f"{port}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        try:
            if _is_free(port):
                yield port
                return
        finally:
            lock.release()
    raise OSError(f"no free TCP port in {PORTS.start}-{PORTS.stop - 1} on this machine")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def main() -> None:
    """Run the command that the environment names."""
    end_with_parent()
    name = os.environ.get(MODULE, "")
    if not name.startswith("humanlike."):
        print(f"error: {MODULE} must name a command's module, got {name!r}; sweeps set it", file=sys.stderr)
        sys.exit(2)
    importlib.import_module(name).main()


if __name__ == "__main__":
    main()
