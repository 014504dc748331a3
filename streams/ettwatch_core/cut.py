"""Cutting a job's timeline in two: what is final, and what goes on."""

from bisect import bisect_left
from typing import NamedTuple

from ettwatch_core.attempts import FixedStart
from ettwatch_core.carry import Carry, Unresolved
from ettwatch_core.line import Line
from ettwatch_core.loop import LoopMark
from ettwatch_core.ranges import Ranges
from ettwatch_core.rules import CELL
from ettwatch_core.spans import Cluster
from ettwatch_core.state import JobState
from ettwatch_core.summarize import (
    attempt_summary,
    by_time,
    chain,
    count,
    resume_positions,
    segments_of,
    span_row,
)
from ettwatch_core.tally import Tally, seconds, tally_of
from ettwatch_core.timeline import Timeline
from ettwatch_core.unsaved import KEPT, thin, unsaved
from ettwatch_schemas import AttemptSummary, PhaseSpan, Segment

__all__ = ["Place", "Settled", "cut_at"]


class Settled(NamedTuple):
    """What became final: each segment, attempt and phase is handed out once."""

    segments: list[Segment]
    """In whole hours (:data:`~ettwatch_core.CELL`): those of an hour come together."""
    attempts: list[AttemptSummary]
    spans: list[PhaseSpan]


class Place(NamedTuple):
    """Where to cut: at the start of an attempt, or at a cut of its loop."""

    line: int
    cut: int | None
    until: int
    exact: bool = False
    """Keep in-loop time by position as it is, however long the list."""


def cut_at(
    state: JobState, timeline: Timeline, place: Place, segments: list[Segment] | None = None
) -> tuple[Carry, Settled]:
    """Sum up everything before the place; return it, and what became final. Changes nothing.

    Args:
        state: The job.
        timeline: Of its unsettled part.
        place: Where to cut.
        segments: Those of the timeline, where they are known already.
    """
    if segments is None:
        segments = segments_of(state.job, timeline)
    before = state.carry
    until = place.until
    over, line = timeline.lines[: place.line], timeline.lines[place.line]
    goes_on = before if place.line == 0 else None  # the settled part of the very attempt that is cut
    b = line.bounds
    counts = count(over, before)
    tally, current = _tallies(timeline, place, before, goes_on)
    cell = until // CELL * CELL
    final, partial = _split(_segments_before(segments, before, until), cell)
    told = [min(rec[1] for rec in x.bounds.group.starts) for x in [*over, line] if x.bounds.group.starts]
    if before is not None and before.told_floor is not None:
        told.append(before.told_floor)
    untold_gpus = any(x.bounds.gpus is None for x in [*over, line])
    carry = Carry(
        until=until,
        t0=timeline.t0,
        fixed=FixedStart(b.group.number, b.start, until, b.told_start, b.gpus, b.world_size, b.trigger),
        submit=timeline.submit,
        told_floor=max(told, default=None),
        passed=_passed(timeline, place, before),
        tally=tally,
        current=current,
        partial=partial,
        attempts=len(over) + (1 if before is None else before.attempts),
        interruption=counts.interruption,
        tts=counts.tts,
        ttr=counts.ttr,
        recovery=counts.recovery,
        nof=counts.nof,
        nof_infra=counts.nof_infra,
        nof_preempted=counts.nof_preempted,
        unsaved=0 if before is None else before.unsaved,
        durables=_durables(timeline, place, before),
        numbers=Ranges() if before is None else before.numbers.copy(),
        default_gpus=untold_gpus or (before is not None and before.default_gpus),
        flags=set() if before is None else set(before.flags),
    )
    for done in over:
        carry.numbers.add(done.bounds.group.number, done.bounds.group.number + 1)
    if place.cut is not None:
        _mark(carry, line, place.cut, goes_on, exact=place.exact)
    attempts = _attempts_over(state.job, timeline, place, before, carry)
    if place.line > 0 and before is not None:
        carry.flags |= before.current_flags
    carry.flags |= timeline.flags
    if timeline.old_zombies:
        carry.flags.add("zombie")
    return carry, Settled(final, attempts, _spans_over(state.job, timeline, place))


def _lines_reached(timeline: Timeline, place: Place) -> list[Line]:
    """Return the lines of which something lies before the place."""
    return timeline.lines[: place.line + (place.cut is not None)]


def _tallies(timeline: Timeline, place: Place, before: Carry | None, goes_on: Carry | None) -> tuple[Tally, Tally]:
    """Return the sums of the job up to the place, and those of the attempt that goes on."""
    line = timeline.lines[place.line]
    share = Tally()
    if place.cut is not None:
        pieces = [(s, min(e, place.until), stage) for s, e, stage in line.pieces if s < place.until]
        ended = [c for c in line.clusters if c.end < place.until]
        share = tally_of(pieces, ended, timeline.gpus_of(line.bounds))
    current = Tally() if goes_on is None else goes_on.current.copy()
    current.add(share)
    tally = Tally() if before is None else before.tally.copy()
    tally.add(share)
    for done in timeline.lines[: place.line]:
        tally.add(done.tally(timeline.gpus_of(done.bounds)))
    for gap in timeline.gaps:
        if gap.end <= place.until:
            tally.add(gap.tally())
    return tally, current


def _segments_before(segments: list[Segment], before: Carry | None, until: int) -> list[Segment]:
    """Return the segments up to a time that were not handed out yet."""
    return chain([] if before is None else before.partial, _split(segments, until)[0])


