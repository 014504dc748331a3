"""Random jobs, odd on purpose: whatever a producer may send, likely or not, drawn from a seed.

Times fall on a coarse grid often, so that ties, touching spans and zero lengths are common, and on single
microseconds at other times. Nothing here knows what the right answer is.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Final, Literal

from hypothesis import strategies as st

from ettwatch_schemas import (
    AttemptEnded,
    AttemptStarted,
    CheckpointDurable,
    Event,
    Heartbeat,
    JobEnded,
    JobSubmitted,
    PhaseEnded,
    PhaseStarted,
    Progress,
    TrainingEnded,
    TrainingStarted,
)

SECOND: Final = 1_000_000
BASE: Final = 1_790_000_000_000_000
"""No event is long before this: 2026-09-21, in microseconds."""

Size = Literal["small", "medium"]

_STARTUP: Final = (
    "hardware_setup",
    "hardware_setup.image_pull",
    "trainer_init",
    "trainer_init.device_init",
    "trainer_init.device_init.nccl",
    "trainer_init.process_group_init",
    "trainer_init.get_first_batch_data",
    "trainer_init.checkpoint_load",
    "pt2_compilation",
    "pt2_compilation.inductor",
    "pt2_compilation.inductor.triton",
)
_IN_LOOP: Final = (
    "wasted_training",
    "wasted_training.checkpoint_save",
    "wasted_training.evaluation",
    "wasted_training.data_stall",
    "pt2_compilation.recompile",
    "pt2_compilation",
    "trainer_init.checkpoint_load",
)
_AFTER: Final = ("shutdown", "shutdown.final_checkpoint", "shutdown.model_publish", "shutdown.teardown")
_WAITING: Final = ("scheduling", "scheduling.queue_wait", "scheduling.backoff", "scheduling.queue_wait.quota")
_OUTCOMES: Final = ("succeeded", "failed", "failed", "preempted", "cancelled")
_CAUSES: Final = ("hardware", "user_code", "config", "capacity", "unknown", "timeout")


class _Pen:
    """Writes the events of one job, and draws its times."""

    def __init__(self, rng: Random, job: str, scale: int) -> None:
        self.rng = rng
        self.job = job
        self.scale = scale
        self.events: list[Event] = []
        self.fine = rng.choice((0.0, 0.0, 0.1, 0.5, 1.0))
        self.grid = rng.choice((1, 10, 10, 20)) * SECOND * scale
        self.spans: list[tuple[int, int, str, int, int | None]] = []
        self.oddness = rng.choice((0.0, 0.2, 1.0, 1.0))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def odd(self, share: float) -> bool:
        """Tell whether something happens that no sound producer does; in some jobs nothing does."""
        return self.chance(share * self.oddness)

    def draw(self, low: float, high: float) -> int:
        """Return microseconds between `low` and `high` seconds, on the grid or not."""
        us = self.rng.randint(int(low * SECOND), max(int(low * SECOND), int(high * SECOND))) * self.scale
        return us if self.chance(self.fine) else round(us / self.grid) * self.grid

    def between(self, low: int, high: int) -> int:
        """Return a time between two, at times one of them."""
        if self.chance(0.15):
            return self.rng.choice((low, high))
        return low + self.draw(0, (high - low) / SECOND / self.scale)

    def write(self, kind: Callable[[object], Event], ts: int, **fields: object) -> None:
        given = {name: value for name, value in fields.items() if value is not None}
        self.events.append(kind({"id": f"{self.job}-{len(self.events)}", "job": self.job, "ts": ts, **given}))


def _span(pen: _Pen, number: int, rank: int, phase: str, start: int, end: int | None) -> None:
    """Write one span, told once mostly; `end` None for one that never ends."""
    rng = pen.rng
    name = f"s{len(pen.spans)}"
    # Mostly the parent is open when its child begins; odd ones name a span that is over, or another rank's.
    known = [
        other
        for attempt, of, other, since, until in pen.spans
        if attempt == number
        and (of == rank or pen.odd(0.1))
        and ((since <= start and (until is None or start <= until)) or pen.odd(0.1))
    ]
    parent = rng.choice(known[-3:]) if known and pen.chance(0.3) else None
    if pen.odd(0.02):
        parent = rng.choice((name, "nowhere"))
    pen.spans.append((number, rank, name, start, end))
    told = {"attempt": number, "rank": rank, "span": name}
    pen.write(
        PhaseStarted.model_validate,
        start,
        **told,
        phase=phase,
        parent=parent,
        background=True if pen.chance(0.08) else None,
    )
    if pen.odd(0.03):
        again = phase if pen.chance(0.5) else rng.choice(_STARTUP)
        pen.write(PhaseStarted.model_validate, start + pen.draw(0, 20), **told, phase=again)
    if end is not None:
        if pen.odd(0.03):
            end = start - pen.draw(1, 20)
        pen.write(PhaseEnded.model_validate, end, **told, outcome=rng.choice(("ok", "error")))
        if pen.odd(0.03):
            pen.write(PhaseEnded.model_validate, end + pen.draw(0, 20), **told)


def _spans(pen: _Pen, number: int, ranks: int, names: tuple[str, ...], low: int, high: int, most: int) -> None:
    """Write up to `most` phases between two times and a little around them, told by one rank or by several."""
    rng = pen.rng
    last = low
    for _ in range(rng.randint(0, most)):
        start = last if pen.chance(0.3) else pen.between(low, high)
        if pen.odd(0.05):
            start = low - pen.draw(0, 40)
        end = pen.between(start, max(start, high)) if pen.chance(0.5) else start + pen.draw(0, 60)
        if pen.odd(0.05):
            end = high + pen.draw(0, 60)
        phase = rng.choice(names)
        last = end
        for rank in range(ranks) if pen.chance(0.3) else (rng.randrange(ranks),):
            jitter = pen.draw(0, 10) if pen.chance(0.4) else 0
            _span(pen, number, rank, phase, start, None if pen.odd(0.12) else end + jitter)


def _loop(pen: _Pen, number: int, ranks: int, start: int, position: int, steps: int) -> tuple[int, int]:
    """Write the loop of an attempt; return its end and the position there."""
    rng = pen.rng
    speakers = [0] if pen.chance(0.7) else [rank for rank in range(ranks) if pen.chance(0.7)]
    step = position // 10
    if pen.chance(0.85):
        every = rng.choice((None, 30, 60, 120.5, 400))
        for rank in range(ranks) if pen.chance(0.3) else (0,):
            pen.write(
                TrainingStarted.model_validate,
                start + (pen.draw(0, 30) if pen.odd(0.3) else 0),
                attempt=number,
                rank=rank,
                position=position + (rng.choice((0, 50)) if rank and pen.odd(0.5) else 0),
                step=step if pen.chance(0.95) else None,
                report_every_s=every,
            )
    now, wait = start, 0
    for _ in range(rng.randint(0, steps)):
        gap = pen.draw(0, 100)
        if pen.chance(0.05):
            gap = pen.draw(280, 1300 if pen.chance(0.7) else 4500)
        now += gap
        luck = rng.random()
        if luck < 0.75:
            position, step = position + rng.choice((1, 30, 100, 100, 250)), step + 10
        elif luck < 0.80:
            position, step = rng.randrange(0, max(1, position // 3)), step + 10
        elif luck < 0.87:
            back = rng.randint(0, 20)
            position, step = max(0, position - 10 * back - rng.randint(0, 5)), max(0, step - back)
        if pen.chance(0.3):
            wait += pen.draw(0, 2 * gap / SECOND / pen.scale) if pen.chance(0.9) else pen.draw(0, 500)
        elif pen.odd(0.04):
            wait = wait // 2
        for rank in speakers:
            if rank == 0 or pen.chance(0.9):
                pen.write(
                    Progress.model_validate,
                    now + (pen.draw(0, 10) if rank else 0),
                    attempt=number,
                    rank=rank,
                    position=position,
                    step=step if pen.chance(0.97) else None,
                    data_wait_us=wait if pen.chance(0.9) else None,
                )
        if pen.chance(0.15):
            pen.write(
                CheckpointDurable.model_validate,
                now + pen.draw(0, 40),
                attempt=number,
                position=max(0, position - rng.choice((0, 0, 50))),
                step=step,
            )
        if pen.chance(0.1):
            pen.write(Heartbeat.model_validate, now + pen.draw(0, 40), attempt=number, rank=rng.randrange(ranks))
    if pen.chance(0.5):
        now += pen.draw(0, 60) if pen.chance(0.7) else 0
        for rank in range(ranks) if pen.chance(0.3) else (0,):
            pen.write(
                TrainingEnded.model_validate,
                now - (pen.draw(0, 30) if pen.odd(0.2) else 0),
                attempt=number,
                rank=rank,
                position=position + rng.choice((0, 0, 70)),
                step=step,
                data_wait_us=wait if pen.chance(0.5) else None,
            )
    return now, position


def _attempt(pen: _Pen, number: int, start: int, position: int, size: Size) -> tuple[int, int]:
    """Write one attempt from `start` on; return its end and its last position."""
    rng = pen.rng
    small = size == "small"
    ranks = rng.choice((1, 1, 2, 3, 4))
    if pen.chance(0.85):
        gpus = rng.choice((None, 1, 4, 8, 8, 16, 0 if pen.chance(0.1) else 8))
        trigger = rng.choice(("initial", "failure", "preemption", "resize", "manual"))
        pen.write(AttemptStarted.model_validate, start, attempt=number, gpus=gpus, trigger=trigger)
        if pen.odd(0.05):
            pen.write(AttemptStarted.model_validate, start + pen.draw(0, 60), attempt=number, gpus=2)
    if pen.chance(0.35):
        for _ in range(rng.randint(1, 3)):
            low = start - pen.draw(0, 200)
            _spans(pen, number, 1, _WAITING, low, start + (pen.draw(0, 60) if pen.chance(0.3) else 0), 1)
    begin = start + pen.draw(0, 120)
    _spans(pen, number, ranks, _STARTUP, start, begin, 3 if small else 6)
    end = begin
    if pen.chance(0.85):
        end, position = _loop(pen, number, ranks, begin, position, rng.choice((2, 4, 10)) if small else 60)
        if pen.odd(0.1):  # a loop that was ended and goes on
            end, position = _loop(pen, number, ranks, end + pen.draw(0, 50), position, 2)
        if pen.chance(0.3):  # the first step compiles
            _spans(pen, number, ranks, _STARTUP[-3:], begin, begin + pen.draw(0, 120), 2)
        _spans(pen, number, ranks, _IN_LOOP, begin, end, 3 if small else 10)
    if pen.odd(0.12):  # a scheduler that speaks of an attempt that runs
        _spans(pen, number, 1, _WAITING, begin, end + pen.draw(0, 60), 2)
    left = end
    end += pen.draw(0, 60) if pen.chance(0.7) else 0
    if pen.chance(0.05):
        end += pen.draw(300, 4000)
    _spans(pen, number, ranks, _AFTER, left, end, 2)
    if pen.chance(0.75):
        outcome = rng.choice(_OUTCOMES)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            late = rng.choice((-1, 1)) * pen.draw(0, 30) if pen.odd(0.5) else 0
            pen.write(
                AttemptEnded.model_validate,
                end + late,
                attempt=number,
                source=rng.choice(("trainer", "launcher", "scheduler")),
                outcome=outcome if pen.chance(0.7) else rng.choice(_OUTCOMES),
                cause=rng.choice(_CAUSES),
            )
    if pen.odd(0.2):
        _zombie(pen, number, ranks, end, position)
    return end, position


def _zombie(pen: _Pen, number: int, ranks: int, end: int, position: int) -> None:
    """Write what an attempt says after its end."""
    rng = pen.rng
    for _ in range(rng.randint(1, 3)):
        ts, rank = end + pen.draw(0, 400), rng.randrange(ranks)
        match rng.randrange(5):
            case 0:
                pen.write(Heartbeat.model_validate, ts, attempt=number, rank=rank)
            case 1:
                pen.write(Progress.model_validate, ts, attempt=number, rank=rank, position=position + 900, step=9999)
            case 2:
                pen.write(CheckpointDurable.model_validate, ts, attempt=number, position=position)
            case 3:
                _span(pen, number, rank, rng.choice(_AFTER + _WAITING), ts, ts + pen.draw(0, 60))
            case _:
                span = rng.choice(pen.spans)[2] if pen.spans else "nowhere"
                pen.write(PhaseEnded.model_validate, ts, attempt=number, rank=rank, span=span)


def _frame(pen: _Pen, first: int, end: int) -> None:
    """Write what is told of the job as a whole."""
    rng = pen.rng
    if pen.chance(0.8):
        for ts in (first - pen.draw(0, 200), first + pen.draw(0, 100)) if pen.odd(0.1) else (first,):
            pen.write(
                JobSubmitted.model_validate,
                ts,
                team=rng.choice(("ads", "feed", None)),
                model="ctr",
                cluster=rng.choice(("c1", "c2", None)),
                gpus=rng.choice((None, 2, 8)),
                eligible_ts=ts + rng.choice((-1, 1, 1)) * pen.draw(0, 60) if pen.chance(0.3) else None,
                labels={"run": "nightly"} if pen.chance(0.3) else None,
            )
    if pen.chance(0.55):
        ends = [end + (pen.draw(0, 120) if pen.chance(0.6) else 0)]
        if pen.odd(0.1):
            ends.append(pen.between(first, end))
        if pen.odd(0.08):
            ends = [pen.between(first, end)]
        for ts in ends:
            pen.write(JobEnded.model_validate, ts, outcome=rng.choice(_OUTCOMES))


def random_job(rng: Random, job: str = "job", *, size: Size = "small") -> list[Event]:
    """Return the events of one random job in time order, at least one.

    A "small" job has some dozens of events in an hour or so; a "medium" one some hundreds, in hours or days.
    """
    pen = _Pen(rng, job, 1 if size == "small" else rng.choice((1, 4, 30)))
    first = BASE + pen.draw(0, 4000)
    start, end, number, position = first + pen.draw(0, 100), first, 0, 0
    if pen.chance(0.1):
        number = rng.randint(1, 3)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4) if size == "small" else (1, 2, 3, 4))):
        begun = start
        end, reached = _attempt(pen, number, start, position, size)
        position = rng.choice((reached, max(0, reached - 120), max(0, reached - 300), reached + 200, position))
        start = end + (pen.draw(0, 300) if pen.chance(0.8) else 0)
        if pen.odd(0.25):  # allocated early, or clocks that disagree
            start = pen.between(begun, end)
        number += rng.choice((1, 1, 1, 1, 2, 5))
    if pen.chance(0.1):  # queued for an attempt that is not there yet
        _spans(pen, number, 1, _WAITING, end, end + pen.draw(0, 200), 2)
    _frame(pen, first, end)
    lost = 0.03 if pen.odd(0.6) else 0.0
    events = [event for event in pen.events if not pen.chance(lost)] or pen.events
    if not events:
        pen.write(JobSubmitted.model_validate, first)
        events = pen.events
    return sorted(events, key=lambda event: event.ts)


def mangle(rng: Random, events: Iterable[Event], *, lateness_us: int) -> list[Event]:
    """Return the events doubled here and there, in another order.

    None arrives further than `lateness_us` microseconds behind the newest before it.
    """
    told = list(events)
    told += [event for event in told if rng.random() < 0.15]
    arrivals = [(event.ts + rng.randint(0, lateness_us), rng.random(), event) for event in told]
    return [event for _, _, event in sorted(arrivals, key=lambda arrival: arrival[:2])]


def jobs(job: str = "job", *, size: Size = "small") -> st.SearchStrategy[list[Event]]:
    """Return a hypothesis strategy of random jobs."""
    return st.integers(0, 2**32 - 1).map(lambda seed: random_job(Random(seed), job, size=size))
