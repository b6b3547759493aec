"""Answers of language models on disk: one SQLite file that survives a kill and serves several processes.

Only answers that passed the check of their question are kept as answers. Replies that did not pass are counted apart,
with the reason, so that a run that is started again does not ask what was asked in vain.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, topic TEXT NOT NULL, answer TEXT NOT NULL,
    tokens INTEGER, created TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, topic TEXT NOT NULL, attempts INTEGER NOT NULL, final INTEGER NOT NULL,
    reason TEXT NOT NULL, created TEXT NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Failure:
    """Replies that could not be used.

    Attributes:
        attempts: How often the question was asked in vain.
        final: Whether asking again is pointless, as after a refusal.
        reason: Why the last reply could not be used.
    """

    attempts: int
    final: bool
    reason: str


class AnswerCache:
    """Key of a question → its validated answer.

    Every answer is written the moment it is there, in a transaction of its own: a kill loses nothing that arrived.

    Args:
        path: The SQLite file; made where it is not there. ":memory:" keeps answers for this object only.

    Raises:
        ValueError: The file is no cache of answers, or of another version.
        OSError: It cannot be opened or written.

    Example:
        >>> with AnswerCache(":memory:") as cache:
        ...     cache.put("k", {"eye": True}, "a-model", "presence")
        ...     cache.get("k"), cache.get("other"), len(cache)
        ({'eye': True}, None, 1)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path if path == ":memory:" else Path(path).expanduser()
        if isinstance(self.path, Path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(self.path, timeout=60.0, check_same_thread=False, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise OSError(f"cannot open the cache of answers {self.path}: {error}") from error
        self._closing = weakref.finalize(self, self._db.close)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        try:
            version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
            foreign = version == 0 and self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version not in (0, VERSION) or (foreign and not self._is_ours()):
                raise ValueError(
                    f"{self.path} is a cache of version {version} or another kind of file, this code reads version "
                    f"{VERSION}; name another file, or move this one away"
                )
            # A kill of the process loses nothing in this mode; where a file system lacks it SQLite keeps its own.
            self._db.execute("PRAGMA journal_mode=WAL").fetchone()
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(f"cannot use the cache of answers {self.path}: {error}") from error
            raise ValueError(f"{self.path} is not a cache of answers ({error}); name another file") from error

    def _is_ours(self) -> bool:
        names = {row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        return names <= {"answers", "failures"}

    def get(self, key: str) -> Any | None:
        """The answer, or None."""
        row = self._one("SELECT answer FROM answers WHERE key=?", (key,))
        return None if row is None else json.loads(row[0])

    def put(self, key: str, answer: Mapping[str, Any], model: str, topic: str, tokens: int | None = None) -> None:
        """Keep a validated answer; one that is there already stays, and failures at the question are forgotten.

        Args:
            key: Key of the question.
            answer: What the check made of the reply, as JSON-like values.
            model: Name of the model, for people who look into the file.
            topic: What kind of question it is.
            tokens: Tokens that it took.
        """
        row = (key, model, topic, json.dumps(answer, allow_nan=False, ensure_ascii=False), tokens, _now())
        with self._lock, self._said(), self._db:  # the connection commits, or takes back
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT OR IGNORE INTO answers VALUES (?,?,?,?,?,?)", row)
            self._db.execute("DELETE FROM failures WHERE key=?", (key,))

    def failure(self, key: str) -> Failure | None:
        """What is known of replies to a question that could not be used, or None."""
        row = self._one("SELECT attempts, final, reason FROM failures WHERE key=?", (key,))
        return None if row is None else Failure(int(row[0]), bool(row[1]), str(row[2]))

    def put_failure(self, key: str, failure: Failure, model: str, topic: str) -> None:
        """Remember that a reply could not be used."""
        row = (key, model, topic, failure.attempts, int(failure.final), failure.reason, _now())
        with self._lock, self._said():
            self._db.execute("INSERT OR REPLACE INTO failures VALUES (?,?,?,?,?,?,?)", row)

    def __len__(self) -> int:
        row = self._one("SELECT count(*) FROM answers", ())
        return int(row[0]) if row else 0

    def _one(self, sql: str, values: tuple) -> tuple | None:
        with self._lock, self._said():
            return self._db.execute(sql, values).fetchone()

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Say which file it is that cannot be used (a full disk, another process that holds it for a minute)."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OSError(f"cannot use the cache of answers {self.path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closing()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
