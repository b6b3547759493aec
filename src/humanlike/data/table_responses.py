"""People's answers from a table, checked against the sketches and the labels; nothing is ever guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data.labels import nearest_labels
from humanlike.data.table_files import aliased, read_table, refuse_empty, rows_named
from humanlike.types import GUESS_COLUMNS, Responses

REPEATS = ("raise", "first", "keep")
NO_ANSWER = "judgment without a first guess"
UNKNOWN_FIRST = "judgment whose first guess is no label"
UNKNOWN_LATER = "later guess that is no label"
REPEATED = "repeated judgment of one sketch by one participant"
OTHER_SKETCH = "judgment of a sketch that is not in the data set"


def read_responses(
    path: str | Path,
    sketch_ids: Sequence[str],
    labels: Sequence[str],
    *,
    aliases: Mapping[str, str] | None = None,
    on_unknown: str = "raise",
    on_repeat: str = "raise",
    simulated: bool = False,
    removed_ids: Sequence[str] = (),
) -> Responses:
    """A table of judgments: `participant, sketch_id, guess_1` and perhaps `guess_2` … `guess_5`; see `clean_responses`.

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: For wrong columns, and see `clean_responses`.
    """
    where = f"responses {path}"
    table = read_table(
        path, ("participant", "sketch_id", "guess_1"), ("participant", "sketch_id", *GUESS_COLUMNS), "responses"
    )
    further = [c for c in table.columns if str(c).startswith("guess_") and c not in GUESS_COLUMNS]
    if further:
        raise ValueError(f"{where}: up to five guesses are read, guess_1 … guess_5; drop the column(s) {further}")
    return clean_responses(
        table,
        sketch_ids,
        labels,
        where=where,
        aliases=aliases,
        on_unknown=on_unknown,
        on_repeat=on_repeat,
        simulated=simulated,
        removed_ids=removed_ids,
    )


def clean_responses(
    table: pd.DataFrame,
    sketch_ids: Sequence[str],
    labels: Sequence[str],
    *,
    where: str,
    aliases: Mapping[str, str] | None = None,
    on_unknown: str = "raise",
    on_repeat: str = "raise",
    simulated: bool = False,
    removed_ids: Sequence[str] = (),
) -> Responses:
    """Judgments that can be scored, and what was left out.

    Args:
        table: `participant`, `sketch_id`, `guess_1` and perhaps further guesses; other columns are kept.
        sketch_ids: Ids of the data set's items.
        labels: Label names.
        where: Where the table came from, for messages.
        aliases: Name in the table → label, replaced before anything is checked.
        on_unknown: "raise" for a guess that is no label or a judgment without a first guess; "drop" leaves out and
            counts judgments without a known first guess, and later guesses that are no label.
        on_repeat: What to do when one participant judged one sketch more than once, which often means that two people
            share an id: "raise", "first" (keep the first and count the others) or "keep" all.
        simulated: Whether the "people" are a simulation.
        removed_ids: Ids that were in the sketch table and were left out; judgments of them are left out and counted.

    Raises:
        ValueError: Naming rows, counted from 1.
    """
    for name, value, choices in (("on_unknown", on_unknown, ("raise", "drop")), ("on_repeat", on_repeat, REPEATS)):
        if value not in choices:
            raise ValueError(f"{name} must be one of {choices}, got {value!r}")
    table = table.copy()
    refuse_empty(table, ("participant", "sketch_id"), where)
    for column in GUESS_COLUMNS:
        table[column] = aliased(table[column], aliases or {}) if column in table.columns else None
    dropped: Counter[str] = Counter()
    table = _of_these_sketches(table, sketch_ids, removed_ids, where, dropped)
    table = _answered(table, labels, where, on_unknown, dropped)
    table = _once_each(table, where, on_repeat, dropped)
    if len(table) == 0:
        raise ValueError(f"{where}: no judgment is left ({_counts(dropped)})")
    return Responses(table.reset_index(drop=True), simulated=simulated, dropped=dict(dropped))


def _of_these_sketches(
    table: pd.DataFrame, sketch_ids: Sequence[str], removed: Sequence[str], where: str, dropped: Counter[str]
) -> pd.DataFrame:
    known = table["sketch_id"].isin(set(sketch_ids)).to_numpy()
    if known.all():
        return table
    strange = np.flatnonzero(~known & ~table["sketch_id"].isin(set(removed)).to_numpy())
    if not known.any() and len(strange):
        first = table["sketch_id"].iloc[strange[0]]
        raise ValueError(
            f"{where}: no judgment names a sketch of the data set; sketch_id is {first!r} in the responses and "
            f"{next(iter(sketch_ids))!r} in the sketches: write them alike"
        )
    dropped[OTHER_SKETCH] += int((~known).sum())
    return table[known]


def _answered(
    table: pd.DataFrame, labels: Sequence[str], where: str, on_unknown: str, dropped: Counter[str]
) -> pd.DataFrame:
    """Judgments with a first guess that is a label, and their other guesses that are."""
    guesses = table[list(GUESS_COLUMNS)]
    silent = guesses["guess_1"].isna().to_numpy()
    unknown_RG = (guesses.notna() & ~guesses.isin(set(labels))).to_numpy()
    if on_unknown == "raise":
        if silent.any():
            rows = table.index.to_numpy()[silent]
            raise ValueError(
                f"{where}: guess_1 is empty in {rows_named(rows)}; delete these judgments, or set on_unknown=drop to "
                "leave them out and count them"
            )
        if unknown_RG.any():
            raise ValueError(unknown_labels(guesses, unknown_RG, labels, where))
    for reason, count in (
        (NO_ANSWER, silent.sum()),
        (UNKNOWN_FIRST, unknown_RG[:, 0].sum()),
        (UNKNOWN_LATER, unknown_RG[~unknown_RG[:, 0], 1:].sum()),
    ):
        if count:
            dropped[reason] += int(count)
    table = table.copy()
    values_RG = guesses.to_numpy(dtype=object, copy=True)
    values_RG[unknown_RG | guesses.isna().to_numpy()] = None
    for position, column in enumerate(GUESS_COLUMNS):
        table[column] = pd.Series(values_RG[:, position], index=table.index, dtype=object)
    return table[~silent & ~unknown_RG[:, 0]]


def _once_each(table: pd.DataFrame, where: str, on_repeat: str, dropped: Counter[str]) -> pd.DataFrame:
    repeated = table.duplicated(["participant", "sketch_id"], keep="first").to_numpy()
    if on_repeat == "keep" or not repeated.any():
        return table
    if on_repeat == "first":
        dropped[REPEATED] += int(repeated.sum())
        return table[~repeated]
    first = table[repeated].iloc[0]
    same = (table["participant"] == first["participant"]) & (table["sketch_id"] == first["sketch_id"])
    raise ValueError(
        f"{where}: participant {first['participant']!r} judged sketch {first['sketch_id']!r} more than once "
        f"({rows_named(table.index.to_numpy()[same.to_numpy()])}; {int(repeated.sum())} such judgments in all): two "
        "people with one id, or one upload twice? Give every person an id, or set on_repeat=first or on_repeat=keep"
    )


def unknown_labels(values: pd.DataFrame, unknown_RG: np.ndarray, labels: Sequence[str], where: str) -> str:
    """The sentence about values that are no labels: rows, the nearest labels, and the way out.

    Args:
        values: Text columns; the index holds row numbers from 0.
        unknown_RG: (rows, columns) True where the value is no label.
        labels: Label names.
        where: Where the table came from.
    """
    row, column = np.argwhere(unknown_RG)[0]
    rows = values.index.to_numpy()[unknown_RG.any(axis=1)]
    distinct = list(dict.fromkeys(values.to_numpy(dtype=object)[unknown_RG]))
    hints = "; ".join(nearest_labels(value, labels) for value in distinct[:3])
    return (
        f"{where}: {int(unknown_RG.sum())} value(s) are no labels, first {values.iloc[row, column]!r} in row "
        f"{int(values.index[row]) + 1}, {values.columns[column]} ({rows_named(rows)}; {len(distinct)} different): "
        f"{hints}; correct them, say what they mean with aliases={{NAME: LABEL}}, or set on_unknown=drop to leave them "
        "out and count them"
    )


def _counts(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {reason}" for reason, count in dropped.items()) or "the table is empty"
