"""From the reports, pauses and checkpoints of a loop to a loop that can be laid out anew."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from ettwatch_monitor.advice.life import Durable, Loop, Pause, Report
from ettwatch_schemas import (
    AttemptEnded,
    AttemptSummary,
    CheckpointDurable,
    Event,
    PhaseEnded,
    PhaseStarted,
    Progress,
    TrainingEnded,
    TrainingStarted,
)

_HEARD_WITHIN: Final = 60_000_000
"""As the rules: the lowest rank is heard whose progress begins within this time of the first (µs)."""
_GAP_US: Final = 30_000_000
"""Between two reports, where there are too few to know (µs)."""
_CLOSE: Final = 250_000_000
"""Reports in a row that run straight on are thinned to one in so much time (µs): less than any hang limit."""

SAVE: Final = "wasted_training.checkpoint_save"


class _Spot(NamedTuple):
    ts: int
    position: int
    waited: int


def observe_loop(
    row: AttemptSummary, batch: int, anchor: int, busy: Sequence[tuple[str, int, int]], events: Sequence[Event]
) -> tuple[Loop, tuple[tuple[int, int], ...]]:
    """Return the loop of an attempt, and how the time waited for data grew after its last advance.

    Args:
        row: The attempt.
        batch: Its first batch.
        anchor: Its last advance.
        busy: Stage, start and end of what was charged to phases between the two.
        events: Its events.
    """
    pauses, starts, ends = [], [], []
    shift = batch
    for stage, start, end in busy:
        pauses.append(Pause(start - shift, stage, end - start))
        starts.append(start)
        ends.append(end)
        shift += end - start

    def free_at(ts: int) -> tuple[int, int, int]:
        """Free running done by a time, and the pause that it falls into."""
        i = bisect_left(starts, ts) - 1
        if i < 0:
            return max(0, ts - batch), -1, -1
        if ts < ends[i]:
            return pauses[i].at, i, ts - starts[i]
        return pauses[i].at + ts - ends[i], -1, -1

    begun = [e for e in events if isinstance(e, TrainingStarted) and e.ts <= row.end]
    first = min(begun, key=lambda e: (e.ts, e.rank), default=None)
    spots = _walk(events, first, row)
    before = [spot for spot in spots if spot.ts <= anchor]
    reports = []
    for spot in before:
        at, pause, into = free_at(max(spot.ts, batch))
        reports.append(Report(at, spot.position, spot.waited, pause, into))
    waited = max((spot.waited for spot in before), default=0)
    tail = [(spot.ts - anchor, spot.waited - waited) for spot in spots if spot.ts > anchor and spot.waited > waited]
    start = row.start_position or 0
    loop = Loop(
        start=start,
        every=None if first is None else first.report_every_s,
        reports=tuple(_thin(reports)),
        pauses=tuple(pauses),
        durables=tuple(_durables(events, start, pauses, starts, ends, batch, row.end, free_at)),
        free=free_at(anchor)[0],
        reached=start + max((spot.position for spot in before), default=0),
        still=_still(reports, spots, pauses, anchor, _until(row, events), events),
        cut=_cut(events, anchor, row.end),
    )
    return loop, tuple(tail)


def _cut(events: Sequence[Event], anchor: int, end: int) -> int | None:
    """How long after the last advance a save began that nobody ended."""
    ended = {(e.rank, e.span) for e in events if isinstance(e, PhaseEnded)}
    begun = [
        e.ts - anchor
        for e in events
        if isinstance(e, PhaseStarted) and e.phase == SAVE and not e.background and anchor < e.ts <= end
        if (e.rank, e.span) not in ended
    ]
    return min(begun, default=None)


def _until(row: AttemptSummary, events: Sequence[Event]) -> int:
    """When it surely stood still: when its loop ended, when the trainer told of its end, or with the attempt."""
    told = [e.ts for e in events if isinstance(e, TrainingEnded)]
    told += [e.ts for e in events if isinstance(e, AttemptEnded) and e.source == "trainer" and e.exit_code is not None]
    return min([*told, row.end])


def _still(
    reports: Sequence[Report],
    spots: Sequence[_Spot],
    pauses: Sequence[Pause],
    anchor: int,
    until: int,
    events: Sequence[Event],
) -> int:
    """From the last advance to when it stood still (µs).

    One that lives on, and tells of no advance any more, stood still within the time of its last advance: the less it
    came on in that, the sooner. One that falls silent stood still before its next report was due.
    """
    if len(reports) < 2:
        return 0
    last, before = reports[-1], reports[-2]
    if any(spot.ts > anchor for spot in spots) and before.at > 0 and before.position > 0:
        rate = before.position / max(1, before.at - before.waited)
        ran = last.at - before.at
        idle = ran - (last.waited - before.waited) - (last.position - before.position) / rate
        since_pause = last.at - max((pause.at for pause in pauses if pause.at <= last.at), default=0)
        return -round(min(max(0.0, idle), ran, since_pause))
    gaps = sorted(b.ts - a.ts for a, b in pairwise(spots) if b.ts <= anchor)
    gap = gaps[len(gaps) // 2] if gaps else _GAP_US
    least = max((e.ts - anchor for e in events if e.source == "trainer" and e.ts <= until), default=0)
    return max(0, (max(0, least) + min(gap, until - anchor)) // 2 if least < gap else min(least, until - anchor))


def _walk(events: Sequence[Event], first: TrainingStarted | None, row: AttemptSummary) -> list[_Spot]:
    """The reports of the rank that is heard, with positions counted on over resets of the counter."""
    said: dict[int, list[Progress | TrainingEnded]] = {}
    for event in events:
        if isinstance(event, Progress) and event.ts <= row.end:
            said.setdefault(event.rank, []).append(event)
    since = {rank: min(e.ts for e in told) for rank, told in said.items()}
    heard = min((rank for rank, ts in since.items() if ts <= min(since.values()) + _HEARD_WITHIN), default=None)
    told = [] if heard is None else said[heard]
    finals = [e for e in events if isinstance(e, TrainingEnded) and e.ts <= row.end]
    last = max(finals, key=lambda e: (e.ts, -e.rank), default=None)
    if last is not None and not any(e.ts > last.ts for e in told):
        told = [*told, last]
    told = sorted(told, key=lambda e: (e.ts, e.position, -1 if e.step is None else e.step, e.data_wait_us or 0))
    if first is not None:
        told = [e for e in told if e.ts >= first.ts]
    if not told:
        return []
    origin, step, base = told[0].position, told[0].step, told[0].data_wait_us or 0
    if first is not None:
        origin, step, base = first.position, first.step, 0
    raw, offset, waited = origin, 0, 0
    out = []
    for event in told:
        if event.position < raw and event.step is not None and step is not None and event.step > step:
            offset += raw - event.position
        raw = event.position
        step = step if event.step is None else event.step
        waited = max(waited, (event.data_wait_us or 0) - base)
        out.append(_Spot(event.ts, raw + offset - origin, waited))
    return out


def _thin(reports: list[Report]) -> list[Report]:
    """Leave out reports between two that are close, where all between them run on."""
    out: list[Report] = []
    for i, report in enumerate(reports):
        if report.at == report.position == report.waited == 0 and report.pause < 0:
            continue
        if 0 < i < len(reports) - 1 and len(out) > 1:
            after, before = reports[i + 1], out[-1]
            plain = report.pause < 0 and after.pause < 0 and before.pause < 0
            # The first advance stays: what compiles before it belongs to the start-up.
            rising = 0 < before.position < report.position < after.position
            if plain and rising and after.at - before.at < _CLOSE:
                continue
        out.append(report)
    return out


def _durables(
    events: Sequence[Event],
    start: int,
    pauses: list[Pause],
    starts: list[int],
    ends: list[int],
    batch: int,
    until: int,
    free_at: object,
) -> list[Durable]:
    out = []
    told = sorted((e for e in events if isinstance(e, CheckpointDurable) and e.ts <= until), key=lambda e: e.ts)
    for event in told:
        begun = event.ts if event.started_ts is None else min(event.started_ts, event.ts)
        i = bisect_right(starts, begun) - 1
        while i >= 0 and pauses[i].stage != SAVE:
            i -= 1
        if i >= 0 and (starts[i] == begun or starts[i] <= begun <= ends[i] or event.started_ts is None):
            out.append(Durable(i, pauses[i].at, event.position - start, event.ts - ends[i]))
        else:
            at = begun if begun > batch else batch
            free = free_at(at)[0]  # type: ignore[operator]
            out.append(Durable(-1, free, event.position - start, event.ts - at))
    return out
