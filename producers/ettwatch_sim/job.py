"""One random job."""

from random import Random

from ettwatch_schemas import Event, JobEnded, JobSubmitted
from ettwatch_sim.attempt import Ended, attempt
from ettwatch_sim.pen import Pen
from ettwatch_sim.shape import Shape


def random_job(dice: Random, job: str, start: int, shape: Shape | None = None) -> list[Event]:
    """Return the events of one job in time order, at least one.

    It is submitted at `start` (microseconds since the Unix epoch). Equal dice give equal events.
    """
    pen = Pen(dice, job, shape or Shape())
    _submit(pen, start)
    end = _attempts(pen, start)
    if end is not None and pen.chance(0.75):
        outcome = "failed" if end.outcome == "preempted" else end.outcome
        pen.write(JobEnded, end.ts + pen.us(5, 60), outcome=outcome, source="launcher")
    events = pen.events
    if pen.odd:
        lost = pen.dice.choice((0.0, 0.02, 0.1))
        events = [event for event in events if not pen.chance(lost)] or events[:1]
        if pen.chance(0.3):
            events.append(_conflict(pen, events))
    return sorted(events, key=lambda event: event.ts)


def _submit(pen: Pen, start: int) -> None:
    dice = pen.dice
    for ts in (start, start + pen.us(1, 60)) if pen.oddly(0.2) else (start,):
        pen.write(
            JobSubmitted,
            ts,
            team=dice.choice(("ads", "feed", "search", None)),
            model=dice.choice(("ctr", "ranker", None)),
            cluster=dice.choice(("c1", "c2", "c3")),
            gpus=dice.choice((None, 8, 64)),
            eligible_ts=start + pen.us(0, 60) if pen.chance(0.3) else None,
            labels={"run": dice.choice(("nightly", "adhoc"))} if pen.chance(0.4) else None,
            source="scheduler",
        )


def _attempts(pen: Pen, start: int) -> Ended | None:
    """Write all attempts; return how the last one ended, None if the job never left the queue."""
    count = min(pen.shape.attempts, pen.dice.choice((1, 1, 1, 2, 2, 3, 4)))
    now, position, number = start, 0, 0
    end: Ended | None = None
    for left in reversed(range(count)):
        allocated = now + pen.us(1, 300)
        if pen.chance(0.5):
            until = None if pen.chance(0.1) else allocated
            pen.span(number, "scheduling.queue_wait", now + pen.us(0, 1), until)
        if end is None and pen.chance(0.03):
            return None
        end = attempt(pen, number, allocated, position, last=not left)
        if end.outcome in ("succeeded", "cancelled"):
            break
        now = end.ts
        position = pen.dice.choice((end.saved, end.saved, end.position, 0))
        if pen.oddly(0.3):  # a spare is allocated before the one before it is over
            now -= pen.us(0, min(200.0, (now - allocated) / 1_000_000))
        number += 2 if pen.oddly(0.2) else 1
    return end


def _conflict(pen: Pen, events: list[Event]) -> Event:
    """Another event with the id of one that is there."""
    event = pen.dice.choice(events)
    return event.model_copy(update={"ts": event.ts + pen.us(0, 5)})
