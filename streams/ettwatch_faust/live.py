"""A job as a worker holds it: what is known while its state is packed away, and what while it is in memory."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ettwatch_core import JobState, Pace, Published, Rules, Settled
from ettwatch_faust.shelf import Head, Shelf

__all__ = ["EXPIRED", "QUIET", "STATUSES", "Answer", "Entry", "Live", "Policy"]

STATUSES: Final = (
    "new",
    *("pending", "starting", "training", "recovering", "silent"),
    *("succeeded", "failed", "cancelled", "lost", "expired"),
)
"""Statuses of jobs by the number under which they are stored; only ever added to."""

EXPIRED: Final = STATUSES.index("expired")
_SECOND: Final = 1_000_000
QUIET: Final = ("progress", "heartbeat", "checkpoint_durable")
"""Kinds of events that may wait for the next round of publishing; all others are told at once."""


class Answer(Enum):
    """What became of an event."""

    TAKEN = "taken"
    DUPLICATE = "duplicate"
    LATE = "late"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Policy:
    """How jobs are treated. All times are microseconds.

    Attributes:
        rules: The settings of the fold.
        pace: When a job is looked at without events.
        publish_us: Between two publications of a job that only made progress.
        behind_us: Between two publications of a job while more of its events wait to be read.
        again_us: After which time all that was told since a take-over is told once more, whole: an owner before that
            stood still, even while it sent, has said its last by then.
        forget_us: How long a job that was dropped is remembered, so that its events are refused.
    """

    rules: Rules
    pace: Pace
    publish_us: int = 30 * _SECOND
    behind_us: int = 30 * _SECOND
    again_us: int = 60 * _SECOND
    forget_us: int = 30 * 86_400 * _SECOND


@dataclass(slots=True)
class Entry:
    """What is known of a job that is not in memory."""

    epoch: int
    mine: bool
    offset: int
    due_us: int
    arrived_us: int
    status: int


@dataclass(slots=True)
class Live:
    """A job in memory."""

    entry: Entry
    shelf: Shelf
    state: JobState
    published: Published = field(default_factory=Published)
    urgent: bool = False
    published_us: int = 0
    waits_since_us: int = 0
    settled: list[Settled] = field(default_factory=list)

    @property
    def rank(self) -> int:
        """Its turn among those that wait to be published.

        What was settled has to be told before the state, which does not hold it any more, is stored. A job that only
        made progress waits for all that did more.
        """
        return 0 if self.settled else 1 if self.urgent else 2

    @property
    def weight(self) -> int:
        """About how many tuples it holds in memory."""
        return len(self.state.records) + self.drawn

    @property
    def drawn(self) -> int:
        """How many of them are its drawing, which can be made anew."""
        return len(getattr(self.state.draft, "segments", ()))

    @property
    def head(self) -> Head:
        """What stands before its state in the table; the shelf adds epoch and number."""
        entry = self.entry
        return Head(0, 0, entry.offset, entry.due_us, entry.arrived_us, entry.status)
