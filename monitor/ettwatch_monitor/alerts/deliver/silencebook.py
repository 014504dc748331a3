"""Silences on the disk, and on record who began and ended each."""

import sqlite3
from contextlib import closing
from typing import Final, NamedTuple

from ettwatch_monitor.alerts.deliver.file import begin
from ettwatch_monitor.alerts.deliver.matchers import parse_matchers
from ettwatch_monitor.alerts.deliver.silence import Silence

__all__ = ["SilenceBook", "SilenceEntry"]

_HELD: Final = "SELECT number, matchers, starts_at, ends_at, comment FROM silences WHERE ends_at > ? ORDER BY number"
_GREATEST: Final = (
    "SELECT coalesce(max(number), 0) FROM (SELECT number FROM silences UNION ALL SELECT number FROM silence_log)"
)
_ON_RECORD: Final = (
    "SELECT number, matchers, starts_at, ends_at, comment, made_at, made_by, ended_at, ended_by, ended_why "
    "FROM silence_log ORDER BY number"
)


class SilenceEntry(NamedTuple):
    """A silence as it is on record, for ever. Times are microseconds since the Unix epoch."""

    number: int
    matchers: str
    starts_at: int
    ends_at: int
    """When it was to end."""
    comment: str
    made_at: int
    made_by: str
    """Empty where nobody said who."""
    ended_at: int | None
    """When somebody ended it before its time; None where nobody did."""
    ended_by: str
    ended_why: str


class SilenceBook:
    """The silences of an outbox. Another process may add and end some meanwhile."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, silence: Silence, now: int, by: str = "") -> int:
        """Keep a silence; return its number, which no other ever had. Durable when it returns."""
        text = ", ".join(map(str, silence.matchers))
        row = (text, silence.starts_at, silence.ends_at, silence.comment)
        with begin(self._db):
            # SQLite gives the greatest number away again once its row is gone.
            sql = (
                "SELECT max((SELECT coalesce(max(number), 0) FROM silences), coalesce(max(number), 0)) FROM silence_log"
            )
            with closing(self._db.execute(sql)) as answer:
                number = int(answer.fetchone()[0]) + 1
            self._db.execute("INSERT INTO silences VALUES (?, ?, ?, ?, ?)", (number, *row))
            log = "INSERT INTO silence_log VALUES (?, ?, ?, ?, ?, ?, ?, NULL, '', '')"
            self._db.execute(log, (number, *row, now, by))
        return number

    def end(self, number: int, now: int, by: str = "", why: str = "", *, over: bool = False) -> bool:
        """End a silence before its time; return whether there was one that was not over, or is to be removed though.

        Durable when it returns.
        """
        with begin(self._db):
            sql = "DELETE FROM silences WHERE number = ? AND (ends_at > ? OR ?)"
            if self._db.execute(sql, (number, now, over)).rowcount <= 0:
                return False
            log = "UPDATE silence_log SET ended_at = ?, ended_by = ?, ended_why = ? WHERE number = ?"
            self._db.execute(log, (now, by, why, number))
            return True

    def held(self, now: int) -> list[Silence]:
        """Return the silences that are not over, those that are yet to begin too, by number."""
        with closing(self._db.execute(_HELD, (now,))) as answer:
            rows = answer.fetchall()
        return [Silence(parse_matchers(text), ends, starts, said, number) for number, text, starts, ends, said in rows]

    def on_record(self) -> list[SilenceEntry]:
        """Return every silence that ever was, by number."""
        with closing(self._db.execute(_ON_RECORD)) as answer:
            return [SilenceEntry(*row) for row in answer]
