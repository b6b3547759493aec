"""Lightning's loggers for runs that are killed and go on: one CSV file, one TensorBoard run, one wandb run a job.

Each keeps which series it has shown at which step. When a job goes on, `go_on` adds the rows of `log.jsonl` that the
dashboard has lost, and steps that training repeats after its last checkpoint are passed over. What a dashboard cannot
take back, it keeps as it was first shown; `log.jsonl` holds everything.
"""

from __future__ import annotations

import os
import secrets
import string
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger, WandbLogger
from pytorch_lightning.loggers.logger import rank_zero_experiment
from pytorch_lightning.utilities import rank_zero_only

from humanlike.files import write_text
from humanlike.reports.dashboard_history import Row, Shown, missing_rows
from humanlike.reports.wandb_file import read_wandb_file

GLOBAL_STEP = "trainer/global_step"
MODES = ("offline", "online", "disabled")
RESUMES = "resumes"


class CsvRun(CSVLogger):
    """`metrics.csv`: one row a step. Lightning's logger begins the file anew; this one puts the earlier rows back.

    Args:
        save_dir: Folder.
        name: Folder below it, "" for none.
        version: Folder below that, "" for none.
    """

    def __init__(self, save_dir: str | Path, name: str = "", version: str = "") -> None:
        super().__init__(save_dir, name=name, version=version)
        self._shown = Shown()

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """What writes the file; started at the first call."""
        with warnings.catch_warnings():
            # A folder has one run: its file is begun anew, and a run that goes on has its rows put back.
            warnings.filterwarnings("ignore", message="Experiment logs directory .* exists and is not empty")
            return super().experiment

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """See `Logger.log_metrics`."""
        if values := self._shown.fresh(metrics, step):
            super().log_metrics(values, step)

    def go_on(self, rows: Sequence[Row]) -> None:
        """Put the rows of the log back."""
        for row in rows:
            self.log_metrics(dict(row.values), row.step)


class TensorBoardRun(TensorBoardLogger):
    """Event files in one folder; what a kill has kept from the disk is added from the log.

    Args:
        save_dir: Folder.
        name: Folder below it, "" for none.
        version: Folder below that, "" for none.
        further: Keywords of Lightning's logger.

    Raises:
        ModuleNotFoundError: tensorboard is not there.
    """

    def __init__(self, save_dir: str | Path, name: str = "", version: str = "", **further: Any) -> None:
        if find_spec("tensorboard") is None:
            raise ModuleNotFoundError(
                "logger=tensorboard needs tensorboard: pip install 'humanlike[tensorboard]'", name="tensorboard"
            )
        super().__init__(save_dir, name=name, version=version, **further)
        self._shown = Shown()

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """See `Logger.log_metrics`."""
        if values := self._shown.fresh(metrics, step):
            super().log_metrics(values, step)

    def go_on(self, rows: Sequence[Row]) -> None:
        """Add the rows that the event files lack."""
        self._shown = Shown(_tensorboard_rows(self.log_dir))
        for row in missing_rows(rows, self._shown):
            super().log_metrics(dict(row.values), row.step)


def _tensorboard_rows(folder: str) -> list[Row]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    if not Path(folder).is_dir():
        return []
    events = EventAccumulator(folder, {"scalars": 0, "images": 1, "tensors": 1})
    events.Reload()
    return [Row(e.step, {tag: e.value}) for tag in events.Tags()["scalars"] for e in events.Scalars(tag)]


class WandbRun(WandbLogger):
    """One Weights & Biases run a job, also when the job is killed and goes on; nothing needs an account.

    The run's id stands in `save_dir/run_id`. A job that goes on opens the same id. Offline, that is a second file of
    the same run, whose steps follow those of the first (`wandb sync` sends both, the older first); online, the server
    goes on. Under an agent of `wandb sweep` the id is the agent's.

    Args:
        save_dir: Folder.
        name: Name that is shown.
        project: Project.
        mode: "offline" (files that `wandb sync` can send later), "online" (needs an account) or "disabled".
        offline: Whether the network is ruled out, whatever `mode` says.
        resume: Whether an earlier job in this folder is gone on with.
        further: Keywords of `wandb.init`, such as `entity`, `group`, `tags`, `job_type`.

    Raises:
        ValueError: When `mode` is unknown.
    """

    def __init__(
        self,
        save_dir: str | Path,
        name: str | None = None,
        project: str = "humanlike",
        mode: str = "offline",
        offline: bool = False,
        resume: bool = True,
        **further: Any,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"wandb's mode must be one of {', '.join(MODES)}, got {mode!r} (logger.wandb.mode)")
        # Not Lightning's keyword `offline`, which switches the whole process and with it the next jobs of a sweep.
        mode = "offline" if offline and mode == "online" else mode
        self._folder = Path(save_dir)
        self._earlier = self._files_of(_kept_id(self._folder)) if resume and mode != "disabled" else []
        run_id = _agent_id() or (_kept_id(self._folder) if resume else None) or _new_id()
        if mode != "disabled":
            write_text(self._folder / "run_id", run_id + "\n")
        super().__init__(name=name, save_dir=save_dir, id=run_id, project=project, mode=mode, **further)
        self._shown = Shown()

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """The run; started at the first call."""
        is_new = self._experiment is None
        run = super().experiment
        if is_new and self._earlier:
            files = [read_wandb_file(path) for path in self._earlier]
            history = [row for file in files for row in file.history]
            self._shown = Shown(_wandb_rows(history))
            run.define_metric(RESUMES, hidden=True)
            following = 1 + max((int(row.get("_step", -1)) for row in history), default=-1)
            # The first row says where the steps go on; all others follow it.
            run.log({RESUMES: len(files)}, step=following, commit=True)
        return run

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """See `Logger.log_metrics`; pictures and tables too."""
        _ = self.experiment  # which reads what was shown before
        if values := self._shown.fresh(metrics, step):
            super().log_metrics(values, step)

    def go_on(self, rows: Sequence[Row]) -> None:
        """Add the rows that the run's files lack."""
        _ = self.experiment
        for row in missing_rows(rows, self._shown):
            super().log_metrics(dict(row.values), row.step)

    def _files_of(self, run_id: str | None) -> list[Path]:
        """The files of a run, the oldest first: their folders begin with the time.

        Folders of one second end on `-1`, `-2`, …: `offline-run-20260131_120000-ID-1`.
        """
        found = self._folder.glob(f"wandb/*run-*-{run_id}*/run-{run_id}.wandb") if run_id else ()
        return sorted(
            found, key=lambda path: (path.parent.name.partition(f"-{run_id}")[0], len(path.parent.name), path)
        )


def _kept_id(folder: Path) -> str | None:
    file = folder / "run_id"
    return file.read_text(encoding="utf-8").strip() or None if file.is_file() else None


def _agent_id() -> str | None:
    """The id that an agent of a sweep gives its one job; of several jobs of one process each needs its own."""
    return os.environ.get("WANDB_RUN_ID") if os.environ.get("WANDB_SWEEP_ID") else None


def _new_id() -> str:
    """Eight letters and digits, as wandb's own; not from the seeded generators, or equal runs would be one."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))


def _wandb_rows(history: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows with their steps; of a nested value (a picture, a table) the name that it was logged under."""
    return [
        Row(int(row[GLOBAL_STEP]), {name: 0.0 for key in row if not key.startswith("_") for name in _names(key)})
        for row in history
        if GLOBAL_STEP in row
    ]


def _names(key: str) -> set[str]:
    """The key, and what it may be nested in."""
    parts = key.split(".")
    return {".".join(parts[: n + 1]) for n in range(len(parts))}
