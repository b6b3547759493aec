"""Sweeps: every job leaves its outcome, finished jobs are skipped, the end shows a table of what happened."""

from __future__ import annotations

import errno
import itertools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

from humanlike.entry.outcomes import OUTCOME, read_outcome

WORDS = {0: "done", 1: "failed", 3: "done, with losses"}
MARK = ".sweep"


class SweepSummary(Callback):
    """Hydra callback: refuse a folder that cannot be written before anything runs; after a sweep, one line a job.

    The exit status of a sweep is 3 when any job failed.
    """

    status: int | None = None

    def on_run_start(self, config: Any, **kwargs: Any) -> None:
        """Make the run's folder, which Hydra would do with a traceback where it cannot.

        One that is named by the time alone is made for this command: where another has begun in the same second (or
        in the hour that a clock was put back by), the folder is `…-2`, and so on. A folder that somebody has named, or
        that several processes share, may be there already.
        """
        from omegaconf import OmegaConf, read_write

        from humanlike.entry.several_processes import is_started_alone

        folder = Path(config.hydra.run.dir)
        named_by_time = "humanlike.moment" in str(OmegaConf.to_container(config.hydra.run, resolve=False))
        made = make_folder(folder, new=named_by_time and is_started_alone())
        if made != folder:
            with read_write(config.hydra.run):
                config.hydra.run.dir = str(made)

    def on_multirun_start(self, config: Any, **kwargs: Any) -> None:
        """Remember when the sweep began, so that outcomes of earlier sweeps in the same folder are left out."""
        make_folder(Path(config.hydra.sweep.dir))
        # The clock is that of the file system: jobs may run on machines with another one.
        mark = Path(config.hydra.sweep.dir) / MARK
        mark.write_text("touched when a sweep in this folder begins\n")
        self.started = mark.stat().st_mtime_ns

    def on_multirun_end(self, config: Any, **kwargs: Any) -> None:
        """Collect the outcomes of this sweep's jobs."""
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        folder = Path(config.hydra.sweep.dir)
        rows = self._outcomes(folder)
        table = Table(title=f"sweep in {folder}")
        for column in ("job", "outcome", "folder"):
            table.add_column(column, overflow="fold")
        for name, (path, outcome) in zip(distinguishing([o["overrides"] for _, o in rows]), rows, strict=True):
            table.add_row(escape(name), escape(in_words(outcome)), escape(str(path.relative_to(folder))))
        Console(stderr=True).print(table)
        failed = sum(outcome["status"] != 0 for _, outcome in rows)
        if failed:
            print(
                f"{failed} of {len(rows)} jobs did not end well; the same command again repeats only these",
                file=sys.stderr,
            )
        SweepSummary.status = 3 if failed else 0

    def _outcomes(self, folder: Path) -> list[tuple[Path, dict[str, Any]]]:
        """Folder and outcome of every job of this sweep, in the order of their ends; unfinished ones last."""
        found = []
        for path in folder.rglob(OUTCOME):
            outcome = read_outcome(path.parent)
            if outcome is not None and path.stat().st_mtime_ns >= self.started:
                found.append((path.parent, outcome))
        return sorted(found, key=lambda row: (row[1].get("finished") or float("inf"), row[1]["overrides"]))


def in_words(outcome: dict[str, Any]) -> str:
    """What became of a job, for the table.

    Example:
        >>> in_words({"status": 1, "why": "no layer 'x'"}), in_words({"status": 0, "skipped": True})
        ("failed: no layer 'x'", 'done before')
    """
    if outcome["status"] is None:
        return "died: it began and left no result"
    word = "done before" if outcome.get("skipped") else WORDS.get(outcome["status"], "failed")
    return word + (f": {outcome['why']}" if outcome.get("why") else "")


def distinguishing(overrides: Sequence[str]) -> list[str]:
    """What tells jobs apart: the overrides that not all of them share.

    Example:
        >>> distinguishing(["seed=0,size=[8,8]", "seed=1,size=[8,8]"])
        ['seed=0', 'seed=1']
    """
    parts = [re.split(r",(?=[~+]*[\w./@]+=)", text) for text in overrides]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    return [", ".join(p for p in own if p not in shared) or "(defaults)" for own in parts]


def make_folder(folder: Path, new: bool = False) -> Path:
    """Make a folder that can be written, or leave with a sentence.

    Args:
        folder: Its path.
        new: Whether it must not be there yet: the first of `folder`, `folder-2`, `folder-3` … that this process makes.

    Returns:
        The folder that is there now.
    """
    try:
        folder = _new_folder(folder) if new else folder
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
    return folder


def _new_folder(folder: Path) -> Path:
    own = folder
    for number in itertools.count(2):
        try:
            own.mkdir(parents=True)  # of all that try, one makes it
            break
        except FileExistsError:
            if not own.is_dir():
                raise
        own = folder.with_name(f"{folder.name}-{number}")
    return own
