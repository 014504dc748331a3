"""What became of the time of an attempt: every microsecond has its stage, as the published rules say."""

from collections.abc import Iterator
from typing import Final

from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.charge import Piece, add, charge
from ettwatch_sim.life.dice import HOUR, US
from ettwatch_sim.life.loop import FIRST_STEP
from ettwatch_sim.life.once import once

EFFECTIVE: Final = "effective_training"
_REWORK: Final = "wasted_training.rework"
_STALL: Final = "wasted_training.data_stall"
_HANG_US: Final = 300 * US
"""From when on (µs) time without new data is a hang, where reports come more often than a third of it."""


class Account:
    """The time of one attempt."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt

    @once
    def opening(self) -> list[Piece]:
        """From its start to the first batch, or to its end if it never trained."""
        boot = next(
            (s.start for s in self.attempt.spans if s.phase.startswith(("trainer_init", "pt2_"))), self.attempt.end
        )
        return charge(
            self.attempt.spans,
            self.attempt.start,
            self.attempt.startup.first_batch if self.attempt.trained else self.attempt.end,
            boot,
        )

    @once
    def loop_hours(self) -> list[tuple[int, dict[str, int]]]:
        """What the time (µs) from the first batch to the last advance was, by the beginning of each hour."""
        loop = self.attempt.loop
        starts, ends, kinds = loop.starts, loop.ends, loop.kinds
        hours = []
        at, end = self.attempt.startup.first_batch, min(self.attempt.last_advance, self.attempt.frozen)
        free = waited = rework = i = 0
        while at < end:
            hour = at // HOUR * HOUR
            until = min(end, hour + HOUR)
            stages: dict[str, int] = {}
            paused = 0
            while i < len(starts) and starts[i] < until:
                length = min(ends[i], until) - max(starts[i], at)
                stages[kinds[i]] = stages.get(kinds[i], 0) + length
                paused += length
                if ends[i] > until:
                    break
                i += 1
            free += until - at - paused
            before, waited = waited, loop.waited(free)
            stages[_STALL] = waited - before
            before, rework = rework, self._rework(free)
            stages[_REWORK] = rework - before
            stages[EFFECTIVE] = until - at - paused - stages[_STALL] - stages[_REWORK]
            hours.append((hour, stages))
            at = until
        for start, until, stage in self._stretched:
            hours.append((start // HOUR * HOUR, {stage: until - start}))
        return hours

    @property
    def stretch(self) -> int:
        """Time (µs) in which nothing moved any more, but which the last report with new data covers."""
        still = max(0, self.attempt.last_advance - self.attempt.frozen)
        return still if self.attempt.loop.open_pause(self.attempt.frozen) is None else 0

    @once
    def last_gap(self) -> tuple[int, int]:
        """The positions between the last two reports."""
        first, every = self.attempt.startup.first_batch, self.attempt.loop.pace.report_every
        before = max(first + FIRST_STEP, first + (self.attempt.last_advance - 1 - first) // every * every)
        low = self.attempt.position if before >= self.attempt.last_advance else self.attempt.position_at(before)
        return low, self.attempt.reached

    @property
    def _stretched(self) -> list[Piece]:
        """What lies between the death and the last report with new data."""
        start, end = self.attempt.frozen, self.attempt.last_advance
        if start >= end:
            return []
        pause = self.attempt.loop.open_pause(start)
        if pause is not None:
            return [Piece(start, end, self.attempt.loop.kinds[pause])]
        low, high = self.last_gap
        cut = start + (end - start) * max(0, min(self.attempt.passed, high) - low) // (high - low)
        return [piece for piece in (Piece(start, cut, _REWORK), Piece(cut, end, EFFECTIVE)) if piece.end > piece.start]

    @property
    def unsaved(self) -> int:
        """In-loop time (µs) spent on positions above the one from which the job went on."""
        if not (self.attempt.failed and self.attempt.trained):
            return 0
        since = max(self.attempt.position, self.attempt.resume)
        low, high = self.last_gap
        above = max(0, high - max(low, since))
        return max(0, self.attempt.reached - since) * US // self.attempt.loop.pace.rate + self.stretch * above // (
            high - low
        )

    def _rework(self, free: int) -> int:
        """How much (µs) of so much free running went into positions that had been passed before."""
        if self.attempt.passed <= self.attempt.position:
            return 0
        again = min(self.attempt.passed, self.attempt.loop.position_after(free)) - self.attempt.position
        return min(again * US // self.attempt.loop.pace.rate, free - self.attempt.loop.waited(free))

    @once
    def closing(self) -> list[Piece]:
        """From the last advance to the end."""
        since, end = self.attempt.last_advance, self.attempt.end
        if self.attempt.fault is None:
            pieces, at = [], since
            for stage, length in self.attempt.shutdown:
                pieces.append(Piece(at, at + length, stage))
                at += length
            return [*pieces, Piece(at, end, "shutdown")]
        loop = self.attempt.loop
        pieces = []
        for start, stop, kind in zip(loop.starts, loop.ends, loop.kinds, strict=True):
            is_open = stop > self.attempt.frozen
            until = self.attempt.open_until("trainer") if is_open else stop
            if start >= self.attempt.frozen or until <= since:
                continue
            if is_open and until == end and start < since:
                continue  # nobody ended it, and new data was told since it began: it blocked nothing any more
            pieces.append(Piece(max(since, start), until, kind))
        free = end - since - sum(piece.end - piece.start for piece in pieces)
        limit = max(_HANG_US, 9 * loop.pace.report_every)
        stage = "shutdown" if self.attempt.outcome == "cancelled" else (
            "wasted_training.hang" if free > limit else "wasted_training.no_progress"
        )  # fmt: skip
        return list(_filled(pieces, since, end, stage))

    @once
    def waiting(self) -> list[Piece]:
        """From the end of what came before it to its start."""
        pieces = [
            Piece(self.attempt.since, self.attempt.queued, "scheduling"),
            Piece(self.attempt.queued, self.attempt.start, "scheduling.queue_wait"),
        ]
        return [piece for piece in pieces if piece.end > piece.start]

    @once
    def stages(self) -> dict[str, int]:
        """Its time by stage (µs), without the wait before it."""
        sums: dict[str, int] = {}
        add(sums, self.opening)
        if self.attempt.trained:
            for _, stages in self.loop_hours:
                for stage, length in stages.items():
                    sums[stage] = sums.get(stage, 0) + length
            add(sums, self.closing)
        return sums


def _filled(pieces: list[Piece], start: int, end: int, stage: str) -> Iterator[Piece]:
    at = start
    for piece in pieces:
        if piece.start > at:
            yield Piece(at, piece.start, stage)
        yield piece
        at = piece.end
    if at < end:
        yield Piece(at, end, stage)
