"""The training loop of an attempt: free running, cut by pauses; and where it stands at any time."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ettwatch_sim.life.dice import SPREAD, US

SAVE: Final = "wasted_training.checkpoint_save"
EVALUATION: Final = "wasted_training.evaluation"
RECOMPILE: Final = "pt2_compilation.recompile"
FIRST_STEP: Final = 2 * US
"""After how long (µs) the first step is told."""
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Pace:
    """How a loop runs. Times in µs.

    Attributes:
        rate: Samples per second of undisturbed training.
        stall: Millionths of free running that wait for data.
        save_every: Free running between two saves.
        save: How long a save blocks, before spread and injections.
        upload: How long its upload takes after that; 0 where it is part of the block.
        evaluate_every: Free running between two evaluations; 0 is never.
        evaluate: How long one takes.
        recompiles: At which points of free running it compiles again, rising.
        recompile: How long that takes.
        report_every: Between two reports.
        luck: Where in the table of factors this attempt begins.
    """

    rate: int
    stall: int
    save_every: int
    save: int
    upload: int
    evaluate_every: int
    evaluate: int
    recompiles: tuple[int, ...]
    recompile: int
    report_every: int
    luck: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that nothing disturbs, up to its end or as far as it was looked at. Times in µs.

    Attributes:
        begin: The first batch.
        position: The position (samples) that it resumes from.
        pace: How it runs.
        offsets: Free running done when each pause begins.
        starts: When each pause begins.
        ends: ... and ends.
        kinds: ... and what it is.
        end: When the work is done; None where it was not looked so far ahead.
        total: Free running until then.
    """

    begin: int
    position: int
    pace: Pace
    offsets: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]
    kinds: Sequence[str]
    end: int | None
    total: int

    def free_at(self, ts: int) -> int:
        """Free running done by `ts`."""
        i = bisect_right(self.starts, ts) - 1
        if i < 0:
            return max(0, ts - self.begin)
        return self.offsets[i] + max(0, ts - self.ends[i])

    def waited(self, free: int) -> int:
        """Waited for data in that much free running."""
        return free * self.pace.stall // _MILLION

    def position_after(self, free: int) -> int:
        """Return the position (samples) after that much free running."""
        return self.position + (free - self.waited(free)) * self.pace.rate // US

    def position_at(self, ts: int) -> int:
        """Return the position (samples) at `ts`."""
        return self.position_after(self.free_at(ts))

    def open_pause(self, ts: int) -> int | None:
        """Return the number of the pause that is open at `ts`."""
        i = bisect_right(self.starts, ts) - 1
        return i if i >= 0 and self.starts[i] < ts < self.ends[i] else None


def run(
    begin: int, position: int, target: int, pace: Pace, stop: int | None, factor: Callable[[str, int], float]
) -> Loop:
    """Lay out a loop from `position` to `target` (samples).

    Args:
        begin: The first batch.
        position: Where it resumes.
        target: Where the work is done.
        pace: How it runs.
        stop: A time after which nothing has to be known.
        factor: Factor of a kind of pause that begins at a time (injections).
    """
    total = _needed(position, target, pace)
    offsets: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    kinds: list[str] = []
    next_save = pace.save_every
    next_evaluation = pace.evaluate_every or total
    recompiles = iter(pace.recompiles)
    next_recompile = next(recompiles, total)
    shift = begin
    n = pace.luck
    while True:
        at = min(next_save, next_evaluation, next_recompile)
        if at >= total:
            break
        start = at + shift
        if stop is not None and start >= stop:
            return Loop(begin, position, pace, offsets, starts, ends, kinds, None, total)
        if at == next_recompile:
            kind, length, next_recompile = RECOMPILE, pace.recompile, next(recompiles, total)
        elif at == next_save:
            kind, length, next_save = SAVE, pace.save, at + pace.save_every
        else:
            kind, length, next_evaluation = EVALUATION, pace.evaluate, at + pace.evaluate_every
        n += 1
        took = max(1, int(length * SPREAD[n % 251] * factor(kind, start)))
        offsets.append(at)
        starts.append(start)
        ends.append(start + took)
        kinds.append(kind)
        shift += took
    end = total + shift
    return Loop(begin, position, pace, offsets, starts, ends, kinds, end, total)


def _needed(position: int, target: int, pace: Pace) -> int:
    """Free running (µs) that brings the position to `target`."""
    productive = -(-max(1, target - position) * US // pace.rate)
    return max(FIRST_STEP + US, -(-productive * _MILLION // (_MILLION - pace.stall)) + 1)
