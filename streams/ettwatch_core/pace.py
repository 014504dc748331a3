"""When a job has to be looked at again although no event came."""

from dataclasses import dataclass
from typing import Final

from ettwatch_core.rules import Rules
from ettwatch_core.snapshot import Snapshot

CLOSED: Final = ("succeeded", "failed", "cancelled", "lost")
"""Statuses that only an event can change."""

_RUNNING: Final = ("starting", "training")


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, and until when.

    Attributes:
        rules: The settings of the fold.
        running_us: Between two looks at a job that runs.
        waiting_us: Between two looks at one that waits or is silent.
        expire_lost_us: How long a lost job is kept.
    """

    rules: Rules
    running_us: int
    waiting_us: int
    expire_lost_us: int


def next_look(snap: Snapshot, newest: int, arrived_us: int, now_us: int, pace: Pace) -> int | None:
    """Return when (µs) a job is due: for another snapshot, or, if it is closed, to be dropped. None: never.

    Args:
        snap: How the job stands.
        newest: Time of its newest event (µs).
        arrived_us: When its latest event arrived (µs).
        now_us: The clock.
        pace: The settings.
    """
    status = snap.summary.status
    if status not in CLOSED:
        running = status in _RUNNING or (status == "recovering" and any(a.open for a in snap.attempts))
        return now_us + (pace.running_us if running else pace.waiting_us)
    lateness = pace.rules.lateness
    if lateness is None:
        return None
    ended = max(snap.summary.t1, newest)
    if status == "lost":
        ended += pace.rules.lost_after + pace.expire_lost_us
    else:
        ended += lateness
    # A recording of an old job is not final as soon as it is read: another part of it may be on its way.
    return max(ended, arrived_us + lateness)
