"""How a channel fares: when it may be used again, since when it fails and why, and what is left of its rate."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

from ettwatch_monitor.alerts.deliver.file import begin
from ettwatch_monitor.alerts.deliver.pace import Bucket, Rate, pause

__all__ = ["Lane"]


@dataclass(slots=True)
class Lane:
    """Of one channel; kept in the outbox, so that a restart neither hurries nor forgets. Times in microseconds."""

    channel: str
    mode: str
    failures: int = 0
    due_at: int = 0
    failing_since: int | None = None
    error: str | None = None
    tokens: float | None = None
    tokens_at: int = 0
    sent: int = 0
    sent_at: int | None = None

    @classmethod
    def load(cls, db: sqlite3.Connection, channel: str, mode: str) -> "Lane":
        """Read it from the outbox; a new one, where it is of another mode or not there."""
        with closing(db.execute("SELECT * FROM lanes WHERE channel = ? AND mode = ?", (channel, mode))) as answer:
            row = answer.fetchone()
        return cls(channel, mode) if row is None else cls(*row)

    def save(self, db: sqlite3.Connection) -> None:
        """Write it to the outbox."""
        row = (self.channel, self.mode, self.failures, self.due_at, self.failing_since, self.error)
        more = (self.tokens, self.tokens_at, self.sent, self.sent_at)
        with begin(db):
            db.execute("INSERT OR REPLACE INTO lanes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, *more))

    def allows(self, rate: Rate | None, now: int) -> bool:
        """Take one message from the rate, if there is one to take; else say when to come again by `due_at`."""
        if rate is None:
            return True
        bucket = Bucket(float(rate.count) if self.tokens is None else self.tokens, self.tokens_at).filled(rate, now)
        ready = bucket.tokens >= 1
        if ready:
            bucket = bucket.taken()
        else:
            self.due_at = max(self.due_at, bucket.ready_at(rate))
        self.tokens, self.tokens_at = bucket.tokens, bucket.at
        return ready

    def went(self, count: int, now: int) -> None:
        """Note that messages arrived."""
        self.answered()
        self.sent += count
        self.sent_at = now

    def answered(self) -> None:
        """Note that the receiver is there, whatever it said."""
        self.failures, self.due_at, self.failing_since, self.error = 0, 0, None, None

    def failed(self, reason: str, after: int, chance: float, now: int) -> None:
        """Note that messages did not arrive, and when to try again."""
        self.failures += 1
        self.failing_since = now if self.failing_since is None else self.failing_since
        self.error = reason
        self.due_at = now + max(after, pause(self.failures, chance))
