"""The outbox on the disk: one SQLite file, every change one transaction."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

__all__ = ["OutboxError", "begin", "open_file", "told"]

_FORMAT: Final = 1
_BUSY_S: Final = 10.0

_SCHEMA: Final = """
CREATE TABLE alerts (
    key TEXT PRIMARY KEY, episode INTEGER NOT NULL, seq INTEGER NOT NULL, firing INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, digest TEXT NOT NULL, alert TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE messages (
    number INTEGER PRIMARY KEY, channel TEXT NOT NULL, key TEXT NOT NULL, episode INTEGER NOT NULL,
    seq INTEGER NOT NULL, alert TEXT NOT NULL, firing INTEGER NOT NULL, state TEXT NOT NULL,
    tries INTEGER NOT NULL, made_at INTEGER NOT NULL, done_at INTEGER, error TEXT
);
CREATE INDEX messages_waiting ON messages (channel, number) WHERE state = 'waiting';
CREATE INDEX messages_of_key ON messages (channel, key, episode);
CREATE TABLE standing (
    channel TEXT NOT NULL, key TEXT NOT NULL, episode INTEGER NOT NULL, seq INTEGER NOT NULL, alert TEXT NOT NULL,
    firing INTEGER NOT NULL, due_at INTEGER NOT NULL, told TEXT, until INTEGER, error TEXT,
    PRIMARY KEY (channel, key)
) WITHOUT ROWID;
CREATE TABLE lanes (
    channel TEXT PRIMARY KEY, mode TEXT NOT NULL, failures INTEGER NOT NULL, due_at INTEGER NOT NULL,
    failing_since INTEGER, error TEXT, tokens REAL, tokens_at INTEGER NOT NULL, sent INTEGER NOT NULL, sent_at INTEGER
) WITHOUT ROWID;
CREATE TABLE silences (
    number INTEGER PRIMARY KEY, matchers TEXT NOT NULL, starts_at INTEGER NOT NULL, ends_at INTEGER NOT NULL,
    comment TEXT NOT NULL
);
"""

_LATER: Final = """
CREATE TABLE IF NOT EXISTS silence_log (
    number INTEGER PRIMARY KEY, matchers TEXT NOT NULL, starts_at INTEGER NOT NULL, ends_at INTEGER NOT NULL,
    comment TEXT NOT NULL, made_at INTEGER NOT NULL, made_by TEXT NOT NULL, ended_at INTEGER,
    ended_by TEXT NOT NULL, ended_why TEXT NOT NULL
)
"""
"""A table that came later. An older ettwatch does not look at it, so that the format is the same."""


class OutboxError(Exception):
    """The outbox cannot be used; the message says why and what to do."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open an outbox, which is made where it is missing. Raises OutboxError."""
    try:
        # Alerts name teams and jobs: they are for their owner only.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
    except (OSError, sqlite3.Error) as error:
        raise OutboxError(f"cannot open the outbox {path}: {error}; choose a folder that can be written to") from error
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _prepare(db, path)
    except sqlite3.DatabaseError as error:
        db.close()
        why = f"cannot use the outbox {path}: {error}"
        raise OutboxError(f"{why}; move it away, and alerts that fire are told once more") from error
    except OutboxError:
        db.close()
        raise
    return db


@contextmanager
def begin(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all of it, or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Raise what SQLite says as an OutboxError."""
    try:
        yield
    except sqlite3.Error as error:
        raise OutboxError(f"cannot use the outbox {path}: {error}; nothing that it held is lost") from error


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    with begin(db):
        with closing(db.execute("PRAGMA user_version")) as answer:
            version = int(answer.fetchone()[0])
        if version == _FORMAT:
            db.execute(_LATER)
            return
        if version:
            raise OutboxError(
                f"the outbox {path} is of format {version}, this ettwatch writes {_FORMAT}; use the other"
            )
        for statement in _SCHEMA.split(";\n"):
            if statement.strip():
                db.execute(statement)
        db.execute(_LATER)
        db.execute(f"PRAGMA user_version = {_FORMAT}")
