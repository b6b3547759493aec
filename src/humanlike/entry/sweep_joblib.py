"""`hydra/launcher=joblib`: jobs in a few processes of this machine, which stay warm from job to job."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from humanlike.entry.outcomes import read_outcome
from humanlike.entry.slots import THREADS, Slots
from humanlike.entry.sweep_launcher import Planned, SweepLauncher, SweepTask


class JoblibLauncher(SweepLauncher):
    """Runs jobs in joblib's pool of processes (loky), each process with devices and cores of its own.

    When a process dies (out of memory, a crash), the pool ends all its neighbours too. Their jobs are begun again one
    at a time, so that the one that kills its process is known and the others finish.
    """

    def run(self, todo: Sequence[Planned]) -> Mapping[int, str]:
        """See `SweepLauncher.run`."""
        slots = self.local_slots(todo)
        count = len(slots.slots)
        print(f"{len(todo)} jobs, {count} at a time:\n{slots.describe()}", file=sys.stderr)
        if self._finish(todo, slots, count):
            return {}
        for planned in todo:
            if (read_outcome(planned.folder) or {"status": 0})["status"] is None:
                self.forget(planned)
                self._finish([planned], slots, 1)
        return {}

    def _finish(self, todo: Sequence[Planned], slots: Slots, count: int) -> bool:
        """Run jobs in a pool; False when one of its processes died."""
        from importlib import import_module

        loky: Any = import_module("joblib.externals.loky.process_executor")

        each = str(max(1, len(slots.slots[0].cores)))
        timeout = self.settings.get("timeout_min")
        pool = loky.ProcessPoolExecutor(max_workers=min(count, len(todo)), env=dict.fromkeys(THREADS, each))
        try:
            futures = [pool.submit(SweepTask((planned.job,), slots, timeout)) for planned in todo]
            broken = False
            for future in futures:
                try:
                    future.result()
                except loky.BrokenProcessPool:
                    broken = True
            return not broken
        finally:
            pool.shutdown(wait=True, kill_workers=True)
