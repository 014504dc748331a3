"""`state.sqlite`: what has been handled, and the fold states that belong to it, in one transaction."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ettwatch_app.up.failpoint import failpoint
from ettwatch_app.up.place import Place

FORMAT: Final = 1

_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
    offset INTEGER NOT NULL, line INTEGER NOT NULL, head BLOB NOT NULL, tail BLOB NOT NULL,
    size INTEGER NOT NULL, whole INTEGER NOT NULL, gone_us INTEGER
);
CREATE TABLE jobs (
    job TEXT PRIMARY KEY, state BLOB, status TEXT NOT NULL, due_us INTEGER, arrived_us INTEGER NOT NULL
);
CREATE INDEX jobs_due ON jobs (due_us) WHERE due_us IS NOT NULL;
CREATE TABLE expired (job TEXT PRIMARY KEY, status TEXT NOT NULL, at_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rejects (code TEXT PRIMARY KEY, count INTEGER NOT NULL, latest_us INTEGER NOT NULL) WITHOUT ROWID;
"""


class StateFileError(Exception):
    """The state file cannot be used; the message says why and what to do."""


class JobRow(NamedTuple):
    """What is kept of a job that may still get events.

    Attributes:
        job: Its name.
        state: Its fold state; None where it has to be folded again from the stored events.
        status: Its status, when last looked at.
        due_us: When it has to be looked at again without events (µs); None for never.
        arrived_us: When its latest event arrived (µs).
    """

    job: str
    state: bytes | None
    status: str
    due_us: int | None
    arrived_us: int


@dataclass(slots=True)
class Change:
    """What one commit writes.

    Attributes:
        places: Places in files that moved; a new place gets its id.
        jobs: Jobs that changed.
        expired: Jobs whose state is dropped, with their last status and the time (µs).
        rejects: New refusals by code.
        rejected_length: Length of the dead letter file.
        now_us: The time of the commit.
    """

    now_us: int
    rejected_length: int
    places: Sequence[Place] = ()
    jobs: Sequence[JobRow] = ()
    expired: Sequence[tuple[str, str]] = ()
    rejects: dict[str, int] = field(default_factory=dict)


