"""Where the loop of each attempt was, and when: what goodput counts its steps by."""

from collections.abc import Iterable
from typing import NamedTuple

from ettwatch_schemas import AttemptSummary, Event, Progress, TrainingEnded, TrainingStarted

_SOON_US = 60_000_000


class Point(NamedTuple):
    """A position that was told."""

    attempt: int
    rank: int
    ts: int
    position: int
    begins: bool
    """Whether it is where the loop begins."""


def point_of(event: Event) -> Point | None:
    """Return what an event says of the position; None where it says nothing."""
    if isinstance(event, TrainingStarted | Progress | TrainingEnded):
        return Point(event.attempt, event.rank, event.ts, event.position, isinstance(event, TrainingStarted))
    return None


def points_of(events: Iterable[Event]) -> list[Point]:
    """Return what events say of positions."""
    return [point for event in events if (point := point_of(event)) is not None]


def advances(points: Iterable[Point], attempt: AttemptSummary) -> list[Point]:
    """Return where an attempt's loop began and its advances, by time, as the rank tells them that is heard.

    It is the lowest rank whose reports begin within 60 s of the first, as in the rules of the timeline.
    """
    if attempt.loop_start is None or attempt.last_advance is None:
        return []
    own = sorted(
        (p for p in points if p.attempt == attempt.attempt and attempt.loop_start <= p.ts <= attempt.last_advance),
        key=lambda p: (p.ts, p.position),
    )
    told = [p for p in own if not p.begins]
    if not told:
        return []
    heard = min(p.rank for p in told if p.ts <= told[0].ts + _SOON_US)
    start = attempt.start_position if attempt.start_position is not None else told[0].position
    found = [Point(attempt.attempt, heard, attempt.loop_start, start, True)]
    for point in told:
        if point.rank == heard and point.position > found[-1].position:
            found.append(point)
    return found
