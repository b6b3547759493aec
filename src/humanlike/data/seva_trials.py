"""Recognition trials as SEVA publishes them, cleaned as in the published analysis.

One file holds people's answers to people's sketches, the other those to CLIPasso's.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from humanlike.data.seva_files import CONCEPTS, MACHINE_TRIALS, TRIALS
from humanlike.data.table_files import read_table, rows_named
from humanlike.types import GUESS_COLUMNS

PRACTICE = "cat"
BUDGETS = (4.0, 8.0, 16.0, 32.0)
COLUMNS = ("subjectID", "filename_recog", "concept", "uniqueID", "abstraction", "response")
TEXT = ("subjectID", "filename_recog", "filename", "concept", "uniqueID", "response")


@dataclass(frozen=True)
class TrialFile:
    """How the two published files of recognition trials differ.

    Attributes:
        name: File name.
        unit: Unit of `abstraction`.
        key: `filename_recog` → sketch id.
        left_out: Sketch ids that the published analysis leaves out.
        photographs: Whether the column `filename` must name the photograph that was drawn.
    """

    name: str
    unit: str
    key: Callable[[str], str]
    left_out: tuple[str, ...] = ()
    photographs: bool = True


def sketch_id_of(file_name: str) -> str:
    """Id of a human sketch: the last part of its file's stem.

    Example:
        >>> sketch_id_of("airbag_airbag_01b_63ce03f58988816856b67ae7.png")
        '63ce03f58988816856b67ae7'
    """
    return clipasso_id_of(file_name).rsplit("_", 1)[-1]


def clipasso_id_of(file_name: str) -> str:
    """Id of a CLIPasso sketch: its file's stem, which names the photograph and the number of strokes.

    Example:
        >>> clipasso_id_of("canvas_09s_32.png")
        'canvas_09s_32'
    """
    return PurePosixPath(file_name).name.partition(".")[0]


HUMAN = TrialFile(TRIALS, "s", sketch_id_of)
MACHINE = TrialFile(MACHINE_TRIALS, "strokes", clipasso_id_of, left_out=("canvas_09s_32",), photographs=False)


def read_trials(path: Path, kind: TrialFile, dropped: Counter[str]) -> tuple[pd.DataFrame, int]:
    """Trials that count: not practice, of a known sketch, with an answer.

    Args:
        path: The file.
        kind: Which of the two it is.
        dropped: Reason → trials left out; added to.

    Returns:
        The trials with `sketch_id`, `condition` (s or strokes), `image_id` (the photograph) and `guess_1` … `guess_5`
        beside the file's columns, indexed by row numbers from 0; and how many rows the file has.

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: Naming the rows (from 1) of what cannot be read.
    """
    where = f"trials {path}"
    required = (*COLUMNS, "filename") if kind.photographs else COLUMNS
    trials = read_table(path, required, TEXT, "trials")
    rows_read = len(trials)
    trials["sketch_id"] = [kind.key(f) if f is not None else None for f in trials["filename_recog"]]
    practice = trials["concept"] == PRACTICE
    nowhere = trials["sketch_id"].isna() | trials["sketch_id"].isin(["nan", ""])
    unwanted = trials["sketch_id"].isin(kind.left_out)
    trials = without(
        trials,
        {
            "practice trial": practice,
            "trial without a sketch id": nowhere,
            **{f"trial of sketch {key}": unwanted & (trials["sketch_id"] == key) for key in kind.left_out},
        },
        dropped,
    )
    guesses = [_guesses(text, where, int(row)) for row, text in zip(trials.index, trials["response"], strict=True)]
    for position, column in enumerate(GUESS_COLUMNS):
        trials[column] = pd.Series(
            [g[position] if position < len(g) else None for g in guesses], index=trials.index, dtype=object
        )
    trials = without(trials, {"empty response": trials["guess_1"].isna()}, dropped)
    if len(trials) == 0:
        raise ValueError(f"{where}: no trial is left ({dict(dropped)})")
    trials["condition"] = budgets(trials["abstraction"], where, kind.unit)
    trials["image_id"] = trials["filename"] if "filename" in trials.columns else _photographs(trials)
    return trials, rows_read


def budgets(abstraction: pd.Series, where: str, unit: str) -> np.ndarray:
    """Production budgets as numbers; some releases store the seconds in milliseconds.

    Args:
        abstraction: The column, indexed by row numbers from 0.
        where: Where it came from.
        unit: "s" or "strokes".

    Raises:
        ValueError: Naming the rows of values that are no budget of the study.
    """
    value = pd.to_numeric(abstraction, errors="coerce").to_numpy(float)
    in_ms = unit == "s" and (value >= 1000).mean() > 0.5
    value = value / 1000 if in_ms else value
    bad = ~np.isin(value, BUDGETS)
    if bad.any():
        first = abstraction.iloc[int(bad.argmax())]
        rows = abstraction.index.to_numpy()[bad]
        allowed = "4, 8, 16, 32 s (or all in ms)" if unit == "s" else f"4, 8, 16, 32 {unit}"
        raise ValueError(f"{where}: abstraction is {first} in {rows_named(rows)}; expected {allowed}")
    return value


def judged_sketches(trials: pd.DataFrame, labels: Sequence[str], where: str) -> pd.DataFrame:
    """One row a judged sketch: `sketch_id, concept` (the uniqueID), `condition, image_id`, `num_strokes` where known.

    Raises:
        ValueError: Naming the rows of sketches with two concepts, budgets or photographs, of empty cells, of unknown
            uniqueIDs, and of names that stand for two uniqueIDs.
    """
    facts = trials[["sketch_id", "uniqueID", "condition", "image_id"]].drop_duplicates()
    torn = facts["sketch_id"].duplicated(keep=False)
    if torn.any():
        raise ValueError(
            f"{where}: sketch {facts['sketch_id'][torn].iloc[0]!r} has two concepts, budgets or photographs "
            f"({rows_named(facts.index.to_numpy()[torn.to_numpy()])})"
        )
    for column in ("uniqueID", "image_id"):
        empty = facts[column].isna().to_numpy()
        if empty.any():
            name = "filename" if column == "image_id" else column
            raise ValueError(f"{where}: {name} is empty in {rows_named(facts.index.to_numpy()[empty])}")
    check_unique_ids(trials, labels, where)
    table = facts.rename(columns={"uniqueID": "concept"})
    if "num_strokes" in trials.columns:
        strokes = trials.groupby("sketch_id")["num_strokes"].first()
        table["num_strokes"] = pd.to_numeric(table["sketch_id"].map(strokes), errors="coerce")
    return table.sort_values(["concept", "condition", "sketch_id"]).reset_index(drop=True)


def check_unique_ids(table: pd.DataFrame, labels: Sequence[str], where: str) -> None:
    """Every `uniqueID` is a THINGS concept, and a name (`concept`) stands for one of them, never for two.

    Raises:
        ValueError: Naming the rows.
    """
    rows = table.index.to_numpy()
    unknown = ~table["uniqueID"].isin(set(labels)).to_numpy()
    if unknown.any():
        first = table["uniqueID"].to_numpy()[unknown][0]
        raise ValueError(f"{where}: uniqueID {first!r} ({rows_named(rows[unknown])}) is not in {CONCEPTS}")
    pairs = table[["concept", "uniqueID"]].drop_duplicates().dropna()
    double = pairs["concept"].duplicated(keep=False)
    if double.any():
        name = pairs["concept"][double].iloc[0]
        ids = sorted(pairs["uniqueID"][pairs["concept"] == name])
        raise ValueError(
            f"{where}: the name {name!r} stands for {' and for '.join(ids)} "
            f"({rows_named(pairs.index.to_numpy()[(pairs['concept'] == name).to_numpy()])}); SEVA draws one of them"
        )


def without(table: pd.DataFrame, reasons: Mapping[str, pd.Series], dropped: Counter[str]) -> pd.DataFrame:
    """Rows for which no reason holds; each of the others is counted under its first reason.

    Args:
        table: Rows, indexed by row numbers from 0.
        reasons: Reason → bool a row.
        dropped: Reason → rows left out; added to.
    """
    gone = pd.Series(False, index=table.index)
    for reason, rows in reasons.items():
        if count := int((rows & ~gone).sum()):
            dropped[reason] += count
        gone |= rows
    return table[~gone].copy()


def _photographs(trials: pd.DataFrame) -> list[str]:
    """The photograph that a CLIPasso sketch was made from, named as for people's sketches: its id less the strokes.

    Example: "canvas_09s_32" with 32 strokes was made from "canvas_09s.jpg".
    """
    found = []
    for key, strokes in zip(trials["sketch_id"], trials["condition"], strict=True):
        stem, _, last = str(key).rpartition("_")
        found.append(f"{stem if last == f'{strokes:g}' else key}.jpg")
    return found


def _guesses(text: str | None, where: str, row: int) -> tuple[str, ...]:
    """Labels in the order given, from the text of a Python dictionary; never evaluated."""
    if text is None:
        return ()
    try:
        value = _parsed(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"{where}: response in row {row + 1} is no dictionary of labels: {text[:60]!r}") from error
    if value is None:
        raise ValueError(
            f"{where}: response in row {row + 1} is {text[:60]!r}; expected {{position: label}}, up to five"
        )
    return value


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> tuple[str, ...] | None:
    """The labels, or None for another kind of value; people often say the same."""
    value = ast.literal_eval(text)
    if not isinstance(value, dict) or not all(isinstance(label, str) for label in value.values()) or len(value) > 5:
        return None
    return tuple(value.values())