def _passed(timeline: Timeline, place: Place, before: Carry | None) -> Ranges:
    passed = Ranges() if before is None else before.passed.copy()
    for line in _lines_reached(timeline, place):
        for ts, advance, low, high, _ in () if line.loop is None else line.loop.cuts:
            if advance and ts <= place.until:
                passed.add(low, high)
    return passed


def _durables(timeline: Timeline, place: Place, before: Carry | None) -> list[tuple[int, int]]:
    durables = [] if before is None else list(before.durables)
    for line in _lines_reached(timeline, place):
        end = min(line.bounds.end, place.until)
        durables += [(rec[1], rec[4]) for rec in line.bounds.group.durables if rec[1] <= end]
    return sorted(durables)[-KEPT:]


def _split(segments: list[Segment], at: int) -> tuple[list[Segment], list[Segment]]:
    """Split segments, which are in time order, at a time."""
    i = bisect_left(segments, at, key=lambda segment: segment.start)
    first, second = segments[:i], segments[i:]
    if first and first[-1].end > at:
        second.insert(0, first[-1]._replace(start=at))
        first[-1] = first[-1]._replace(end=at)
    return first, second


def _mark(carry: Carry, line: Line, cut: int, goes_on: Carry | None, *, exact: bool) -> None:
    """Remember where the loop of the attempt stands."""
    loop, batch = line.loop, line.first_batch
    assert loop is not None
    assert loop.heard is not None
    assert batch is not None
    assert loop.first_advance is not None
    raw, step, offset = loop.marks[cut]
    old = None if goes_on is None else goes_on.mark
    done = loop.cuts[: cut + 1]
    last_advance = max((c[0] for c in done if c[1]), default=0 if old is None else old.last_advance)
    carry.mark = LoopMark(
        start=loop.start,
        told=loop.told,
        start_position=loop.start_position,
        hang_limit=loop.hang_limit,
        heard=loop.heard,
        raw_position=raw,
        step=step,
        offset=offset,
        waited=loop.cuts[cut][4],
        first_advance=loop.first_advance,
        first_batch=batch,
        last_advance=last_advance,
    )
    if old is None:  # its start is counted here, once
        if carry.interruption is None:
            carry.tts = batch - line.bounds.start
        else:
            carry.recovery += batch - carry.interruption
            carry.ttr.append(batch - carry.interruption)
    spent = [] if goes_on is None else goes_on.spent
    rows = [*spent, *(row for row in line.spent if row[3] <= carry.until)]
    carry.spent = rows if exact else thin(rows, [d[1] for d in carry.durables])
    carry.current_flags = set() if goes_on is None else set(goes_on.current_flags)
    if any(not c[1] for c in done):
        carry.current_flags.add("rollback")
    if offset:
        carry.current_flags.add("position_reset")
    spans = (*line.bounds.group.spans, *line.bounds.group.waits)
    if any(raw_span.negative and raw_span.start < carry.until for raw_span in spans):
        carry.current_flags.add("negative_span")


def _attempts_over(
    job: str, timeline: Timeline, place: Place, before: Carry | None, carry: Carry
) -> list[AttemptSummary]:
    """Return the attempts that are final; those whose discarded time is open yet stay in the carry."""
    over = timeline.lines[: place.line]
    likely = resume_positions(timeline)
    position = None if carry.mark is None else carry.mark.start_position
    sure = []  # from which position the job went on after each, as far as that is settled
    for line in reversed(over):
        sure.append(position)
        position = position if line.start_position is None else line.start_position
    sure.reverse()
    final = []
    if before is not None:
        for old in before.unresolved:
            if position is None:
                carry.unresolved.append(old)
            else:
                lost = unsaved(old.spent, position)
                carry.unsaved += lost
                final.append(old.summary.model_copy(update={"unsaved_s": seconds(lost)}))
    interruption = None if before is None else before.interruption
    for i, line in enumerate(over):
        resumed = before if i == 0 else None
        position = sure[i]
        spent = [*([] if resumed is None else resumed.spent), *line.spent] if line.bounds.failed else []
        lost = unsaved(spent, position if position is not None else likely[i])
        tally = line.tally(timeline.gpus_of(line.bounds))
        summary = attempt_summary(job, timeline, line, tally, resumed, interruption, lost)
        if spent and position is None:
            rows = spent if place.exact else thin(spent, [d[1] for d in carry.durables])
            carry.unresolved.append(Unresolved(summary, rows))
        else:
            carry.unsaved += lost
            final.append(summary)
        interruption = line.interruption
        carry.flags |= line.flags
    return final


def _spans_over(job: str, timeline: Timeline, place: Place) -> list[PhaseSpan]:
    rows = []
    for line in timeline.lines[: place.line + 1]:
        number = line.bounds.group.number
        whole = number != timeline.lines[place.line].bounds.group.number
        rows += [span_row(job, number, c, False) for c in line.clusters if whole or _ended(c, place)]
        rows += [span_row(job, number, c, True) for c in line.background if whole or _ended(c, place, told=True)]
    for gap in timeline.gaps:
        if gap.end <= place.until:
            rows += [span_row(job, gap.attempt, c, False) for c in gap.clusters]
    return by_time(rows)


def _ended(c: Cluster, place: Place, *, told: bool = False) -> bool:
    sure = not (told and any(part.open for part in c.parts))
    return place.cut is not None and c.end < place.until and sure
