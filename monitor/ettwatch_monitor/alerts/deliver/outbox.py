"""The outbox: the newest state of every alert, and for each channel what it has still to hear. Durable."""

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from ettwatch_monitor.alerts.alert import Alert
from ettwatch_monitor.alerts.deliver.channel import Plan
from ettwatch_monitor.alerts.deliver.file import begin, open_file
from ettwatch_monitor.alerts.deliver.matchers import all_match
from ettwatch_monitor.alerts.deliver.message import decode, digest, encode, routing_labels
from ettwatch_monitor.alerts.deliver.queue import Queue
from ettwatch_monitor.alerts.deliver.silence import Silence
from ettwatch_monitor.alerts.deliver.silencebook import SilenceBook
from ettwatch_monitor.alerts.deliver.standing import Standing

__all__ = ["Known", "Outbox", "Taken"]

_KEEP: Final = 7 * 86_400_000_000
"""How long what was told is remembered (µs)."""


class Taken(Enum):
    """What became of a state that was put in."""

    FIRED = "fired"
    """It fires now, and did not before."""
    CHANGED = "changed"
    """It fires with another severity or other labels."""
    UPDATED = "updated"
    """It fires with other words or figures."""
    RESOLVED = "resolved"
    """It fired, and ended."""
    SAME = "same"
    """It says nothing new."""
    STALE = "stale"
    """A later state is known."""
    UNKNOWN = "unknown"
    """It ended, and was not known to fire: there is nobody to tell."""


class Known(NamedTuple):
    """The newest state of an alert."""

    alert: Alert
    episode: int
    seq: int


class Outbox:
    """The file that remembers. For one thread.

    It tells episodes apart by what it knows, not by who asks: an alert that fires and is put in again, by a detector
    that was started anew or sees its begin otherwise, is the same alert, and nobody is told twice.

    Raises OutboxError where the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._db = open_file(path)
        self.path = path
        self.queue = Queue(self._db)
        self.standing = Standing(self._db)
        self.book = SilenceBook(self._db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The file, for the other parts of delivery."""
        return self._db

    def put(self, alert: Alert, plans: Mapping[str, Plan], now: int) -> Taken:
        """Take the newest state of an alert, to be told to the channels with these plans. Durable when it returns."""
        with begin(self._db):
            known = self.known(alert.key)
            taken = _taken(known, alert)
            if taken in (Taken.STALE, Taken.UNKNOWN):
                return taken
            if known is None or taken is Taken.FIRED:
                last = -1 if known is None else known.episode
                state = Known(alert, max(alert.starts_at, last + 1), 0)
            else:
                begun = known.alert.starts_at
                ends = None if alert.ends_at is None else max(alert.ends_at, begun)
                seq = known.seq + (taken is not Taken.SAME)
                state = Known(replace(alert, starts_at=begun, ends_at=ends), known.episode, seq)
            self._remember(state)
            if taken is not Taken.SAME:
                for channel, plan in plans.items():
                    self._tell(channel, plan, state, taken, now)
            return taken

    def known(self, key: str) -> Known | None:
        """Return the newest state of an alert."""
        with closing(self._db.execute("SELECT alert, episode, seq FROM alerts WHERE key = ?", (key,))) as answer:
            row = answer.fetchone()
        return None if row is None else Known(decode(row[0]), row[1], row[2])

    def firing(self) -> list[Known]:
        """Return every alert that fires, by key."""
        with closing(self._db.execute("SELECT alert, episode, seq FROM alerts WHERE firing ORDER BY key")) as answer:
            return [Known(decode(text), episode, seq) for text, episode, seq in answer]

    def adopt(self, plans: Mapping[str, Plan], now: int) -> None:
        """Take note of the channels there are: a new one hears of what fires, one that is gone is forgotten.

        One that has another mode by now is both.
        """
        wanted = {(channel, plan.mode) for channel, plan in plans.items()}
        with begin(self._db):
            with closing(self._db.execute("SELECT channel, mode FROM lanes")) as answer:
                before = {(str(channel), str(mode)) for channel, mode in answer}
            for channel, _ in before - wanted:
                for table in ("lanes", "messages", "standing"):
                    self._db.execute(f"DELETE FROM {table} WHERE channel = ?", (channel,))
            for channel, mode in wanted - before:
                row = (channel, mode)
                self._db.execute("INSERT INTO lanes VALUES (?, ?, 0, 0, NULL, NULL, NULL, 0, 0, NULL)", row)
                for state in self.firing():
                    self._tell(channel, plans[channel], state, Taken.FIRED, now)

    def prune(self, now: int) -> None:
        """Forget what was told long ago, and silences that are over."""
        before = now - _KEEP
        with begin(self._db):
            # Of what fires it stays known that it was told.
            self._db.execute(
                "DELETE FROM messages WHERE state <> 'waiting' AND done_at < ? AND NOT EXISTS (SELECT 1 FROM alerts "
                "WHERE alerts.key = messages.key AND alerts.episode = messages.episode AND firing)",
                (before,),
            )
            self._db.execute("DELETE FROM alerts WHERE NOT firing AND updated_at < ?", (before,))
            self._db.execute("DELETE FROM silences WHERE ends_at < ?", (before,))

    def silence(self, silence: Silence, by: str = "", now: int | None = None) -> int:
        """Keep a silence, on record who made it; return its number. Where `now` is not given the clock says it."""
        return self.book.add(silence, _clock() if now is None else now, by)

    def unsilence(self, number: int, by: str = "", why: str = "", now: int | None = None) -> bool:
        """End a silence; return whether it was there, and where `now` is given, whether it was not over by then."""
        if now is None:
            return self.book.end(number, _clock(), by, why, over=True)
        return self.book.end(number, now, by, why)

    def silences(self, now: int) -> list[Silence]:
        """Return the silences that are not over, by number."""
        return self.book.held(now)

    def _remember(self, state: Known) -> None:
        alert = state.alert
        row = (alert.key, state.episode, state.seq, alert.firing, alert.updated_at, digest(alert), encode(alert))
        self._db.execute("INSERT OR REPLACE INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _tell(self, channel: str, plan: Plan, state: Known, taken: Taken, now: int) -> None:
        wanted = all_match(plan.match, routing_labels(state.alert))
        if plan.mode == "newest":
            self.standing.put(channel, state.alert, state.episode, state.seq, now, wanted=wanted)
        else:
            news = plan.updates or taken is not Taken.UPDATED
            self.queue.put(channel, state.alert, state.episode, state.seq, now, wanted=wanted, news=news)


def _clock() -> int:
    return time.time_ns() // 1_000


def _taken(known: Known | None, alert: Alert) -> Taken:
    if known is not None and alert.updated_at < known.alert.updated_at:
        return Taken.STALE
    fired = known is not None and known.alert.firing
    if known is None or not fired:
        return Taken.FIRED if alert.firing else Taken.UNKNOWN
    if not alert.firing:
        return Taken.RESOLVED
    before = known.alert
    if alert.severity != before.severity or alert.labels != before.labels:
        return Taken.CHANGED
    return Taken.SAME if digest(alert) == digest(before) else Taken.UPDATED
