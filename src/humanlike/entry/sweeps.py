"""Sweeps: every job leaves its outcome, finished jobs are skipped, the end shows a table of what happened."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

OUTCOME = "outcome.json"
WORDS = {0: "done", 1: "failed", 3: "done, with losses"}


def record_outcome(folder: Path, status: int, overrides: str, why: str = "") -> None:
    """Write a job's outcome into its folder, for the table at the end of the sweep.

    Args:
        folder: The job's folder.
        status: Its exit status.
        overrides: Its overrides, joined by commas.
        why: The sentence of the error, when it failed.
    """
    from humanlike.files import write_json

    outcome = {"status": status, "overrides": overrides, "why": why, "finished": time.time()}
    write_json(folder / OUTCOME, outcome)


class SweepSummary(Callback):
    """Hydra callback: refuse a folder that cannot be written before anything runs; after a sweep, one line a job.

    The exit status of a sweep is 3 when any job failed.
    """

    status: int | None = None

    def on_run_start(self, config: Any, **kwargs: Any) -> None:
        """Make the run's folder, which Hydra would do with a traceback where it cannot."""
        make_folder(Path(config.hydra.run.dir))

    def on_multirun_start(self, config: Any, **kwargs: Any) -> None:
        """Remember when the sweep began, so that outcomes of earlier sweeps in the same folder are left out."""
        make_folder(Path(config.hydra.sweep.dir))
        self.started = time.time()

    def on_multirun_end(self, config: Any, **kwargs: Any) -> None:
        """Collect the outcomes of this sweep's jobs."""
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        folder = Path(config.hydra.sweep.dir)
        outcomes = [{"folder": p.parent, **json.loads(p.read_text())} for p in folder.rglob(OUTCOME)]
        rows = sorted((o for o in outcomes if o["finished"] >= self.started), key=lambda o: o["finished"])
        table = Table(title=f"sweep in {folder}")
        for column in ("job", "outcome", "folder"):
            table.add_column(column, overflow="fold")
        for name, outcome in zip(distinguishing([o["overrides"] for o in rows]), rows, strict=True):
            word = WORDS.get(outcome["status"], "failed")
            why = f": {outcome['why']}" if outcome.get("why") else ""
            table.add_row(escape(name), escape(word + why), escape(str(outcome["folder"].relative_to(folder))))
        Console(stderr=True).print(table)
        SweepSummary.status = 3 if any(o["status"] for o in rows) else 0


def distinguishing(overrides: Sequence[str]) -> list[str]:
    """What tells jobs apart: the overrides that not all of them share.

    Example:
        >>> distinguishing(["seed=0,size=[8,8]", "seed=1,size=[8,8]"])
        ['seed=0', 'seed=1']
    """
    parts = [re.split(r",(?=[~+]*[\w./@]+=)", text) for text in overrides]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    return [", ".join(p for p in own if p not in shared) or "(defaults)" for own in parts]


def make_folder(folder: Path) -> None:
    """Make a folder that can be written, or leave with a sentence."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, "it cannot be written")
    except OSError as error:
        # Hydra swallows exceptions of callbacks, but not this one.
        print(
            f"error: cannot use the folder {folder} ({error.strerror}); point paths.output_dir at a folder of your own",
            file=sys.stderr,
        )
        sys.exit(1)
