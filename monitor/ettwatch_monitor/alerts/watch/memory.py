"""What outlives the process: open and past episodes, what was accepted, what maintenance left out. One SQLite file."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from ettwatch_monitor.alerts.detect import Book, Incident
from ettwatch_monitor.alerts.watch.codec import incident_from, incident_to, parts_from, parts_to
from ettwatch_monitor.alerts.watch.explain import Part
from ettwatch_monitor.alerts.watch.window import Excluded

__all__ = ["Audit", "Memory", "StateError"]

_FORMAT: Final = 1
_BUSY_S: Final = 10.0
_SCHEMA: Final = (
    "CREATE TABLE incidents (key TEXT, found INTEGER, ended INTEGER, incident TEXT NOT NULL, parts TEXT NOT NULL, "
    "PRIMARY KEY (key, found)) WITHOUT ROWID",
    "CREATE TABLE excluded (start INTEGER, end INTEGER, scope TEXT, reason TEXT, starts INTEGER, attempts INTEGER, "
    "failures INTEGER, gpu_hours REAL, seen_at INTEGER, PRIMARY KEY (start, end, scope)) WITHOUT ROWID",
    "CREATE TABLE accepted (key TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID",
)


class StateError(Exception):
    """The file cannot be used. One line that says why, and what to do."""


class Audit(NamedTuple):
    """What planned maintenance left out, as it is on record. Times are microseconds."""

    start: int
    end: int
    scope: str
    reason: str
    starts: int
    attempts: int
    failures: int
    gpu_hours: float
    seen_at: int


class Memory:
    """The file. For one thread; other processes may read it and accept levels meanwhile. A context manager.

    Raises StateError where the file cannot be used; so does every call.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # It names teams and jobs: it is for its owner only.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StateError(
                f"cannot open {path}: {error.strerror or error}; choose a folder with --state that can be written to"
            ) from None
        with self._told():
            self._db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
        try:
            with self._told():
                self._prepare()
        except StateError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._begin():
            with closing(self._db.execute("PRAGMA user_version")) as answer:
                version = int(answer.fetchone()[0])
            if version not in (0, _FORMAT):
                raise StateError(
                    f"{self.path} is of format {version}, and this ettwatch writes {_FORMAT}; use the ettwatch that "
                    "wrote it, or move it away: then all alerts that fire are found anew"
                )
            if version == 0:
                for statement in _SCHEMA:
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {_FORMAT}")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def load(self) -> tuple[Book, dict[tuple[str, int], tuple[Part, ...]]]:
        """Return the book, and what explains each episode, by key and time of finding."""
        with (
            self._told(),
            closing(self._db.execute("SELECT incident, parts FROM incidents ORDER BY found, key")) as rows,
        ):
            known = [(incident_from(text), parts_from(parts)) for text, parts in rows]
        return (
            Book(tuple(incident for incident, _ in known)),
            {(str(incident.key), incident.found): parts for incident, parts in known},
        )

    def save(
        self, book: Book, parts: Mapping[tuple[str, int], Sequence[Part]], excluded: Sequence[Excluded], now: int
    ) -> None:
        """Keep the book and what was left out: all of it, or nothing."""
        with self._told(), self._begin():
            self._db.execute("DELETE FROM incidents")
            self._db.executemany(
                "INSERT INTO incidents VALUES (?, ?, ?, ?, ?)", [_row(one, parts) for one in book.incidents]
            )
            for one in excluded:
                window = one.window
                self._db.execute(
                    "INSERT OR REPLACE INTO excluded VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(window.start, window.end, window.where, window.reason),
                        *(one.starts, one.attempts, one.failures, one.gpu_hours, now),
                    ),
                )
            open_keys = {str(one.key) for one in book.all_open()}
            for key in self._accepted():
                if key not in open_keys:
                    self._db.execute("DELETE FROM accepted WHERE key = ?", (key,))

    def accept(self, key: str, now: int) -> None:
        """Note that the level of an open episode is the new usual one; the next round ends it."""
        with self._told(), self._begin():
            self._db.execute("INSERT OR REPLACE INTO accepted VALUES (?, ?)", (key, now))

    def accepted(self) -> set[str]:
        """Return the keys whose level was accepted and is not yet."""
        with self._told():
            return set(self._accepted())

    def _accepted(self) -> list[str]:
        with closing(self._db.execute("SELECT key FROM accepted")) as rows:
            return [str(row[0]) for row in rows]

    def audit(self) -> list[Audit]:
        """Return what planned maintenance left out, the newest first."""
        with self._told(), closing(self._db.execute("SELECT * FROM excluded ORDER BY start DESC, scope")) as rows:
            return [Audit(*row) for row in rows]

    @contextmanager
    def _begin(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"cannot use {self.path}: {error}; move it away, and all alerts that fire are found anew"
            ) from error


def _row(one: Incident, parts: Mapping[tuple[str, int], Sequence[Part]]) -> tuple[str, int, int | None, str, str]:
    name = (str(one.key), one.found)
    return (*name, one.ended, incident_to(one), parts_to(parts.get(name, ())))
