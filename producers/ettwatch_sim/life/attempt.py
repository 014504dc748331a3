"""One attempt, as it went: its start-up, its loop, what ended it, and what it told."""

from dataclasses import dataclass
from typing import NamedTuple

from ettwatch_sim.life.charge import Span
from ettwatch_sim.life.dice import US
from ettwatch_sim.life.faults import Fault
from ettwatch_sim.life.loop import FIRST_STEP, SAVE, Loop
from ettwatch_sim.life.once import once
from ettwatch_sim.life.order import Order
from ettwatch_sim.life.startup import Startup


class Durable(NamedTuple):
    """A checkpoint that is safe: since when, with which position, begun when, and whether it was uploaded apart."""

    ts: int
    position: int
    started: int
    blocked_until: int


@dataclass(frozen=True)
class Attempt:
    """An attempt that is over. Times in µs, positions in samples.

    Attributes:
        order: Its job.
        number: From 0.
        since: From when on the job waited for it: its T0, or the end of the attempt before.
        queued: When it was put into the queue.
        start: When it had its hardware.
        trigger: Why it was started.
        hosts: Their names; that of rank 0 first.
        slow: The one that is slow.
        cached: Whether it found compiled code.
        position: Where it resumed.
        passed: The highest position that attempts before it had reached.
        startup: Its start-up, had nothing disturbed it.
        loop: Its loop, had nothing disturbed it.
        shutdown: What it would do after the loop.
        fault: What ended it; None where it ended by itself.
    """

    order: Order
    number: int
    since: int
    queued: int
    start: int
    trigger: str
    hosts: tuple[str, ...]
    slow: str | None
    cached: bool
    position: int
    passed: int
    startup: Startup
    loop: Loop
    shutdown: tuple[tuple[str, int], ...]
    fault: Fault | None

    @property
    def gpus(self) -> int:
        """GPUs that it held."""
        return self.order.model.gpus

    @property
    def outcome(self) -> str:
        """How it ended."""
        return self.fault.outcome if self.fault else "succeeded"

    @property
    def failed(self) -> bool:
        """Whether it counts as a failure."""
        return self.outcome in ("failed", "preempted")

    @once
    def frozen(self) -> int:
        """From when on nothing moved."""
        if self.fault is None:
            assert self.loop.end is not None
            return self.loop.end
        first = self.startup.first_batch
        if first <= self.fault.ts <= first + FIRST_STEP:  # the first step is not cut in two
            return first + FIRST_STEP + 1
        return max(self.start + 1, self.fault.ts)

    @once
    def trained(self) -> bool:
        """Whether it came to new data."""
        return self.frozen > self.startup.first_batch

    @once
    def released(self) -> int:
        """When its hardware was released."""
        if self.fault is None:
            return self.frozen + sum(length for _, length in self.shutdown) + US
        return max(self.fault.end, self.frozen + 1)

    @once
    def end(self) -> int:
        """When it ended as far as anybody tells: where nobody does, with its last event."""
        if self.fault is None or self.fault.told or not self.trained:
            return self.released
        told = [self.reports_until, *(d.ts for d in self.durables)]
        for i, start in enumerate(self.loop.starts):
            told += [t for t in (start, self.loop.ends[i]) if t <= self.frozen]
        return max(told)

    @property
    def told(self) -> bool:
        """Whether anybody tells of its end."""
        return self.fault is None or self.fault.told or not self.trained

    @once
    def heard_until(self) -> int:
        """Until when (not included) its process could speak."""
        if self.fault is None or self.fault.how == "stuck":
            return self.released
        return self.frozen + 1

    @once
    def reports_until(self) -> int:
        """The last report of its loop, whether the position rose or not."""
        first, every = self.startup.first_batch, self.loop.pace.report_every
        until = min(self.heard_until, self.released)
        if self.fault is None:
            return self.frozen
        if self.fault.how == "clean":
            return self.frozen
        last = first + (until - 1 - first) // every * every
        return max(last, first + FIRST_STEP)

    @once
    def last_advance(self) -> int:
        """The last report with new data, of an attempt that trained."""
        first, every, last = self.startup.first_batch, self.loop.pace.report_every, self.reports_until
        if self.fault is None:
            return last
        while last > first + FIRST_STEP:
            before = max(first + FIRST_STEP, first + (last - 1 - first) // every * every)
            if before >= last:
                break
            if self.position_at(last) > self.position_at(before):
                break
            last = before
        return last

    def position_at(self, ts: int) -> int:
        """Return the position that a report at `ts` would tell."""
        return self.loop.position_at(min(ts, self.frozen))

    @once
    def reached(self) -> int:
        """The highest position that was told."""
        return self.position_at(self.last_advance) if self.trained else self.position

    @once
    def interruption(self) -> int:
        """From when on the time belongs to the next attempt."""
        return self.last_advance if self.failed and self.trained else self.end

    @once
    def durables(self) -> tuple[Durable, ...]:
        """Its checkpoints that became safe in the loop."""
        found: list[Durable] = []
        loop, ready = self.loop, 0
        if not self.trained:
            return ()
        for i, kind in enumerate(loop.kinds):
            blocked = loop.ends[i]
            if blocked > self.frozen:
                break
            if kind == SAVE:
                upload = self.upload(i)
                ready = max(ready, blocked) + upload if upload else blocked
                if ready <= self.frozen:
                    found.append(Durable(ready, loop.position_after(loop.offsets[i]), loop.starts[i], blocked))
        return tuple(found)

    def upload(self, pause: int) -> int:
        """How long (µs) the upload after a pause takes: as much longer or shorter as the pause itself."""
        loop = self.loop
        pace = loop.pace
        return pace.upload * (loop.ends[pause] - loop.starts[pause]) // pace.save if pace.save else pace.upload

    @once
    def spans(self) -> tuple[Span, ...]:
        """The phases of its start-up; what was open when it died stays open to its end, unless somebody ends it."""
        if self.trained:
            return self.startup.spans
        return tuple(
            span._replace(end=self.open_until(span.source), lag=0) if span.end > self.frozen else span
            for span in self.startup.spans
            if span.start < self.frozen
        )

    def open_until(self, source: str) -> int:
        """When what is open at the death of the attempt ends: a trainer that can still speak ends its phases."""
        clean = self.fault is not None and self.fault.how == "clean" and source == "trainer"
        return self.frozen if clean else self.end

    @property
    def resume(self) -> int:
        """The position from which the next attempt goes on."""
        return self.durables[-1].position if self.durables else self.position
