"""Rule 1: which attempts there are, when each starts and ends, and how it ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from ettwatch_core.groups import Group, RawSpan
from ettwatch_core.records import Record, content_key

__all__ = ["Bounds", "FixedStart", "begun_after", "find_bounds", "infer_end", "job_end"]


@dataclass(slots=True)
class Bounds:
    """One attempt's place in time. ``end`` is *now* while ``open``."""

    group: Group
    start: int
    end: int
    told_start: bool
    gpus: int | None
    world_size: int | None
    trigger: str | None
    open: bool = False
    outcome: str | None = None
    cause: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    message: str | None = None
    inferred: bool = False
    told_end: bool = False
    floor: int = 0
    """No end lies before it: the start, or the end of the settled part (µs)."""

    @property
    def failed(self) -> bool:
        """Tell whether the attempt counts as a failure (``failed`` or ``preempted``)."""
        return self.outcome in ("failed", "preempted")


def begun_after(wait: RawSpan, own: Bounds) -> bool:
    """Tell whether a ``scheduling`` span began after its own attempt was over."""
    return wait.start > own.end or wait.start == own.end > own.start


@dataclass(frozen=True, slots=True)
class FixedStart:
    """The start of an attempt that was settled: it cannot move any more."""

    number: int
    start: int
    floor: int
    told: bool
    gpus: int | None
    world_size: int | None
    trigger: str | None


def job_end(job_ends: Sequence[Record], groups: Sequence[Group], told_floor: int | None) -> Record | None:
    """Return the ``job_ended`` that counts: the latest, unless an attempt was told to start after it."""
    if not job_ends:
        return None
    latest = max(job_ends, key=lambda rec: (rec[1], rec[4]))
    told = [min(rec[1] for rec in g.starts) for g in groups if g.starts]
    if told_floor is not None:
        told.append(told_floor)
    return None if told and latest[1] < max(told) else latest


def _begin(group: Group, fixed: FixedStart | None) -> Bounds | None:
    """Return the bounds with only the start known; ``None`` for a number with nothing but scheduling spans."""
    if fixed is not None and fixed.number == group.number:
        b = Bounds(group, fixed.start, fixed.floor, fixed.told, fixed.gpus, fixed.world_size, fixed.trigger)
        b.floor = fixed.floor
        return b
    if group.starts:
        first = min(group.starts, key=lambda rec: (rec[1], content_key(rec)))
        return Bounds(group, first[1], first[1], True, first[4], first[5], first[6])
    start = min(group.own_times(), default=None)
    return None if start is None else Bounds(group, start, start, False, None, None, None)


def _take_end(b: Bounds) -> None:
    """Take end, outcome and cause from the most trusted ``attempt_ended``, of those the latest."""
    if not b.group.ends:
        return
    best = max(b.group.ends, key=lambda rec: (rec[4], rec[1], rec[5], rec[6], content_key(rec)))
    b.end = max(best[1], b.start, b.floor)
    b.told_end = True
    b.outcome, b.cause, b.exit_code, b.signal, b.message = best[5:10]


def infer_end(b: Bounds, until: int | None = None) -> None:
    """End an attempt without a goodbye at its last event (not after ``until``), as failed for unknown cause."""
    last = max((ts for ts in b.group.all_times() if until is None or ts <= until), default=b.start)
    b.end = max(last, b.start, b.floor)
    b.outcome, b.cause, b.inferred, b.open = "failed", "unknown", True, False


def find_bounds(groups: Sequence[Group], ended: Record | None, now: int, fixed: FixedStart | None) -> list[Bounds]:
    """Return the attempts in order of their numbers.

    Args:
        groups: By rising number.
        ended: The ``job_ended`` that counts, if any.
        now: End of an open attempt (µs).
        fixed: The settled start of the first group, if it was settled.
    """
    found = [b for b in (_begin(g, fixed) for g in groups) if b is not None]
    for i, b in enumerate(found):
        _take_end(b)
        if i + 1 < len(found):
            after = found[i + 1]
            after.start = max(after.start, b.start)
            if not b.told_end:
                infer_end(b, after.start)
            elif b.end > after.start:
                if after.group.trains_before(b.end):
                    b.end = after.start
                else:
                    after.start = b.end
        elif not b.told_end:
            if ended is not None:
                b.end, b.outcome, b.cause = max(ended[1], b.start, b.floor), ended[4], "unknown"
            else:
                b.end, b.open = max(now, b.start, b.floor), True
    return found
