"""Reading tables that people made: CSV or Parquet, columns by name, rows named in every complaint.

Rows are counted from 1 and the header does not count, so row 1 of a CSV file is its second line.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

SUFFIXES = (".parquet", ".csv", ".tsv")
SHOWN = 5


def read_table(
    path: str | Path, required: Sequence[str], text: Sequence[str], what: str, only: Sequence[str] | None = None
) -> pd.DataFrame:
    """A table with the columns it must have.

    Empty cells of text columns are None; every other text is taken as it stands ("NA" and "None" are texts).

    Args:
        path: A .parquet, .csv (comma) or .tsv (tab) file with a header, UTF-8.
        required: Columns that must be there.
        text: Columns that hold names; numbers in them become their text. Others keep their type.
        what: What the table is, for messages.
        only: Columns that are read, where they are there; others (such as strokes) may be large. Default: all.

    Raises:
        FileNotFoundError: When it is missing.
        ValueError: For another suffix, a file that cannot be read, no rows, or missing columns (with the nearest).
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{what}: no file {path}; expected a {' or '.join(SUFFIXES)} table")
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{what}: {path} is no table; its name must end in {' or '.join(SUFFIXES)}")
    table = _parquet(path, what) if path.suffix.lower() == ".parquet" else _delimited(path, text, what, only)
    if only is not None:
        table = table[[c for c in table.columns if c in set(only)]]
    _require_columns(table, required, f"{what} {path}")
    if len(table) == 0:
        raise ValueError(f"{what} {path}: the table has no rows")
    for column in (c for c in text if c in table.columns):
        table[column] = _as_text(table[column], f"{what} {path}", column)
    return table.reset_index(drop=True)


def rows_named(rows: np.ndarray) -> str:
    """Row numbers (from 1) for a message, the first few.

    Example:
        >>> rows_named(np.array([0, 4])), rows_named(np.array([2]))
        ('rows 1, 5', 'row 3')
    """
    shown = ", ".join(str(int(r) + 1) for r in rows[:SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', …' if len(rows) > SHOWN else ''}"


def refuse_empty(table: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Refuse empty cells in columns that must be filled, naming the rows."""
    for column in columns:
        empty = table.index.to_numpy()[table[column].isna().to_numpy()]
        if len(empty):
            raise ValueError(f"{where}: {column} is empty in {rows_named(empty)}; fill it in or delete the rows")


def refuse_repeated(table: pd.DataFrame, column: str, where: str) -> None:
    """Refuse values that occur twice in a column of ids, naming the rows of the first."""
    repeated = table[column].duplicated(keep=False).to_numpy()
    if repeated.any():
        first = table[column].to_numpy()[repeated.argmax()]
        rows = table.index.to_numpy()[(table[column] == first).to_numpy()]
        others = table[column][repeated].nunique() - 1
        raise ValueError(
            f"{where}: {column} {first!r} stands in {rows_named(rows)}"
            f"{f', and {others} more occur twice' if others else ''}; ids must be unique"
        )


def _delimited(path: Path, text: Sequence[str], what: str, only: Sequence[str] | None = None) -> pd.DataFrame:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows that are too long lose cells
            return pd.read_csv(
                path,
                sep=separator,
                dtype=dict.fromkeys(text, object),
                keep_default_na=False,
                na_values=[""],
                index_col=False,
                usecols=None if only is None else lambda column: column in set(only),
                encoding="utf-8-sig",
                low_memory=False,
            )
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} {path}: byte {error.start} is not UTF-8; save the table as UTF-8") from error
    except (pd.errors.ParserWarning, pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{what} {path}: not a readable table ({said}); are there cells too many in a row?") from error


def _parquet(path: Path, what: str) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError) as error:  # pyarrow's own errors are ValueErrors
        raise ValueError(f"{what} {path}: not a readable Parquet file ({str(error).splitlines()[0]})") from error


def _require_columns(table: pd.DataFrame, required: Sequence[str], where: str) -> None:
    found = [str(c) for c in table.columns]
    missing = [c for c in required if c not in found]
    if not missing:
        return
    if len(found) == 1 and any(mark in found[0] for mark in ";\t,"):
        raise ValueError(
            f"{where}: the header {found[0][:60]!r} was read as one column; separate cells by commas in a .csv and by "
            "tabs in a .tsv"
        )
    near = {m: difflib.get_close_matches(m, [f for f in found if f not in required], n=1, cutoff=0.5) for m in missing}
    hints = ", ".join(f"{n[0]!r} → {m}" for m, n in near.items() if n)
    raise ValueError(
        f"{where} lacks the column(s) {missing}; columns found: {found}{f'; perhaps rename {hints}' if hints else ''}"
    )


def _as_text(column: pd.Series, where: str, name: str) -> pd.Series:
    if pd.api.types.is_float_dtype(column):
        whole = column.dropna()
        if (whole != np.floor(whole)).any():
            raise ValueError(f"{where}: {name} holds numbers with fractions; ids and names must be texts")
        column = column.astype("Int64")
    empty = (column.isna() | (column.astype(object) == "")).to_numpy(bool)
    values = column.astype(object).map(str).to_numpy(dtype=object, copy=True)
    values[empty] = None
    return pd.Series(values, index=column.index, dtype=object)


def aliased(column: pd.Series, aliases: Mapping[str, str]) -> pd.Series:
    """A text column with the names in `aliases` replaced by what they stand for."""
    return column.map(lambda value: aliases.get(value, value)) if aliases else column
