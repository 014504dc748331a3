"""From the events of a job to its life, by way of its timeline: what a stage took is what the rules charge to it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from ettwatch_core import JobState, Rules, Snapshot, apply, snapshot
from ettwatch_monitor.advice.life import Attempt, Life, Node, Piece, Startup
from ettwatch_monitor.advice.observe_loop import observe_loop
from ettwatch_schemas import (
    AttemptEnded,
    AttemptSummary,
    Event,
    Heartbeat,
    PhaseEnded,
    PhaseSpan,
    PhaseStarted,
    Segment,
    TrainingEnded,
    component_of,
)

FILE_RULES: Final = Rules(lateness=None)
"""Whole jobs are at hand: nothing is too late."""


class Observed(NamedTuple):
    """A job: its life, where it can be laid out anew, and what the rules say of it."""

    life: Life | None
    snap: Snapshot


def observe(job: str, events: Sequence[Event], rules: Rules = FILE_RULES) -> Observed:
    """Take a job apart. Its life is None where no attempt has begun.

    Args:
        job: Its name.
        events: All of them, in any order.
        rules: By which its time is charged; `lateness` must be None.
    """
    state = JobState(job)
    for event in events:
        apply(state, event, rules)
    snap = snapshot(state, rules, keep=False)
    return Observed(_life(snap, events, state.newest) if snap.attempts else None, snap)


def _life(snap: Snapshot, events: Sequence[Event], newest: int) -> Life:
    summary = snap.summary
    told: dict[int, list[Event]] = {}
    for event in events:
        if event.attempt is not None:
            told.setdefault(event.attempt, []).append(event)
    attempts = []
    before = summary.t0
    for row in snap.attempts:
        attempts.append(_attempt(row, before, snap, told.get(row.attempt, [])))
        before = row.end
    target = max((a.loop.reached for a in attempts if a.loop is not None), default=0)
    return Life(
        job=summary.job,
        team=summary.team,
        model=summary.model,
        cluster=summary.cluster,
        labels=dict(summary.labels),
        gpus=summary.gpus,
        t0=summary.t0,
        attempts=tuple(attempts),
        rest=_pieces(snap, before, summary.t1),
        status=summary.status,
        target=target,
        lags=tuple(_lags(attempts)),
        as_of=max(newest, summary.t1),
    )


def _attempt(row: AttemptSummary, before: int, snap: Snapshot, events: list[Event]) -> Attempt:
    batch = row.end if row.first_batch is None else row.first_batch
    loop = waits = None
    anchor = row.end
    if row.trained and row.last_advance is not None:
        anchor = max(row.last_advance, batch)
        busy = _busy(snap, row, batch, anchor)
        loop, waits = observe_loop(row, batch, anchor, busy, events)
    silent, alive = (None, True) if loop is not None else _silent(row, events)
    ended = [e.ts for e in events if isinstance(e, TrainingEnded)]
    ends = [e for e in events if isinstance(e, AttemptEnded)]
    return Attempt(
        number=row.attempt,
        gpus=row.gpus,
        start=row.start,
        wait=_pieces(snap, before, row.start),
        startup=_startup(row, batch, snap),
        loop=loop,
        tail=_pieces(snap, anchor, row.end, row.attempt) if loop is not None else (),
        tail_waits=waits or (),
        ended_after=row.loop_end - anchor if loop is not None and row.loop_end in ended else None,
        outcome=row.outcome,
        cause=row.cause,
        clean=any(e.source == "trainer" and e.exit_code is not None for e in ends),
        silent=silent,
        alive=alive,
        hosts={e.rank: e.host for e in events if e.host is not None and e.source == "trainer"},
        compiled=dict(_compiled(events)),
    )


def _silent(row: AttemptSummary, events: Iterable[Event]) -> tuple[int | None, bool]:
    """For how long (µs) a trainer was dead when its attempt ended, by its silence; and whether it may have lived on."""
    said = sorted(e.ts for e in events if e.source == "trainer" and row.start <= e.ts <= row.end)
    beats = sorted(e.ts for e in events if isinstance(e, Heartbeat) and e.source == "trainer")
    gaps = sorted(b - a for a, b in pairwise(beats) if b > a)
    if not said or not gaps:
        return None, True
    gap, silence = gaps[len(gaps) // 2], row.end - said[-1]
    return silence - min(silence, gap) // 2, 2 * silence <= 3 * gap


def _compiled(events: Iterable[Event]) -> Iterable[tuple[str, bool]]:
    phases = {(e.rank, e.span): e.phase for e in events if isinstance(e, PhaseStarted)}
    for event in events:
        if not isinstance(event, PhaseEnded) or not event.attrs:
            continue
        key, cache = event.attrs.get("cache_key"), event.attrs.get("cache")
        phase = phases.get((event.rank, event.span), "")
        if (
            isinstance(key, str)
            and component_of_or_none(phase) == "pt2_compilation"
            and not phase.endswith(".recompile")
        ):
            yield key, cache == "hit"


def component_of_or_none(phase: str) -> str | None:
    """Return the component of a phase; None for no phase."""
    return component_of(phase) if phase else None


def _startup(row: AttemptSummary, end: int, snap: Snapshot) -> Startup:
    nodes = []
    for span in _leaves(snap, row.attempt):
        if span.start < end and span.end > row.start:
            start, until = max(span.start, row.start), min(span.end, end)
            if until > start:
                node = Node(span.phase, start - row.start, until - row.start, span.open, span.behind, span.last_rank)
                nodes.append(node)
    nodes.sort(key=lambda node: (node.start, node.end, node.stage))
    covered = _union([(node.start, node.end) for node in nodes])
    glue = []
    for segment in _within(snap.segments, row.start, end, row.attempt):
        for start, until in _outside(segment.start - row.start, segment.end - row.start, covered):
            glue.append((segment.stage, start, until))
    loop_start = None if row.loop_start is None or not row.trained else min(row.loop_start, end) - row.start
    return Startup(tuple(nodes), tuple(glue), loop_start, end - row.start)


def _leaves(snap: Snapshot, attempt: int) -> Iterable[PhaseSpan]:
    return (
        span
        for span in snap.spans
        if span.attempt == attempt
        and not span.background
        and not span.container
        and not span.phase.startswith("scheduling")
    )


def _busy(snap: Snapshot, row: AttemptSummary, start: int, end: int) -> list[tuple[str, int, int]]:
    """What was charged to told phases between two times: stage, start, end."""
    open_ = _union(
        [
            (max(span.start, start), min(span.end, end))
            for span in snap.spans
            if span.attempt == row.attempt and not span.background and span.start < end and span.end > start
        ]
    )
    out = []
    for segment in _within(snap.segments, start, end, row.attempt):
        for since, until in _inside(segment.start, segment.end, open_):
            out.append((segment.stage, since, until))
    return out


def _pieces(snap: Snapshot, start: int, end: int, attempt: int | None = None) -> tuple[Piece, ...]:
    """Stretches between two times, cut where a phase was told."""
    open_ = _union(
        [
            (max(span.start, start), min(span.end, end))
            for span in snap.spans
            if not span.background
            and span.start < end
            and span.end > start
            and (attempt is None or span.attempt == attempt)
        ]
    )
    out: list[tuple[int, Piece]] = []
    for segment in _within(snap.segments, start, end, attempt):
        told = list(_inside(segment.start, segment.end, open_))
        out += [(since, Piece(segment.stage, until - since, True)) for since, until in told]
        free = _outside(segment.start, segment.end, told)
        out += [(since, Piece(segment.stage, until - since, False)) for since, until in free]
    return tuple(piece for _, piece in sorted(out, key=lambda each: each[0]))


def _within(segments: Sequence[Segment], start: int, end: int, attempt: int | None) -> Iterable[Segment]:
    for each in segments:
        if each.start < end and each.end > start and (attempt is None or each.attempt == attempt):
            yield each._replace(start=max(each.start, start), end=min(each.end, end))


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], end)
        elif end > start:
            out.append((start, end))
    return out


def _inside(start: int, end: int, union: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    return ((max(start, a), min(end, b)) for a, b in union if a < end and b > start)


def _outside(start: int, end: int, union: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    at = start
    for a, b in _inside(start, end, union):
        if a > at:
            yield at, a
        at = b
    if at < end:
        yield at, end


def _lags(attempts: Sequence[Attempt]) -> Iterable[int | None]:
    """From which checkpoint each attempt resumed, counted from the newest before it."""
    safe: list[int] = []
    for attempt in attempts:
        loop = attempt.loop
        if loop is None:
            yield None
            continue
        if not safe:
            safe.append(loop.start)
            yield 0
        else:
            yield next((i for i, position in enumerate(reversed(safe)) if position == loop.start), None)
        safe += [loop.start + durable.position for durable in loop.durables]


__all__ = ["FILE_RULES", "Observed", "observe"]