class StateFile:
    """The state file, opened for writing by the one process that owns the data folder.

    Raises:
        StateFileError: It is damaged, or of another version.
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._prepare()
            self._check()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as e:
            raise StateFileError(
                f"cannot use {path}: {e}; if it is damaged, move it away: the fold states are then made again "
                "from the stored events"
            ) from e

    def _check(self) -> None:
        """Read through the file, for what is damaged would show in the middle of the work else."""
        (found,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(" ".join(str(found).split()))
        self.places()
        self.statuses()
        for _ in self.schedule():
            pass

    def _prepare(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
        elif version != FORMAT:
            raise StateFileError(
                f"{self._path} has format {version}, this ettwatch reads {FORMAT}; "
                "install the ettwatch that wrote it, or move the file away to make it again from the stored events"
            )

    def meta(self, name: str) -> str | int | None:
        """Return a value of the table meta; None where it is not set."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def set_meta(self, name: str, value: str | int) -> None:
        """Write a value of the table meta."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def places(self) -> list[Place]:
        """Return all places."""
        columns = "id, path, device, inode, offset, line, head, tail, size, whole, gone_us"
        rows = self._db.execute(f"SELECT {columns} FROM files")
        return [
            Place(i, path, device, inode, offset, line, head, tail, size, bool(whole), gone_us)
            for i, path, device, inode, offset, line, head, tail, size, whole, gone_us in rows
        ]

    def rejected_length(self) -> int | None:
        """Return the committed length of the dead letter file; None if nothing is known of it."""
        length = self.meta("rejected_length")
        return None if length is None else int(length)

    def committed_us(self) -> int | None:
        """Return the time (µs) of the last commit; None if there was none yet."""
        time_us = self.meta("committed_us")
        return None if time_us is None else int(time_us)

    def job(self, job: str) -> JobRow | None:
        """Return what is kept of a job; None if nothing is."""
        row = self._db.execute(
            "SELECT job, state, status, due_us, arrived_us FROM jobs WHERE job = ?", (job,)
        ).fetchone()
        return JobRow(*row) if row else None

    def schedule(self) -> Iterator[tuple[str, int, str]]:
        """Yield (job, due time, status) of all jobs that have to be looked at again."""
        yield from self._db.execute("SELECT job, due_us, status FROM jobs WHERE due_us IS NOT NULL").fetchall()

    def statuses(self) -> dict[str, int]:
        """Count the kept jobs by status."""
        return dict(self._db.execute("SELECT status, count(*) FROM jobs GROUP BY status").fetchall())

    def expired(self, job: str) -> str | None:
        """Return the last status of a job whose state was dropped; None if it is no such job."""
        row = self._db.execute("SELECT status FROM expired WHERE job = ?", (job,)).fetchone()
        return row[0] if row else None

    def known_jobs(self) -> set[str]:
        """Return the names of all jobs, kept or dropped, of which events were stored."""
        return {job for (job,) in self._db.execute("SELECT job FROM jobs UNION SELECT job FROM expired")}

    def start_anew(self) -> None:
        """Drop all places and jobs; what is told of refusals stays."""
        with self._transaction():
            for table in ("files", "jobs", "expired"):
                self._db.execute(f"DELETE FROM {table}")

    def adopt(self, jobs: Iterable[str], now_us: int) -> None:
        """Take in jobs that are only known from the stored events; each is folded again when it is needed."""
        rows = ((job, None, "unknown", now_us, now_us) for job in jobs)
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, ?, ?)", rows)

    def commit(self, change: Change) -> None:
        """Write one change, whole or not at all.

        Raises:
            sqlite3.Error: It could not be written (the disk is full, for one); nothing of it was.
        """
        new: list[tuple[Place, int | None]] = []
        with self._transaction():
            for place in change.places:
                row = self._db.execute(
                    "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(place.id, place.path, place.device, place.inode, place.offset, place.line),
                        *(place.head, place.tail, place.size, place.whole, place.gone_us),
                    ),
                )
                new.append((place, row.lastrowid))
            self._db.executemany("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?)", change.jobs)
            for job, status in change.expired:
                self._db.execute("DELETE FROM jobs WHERE job = ?", (job,))
                self._db.execute("INSERT OR REPLACE INTO expired VALUES (?, ?, ?)", (job, status, change.now_us))
            self._db.executemany(
                "INSERT INTO rejects VALUES (?, ?, ?) ON CONFLICT (code) DO UPDATE SET "
                "count = count + excluded.count, latest_us = excluded.latest_us",
                [(code, count, change.now_us) for code, count in change.rejects.items()],
            )
            self.set_meta("rejected_length", change.rejected_length)
            self.set_meta("committed_us", change.now_us)
            failpoint("in_transaction")
        for place, row_id in new:
            place.id = row_id

    def forget(self, places: Iterable[Place]) -> None:
        """Drop places whose files were removed or have been gone for long."""
        with self._transaction():
            self._db.executemany("DELETE FROM files WHERE id = ?", [(p.id,) for p in places if p.id is not None])

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


class _Transaction:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


class Kept(NamedTuple):
    """What the state file tells a reader, such as `doctor`.

    Attributes:
        files: How many event files are known.
        jobs: Kept jobs by status.
        expired: How many jobs were dropped.
        rejects: Refusals by code: how many, and when the latest was (µs).
    """

    files: int
    jobs: dict[str, int]
    expired: int
    rejects: dict[str, tuple[int, int]]


def look(path: Path) -> Kept | None:
    """Read the state file beside its owner, changing nothing; None where there is none.

    Raises:
        StateFileError: It cannot be read.
    """
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
            rejects = db.execute("SELECT code, count, latest_us FROM rejects ORDER BY code").fetchall()
            return Kept(
                db.execute("SELECT count(*) FROM files WHERE gone_us IS NULL").fetchone()[0],
                dict(db.execute("SELECT status, count(*) FROM jobs GROUP BY status ORDER BY status").fetchall()),
                db.execute("SELECT count(*) FROM expired").fetchone()[0],
                {code: (count, latest) for code, count, latest in rejects},
            )
    except sqlite3.Error as e:
        raise StateFileError(f"cannot read {path}: {e}") from e
