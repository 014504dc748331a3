"""Rule 2: the training loop of an attempt, cut into gaps by its advances and rollbacks."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ettwatch_core.attempts import Bounds
from ettwatch_core.groups import Group
from ettwatch_core.records import Record, content_key
from ettwatch_core.rules import HEARD_WITHIN, UNDECLARED_HANG, Rules

__all__ = ["Cut", "Loop", "LoopMark", "find_loop"]


Cut = tuple[int, bool, int, int, int]
"""An advance or a rollback: its time (µs), whether it is an advance, the position before and after it (counted on
over resets of the counter), and the highest ``data_wait_us`` told so far. A plain tuple: a job has many."""


@dataclass(frozen=True, slots=True)
class LoopMark:
    """Where the walk through a loop stands at its last cut: all that later progress needs to go on from there."""

    start: int
    told: bool
    start_position: int
    hang_limit: int
    heard: int
    raw_position: int
    step: int | None
    offset: int
    waited: int
    first_advance: int
    first_batch: int
    last_advance: int


@dataclass(slots=True)
class Loop:
    """The loop of an attempt, or of one that would have had a loop had it advanced (then ``cuts`` has no advance)."""

    start: int
    told: bool
    start_position: int
    hang_limit: int
    end: int
    ended: bool
    """Ended by ``training_ended``; otherwise the attempt's end cuts it."""
    heard: int | None
    cuts: list[Cut] = field(default_factory=list)
    marks: list[tuple[int, int | None, int]] = field(default_factory=list)
    """For each cut: raw position, step and offset right after it."""
    waited_at_start: int = 0
    early_waits: list[tuple[int, int]] = field(default_factory=list)
    """Time and highest ``data_wait_us`` of what was told up to the first advance."""
    waited: int = 0
    position: int = 0
    first_advance: int | None = None
    last_advance: int | None = None
    flags: set[str] = field(default_factory=set)
    resumed: LoopMark | None = None

    def waited_by(self, ts: int) -> int:
        """Return the highest ``data_wait_us`` told by a time up to the first advance."""
        return max((waited for told, waited in self.early_waits if told <= ts), default=self.waited_at_start)

    @property
    def trains(self) -> bool:
        """Tell whether the position ever advanced."""
        return self.first_advance is not None


def _heard_rank(group: Group, b: Bounds) -> int | None:
    firsts: dict[int, int] = {}
    for rank, recs in group.progress.items():
        times = [rec[1] for rec in recs if rec[1] <= b.end]
        if times:
            firsts[rank] = max(min(times), b.start)
    if not firsts:
        return None
    limit = min(firsts.values()) + HEARD_WITHIN
    return min(rank for rank, ts in firsts.items() if ts <= limit)


def _moved(recs: Iterable[Record], b: Bounds) -> list[Record]:
    """Leave out what came after the attempt's end; move what precedes its start to its start."""
    start, end = b.start, b.end
    return [rec if rec[1] >= start else (rec[0], start, *rec[2:]) for rec in recs if rec[1] <= end]


def _in_time_order(recs: list[Record]) -> None:
    """Sort by time, of equal times the smaller position first."""
    recs.sort(key=lambda rec: (rec[1], rec[4], -1 if rec[5] is None else rec[5], -1 if rec[6] is None else rec[6]))


def _hang_limit(report_every: int | None, rules: Rules) -> int:
    return UNDECLARED_HANG if report_every is None else max(rules.hang_after, 3 * report_every)


