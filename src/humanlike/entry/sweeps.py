"""Sweeps: every job leaves its outcome, finished jobs are skipped, the end shows a table of what happened."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

OUTCOME = "outcome.json"
WORDS = {0: "done", 1: "failed", 3: "done, with losses"}


def record_outcome(folder: Path, status: int, overrides: str) -> None:
    """Write a job's outcome into its folder, for the table at the end of the sweep."""
    from humanlike.files import write_json

    write_json(folder / OUTCOME, {"status": status, "overrides": overrides, "finished": time.time()})


class SweepSummary(Callback):
    """Hydra callback: after a sweep, print one line a job and set the exit status (3 when any job failed)."""

    status: int | None = None

    def on_multirun_start(self, config: Any, **kwargs: Any) -> None:
        """Remember when the sweep began, so that outcomes of earlier sweeps in the same folder are left out."""
        self.started = time.time()

    def on_multirun_end(self, config: Any, **kwargs: Any) -> None:
        """Collect the outcomes of this sweep's jobs."""
        from rich.console import Console
        from rich.table import Table

        folder = Path(config.hydra.sweep.dir)
        rows = [(p.parent, json.loads(p.read_text())) for p in sorted(folder.rglob(OUTCOME))]
        rows = [(where, o) for where, o in rows if o["finished"] >= self.started]
        table = Table(title=f"sweep in {folder}")
        for column in ("job", "outcome", "folder"):
            table.add_column(column)
        for where, outcome in rows:
            word = WORDS.get(outcome["status"], "failed")
            table.add_row(outcome["overrides"] or "(defaults)", word, str(where))
        Console(stderr=True).print(table)
        SweepSummary.status = 3 if any(o["status"] for _, o in rows) else 0
