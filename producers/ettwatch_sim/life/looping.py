"""The events of the training loop, one by one."""

import heapq
from collections.abc import Iterator
from typing import Any

from ettwatch_schemas import CheckpointDurable, Event, PhaseEnded, PhaseStarted, Progress
from ettwatch_sim.life.loop import FIRST_STEP, SAVE
from ettwatch_sim.life.opening import SAMPLES_A_STEP
from ettwatch_sim.life.pen import Pen, span_name


def looping(pen: Pen) -> Iterator[Event]:
    """Yield the events between the first batch and the end of the loop, in time order."""
    return heapq.merge(_reports(pen), _pauses(pen), key=lambda event: event.ts)


def _reports(pen: Pen) -> Iterator[Event]:
    attempt = pen.attempt
    loop, first = attempt.loop, attempt.startup.first_batch
    every, last = loop.pace.report_every, attempt.reports_until
    over = attempt.fault is None
    number = 0
    ts = first + FIRST_STEP
    while ts < last or (ts == last and not over):
        yield pen.write(Progress, ts, **told_at(pen, ts))
        number = max(number + 1, (ts - first) // every + 1)
        ts = first + number * every
        if attempt.fault is not None and attempt.fault.how == "clean" and last < ts < last + every:
            ts = last  # the last word


def told_at(pen: Pen, ts: int) -> dict[str, Any]:
    """Return what a report of the loop at `ts` tells."""
    attempt = pen.attempt
    position = attempt.position_at(ts)
    waited = attempt.loop.waited(attempt.loop.free_at(min(ts, attempt.frozen)))
    return {"position": position, "step": position // SAMPLES_A_STEP, "data_wait_us": waited}


def _pauses(pen: Pen) -> Iterator[Event]:
    """Saves, evaluations and recompilations; and the uploads that go on in the background."""
    attempt = pen.attempt
    loop = attempt.loop
    ahead: list[tuple[int, int, Event]] = []  # what uploads will tell
    count = 0
    safe = {d.started: d for d in attempt.durables}
    for start, end, kind in zip(loop.starts, loop.ends, loop.kinds, strict=True):
        if start >= attempt.frozen:
            break
        while ahead and ahead[0][0] <= start:
            yield heapq.heappop(ahead)[2]
        name = span_name(kind, start)
        yield pen.write(PhaseStarted, start, span=name, phase=kind)
        if end > attempt.frozen:
            if attempt.fault is not None and attempt.fault.how == "clean":
                yield pen.write(PhaseEnded, attempt.frozen, span=name, outcome="error")
            break
        while ahead and ahead[0][0] <= end:
            yield heapq.heappop(ahead)[2]
        yield pen.write(PhaseEnded, end, span=name)
        if kind != SAVE:
            continue
        durable = safe.get(start)
        until = None if durable is None else durable.ts
        if loop.pace.upload:
            for event in pen.span(kind, end, until, background=True):
                count += 1
                heapq.heappush(ahead, (event.ts, count, event))
        if durable is not None:
            event = pen.write(
                CheckpointDurable,
                durable.ts,
                position=durable.position,
                step=durable.position // SAMPLES_A_STEP,
                bytes=int(attempt.order.model.checkpoint_gb * 1e9),
                started_ts=durable.started,
            )
            count += 1
            heapq.heappush(ahead, (event.ts, count, event))
    while ahead:
        yield heapq.heappop(ahead)[2]