def find_loop(b: Bounds, rules: Rules, mark: LoopMark | None = None, since: int = 0) -> Loop | None:
    """Find the loop of an attempt. ``None`` where nothing tells of one.

    Args:
        b: The attempt.
        rules: For the hang limit.
        mark: Where a settled part of the loop ended; only what came later is looked at.
        since: Time of the cut at which ``mark`` stands (µs).
    """
    group = b.group
    heard = mark.heard if mark is not None else _heard_rank(group, b)
    progress = [] if heard is None else _moved(group.progress.get(heard, ()), b)
    starts = [rec for rec in group.training_starts if rec[1] <= b.end]
    # Of those moved to the attempt's start the one told last is still the latest of its rank, and below the one told
    # first the earliest.
    ends = [rec for rec in group.training_ends if rec[1] <= b.end]
    last_end: Record | None = None
    if ends:
        last = max(ends, key=lambda rec: (max(rec[1], b.start), -rec[3], rec[1], rec[4], content_key(rec)))
        last_end = _moved([last], b)[0]
        later = last_end[1]
        if any(max(rec[1], b.start) > later for rec in starts) or any(rec[1] > later for rec in progress):
            last_end = None
    head: Record | None = None
    if mark is None and not starts and progress:
        _in_time_order(progress)
        head = progress.pop(0)
    if last_end is not None:
        progress.append(last_end)
    _in_time_order(progress)

    first = min(starts, key=lambda rec: (max(rec[1], b.start), rec[3], rec[1], rec[4], content_key(rec)), default=None)
    if mark is not None:
        loop = Loop(mark.start, mark.told, mark.start_position, mark.hang_limit, 0, False, heard, resumed=mark)
        loop.first_advance, loop.last_advance = mark.first_advance, mark.last_advance
        loop.waited_at_start = loop.waited = mark.waited
        raw, step, offset = mark.raw_position, mark.step, mark.offset
        progress = [rec for rec in progress if rec[1] > since]
    elif first is not None:
        begin = max(first[1], b.start)
        loop = Loop(begin, True, first[4], _hang_limit(first[6], rules), 0, False, heard)
        raw, step, offset = first[4], first[5], 0
        progress = [rec for rec in progress if rec[1] >= begin]
    elif head is not None:
        loop = Loop(head[1], False, head[4], _hang_limit(None, rules), 0, False, heard)
        raw, step, offset = head[4], head[5], 0
        loop.waited_at_start = loop.waited = head[6] or 0
    else:
        return None
    loop.end = b.end if last_end is None else last_end[1]
    loop.ended = last_end is not None
    _walk(loop, progress, raw, step, offset)
    return loop


def _raise_waits(cuts: list[Cut], ts: int, waited: int) -> None:
    """Waits are read by the clock: what is told in the microsecond of a cut had been told at it."""
    i = len(cuts) - 1
    while i >= 0 and cuts[i][0] == ts:
        cuts[i] = (*cuts[i][:4], waited)
        i -= 1


def _walk(loop: Loop, progress: list[Record], raw: int, step: int | None, offset: int) -> None:
    """Find the cuts: the position rises (advance), falls (rollback), or falls while the step rises (reset)."""
    cuts, marks = loop.cuts, loop.marks
    waited = loop.waited
    waiting = loop.first_advance is None
    for _, ts, _, _, position, now_step, wait in progress:
        if wait is not None and wait > waited:
            waited = wait
            _raise_waits(cuts, ts, waited)
        if waiting:
            loop.early_waits.append((ts, waited))
        if position > raw:
            waiting = False
            cuts.append((ts, True, raw + offset, position + offset, waited))
            raw = position
            if now_step is not None:
                step = now_step
            marks.append((raw, step, offset))
        elif position < raw:
            if now_step is not None and step is not None and now_step > step:
                offset += raw - position
                raw = position
                step = now_step
                loop.flags.add("position_reset")
            else:
                cuts.append((ts, False, raw + offset, position + offset, waited))
                raw = position
                if now_step is not None:
                    step = now_step
                marks.append((raw, step, offset))
                loop.flags.add("rollback")
        elif now_step is not None:
            step = now_step
    loop.waited = waited
    loop.position = raw + offset
    advances = [cut[0] for cut in cuts if cut[1]]
    if advances:
        if loop.first_advance is None:
            loop.first_advance = advances[0]
        loop.last_advance = advances[-1]
