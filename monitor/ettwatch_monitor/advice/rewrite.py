"""A job laid out anew under changes, as events: what the rules then say of it is what would have been.

What holds: a failure comes at the same age of its attempt as it did; a job that succeeded does the same work; any other
attempt stops at the same age; waits for hardware take as long as they took. An attempt resumes from its newest
checkpoint, as it did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ettwatch_monitor.advice.change import Knobs
from ettwatch_monitor.advice.further import Draw
from ettwatch_monitor.advice.life import Attempt, Life, Piece
from ettwatch_monitor.advice.pen import Pen
from ettwatch_monitor.advice.ran import Ran, Rhythm, Saves
from ettwatch_monitor.advice.running import Runner
from ettwatch_monitor.advice.startup import Hit, Laid, lay_out
from ettwatch_schemas import Event

_STALL = "wasted_training.data_stall"


class Around(Protocol):
    """What a job knows of the others."""

    def hit(self, life: Life, attempt: Attempt, knobs: Knobs) -> Hit | None:
        """How an attempt would find compiled code; None if it would not, or did."""

    def rhythms(self, life: Life) -> dict[str, Rhythm]:
        """Pauses that come again and again in jobs like this one."""

    def usual(self, life: Life) -> Mapping[str, int]:
        """How long stages of start-up take (µs) in jobs like this one."""

    def interval(self, life: Life, knobs: Knobs) -> int | None:
        """The free running between two saves (µs) that is asked for; None: as it was."""

    def straggler(self, life: Life, attempt: Attempt) -> tuple[str, float] | None:
        """The host that keeps an attempt waiting, and how many times as fast its loop is without it; None: no host."""


class Rewritten(NamedTuple):
    """A job as it would have been.

    Attributes:
        events: All of them.
        now: The clock (µs).
        undone: The share of its work that it would not do; negative where it would do more.
        beyond: By how much (µs) it would run longer in its last attempt than anybody saw.
    """

    events: list[Event]
    now: int
    undone: float
    beyond: int


def rewrite(life: Life, knobs: Knobs, around: Around, draw: Draw | None = None) -> Rewritten:
    """Lay a job out anew. `draw`: which failures it meets where it runs longer than anybody saw; None: none."""
    return _Rewriting(life, knobs, around, draw).run()


@dataclass(slots=True)
class _Rewriting:
    life: Life
    knobs: Knobs
    around: Around
    draw: Draw | None = None
    pen: Pen = field(init=False)
    safe: list[int] = field(default_factory=list)
    reached: int = 0
    furthest: int = 0
    beyond: int = 0
    laid: Laid = field(default_factory=Laid)
    speed: float = 1.0

    def __post_init__(self) -> None:
        self.pen = Pen(self.life.job)

    def run(self) -> Rewritten:
        life, pen = self.life, self.pen
        pen.submitted(life.t0, life.team, life.model, life.cluster, life.gpus, life.labels)
        trained = [i for i, attempt in enumerate(life.attempts) if attempt.loop is not None]
        last = trained[-1] if trained else -1
        at, i = life.t0, 0
        while i < len(life.attempts):
            attempt = life.attempts[i]
            at = self._wait(attempt.number, attempt.wait, at, first=i == 0)
            at, done = self._attempt(i, at, i == last)
            # With its work done, nothing of the attempts follows in which it was done in truth.
            i = last + 1 if done and i <= last else i + 1
        end = self._rest(at)
        if life.over:
            status = "failed" if life.status == "lost" else life.status
            pen.over(end, status)
        work = life.target - self.safe[0] if self.safe else 0
        return Rewritten(pen.events, end, (life.target - self.furthest) / work if work > 0 else 0.0, self.beyond)

    def _wait(self, number: int, pieces: Sequence[Piece], at: int, *, first: bool) -> int:
        for piece in pieces:
            length = round(piece.length * self.knobs.factor(piece.stage, first=first))
            if piece.told and piece.stage.startswith("scheduling."):
                self.pen.phase(number, piece.stage, at, at + length)
            at += length
        return at

    def _rest(self, at: int) -> int:
        return at + sum(piece.length for piece in self.life.rest)

    def _attempt(self, i: int, start: int, last: bool) -> tuple[int, bool]:
        """Write one attempt. Return its end, and whether the work of the job is done."""
        life = self.life
        attempt = life.attempts[i]
        number, loop = attempt.number, attempt.loop
        began = self._start(number, attempt, life, start, first=i == 0)
        if loop is None or began is None:
            return self._end(number, attempt, start + self.laid.end), False
        resumed = self._resumed(i, loop.start)
        self.pen.training(number, start + began, resumed, loop.every)
        unstopped = last and attempt.outcome == "succeeded"
        stop: int | None = start + attempt.length
        if unstopped:
            more = None if self.draw is None else self.draw.budget(0)
            stop = None if more is None or stop is None else stop + more
        ran = self._run(i, start + self.laid.end, resumed, stop)
        self._loop(number, ran)
        if unstopped:
            self.beyond = ran.end - start - attempt.length
            if self.draw is not None and not ran.done:
                return self._go_on(i, self.draw, ran), True
        done = ran.done and attempt.outcome != "succeeded" and not last
        told = life.attempts[max(k for k, a in enumerate(life.attempts) if a.loop is not None)] if done else attempt
        return self._tail(number, told, ran), ran.done

    def _start(self, number: int, attempt: Attempt, life: Life, start: int, *, first: bool) -> int | None:
        """Write a start-up. Return after how long its loop begins; None if it never does."""
        knobs, around = self.knobs, self.around
        straggler = around.straggler(life, attempt) if knobs.stragglers else None
        slow, self.speed = straggler or (None, 1.0)
        hit = around.hit(life, attempt, knobs) if knobs.cache else None
        self.laid = lay_out(attempt, knobs, first=first, hit=hit, slow=slow, usual=around.usual(life))
        self.pen.started(number, start, attempt.gpus)
        for stage, begin, end in self.laid.phases:
            self.pen.phase(number, stage, start + begin, start + end)
        return self.laid.loop_start

    def _run(self, i: int, begin: int, resumed: int, stop: int | None) -> Ran:
        """Lay out a loop as that of an attempt."""
        life, attempt = self.life, self.life.attempts[i]
        assert attempt.loop is not None
        return Runner(
            attempt.loop,
            begin,
            resumed,
            stop,
            max(life.target, resumed + 1) if life.status == "succeeded" else None,
            factors={p: self.knobs.factor(p, first=i == 0) for p in self._stages(attempt)},
            stall=self.knobs.factor(_STALL, first=i == 0),
            speed=self.speed,
            saves=self._saves(),
            rhythms=self.around.rhythms(life),
            stands=self.knobs.stands(attempt),
        ).run()

    def _go_on(self, i: int, draw: Draw, ran: Ran) -> int:
        """Write what follows when the attempt that did the last of the work fails before that. Return its end."""
        attempt, number, failures = self.life.attempts[i], self.life.attempts[-1].number, 0
        last, speed = self.life.attempts[i].number, self.speed
        while not ran.done:
            found = draw.recovery(failures)
            at = self._tail(last, found.failed, ran)
            failures += 1
            for again in found.after:
                last = number = number + 1
                start = self._wait(number, again.wait, at, first=False)
                began = self._start(number, again, found.life, start, first=False)
                at = self._end(number, again, start + self.laid.end) if again.loop is None or began is None else at
            self.speed = speed
            self.pen.training(last, start + (began or 0), self.safe[-1], attempt.loop.every if attempt.loop else None)
            more = draw.budget(failures)
            begin = start + self.laid.end
            ran = self._run(i, begin, self.safe[-1], None if more is None else begin + more)
            self._loop(last, ran)
        return self._tail(last, attempt, ran)

    def _stages(self, attempt: Attempt) -> set[str]:
        seen = {p.stage for p in attempt.loop.pauses} if attempt.loop is not None else set()
        return seen | set(self.around.rhythms(self.life))

    def _saves(self) -> Saves | None:
        every = self.around.interval(self.life, self.knobs) if self.knobs.save_interval_s is not None else None
        left = self.knobs.save_blocking
        return None if every is None and left is None else Saves(every, 1.0 if left is None else left)

    def _resumed(self, i: int, start: int) -> int:
        """Where an attempt resumes."""
        life = self.life
        if not self.safe:
            self.safe.append(start)
            return start
        before = [a for a in life.attempts[:i] if a.loop is not None]
        if before and before[-1].outcome == "preempted" and self.knobs.notice:
            return max(self.reached, self.safe[-1])
        lag = life.lags[i]
        if lag is not None:
            return self.safe[max(0, len(self.safe) - 1 - lag)]
        lost = before[-1].loop.reached - start if before and before[-1].loop is not None else 0
        return max(self.safe[0], self.reached - lost)

    def _loop(self, number: int, ran: Ran) -> None:
        for stage, begin, end in ran.pauses:
            self.pen.phase(number, stage, begin, end)
        for ts, position, waited in ran.reports:
            self.pen.progress(number, ts, position, waited)
        for ts, position in ran.durables:
            self.pen.durable(number, ts, position)
            self.safe.append(position)
        self.reached = ran.reached
        self.furthest = max(self.furthest, ran.reached)

    def _tail(self, number: int, attempt: Attempt, ran: Ran) -> int:
        """Write what follows the last advance. Return the end of the attempt."""
        pen, at = self.pen, ran.end
        waited = max((waited for _, _, waited in ran.reports), default=0)
        left = self.knobs.tail(attempt) if attempt.failed else 1.0
        if attempt.ended_after is not None:
            pen.trained(number, at + round(attempt.ended_after * left), ran.reached, waited)
        for after, more in attempt.tail_waits if attempt.ended_after is None else ():
            pen.progress(number, at + round(after * left), ran.reached, waited + round(more * left))
        for piece in attempt.tail:
            factor = 1.0 if attempt.failed else self.knobs.factor(piece.stage, first=False)
            length = round(piece.length * left * factor)
            if piece.told:
                pen.phase(number, piece.stage, at, at + length)
            at += length
        if attempt.outcome is None:
            pen.alive(number, at)
        else:
            pen.ended(number, at, attempt.outcome, attempt.cause)
        return at

    def _end(self, number: int, attempt: Attempt, at: int) -> int:
        """Write the end of an attempt that never trained."""
        if attempt.outcome is None:
            self.pen.alive(number, at)
        else:
            self.pen.ended(number, at, attempt.outcome, attempt.cause)
        return at


__all__ = ["Around", "Rewritten", "rewrite"]
