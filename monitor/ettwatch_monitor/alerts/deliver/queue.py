"""What channels hear state by state: each message once, those of one alert in order."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Final, Literal, NamedTuple

from ettwatch_monitor.alerts.alert import Alert
from ettwatch_monitor.alerts.deliver.file import begin
from ettwatch_monitor.alerts.deliver.message import Message, decode, encode

__all__ = ["Done", "Queue", "Waiting"]

Done = Literal["sent", "silenced", "refused"]

_PAGE: Final = 500


class Waiting(NamedTuple):
    """A message that was not delivered yet."""

    number: int
    message: Message
    firing: bool
    fresh: bool
    """The channel can know nothing yet of this episode of the alert."""


class Queue:
    """The messages of all channels of mode `each`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(self, channel: str, alert: Alert, episode: int, seq: int, now: int, *, wanted: bool, news: bool) -> None:
        """Add a state of an alert; part of a transaction.

        A message that nobody tried to send yet takes in what changed meanwhile, and keeps its place.

        Args:
            channel: Its name.
            alert: The state.
            episode: Of the alert.
            seq: Of the state.
            now: The time (µs).
            wanted: The labels are those that the channel asks for. Once it was told of an episode, it hears the rest.
            news: Worth a message of its own.
        """
        mine = (channel, alert.key, episode)
        if (
            not wanted
            and self._one("SELECT 1 FROM messages WHERE channel = ? AND key = ? AND episode = ?", mine) is None
        ):
            return
        if alert.firing:
            untried = self._one(
                "SELECT max(number) FROM messages WHERE channel = ? AND key = ? AND episode = ? "
                "AND state = 'waiting' AND tries = 0",
                mine,
            )
            if untried is not None and untried[0] is not None:
                self._db.execute(
                    "UPDATE messages SET seq = ?, alert = ? WHERE number = ?", (seq, encode(alert), untried[0])
                )
                return
            if not news:
                return
        self._db.execute(
            "INSERT INTO messages (channel, key, episode, seq, alert, firing, state, tries, made_at) "
            "VALUES (?, ?, ?, ?, ?, ?, 'waiting', 0, ?)",
            (*mine, seq, encode(alert), alert.firing, now),
        )

    def waiting(self, channel: str) -> Iterator[Waiting]:
        """Yield what is to be delivered, the oldest first. Messages may be marked meanwhile."""
        number = -1
        while True:
            sql = (
                "SELECT number, alert, episode, seq, firing, tries = 0 AND NOT EXISTS (SELECT 1 FROM messages AS b "
                "WHERE b.channel = a.channel AND b.key = a.key AND b.episode = a.episode AND b.number < a.number) "
                "FROM messages AS a WHERE channel = ? AND state = 'waiting' AND number > ? ORDER BY number LIMIT ?"
            )
            with closing(self._db.execute(sql, (channel, number, _PAGE))) as answer:
                rows = answer.fetchall()
            for number, text, episode, seq, firing, fresh in rows:
                yield Waiting(number, Message(decode(text), episode, seq), bool(firing), bool(fresh))
            if len(rows) < _PAGE:
                return

    def trying(self, numbers: Iterable[int]) -> None:
        """Note that messages are about to leave: after a crash they may have arrived."""
        with begin(self._db):
            self._db.executemany("UPDATE messages SET tries = tries + 1 WHERE number = ?", [(n,) for n in numbers])

    def done(self, numbers: Iterable[int], state: Done, now: int, error: str | None = None) -> None:
        """Note what became of messages."""
        with begin(self._db):
            self._db.executemany(
                "UPDATE messages SET state = ?, done_at = ?, error = ? WHERE number = ?",
                [(state, now, error, number) for number in numbers],
            )

    def again(self, channel: str) -> int:
        """Have messages that were refused sent once more; return how many."""
        with begin(self._db):
            sql = "UPDATE messages SET state = 'waiting', done_at = NULL WHERE channel = ? AND state = 'refused'"
            return self._db.execute(sql, (channel,)).rowcount

    def counts(self, channel: str) -> dict[str, int]:
        """Return the number of messages by state."""
        sql = "SELECT state, count(*) FROM messages WHERE channel = ? GROUP BY state"
        with closing(self._db.execute(sql, (channel,))) as answer:
            return {str(state): int(number) for state, number in answer}

    def oldest(self, channel: str) -> int | None:
        """Return since when the oldest message waits (µs)."""
        row = self._one("SELECT min(made_at) FROM messages WHERE channel = ? AND state = 'waiting'", (channel,))
        return None if row is None or row[0] is None else int(row[0])

    def _one(self, sql: str, values: tuple[object, ...]) -> tuple[Any, ...] | None:
        with closing(self._db.execute(sql, values)) as answer:
            found: tuple[Any, ...] | None = answer.fetchone()
        return found
