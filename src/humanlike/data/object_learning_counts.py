"""People known only by published numbers: correct answers a subtask and trial, or accuracy a condition."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data.object_learning import Condition, PeopleConditions, PeopleCounts, subtask_pair
from humanlike.data.table_files import read_table, refuse_empty, rows_named

TRIAL = re.compile(r"t\d+")
NAMES = ("subtask", "subtask_v1")
"""Columns that name a subtask: by the objects' present names, or by their first ones."""
LEVEL_TOLERANCE = 1e-5
"""Levels are printed with six digits in the one file and more in the other."""


def read_counts(path: str | Path) -> pd.DataFrame:
    """A table of counts.

    Args:
        path: A table with `subtask` ("A,B"), perhaps `subtask_v1`, `n_sessions` and the counts `t001`, `t002`, ….

    Returns:
        The table, subtasks as sorted pairs "A,B".

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: Naming the rows (from 1) of what cannot be read.
    """
    table = read_table(path, ("subtask", "n_sessions"), NAMES, "counts of people")
    where = f"counts of people {path}"
    trials = [c for c in table.columns if TRIAL.fullmatch(str(c))]
    if trials != [f"t{i + 1:03d}" for i in range(len(trials))] or not trials:
        raise ValueError(f"{where}: the counts must stand in columns t001, t002, … in order, got {trials[:3]} …")
    refuse_empty(table, ("subtask",), where)
    for name in (c for c in NAMES if c in table.columns):
        table[name] = [None if v is None else _named(v, where, i) for i, v in enumerate(table[name])]
    for column in ("n_sessions", *trials):
        number = pd.to_numeric(table[column], errors="coerce")
        low, high = (2, np.inf) if column == "n_sessions" else (0, table["n_sessions"])
        bad = (number.isna() | (number != np.floor(number)) | (number < low) | (number > high)).to_numpy()
        if bad.any():
            kind = "at least 2" if column == "n_sessions" else "0 … n_sessions"
            raise ValueError(
                f"{where}: {column} is {table[column].to_numpy()[bad.argmax()]} in "
                f"{rows_named(np.flatnonzero(bad))}; expected a whole number, {kind}"
            )
        table[column] = number.astype(np.int64)
    return table


def counted_subtasks(table: pd.DataFrame, categories: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The subtasks of a table of counts whose objects an image set has, under present or first names, sorted."""
    known, found = set(categories), set()
    for name in (c for c in NAMES if c in table.columns):
        pairs = [subtask_pair(v) for v in table[name] if v is not None]
        found = {pair for pair in pairs if set(pair) <= known}
        if found:
            break
    return tuple(sorted(found))


def counts_for(table: pd.DataFrame, subtasks: Sequence[tuple[str, str]], where: str) -> PeopleCounts:
    """The counts of some subtasks, in their order.

    Args:
        table: As `read_counts` gives it.
        subtasks: Pairs of objects, by present or first names.
        where: The file, for messages.

    Raises:
        ValueError: Naming the subtasks that the table lacks.
    """
    wanted = [",".join(sorted(pair)) for pair in subtasks]
    row_of = {v: i for name in NAMES if name in table.columns for i, v in enumerate(table[name]) if v is not None}
    absent = [name for name in wanted if name not in row_of]
    if absent:
        raise ValueError(
            f"{where}: no counts of {len(absent)} of {len(wanted)} subtasks, first {absent[0]}; the table has "
            f"{table['subtask'].iloc[0]} … ({len(table)} subtasks)"
        )
    rows = [row_of[name] for name in wanted]
    trials = [c for c in table.columns if TRIAL.fullmatch(str(c))]
    k_ST = table[trials].to_numpy(np.int64)[rows]
    return PeopleCounts(k_ST, table["n_sessions"].to_numpy(np.int64)[rows])


def read_conditions(path: str | Path, conditions: Sequence[Condition]) -> PeopleConditions:
    """One-shot accuracies read off a figure, in the order of `conditions`.

    Args:
        path: A table with `transformation`, `level`, `human_phat` (corrected for lapses) and `human_se`.
        conditions: The conditions of the experiment.

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: When the table lacks a condition, or gives one twice.
    """
    columns = ("transformation", "level", "human_phat", "human_se")
    table = read_table(path, columns, ("transformation",), "one-shot accuracy of people")
    where = f"one-shot accuracy of people {path}"
    numbers = table[list(columns[1:])].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    bad = ~np.isfinite(numbers).all(axis=1)
    if bad.any():
        raise ValueError(f"{where}: {rows_named(np.flatnonzero(bad))} holds an empty cell or a text for a number")
    rows = []
    for condition in conditions:
        near = np.abs(numbers[:, 0] - condition.level) < LEVEL_TOLERANCE
        found = np.flatnonzero(near & (table["transformation"] == condition.transformation).to_numpy())
        if len(found) != 1:
            raise ValueError(f"{where}: {condition.transformation} at {condition.level:g} stands in {len(found)} rows")
        rows.append(int(found[0]))
    return PeopleConditions(numbers[rows, 1], numbers[rows, 2], digitised=True)


def _named(text: str, where: str, row: int) -> str:
    try:
        return ",".join(subtask_pair(text))
    except ValueError as error:
        raise ValueError(f"{where}: row {row + 1}: {error}") from error
