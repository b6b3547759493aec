"""Tables of a study made ready for the page: texts, sort keys and what has to catch the eye."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from humanlike.reports.study_observers import PEOPLE, Observers
from humanlike.reports.study_wording import head
from humanlike.reports.wording import MISSING, TITLES, count_text, interval, is_missing, short_title

MAX_ROWS = 2_000
MAX_OBSERVERS = 30
_OBSERVER_COLUMNS = ("observer", "first", "second", "model", "a", "b", "tested", "drawn_by")
_METRIC_COLUMNS = ("metric", "score", "measure")
_PROSE = ("formula", "note", "source", "flags")
"""Columns of long texts."""
_ALARMS = {"converged": False, "singular": True}
"""Column of truth values → the value that must catch the eye."""


@dataclass(frozen=True)
class Cell:
    """One entry.

    Attributes:
        text: What is read.
        key: What it is sorted by; "" stands at the end.
        look: CSS class, or "".
        heat: Depth of colour in [0, 1], with `look` "up" or "down".
    """

    text: str
    key: str
    look: str = ""
    heat: float = 0.0


@dataclass(frozen=True)
class TableView:
    """A table of the page.

    Attributes:
        name: Of the table; its id on the page.
        title: In words.
        heads: (text, numeric?) of every column.
        rows: Cells, row by row.
        caption: What to know before reading it.
        left_out: Rows that are only in the file.
        notes: Sentences below it.
    """

    name: str
    title: str
    heads: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    left_out: int = 0
    notes: Sequence[str] = field(default_factory=tuple)


def decimals(values: np.ndarray) -> int | None:
    """How many decimals show a column of numbers: none for whole ones, else by their median size.

    Args:
        values: (n,) numbers; those that are not finite are passed over.

    Returns:
        0, 3, 4 or 5; 1 where all exceed a thousand; None where numbers are so small that they need an exponent.

    Example:
        >>> decimals(np.array([4.0, 8.0])), decimals(np.array([0.29, 0.5])), decimals(np.array([0.00495]))
        (0, 3, 5)
    """
    sizes = np.abs(values[np.isfinite(values)])
    if (sizes == np.round(sizes)).all():
        return 0
    middle = float(np.median(sizes[sizes > 0]))
    if middle >= 1000:
        return 1
    return 3 if middle >= 0.1 else 4 if middle >= 0.01 else 5 if middle >= 0.001 else None


def fixed(value: float, places: int | None) -> str:
    """A number at a count of decimals, or with an exponent; a dash where there is none.

    Example:
        >>> fixed(-0.2904, 3), fixed(4.3512e-12, None), fixed(float("nan"), 3), fixed(float("inf"), 3)
        ('−0.290', '4.35e−12', '–', '∞')
    """
    if not np.isfinite(value):
        return MISSING if np.isnan(value) else f"{'−' if value < 0 else ''}∞"
    return (f"{value:.3g}" if places is None else f"{value:.{places}f}").replace("-", "−")


def probability(value: float) -> str:
    """A p value as it is written.

    Example:
        >>> probability(0.0421), probability(1e-9), probability(0.99)
        ('0.042', '<0.001', '0.990')
    """
    return MISSING if is_missing(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def table_view(
    name: str, title: str, table: pd.DataFrame, observers: Observers, caption: str = "", fine: Collection[str] = ()
) -> TableView:
    """A table with its columns in readable form: ends of intervals joined, empty columns left out.

    Args:
        name: Its id on the page.
        title: In words.
        table: The rows.
        observers: How observers are named.
        caption: What to know before reading it.
        fine: Columns of small numbers that have five decimals whatever their size.
    """
    shown = table.head(MAX_ROWS)
    heads, columns = [], []
    for label, numeric, cells in _columns(table, shown, observers, fine):
        heads.append((label, numeric))
        columns.append(cells)
    rows = [list(row) for row in zip(*columns, strict=True)]
    return TableView(name, title, heads, rows, caption, len(table) - len(shown))


def _columns(
    table: pd.DataFrame, shown: pd.DataFrame, observers: Observers, fine: Collection[str]
) -> Iterable[tuple[str, bool, list[Cell]]]:
    names = _alarms_first([str(c) for c in table.columns], table)
    lows = {c: c.removesuffix("_low") + "_high" for c in names if c.endswith("_low")}
    lows = {low: high for low, high in lows.items() if high in table}
    matrix = decimals(table[[c for c in names if c in observers.paradigms]].to_numpy(float))  # of every two observers
    for column in names:
        if column in lows.values() or table[column].isna().all() or (table[column].astype(str) == "").all():
            continue
        if column in lows:
            prefix = "" if column == "ci_low" else head(column.removesuffix("_low")) + ", "
            ends = shown[[column, lows[column]]].astype(float)
            places = 5 if column in fine else decimals(ends.to_numpy())
            digits = max(3, 5 if places is None else places)
            texts = (interval(a, b, digits) for a, b in ends.itertuples(index=False))
            cells = [Cell(text, _key(low)) for text, low in zip(texts, ends[column], strict=True)]
            yield f"{prefix}95% interval", True, cells
            continue
        numeric = pd.api.types.is_numeric_dtype(table[column]) and not pd.api.types.is_bool_dtype(table[column])
        observer, own = column in observers.paradigms, 5 if column in fine else None
        yield (
            observers.label(column) if observer else head(column),
            numeric,
            list(map(_writer(table[column], column, observers, matrix if observer else own), shown[column])),
        )


def _alarms_first(names: list[str], table: pd.DataFrame) -> list[str]:
    """Truth values that must catch the eye stand before the first number, where no screen cuts them off."""
    alarms = [name for name in names if name in _ALARMS]
    others = [name for name in names if name not in _ALARMS]
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in others]
    place = numeric.index(True) if True in numeric else len(others)
    return [*others[:place], *alarms, *others[place:]]


def _writer(values: pd.Series, column: str, observers: Observers, places: int | None = None) -> Callable[[Any], Cell]:
    """How the entries of a column are written."""
    if pd.api.types.is_bool_dtype(values) or values.dropna().map(lambda v: isinstance(v, (bool, np.bool_))).all():
        return lambda v: _truth(v, column)
    if pd.api.types.is_integer_dtype(values) or column in ("n", "groups"):
        return lambda v: Cell(MISSING, "") if is_missing(v) else Cell(count_text(v), str(int(v)))
    if column in ("p_value", "p_adjusted"):
        return lambda v: Cell(probability(v), _key(v))
    if pd.api.types.is_numeric_dtype(values):
        places = places or decimals(values.to_numpy(float, na_value=np.nan))
        return lambda v: Cell(MISSING, "") if is_missing(v) else Cell(fixed(float(v), places), _key(v))
    named = set(observers.paradigms) | observers.simulated | {PEOPLE}
    return lambda v: _text(v, column, named, observers)


def _truth(value: Any, column: str) -> Cell:
    if is_missing(value):
        return Cell(MISSING, "")
    alarm = column in _ALARMS and bool(value) == _ALARMS[column]
    word = "yes" if value else "no"
    return Cell(f"⚠ {word}" if alarm else word, word, "alarm" if alarm else "")


def _text(value: Any, column: str, named: set[str], observers: Observers) -> Cell:
    if is_missing(value):
        return Cell(MISSING, "")
    text = str(value)
    if column in _OBSERVER_COLUMNS and text in named:
        text = observers.label(text)
    elif column in _METRIC_COLUMNS or (column in ("first", "second") and text in TITLES):
        text = short_title(text)
    return Cell(text, text, "prose" if column in _PROSE else "")


def _key(value: Any) -> str:
    return "" if is_missing(value) or not np.isfinite(value) else repr(float(value))


def discrepancy_views(table: pd.DataFrame, observers: Observers) -> list[TableView]:
    """What each switch of the protocol alone changes: one table a score, a row a value, a column an observer.

    An entry holds the score and its change from the study's own protocol; the deeper the colour, the greater the
    change is beside the greatest of that score, with an arrow for its direction. Entries are sorted by the change.

    Args:
        table: Columns `switch, value, observer, score, estimate, change, standing, note`.
        observers: How observers are named.
    """
    known = table[table["score"].astype(str) != ""]
    notes = _not_computed(table)
    views: list[TableView] = []
    for score in dict.fromkeys(known["score"].astype(str)):
        rows = known[known["score"] == score]
        names = list(dict.fromkeys(rows["observer"].astype(str)))
        shown = names[:MAX_OBSERVERS]
        greatest = float(np.nanmax(np.abs(rows["change"].to_numpy(float)), initial=0.0))
        lines = []
        presets_last = rows.assign(is_preset=rows["switch"] == "preset").sort_values("is_preset", kind="stable")
        for (switch, value), group in presets_last.groupby(["switch", "value"], sort=False):
            by_name = {str(row["observer"]): row for row in group.to_dict("records")}
            own = bool(group["standing"].any())
            start = Cell(f"{switch} = {value}" + (" (this study)" if own else ""), f"{switch} {value}")
            entries = [_change(by_name.get(name), greatest) for name in shown]
            lines.append([start, *entries])
        heads = [("switch", False), *((observers.label(name), True) for name in shown)]
        more = [f"{len(names) - len(shown)} more observers are in the file."] if len(names) > len(shown) else []
        said = [*more, *([] if views else notes)]  # what holds for all of them stands under the first
        views.append(TableView(f"discrepancy-{score}", short_title(score), heads, lines, notes=said))
    return views


def _change(row: Mapping[Any, Any] | None, greatest: float) -> Cell:
    if row is None:
        return Cell(MISSING, "")
    value, change = float(row["estimate"]), float(row["change"])
    if not np.isfinite(value):
        return Cell(str(row["note"]) or MISSING, "")
    text = f"{value:.3f}".replace("-", "−")
    if not np.isfinite(change) or round(change, 12) == 0:
        return Cell(f"{text} =", "0.0")
    arrow, look = ("▲", "up") if change > 0 else ("▼", "down")
    return Cell(f"{text} {arrow}{_size(abs(change))}", repr(change), look, round(abs(change) / greatest, 3))


def _size(change: float) -> str:
    return f"{change:.3f}" if change >= 0.0005 else "<0.001"


def _not_computed(table: pd.DataFrame) -> list[str]:
    rows = table[(table["score"].astype(str) == "") & (table["note"].astype(str) != "")]
    pairs = dict.fromkeys(zip(rows["switch"].astype(str), rows["note"].astype(str), strict=True))
    return [f"{switch}: not computed ({note.removeprefix('not computed: ')})." for switch, note in pairs]
