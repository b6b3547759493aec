"""The CPU cores that this process may use, and shares of them for processes that work side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence


def own_cores() -> tuple[int, ...]:
    """The CPU cores that this process may use."""
    # A cluster's job often may use fewer cores than the machine has; macOS cannot say.
    return (
        tuple(sorted(os.sched_getaffinity(0)))
        if hasattr(os, "sched_getaffinity")
        else tuple(range(os.cpu_count() or 1))
    )


def share_of_cores(cores: Sequence[int], rank: int, world_size: int, threads: int) -> tuple[int, ...]:
    """The cores of one of several processes; all of them where a share would hold fewer cores than a process's threads.

    Args:
        cores: Cores that the processes may use together.
        rank: This process, 0 … `world_size` - 1.
        world_size: Number of processes.
        threads: Threads of one process.

    Example:
        >>> [share_of_cores(range(5), rank, 2, 2) for rank in range(2)], share_of_cores(range(5), 0, 2, 3)
        ([(0, 1), (2, 3, 4)], (0, 1, 2, 3, 4))
    """
    if len(cores) // world_size < max(threads, 1):
        return tuple(cores)
    return tuple(cores[rank * len(cores) // world_size : (rank + 1) * len(cores) // world_size])


def keep_to_share(rank: int, world_size: int, threads: int) -> None:
    """Confine this thread, and those that it starts from now on, to its share of the cores, for good.

    Left to the system, the network and the thread that loads its images change places among the cores of all
    processes, and every time a core's cache has to be filled anew. Nothing happens where a system cannot do so.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, share_of_cores(own_cores(), rank, world_size, threads))
