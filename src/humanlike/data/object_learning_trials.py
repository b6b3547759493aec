"""People's choices, one row a trial, as published: probe trials dropped, trials renumbered, time-outs wrong.

Row numbers in messages count from 1, the header not among them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data.object_learning import (
    CATCH_POSITIONS,
    ONE_SHOT,
    SUPPORT,
    SUPPORT_TRIALS,
    ImageSet,
    PeopleSessions,
    subtask_pair,
)
from humanlike.data.object_learning_part import Part
from humanlike.data.table_files import read_table, refuse_empty, rows_named

logger = logging.getLogger(__name__)

COLUMNS = (
    "trial",
    "assignment_id",
    "worker_id",
    "subtask",
    "image_id",
    "trial_type",
    "stimulus_duration_msec",
    "reaction_time_msec",
    "timed_out",
    "perf",
    "timestamp_start",
)
TEXT = ("assignment_id", "slot", "worker_id", "subtask", "image_id", "trial_type", "timestamp_start")
TRUTH = {"true": 1, "false": 0, "1": 1, "0": 0, "1.0": 1, "0.0": 0}


def read_trials(path: Path, experiment: str, dropped: Counter[str]) -> tuple[pd.DataFrame, int]:
    """Trials in the order of sessions, with what was dropped counted.

    Args:
        path: The file.
        experiment: "high_variation" or "one_shot"; the latter needs the column `slot`.
        dropped: Reason → rows left out; added to.

    Returns:
        Columns `session` (text), `trial` (from 0, renumbered), `worker_id`, `subtask` (a sorted "A,B"), `image_id`,
        `correct`, `timed_out`, with the file's row numbers as index; and how many rows the file has.

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: Naming the rows of what cannot be read.
    """
    where = f"trials {path}"
    needed = (*COLUMNS, "slot") if experiment == ONE_SHOT else COLUMNS
    table = read_table(path, needed, (*TEXT, "perf", "timed_out"), "trials")
    rows = len(table)
    probes = table["trial_type"] == "probe"
    if probes.any():
        dropped["probe trial"] += int(probes.sum())
        table = table[~probes]
        if len(table) == 0:
            raise ValueError(f"{where}: every row is a probe trial")
    slot = ("slot",) if "slot" in table.columns else ()
    refuse_empty(table, ("assignment_id", *slot, "worker_id", "subtask", "image_id"), where)
    table = table.assign(
        session=table["assignment_id"] + ("/" + table["slot"] if slot else ""),
        trial=_whole(table["trial"], where),
        timed_out=_truth(table["timed_out"], where, "timed_out", False),
        subtask=_pairs(table["subtask"], where),
    )
    table["correct"] = _correct(table, where)
    table = table.sort_values(["session", "trial"], kind="stable")
    again = table.duplicated(["session", "trial"], keep=False).to_numpy()
    if again.any():
        raise ValueError(
            f"{where}: {rows_named(table.index.to_numpy()[again])} have one trial number in one session "
            f"({table['session'].to_numpy()[again.argmax()]})"
        )
    table["trial"] = table.groupby("session").cumcount()
    columns = ["session", "trial", "worker_id", "subtask", "image_id", "correct", "timed_out", "timestamp_start"]
    return table[columns], rows


def people_from(
    trials: pd.DataFrame,
    images: ImageSet,
    subtasks: tuple[tuple[str, str], ...],
    num_trials: int | None,
    experiment: str,
    where: str,
    part: Part,
    dropped: Mapping[str, int],
) -> PeopleSessions:
    """Sessions from trials.

    Args:
        trials: As `read_trials` gives them.
        images: The images that were shown, with `condition` in one-shot experiments.
        subtasks: The subtasks that are kept, sorted pairs.
        num_trials: Trials that a session must have; None = as many as most have.
        experiment: "high_variation" or "one_shot".
        where: The file, for messages.
        part: How many sessions of a subtask are kept, the first by session id, and what becomes of repeats: "first"
            is by time.
        dropped: Reason → what was left out before.

    Raises:
        ValueError: Naming the session or row of what does not fit.
    """
    left_out = Counter(dropped)
    number = {",".join(pair): s for s, pair in enumerate(subtasks)}
    trials = trials[trials["subtask"].isin(set(number))]
    if len(trials) == 0:
        raise ValueError(f"{where}: no trial of the subtasks {list(number)[:3]}")
    head = _heads(trials, where)
    head = _once(head, where, part.on_repeat, left_out)
    if part.sessions is not None:
        head = head[head.groupby("subtask").cumcount() < part.sessions]
    trials = trials[trials["session"].isin(set(head.index))]
    length = trials.groupby("session").size()
    wanted = int(length.mode().max()) if num_trials is None else num_trials
    if (length != wanted).any():
        session = length.index[(length != wanted).to_numpy()][0]
        raise ValueError(
            f"{where}: session {session} has {length[session]} trials and {wanted} are expected "
            f"({int((length != wanted).sum())} of {len(length)} sessions are of another length); "
            "complete the file, or leave those sessions out of it"
        )
    shape = (len(length), wanted)
    image_ST = _image_rows(trials, images, where).reshape(shape)
    condition_ST, catch_ST = np.full(shape, -1, np.int64), np.zeros(shape, bool)
    if experiment == ONE_SHOT:
        condition_ST, catch_ST = _one_shot(image_ST, images, length.index, where)
    order = head.loc[length.index]
    return PeopleSessions(
        correct_ST=trials["correct"].to_numpy(np.int8).reshape(shape),
        subtask_S=order["subtask"].map(number).to_numpy(np.int64),
        participant_S=order["worker_id"].to_numpy(dtype=str),
        image_ST=image_ST,
        condition_ST=condition_ST,
        catch_ST=catch_ST,
        dropped=dict(left_out),
        timed_out=float(trials["timed_out"].mean()),
    )


def _heads(trials: pd.DataFrame, where: str) -> pd.DataFrame:
    """Session → its one worker, subtask and start."""
    grouped = trials.groupby("session", sort=True)
    for column in ("worker_id", "subtask"):
        torn = grouped[column].nunique() > 1
        if torn.any():
            session = torn.index[torn.to_numpy()][0]
            rows = trials.index.to_numpy()[(trials["session"] == session).to_numpy()]
            raise ValueError(
                f"{where}: session {session} has more than one {column} ({rows_named(rows)}); sessions of one "
                "assignment are told apart by the column slot"
            )
    return grouped[["worker_id", "subtask", "timestamp_start"]].first()


def _once(head: pd.DataFrame, where: str, on_repeat: str, dropped: Counter[str]) -> pd.DataFrame:
    """Sessions with no participant twice in a subtask."""
    by_time = head.sort_values("timestamp_start", kind="stable")
    again = by_time.duplicated(["worker_id", "subtask"])
    if not again.any():
        return head
    if on_repeat == "raise":
        first = by_time[again.to_numpy()].iloc[0]
        raise ValueError(
            f"{where}: participant {first['worker_id']!r} stands twice in subtask {first['subtask']} (again in session "
            f"{first.name}; {int(again.sum())} such sessions); one learns a pair of objects once: set on_repeat=first"
        )
    dropped["session of a subtask that the participant had done before"] += int(again.sum())
    return head[~head.index.isin(set(by_time.index[again.to_numpy()]))]


def _image_rows(trials: pd.DataFrame, images: ImageSet, where: str) -> np.ndarray:
    position = pd.Series(np.arange(len(images)), index=images.table["image_id"])
    rows = trials["image_id"].map(position)
    unknown = rows.isna().to_numpy()
    if unknown.any():
        first = trials["image_id"].to_numpy()[unknown.argmax()]
        raise ValueError(
            f"{where}: {rows_named(trials.index.to_numpy()[unknown])}: {first!r} is no image of {images.name} "
            f"({int(unknown.sum())} such trials)"
        )
    rows_n = rows.to_numpy(np.int64)
    category = images.table["category"].to_numpy()[rows_n]
    strange = np.array([c not in s.split(",") for c, s in zip(category, trials["subtask"], strict=True)])
    if strange.any():
        raise ValueError(
            f"{where}: {rows_named(trials.index.to_numpy()[strange])}: the image shows {category[strange.argmax()]!r}, "
            f"which is no object of the subtask {trials['subtask'].to_numpy()[strange.argmax()]}"
        )
    return rows_n


def _one_shot(image_ST: np.ndarray, images: ImageSet, sessions: pd.Index, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Conditions and catch trials; support images must stand where the protocol has them, and nowhere else."""
    support_ST = (images.table["transformation"] == SUPPORT).to_numpy()[image_ST]
    trial_T = np.arange(image_ST.shape[1])
    catch_T = np.isin(trial_T, CATCH_POSITIONS)
    expected_T = (trial_T < SUPPORT_TRIALS) | catch_T
    wrong = support_ST != expected_T
    if wrong.any():
        s, t = np.argwhere(wrong)[0]
        shown = images.table["image_id"].to_numpy()[image_ST[s, t]]
        kind = "a support image" if expected_T[t] else "a transformed image"
        raise ValueError(f"{where}: trial {t} of session {sessions[s]} shows {shown!r}; {kind} is expected there")
    condition_ST = images.table["condition"].to_numpy(np.int64)[image_ST]
    return condition_ST, np.broadcast_to(catch_T, image_ST.shape).copy()


