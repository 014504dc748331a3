"""What channels hear over and over: the newest state of each alert while it fires, and for a while that it ended."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from ettwatch_monitor.alerts.alert import Alert
from ettwatch_monitor.alerts.deliver.file import begin
from ettwatch_monitor.alerts.deliver.message import Message, decode, encode, routing_labels

__all__ = ["Stand", "Standing"]


class Stand(NamedTuple):
    """An alert as a channel is to know it."""

    key: str
    message: Message
    firing: bool
    due_at: int
    told: bool
    """The channel was told of it, in this episode."""
    until: int | None
    """Until when it is told that it ended (µs); None while nobody was told so."""


class Standing:
    """The alerts of all channels of mode `newest`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(self, channel: str, alert: Alert, episode: int, seq: int, now: int, *, wanted: bool) -> None:
        """Take the newest state of an alert; part of a transaction. It is due at once."""
        sql = "SELECT episode, told FROM standing WHERE channel = ? AND key = ?"
        with closing(self._db.execute(sql, (channel, alert.key))) as answer:
            before = answer.fetchone()
        same = before is not None and before[0] == episode
        if not same and not wanted:
            return
        told = before[1] if same else None
        row = (channel, alert.key, episode, seq, encode(alert), alert.firing, now, told)
        self._db.execute("INSERT OR REPLACE INTO standing VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)", row)

    def due(self, channel: str, now: int, resend: int) -> list[Stand]:
        """Return the alerts of a channel that are due, or that it was not told of; what is due longest first.

        A clock that was set back keeps none from being due for longer than `resend`.
        """
        sql = (
            "SELECT key, alert, episode, seq, firing, due_at, told, until FROM standing "
            "WHERE channel = ? AND (due_at <= ? OR due_at > ? OR told IS NULL OR until <= ?) ORDER BY due_at, key"
        )
        with closing(self._db.execute(sql, (channel, now, now + resend, now))) as answer:
            rows = answer.fetchall()
        return [
            Stand(
                key,
                Message(alert := decode(text), episode, seq, replaced=_replaced(told, alert)),
                bool(firing),
                due_at,
                told is not None,
                until,
            )
            for key, text, episode, seq, firing, due_at, told, until in rows
        ]

    def next(self, channel: str) -> int | None:
        """Return when the next alert is due that the channel was told of (µs)."""
        sql = "SELECT min(due_at) FROM standing WHERE channel = ? AND told IS NOT NULL"
        with closing(self._db.execute(sql, (channel,))) as answer:
            found = answer.fetchone()[0]
        return None if found is None else int(found)

    def sent(self, channel: str, stands: Sequence[Stand], now: int, resend: int, hold: int) -> None:
        """Note that the channel has these states."""
        with begin(self._db):
            for stand in stands:
                until = stand.until
                if not stand.firing and until is None:
                    until = now + hold
                told = json.dumps(routing_labels(stand.message.alert))
                # A state that came in meanwhile is another one, and still due.
                self._db.execute(
                    "UPDATE standing SET due_at = ?, told = ?, until = ?, error = NULL "
                    "WHERE channel = ? AND key = ? AND episode = ? AND seq = ?",
                    (now + resend, told, until, channel, *_which(stand)),
                )

    def failed(self, channel: str, stand: Stand, due_at: int, error: str) -> None:
        """Note that the channel refused a state."""
        with begin(self._db):
            self._db.execute(
                "UPDATE standing SET due_at = ?, error = ? WHERE channel = ? AND key = ? AND episode = ? AND seq = ?",
                (due_at, error, channel, *_which(stand)),
            )

    def forget(self, channel: str, stands: Sequence[Stand]) -> None:
        """Drop alerts that the channel need not hear of any more."""
        with begin(self._db):
            self._db.executemany(
                "DELETE FROM standing WHERE channel = ? AND key = ? AND episode = ? AND seq = ?",
                [(channel, *_which(stand)) for stand in stands],
            )

    def counts(self, channel: str) -> tuple[int, int | None, int]:
        """Return how many alerts the channel has not heard of, since when (µs), and how many states it refused."""
        sql = (
            "SELECT sum(told IS NULL), min(CASE WHEN told IS NULL THEN due_at END), sum(error IS NOT NULL) "
            "FROM standing WHERE channel = ?"
        )
        with closing(self._db.execute(sql, (channel,))) as answer:
            waiting, oldest, refused = answer.fetchone()
        return int(waiting or 0), oldest, int(refused or 0)


def _which(stand: Stand) -> tuple[str, int, int]:
    return stand.key, stand.message.episode, stand.message.seq


def _replaced(told: str | None, alert: Alert) -> dict[str, str] | None:
    if told is None:
        return None
    labels: Mapping[str, str] = json.loads(told)
    return None if labels == routing_labels(alert) else dict(labels)
