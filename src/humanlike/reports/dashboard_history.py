"""What a run has logged so far, kept in `log.jsonl`, so that a dashboard goes on where a killed job stopped.

`log.jsonl` is the truth: every series goes there first, on disk before anything is sent. A job that goes on hands what
stands there to its dashboards, each of which adds what it has lost; the steps that training repeats after its last
checkpoint are then not shown twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities import rank_zero_only

from humanlike.reports.event_log import EventLog, read_events

METRICS = "metrics"
STARTED = "started"
REPEATED = frozenset({"epoch"})
"""Series that accompany others and do not say by themselves that a step was shown."""


@dataclass(frozen=True)
class Row:
    """What was logged at once.

    Attributes:
        step: Step that the values belong to; None where they belong to none.
        values: Name of a series → number.
    """

    step: int | None
    values: Mapping[str, float]


class EventLogger(Logger):
    """A Lightning logger that writes every number into a run's event log.

    Args:
        log: The run's event log.
    """

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self.log = log

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.log.path.name

    @property
    def version(self) -> str:
        """Empty: a run has one log."""
        return ""

    @property
    def save_dir(self) -> str:
        """The run's folder."""
        return str(self.log.path.parent)

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing: the configuration stands in config.yaml."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write one event of numbers."""
        self.log.write(METRICS, step=step, values={name: float(value) for name, value in metrics.items()})


def logged_rows(path: str | Path) -> list[Row]:
    """The rows of a run's log in order, since it was last started from nothing.

    A value that was logged again at the same step (training went back to a checkpoint) counts as it was first shown;
    what belongs to no step, such as the result at the end, is left out.

    Args:
        path: `log.jsonl`; there may be none.
    """
    if not Path(path).is_file():
        return []
    rows: list[Row] = []
    shown = Shown()
    for event in read_events(path):
        if event["event"] == STARTED and event.get("resume") is False:
            rows, shown = [], Shown()
        elif event["event"] == METRICS and event.get("step") is not None:
            given = {name: float("nan") if v is None else float(v) for name, v in event["values"].items()}
            values = shown.fresh(given, event["step"])
            if values:
                rows.append(Row(int(event["step"]), values))
    return rows


class Shown:
    """Which series have been shown at which steps.

    Example:
        >>> shown = Shown()
        >>> shown.fresh({"loss": 1.0, "epoch": 0.0}, 5), shown.fresh({"loss": 1.0, "epoch": 0.0}, 5)
        ({'loss': 1.0, 'epoch': 0.0}, {})
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._pairs: set[tuple[int, str]] = set()
        for row in rows:
            self.fresh(row.values, row.step)

    def fresh(self, values: Mapping[str, Any], step: int | None) -> dict[str, Any]:
        """Those of `values` that were not shown at `step` yet; from now on they are. Without a step, all."""
        if step is None:
            return dict(values)
        new = [name for name in values if (int(step), name) not in self._pairs]
        self._pairs.update((int(step), name) for name in new)
        return {name: values[name] for name in new} if set(new) - REPEATED else {}


def missing_rows(rows: Iterable[Row], shown: Shown) -> list[Row]:
    """The rows that `shown` lacks, which are shown from now on; numbers that are not finite cannot be shown."""
    found = []
    for row in rows:
        finite = {name: value for name, value in row.values.items() if np.isfinite(value)}
        values = shown.fresh(finite, row.step)
        if values:
            found.append(Row(row.step, values))
    return found
