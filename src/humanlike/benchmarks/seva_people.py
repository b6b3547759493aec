"""People's answers as integers: participants, items and labels by code, with everything left out counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from humanlike.stats.sketch_statistics import CodedResponses
from humanlike.types import GUESS_COLUMNS, Responses


@dataclass(frozen=True)
class People:
    """Coded answers of people to the used items.

    Attributes:
        responses: Participant, item and guesses of every judgment.
        num_participants: Participants who judged a used item.
        dropped: Reason → number of judgments or guesses left out.
    """

    responses: CodedResponses
    num_participants: int
    dropped: dict[str, int]


def code_people(
    responses: Responses, sketch_ids: Sequence[str], labels: Sequence[str], on_unknown: str = "raise"
) -> People:
    """Code people's answers against the used items and the label order.

    Judgments of sketches that are not among the items (unread images, a subset) are left out and counted.
    Judgments are sorted by participant and item, so that their order in the file cannot matter.

    Args:
        responses: People's answers.
        sketch_ids: The N used items, in item order.
        labels: The L labels in label order.
        on_unknown: What to do with a guess that is not a label: `raise`, or `drop` it and count it. A
            judgment whose first guess is unknown is dropped whole: promoting its second guess would invent a
            first one.

    Raises:
        ValueError: On an unknown label (with its rows), a missing first guess, or an unknown `on_unknown`.
    """
    if on_unknown not in ("raise", "drop"):
        raise ValueError(f"on_unknown is {on_unknown!r}; it can be 'raise' or 'drop'")
    item_of = pd.Series(np.arange(len(sketch_ids)), index=pd.Index(sketch_ids).astype(str))
    table = responses.table
    item_R = item_of.reindex(table["sketch_id"].astype(str)).fillna(-1).to_numpy(np.int64)
    seen = item_R >= 0
    dropped = {"judgments_of_other_sketches": int((~seen).sum())}
    guess_RG = _code_guesses(table, labels)
    if (unknown := (guess_RG == -2) & seen[:, None]).any():
        if on_unknown == "raise":
            raise ValueError(_unknown_labels(table, unknown))
        dropped["guesses_outside_the_labels"] = int(unknown.sum())
        dropped["judgments_with_unknown_first_guess"] = int(unknown[:, 0].sum())
    if (absent := (guess_RG[:, 0] == -1) & seen).any():
        raise ValueError(f"guess_1 is missing in row {int(absent.argmax())} of the responses; every judgment has one")
    kept = seen & (guess_RG[:, 0] >= 0)
    participant, names = pd.factorize(table["participant"].astype(str).to_numpy()[kept], sort=True)
    guess_RG = np.where(guess_RG < 0, -1, guess_RG)[kept]
    order = np.lexsort((*guess_RG.T[::-1], item_R[kept], participant))
    coded = CodedResponses(participant[order].astype(np.int64), item_R[kept][order], guess_RG[order])
    return People(coded, len(names), dropped)


def _code_guesses(table: pd.DataFrame, labels: Sequence[str]) -> np.ndarray:
    """(R, 5) label codes; -1 where there is no guess, -2 where the guess is no label."""
    code_of = pd.Index(labels)
    columns = []
    for column in GUESS_COLUMNS:
        guess = table[column]
        code = code_of.get_indexer(guess.to_numpy(dtype=object, na_value=None))
        absent = (guess.isna() | (guess == "")).to_numpy(bool)
        columns.append(np.where(absent, -1, np.where(code < 0, -2, code)))
    return np.stack(columns, 1).astype(np.int64)


def _unknown_labels(table: pd.DataFrame, unknown_RG: np.ndarray) -> str:
    row, column = np.argwhere(unknown_RG)[0]
    rows = np.flatnonzero(unknown_RG.any(1))
    return (
        f"{int(unknown_RG.sum())} guess(es) in {len(rows)} row(s) of the responses are not labels, first "
        f"{table[GUESS_COLUMNS[column]].iloc[row]!r} in row {int(row)}, {GUESS_COLUMNS[column]} (rows "
        f"{', '.join(str(r) for r in rows[:10])}{', …' if len(rows) > 10 else ''}); correct the spelling, or "
        "set on_unknown=drop to leave them out and count them"
    )
