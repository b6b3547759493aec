"""Tables of people's annotation of elements: which of its concept's parts every sketch shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data.table_files import read_table, refuse_empty, rows_named

ELEMENT_COLUMNS = ("sketch_id", "element", "drawn")
_WORDS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False, "yes": True, "no": False}


def read_elements(path: str | Path, sketch_ids: Sequence[str], removed_ids: Sequence[str] = ()) -> pd.DataFrame:
    """An annotation, one row a sketch and element of its concept.

    A sketch may have no rows (it was not annotated); an element that a sketch has no row for was not asked about.

    Args:
        path: Table with `sketch_id, element, drawn` (true or false, 1 or 0, yes or no).
        sketch_ids: The sketches there are.
        removed_ids: Sketches that were left out on purpose; their rows are passed over.

    Returns:
        `sketch_id, element, drawn` (bool), in the order of the file.

    Raises:
        FileNotFoundError: When there is no such table.
        ValueError: Naming the rows: empty cells, words that are neither true nor false, an element twice, an unknown
            sketch.
    """
    where = f"elements {path}"
    table = read_table(path, ELEMENT_COLUMNS, ("sketch_id", "element"), "elements", only=ELEMENT_COLUMNS)
    refuse_empty(table, ELEMENT_COLUMNS, where)
    drawn = table["drawn"].map(lambda value: _WORDS.get(str(value).strip().lower()))
    wrong = np.flatnonzero(drawn.isna().to_numpy())
    if len(wrong):
        raise ValueError(
            f"{where}: drawn is {table['drawn'].iloc[wrong[0]]!r} in {rows_named(wrong)}; it must be true or false"
        )
    table["drawn"] = drawn.astype(bool)
    twice = np.flatnonzero(table.duplicated(["sketch_id", "element"]).to_numpy())
    if len(twice):
        first = table.iloc[twice[0]]
        raise ValueError(
            f"{where}: sketch {first['sketch_id']!r} has the element {first['element']!r} again in {rows_named(twice)}"
        )
    known, removed = set(sketch_ids), set(removed_ids)
    unknown = np.flatnonzero(~table["sketch_id"].isin(known | removed).to_numpy())
    if len(unknown):
        raise ValueError(
            f"{where}: {len(unknown)} row(s) are about sketches that are not there, first "
            f"{table['sketch_id'].iloc[unknown[0]]!r} ({rows_named(unknown)})"
        )
    kept = table[table["sketch_id"].isin(known)]
    return kept[list(ELEMENT_COLUMNS)].reset_index(drop=True)
