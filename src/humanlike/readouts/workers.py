"""Threads for the passes over the rows: each computes alone with its share, and none waits for another by spinning.

The threads inside one matrix product meet at barriers after every operation. On a machine that others use too, one of
them is often not running, and the rest burn their time waiting: two threads have cost three times the CPU time of one.
Here a task is a few thousand rows for all models, one thread takes the next task when it is done with its last, and
results are added in the order of the tasks, so that they do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

Each = Callable[..., Iterator[Any]]
"""`map`, or a map that works side by side: results in order, the first error raised."""


@contextmanager
def workers(count: int) -> Iterator[Each]:
    """A map over `count` threads, in each of which torch computes with one; `map` itself for one thread.

    torch's own number of threads is 1 meanwhile, and restored afterwards.

    Args:
        count: Number of threads, at least 1.

    Example:
        >>> with workers(2) as each:
        ...     list(each(abs, [-1, 2]))
        [1, 2]
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if count == 1:
            yield map
        else:
            with ThreadPoolExecutor(count) as pool:
                yield pool.map
    finally:
        torch.set_num_threads(before)
