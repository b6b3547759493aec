"""Semantic spaces (SPoSE or any matrix) and how they are joined to the label names of a data set.

A label is matched to a concept id exactly, or to a word after case, spaces, underscores and hyphens are levelled. A
name with several meanings (bow, mouse, bat …) is never guessed: it stays unmatched and is reported, unless an alias
says which id is meant. Unmatched labels get NaN rows, which means "not ranked".
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

logger = logging.getLogger(__name__)

FLAG_NAMES = 8
ID_COLUMNS = ("uniqueID", "unique_id", "id", "label", "concept")
TABLE_SUFFIXES = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class JoinReport:
    """How labels met a semantic space.

    Attributes:
        matched: Label → id.
        ambiguous: Label → the ids it could mean; name one in `aliases`.
        unmatched: Labels that the space does not know.
    """

    matched: Mapping[str, str]
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()

    def summary(self, limit: int | None = None) -> str:
        """One line for results and logs; at most `limit` names of a kind, None for all."""
        total = len(self.matched) + len(self.ambiguous) + len(self.unmatched)
        text = f"semantic space: {len(self.matched)} of {total} labels matched"
        if self.ambiguous:
            choices = [f"{k} ({'|'.join(v)})" for k, v in self.ambiguous.items()]
            text += f"; ambiguous, not guessed: {_listed(choices, limit)}"
        if self.unmatched:
            text += f"; unknown: {_listed(self.unmatched, limit)}"
        return text


def _listed(names: Sequence[str], limit: int | None) -> str:
    rest = len(names) - len(names[:limit])
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest else "")


@dataclass(frozen=True, eq=False)
class SemanticSpace:
    """Concepts as points.

    Attributes:
        ids: Unique names of the rows.
        embedding: (rows, D) finite coordinates.
        words: The word of every row, not unique; default: the ids without the digit that tells meanings apart.
        name: Where it came from.

    Raises:
        ValueError: For repeated ids, row counts that differ, or values that are not finite.

    Example:
        >>> space = SemanticSpace(("bat1", "bat2", "hot-air_balloon"), np.eye(3))
        >>> rows, report = space.join(["hot air balloon", "bat"])
        >>> rows.tolist()[0], report.summary()
        ([0.0, 0.0, 1.0], 'semantic space: 1 of 2 labels matched; ambiguous, not guessed: bat (bat1|bat2)')
    """

    ids: tuple[str, ...]
    embedding: np.ndarray
    words: tuple[str, ...] | None = None
    name: str = "semantic space"

    def __post_init__(self) -> None:
        ids = tuple(str(i) for i in self.ids)
        words = tuple(re.sub(r"\d+$", "", i) for i in ids) if self.words is None else tuple(map(str, self.words))
        rows = np.asarray(self.embedding, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] == 0:
            raise ValueError(f"{self.name}: the embedding must be a matrix (rows, D), got shape {rows.shape}")
        if not len(rows) == len(ids) == len(words):
            raise ValueError(
                f"{self.name}: {len(rows)} rows for {len(ids)} ids and {len(words)} words; give the ids file that "
                "belongs to this embedding, one id a row in the same order"
            )
        if len(set(ids)) != len(ids):
            repeated = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"{self.name}: {len(repeated)} id(s) occur more than once: {repeated[:5]}")
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            r, c = bad[0]
            raise ValueError(
                f"{self.name}: {len(bad)} value(s) are not finite, first in row {r} ({ids[r]}), column {c}"
            )
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "embedding", rows)

    def join(self, labels: Sequence[str], aliases: Mapping[str, str] | None = None) -> tuple[np.ndarray, JoinReport]:
        """Rows in label order.

        Args:
            labels: The L label names.
            aliases: Label → id, for names that are ambiguous or spelt differently; goes before any matching.

        Returns:
            (L, D) float64 with NaN rows for labels without a match, and the report.

        Raises:
            ValueError: When an alias names an id that the space does not have.
        """
        position = {name: row for row, name in enumerate(self.ids)}
        by_word: dict[str, list[int]] = {}
        for row, (name, word) in enumerate(zip(self.ids, self.words or (), strict=True)):
            for key in {level(name), level(word)}:
                by_word.setdefault(key, []).append(row)
        aliases = dict(aliases or {})
        for label, target in aliases.items():
            if target not in position:
                near = difflib.get_close_matches(target, self.ids, n=3)
                raise ValueError(f"{self.name}: alias {label}: {target} names no id of the space; nearest: {near}")
        rows_LD = np.full((len(labels), self.embedding.shape[1]), np.nan)
        matched, ambiguous, unmatched = {}, {}, []
        for number, label in enumerate(labels):
            wanted = aliases.get(label, label)
            found = [position[wanted]] if wanted in position else by_word.get(level(wanted), [])
            if len(found) == 1:
                matched[label] = self.ids[found[0]]
                rows_LD[number] = self.embedding[found[0]]
            elif found:
                ambiguous[label] = tuple(self.ids[row] for row in found)
            else:
                unmatched.append(label)
        return rows_LD, JoinReport(matched, ambiguous, tuple(unmatched))


def level(name: str) -> str:
    """A name with case and word separators levelled.

    Example:
        >>> level("Hot-air_balloon") == level("hot air balloon")
        True
    """
    return re.sub(r"[\s_\-]+", "", name.strip().casefold())


def load_semantic_space(
    embedding: str | Path,
    ids: str | Path | None = None,
    id_column: str | None = None,
    word_column: str = "Word",
) -> SemanticSpace:
    """A semantic space from files.

    Args:
        embedding: Numbers separated by spaces or tabs, one concept a row, without header (.txt, as SPoSE is published);
            a .npy matrix; or a .csv, .tsv or .parquet table with a header, whose numeric columns are the dimensions.
        ids: Names of the rows: one a line (.txt, such as unique_id.txt), or a table with an id column (such as
            things_concepts.tsv). Not needed where the embedding is a table with an id column of its own.
        id_column: Name of the id column; default: the first of uniqueID, unique_id, id, label, concept that is there.
        word_column: Name of the column of words in the ids table, used where it is there.

    Raises:
        FileNotFoundError: Naming the missing file.
        ValueError: For rows of unequal length, text among the numbers, a missing id column, and see `SemanticSpace`.
    """
    path = _existing(embedding, "embedding")
    own: pd.DataFrame | None = None
    if path.suffix in TABLE_SUFFIXES or path.suffix == ".parquet":
        own = _table(path)
        rows = own.drop(columns=_id_column(own, id_column, path, required=ids is None) or [])
        text = [c for c in rows.columns if not pd.api.types.is_numeric_dtype(rows[c])]
        if text:
            raise ValueError(f"{path}: column(s) {text[:5]} are not numbers; drop them or name the id column")
        matrix = rows.to_numpy(np.float64)
    elif path.suffix == ".npy":
        try:
            matrix = np.load(path, allow_pickle=False).astype(np.float64)
        except (ValueError, OSError, EOFError) as error:
            raise ValueError(f"{path}: not a .npy matrix of numbers ({error})") from error
    else:
        matrix = _numbers(path)
    if ids is None and own is None:
        raise ValueError(f"{path} holds no names; give `ids`, for example unique_id.txt or things_concepts.tsv")
    if ids is None:
        assert own is not None
        names, words = own[_id_column(own, id_column, path)].astype(str).tolist(), None
    else:
        names, words = _names(_existing(ids, "ids"), id_column, word_column)
    label = str(path) if ids is None else f"{path} with {ids}"
    return SemanticSpace(tuple(names), matrix, tuple(words) if words else None, label)


def join_semantic_space(
    space: SemanticSpace | Mapping[str, Any] | None, labels: Sequence[str]
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """What a data set needs from a semantic space: its (L, D) rows and a flag that says what did not match.

    The flag names a few labels of each kind; the log (level info) names all.

    Args:
        space: A space; or the arguments of `load_semantic_space` and perhaps `aliases`, as a configuration gives them;
            or None for no space.
        labels: The L label names.

    Raises:
        ValueError: When no label matches, or for an unknown argument.
    """
    if space is None:
        return None, ()
    aliases: Mapping[str, str] | None = None
    if not isinstance(space, SemanticSpace):
        settings = dict(space)
        aliases = settings.pop("aliases", None)
        unknown = sorted(set(settings) - {"embedding", "ids", "id_column", "word_column"})
        if unknown or "embedding" not in settings:
            raise ValueError(
                "semantic_space takes embedding (required), ids, id_column, word_column and aliases; "
                f"got {sorted(settings)}"
            )
        space = load_semantic_space(**settings)
    rows, report = space.join(labels, aliases)
    if not report.matched:
        raise ValueError(f"{space.name}: none of the {len(labels)} labels matched, for example {list(labels[:3])}")
    if len(report.matched) == len(labels):
        return rows, ()
    logger.info("%s", report.summary())
    return rows, (report.summary(limit=FLAG_NAMES),)


def _existing(path: str | Path, what: str) -> Path:
    found = Path(path).expanduser()
    if not found.is_file():
        raise FileNotFoundError(
            f"semantic space: no {what} file {found}; SPoSE embeddings and unique_id.txt are published with THINGS "
            "(https://osf.io/jum2f), CC BY 4.0"
        )
    return found


def _table(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path, sep=TABLE_SUFFIXES[path.suffix])
    except (ValueError, OSError) as error:  # pandas' and pyarrow's own errors are ValueErrors
        raise ValueError(f"{path}: not a readable {path.suffix[1:]} table ({error})") from error


def _id_column(table: pd.DataFrame, wanted: str | None, path: Path, required: bool = True) -> str | None:
    choices = (wanted,) if wanted is not None else ID_COLUMNS
    for column in choices:
        if column in table.columns:
            return column
    if required or wanted is not None:
        raise ValueError(f"{path}: no id column among {choices}; columns found: {list(table.columns)[:8]}")
    return None


def _numbers(path: Path) -> np.ndarray:
    rows: list[list[float]] = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            rows.append([float(v) for v in line.split()])
        except ValueError as error:
            raise ValueError(f"{path}:{number}: expected numbers separated by spaces or tabs; {error}") from error
        if len(rows[-1]) != len(rows[0]):
            raise ValueError(f"{path}:{number}: {len(rows[-1])} numbers, the first row has {len(rows[0])}")
    return np.array(rows, dtype=np.float64)


def _names(path: Path, id_column: str | None, word_column: str) -> tuple[list[str], list[str] | None]:
    if path.suffix in TABLE_SUFFIXES or path.suffix == ".parquet":
        table = _table(path)
        names = table[_id_column(table, id_column, path)].astype(str).tolist()
        return names, table[word_column].astype(str).tolist() if word_column in table.columns else None
    return [line.strip() for line in _lines(path) if line.strip()], None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text file, byte {error.start} is not UTF-8 ({error.reason})") from error
