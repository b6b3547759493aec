"""Places for jobs that run side by side on one machine: each has devices and cores that no other has.

A process takes a free place when its first job begins and keeps it until it ends, because neither CUDA nor OpenMP lets
go of what it has seen. A place is held by a lock on a file, which the system frees however the process ends.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from humanlike.cores import own_cores

VISIBLE = "CUDA_VISIBLE_DEVICES"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Slot:
    """What one process may use.

    Attributes:
        devices: Names for CUDA_VISIBLE_DEVICES; none: whatever the machine shows.
        cores: CPU cores.
    """

    devices: tuple[str, ...]
    cores: tuple[int, ...]

    def __str__(self) -> str:
        cores = f"core{'s' * (len(self.cores) > 1)} {_ranges(self.cores)}" if self.cores else "any core"
        return f"device{'s' * (len(self.devices) > 1)} {','.join(self.devices)}, {cores}" if self.devices else cores

    def use(self) -> None:
        """Confine this process, and what it starts, to the place."""
        if self.devices:
            os.environ[VISIBLE] = ",".join(self.devices)
        if self.cores and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.cores)
        for name in THREADS:
            if self.cores and int(os.environ.get(name) or len(self.cores)) >= len(self.cores):
                os.environ[name] = str(len(self.cores))


@dataclass(frozen=True)
class Slots:
    """The places of one sweep on one machine.

    Attributes:
        key: Tells sweeps apart.
        slots: The places.
    """

    key: str
    slots: tuple[Slot, ...]

    def take(self) -> Slot:
        """The place of this process: the one it holds, or the first free one; waits while none is."""
        if self.key not in _HELD:
            _HELD[self.key] = self._free()
            _HELD[self.key][1].use()
        return _HELD[self.key][1]

    def describe(self) -> str:
        """The map of devices and cores, one line a place."""
        return "\n".join(f"  process {i}: {slot}" for i, slot in enumerate(self.slots))

    def _free(self) -> tuple[Any, Slot]:
        from filelock import FileLock, Timeout

        folder = Path(tempfile.gettempdir()) / f"humanlike-slots-{_user()}" / self.key
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            for number, slot in enumerate(self.slots):
                lock = FileLock(folder / f"{number}.lock")
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    continue
                return lock, slot
            time.sleep(0.1)


_HELD: dict[str, tuple[Any, Slot]] = {}


def make_slots(
    sweep: Path,
    n_jobs: int | None,
    *,
    devices: Sequence[str | int] | None = None,
    devices_a_job: int = 0,
    cores: Sequence[int] | None = None,
) -> Slots:
    """Share a machine between the jobs of a sweep.

    Args:
        sweep: The sweep's folder.
        n_jobs: Jobs side by side; None: as many as the devices allow, without devices one for every two cores, and two
            at least where there are two cores.
        devices: Devices to share; None: those that are visible. One that is named twice serves two jobs.
        devices_a_job: Devices that every job uses; 0: the jobs compute on the CPU.
        cores: Cores to share; None: those that this process may use.

    Raises:
        ValueError: For more jobs than devices, or fewer devices than one job needs.

    Example:
        >>> slots = make_slots(Path("sweep"), 2, devices=["0", "1"], devices_a_job=1, cores=range(8))
        >>> print(slots.describe())
          process 0: device 0, cores 0-3
          process 1: device 1, cores 4-7
    """
    cores = tuple(own_cores() if cores is None else cores)
    names = tuple(str(d) for d in (visible_devices() if devices is None else devices)) if devices_a_job else ()
    room = len(names) // devices_a_job if names else 0
    if names and not room:
        raise ValueError(
            f"every job uses {devices_a_job} devices and {len(names)} can be shared ({', '.join(names)}): "
            "set trainer.devices or hydra.launcher.devices"
        )
    if n_jobs is None:
        n_jobs = room or max(min(2, len(cores)), len(cores) // 2)
    if n_jobs < 1:
        raise ValueError(f"hydra.launcher.n_jobs must be at least 1, or null to choose, got {n_jobs}")
    if names and n_jobs > room:
        raise ValueError(
            f"hydra.launcher.n_jobs={n_jobs} jobs of {devices_a_job} device(s) do not fit on {len(names)} "
            f"({', '.join(names)}): set n_jobs={room}, or name devices several times in hydra.launcher.devices "
            "to share them"
        )
    key = hashlib.sha256(str(sweep.resolve()).encode()).hexdigest()[:16]
    width = devices_a_job if names else 0
    places = [Slot(names[i * width : (i + 1) * width], _share(cores, i, n_jobs)) for i in range(n_jobs)]
    return Slots(key, tuple(places))


def visible_devices() -> tuple[str, ...]:
    """Names of the accelerators of this machine that this process may use, without initialising one of them."""
    told = os.environ.get(VISIBLE)
    if told is not None:
        return tuple(name.strip() for name in told.split(",") if name.strip())
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(str(i) for i in range(sum(line.startswith("GPU ") for line in listed.splitlines())))


def _share(cores: Sequence[int], i: int, n: int) -> tuple[int, ...]:
    """The i-th of n equal shares; where there are fewer cores than shares, one core serves several."""
    each = len(cores) // n
    return tuple(cores[i * each : (i + 1) * each]) if each else (cores[i % len(cores)],)


def _ranges(cores: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"