def _correct(table: pd.DataFrame, where: str) -> np.ndarray:
    """Whether each trial was correct; one that was not answered in time is wrong."""
    timed_out = table["timed_out"].to_numpy(bool)
    empty = table["perf"].isna().to_numpy() & ~timed_out
    if empty.any():
        raise ValueError(f"{where}: perf is empty in {rows_named(table.index.to_numpy()[empty])}")
    perf = _truth(table["perf"], where, "perf", False)
    if (perf & timed_out).any():
        logger.warning(
            "%s: %d trial(s) that timed out are marked correct; they count as wrong", where, (perf & timed_out).sum()
        )
    return (perf & ~timed_out).astype(np.int8)


def _truth(column: pd.Series, where: str, name: str, empty: bool) -> np.ndarray:
    value = column.map(lambda v: int(empty) if v is None else TRUTH.get(str(v).strip().lower()))
    bad = value.isna().to_numpy()
    if bad.any():
        raise ValueError(
            f"{where}: {name} is {column[bad].iloc[0]!r} in {rows_named(column.index.to_numpy()[bad])}; expected true "
            "or false"
        )
    return value.to_numpy(bool)


def _whole(column: pd.Series, where: str) -> np.ndarray:
    number = pd.to_numeric(column, errors="coerce")
    bad = (number.isna() | (number != np.floor(number))).to_numpy()
    if bad.any():
        raise ValueError(
            f"{where}: trial is {column[bad].iloc[0]!r} in {rows_named(column.index.to_numpy()[bad])}; trials are "
            "numbered 0, 1, 2, …"
        )
    return number.to_numpy(np.int64)


def _pairs(column: pd.Series, where: str) -> pd.Series:
    """Subtasks as sorted pairs "A,B"."""
    named: dict[str, str] = {}
    for text in column.unique():
        try:
            named[text] = ",".join(subtask_pair(text))
        except ValueError as error:
            rows = column.index.to_numpy()[(column == text).to_numpy()]
            raise ValueError(f"{where}: {rows_named(rows)}: {error}") from error
    return column.map(named)
