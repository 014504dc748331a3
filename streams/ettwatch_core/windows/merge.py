"""Stage 2: the sums of some dimensions over all partitions of the jobs, and the windows made of them. Pure.

A part that comes replaces what its source told of the bucket before, so the same part may come any number of times.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ettwatch_core.windows.amounts import LIVE, Amounts, add, coarser, total
from ettwatch_core.windows.dims import Dim
from ettwatch_core.windows.figures import window_of
from ettwatch_core.windows.parts import Clock, Part, Told
from ettwatch_core.windows.sheet import Sheet
from ettwatch_core.windows.sizes import HOUR, Size, Sizes
from ettwatch_schemas import Window

__all__ = ["Ends", "Merger"]

Ends: TypeAlias = dict[Dim, dict[str, dict[int, bool]]]
"""Ends of windows (minutes) by dimension and name of the size, each with whether it is told even if it is empty."""

_WARM: Final = 2
_EPOCH_BITS: Final = 40
_MINUTE_US: Final = 60_000_000


class Merger:
    """The windows of one partition of dimensions. Told the time, in minutes since the Unix epoch.

    Args:
        sizes: The windows.
        sources: How many partitions of the jobs there are.
        epoch: Of the owner; versions of a later owner are greater.
    """

    def __init__(self, sizes: Sizes, sources: int, epoch: int) -> None:
        self.sizes = sizes
        self.sources = sources
        self.clocks: dict[int, tuple[int, Clock]] = {}
        """Scope source: the epoch of its owner, and how far it is."""
        self.sheets: dict[Dim, dict[int, Sheet]] = {}
        self.sums: dict[Dim, Sheet] = {}
        self.due: Ends = {}
        """Windows that have to be published, or published anew."""
        self.upto: dict[str, int] = {}
        """Scope size: the last end that was due."""
        self.unheard: dict[str, set[int]] = {}
        """Scope size: ends that were due before all sources had told everything."""
        self.refused = 0
        """Parts that were no use: of an earlier owner, of other windows, or with buckets that are long gone."""
        self.clock = 0
        self._epoch = epoch
        self._number = 0
        self._advanced = False

    # What sources tell

    def take(self, told: Told) -> None:
        """Take a record."""
        epoch, clock = self.clocks.get(told.source, (0, Clock(0, 0)))
        if told.epoch < epoch or told.layout != self.sizes.layout:
            self.refused += max(1, len(told.parts))
            return
        self.clocks[told.source] = told.epoch, clock
        for part in told.parts:
            self._take_part(told.source, clock.now, part)
        if told.clock is not None:
            later = Clock(max(clock.told, told.clock.told), max(clock.now, told.clock.now))
            self.clocks[told.source] = told.epoch, later
            if later.now > clock.now:
                self._turn(told.source, later.now)

    def _take_part(self, source: int, now: int, part: Part) -> None:
        dim, hour, minutes = part.dim, part.hour, part.minutes
        least = self.sizes.resolution(hour, max(self.clock, now))
        if least is None:
            return
        sheet = self.sheets.setdefault(dim, {}).setdefault(source, Sheet())
        if (sheet.minutes(hour) or minutes) > minutes:
            self.refused += 1  # a part of a bucket cannot be exchanged
            return
        sheet.coarsen(hour, minutes)
        sums = self.sums.setdefault(dim, Sheet())
        sums.coarsen(hour, max(least, minutes))
        for at, amounts in part.buckets.items():
            before = sheet.put(hour, minutes, at, amounts)
            if before == amounts:
                continue
            more: Amounts = dict(amounts)
            add(more, before, -1)
            width = sums.minutes(hour) or max(least, minutes)
            sums.change(hour, width, coarser({at: more}, width))
            self._touch(dim, hour * HOUR + at, minutes)

    def _touch(self, dim: Dim, begin: int, minutes: int) -> None:
        """Have the windows that were due and hold a bucket published anew; also those that end where it begins."""
        for size in self.sizes.all:
            upto = self.upto.get(size.name)
            if upto is None:
                continue
            first = size.first_end(max(begin, upto - self.sizes.correct))
            last = size.last_end(min(upto, begin + minutes - 1 + size.length))
            if first <= last:
                ends = self.due.setdefault(dim, {}).setdefault(size.name, {})
                ends.update(dict.fromkeys(range(first, last + 1, size.step), True))

    def _turn(self, source: int, now: int) -> None:
        for of_dim in self.sheets.values():
            sheet = of_dim.get(source)
            if sheet is not None:
                for hour in sheet.hours():
                    sheet.coarsen(hour, self.sizes.resolution(hour, now))
                sheet.cool(now // HOUR - _WARM)
                if not sheet:
                    del of_dim[source]
        if now <= self.clock:
            return
        self.clock = now
        for dim, sums in list(self.sums.items()):
            for hour in sums.hours():
                sums.coarsen(hour, self.sizes.resolution(hour, now))
            sums.cool(now // HOUR - _WARM)
            if not sums and not self.sheets.get(dim):
                self.sheets.pop(dim, None)
                del self.sums[dim]

    def sum_up(self) -> None:
        """Make the sums anew from those of the sources."""
        self.sums = {}
        for dim, of_dim in self.sheets.items():
            sums = self.sums[dim] = Sheet()
            for sheet in of_dim.values():
                for hour in sheet.hours():
                    width = self.sizes.resolution(hour, self.clock)
                    if width is not None:
                        width = max(width, sheet.minutes(hour) or 1, sums.minutes(hour) or 1)
                        sums.coarsen(hour, width)
                        sums.change(hour, width, coarser(sheet.buckets(hour), width))

    # Windows

    def heard(self, end: int) -> int:
        """Return how many sources have told everything up to an end."""
        return sum(clock.told >= end for _, clock in self.clocks.values())

    def advance(self, now: int) -> None:
        """Make the windows due that have ended by now (minutes), those that were there before and got complete, too."""
        for size in self.sizes.all:
            upto = size.last_end(now)
            before = self.upto.get(size.name, upto - self.sizes.correct - size.step)
            unheard = self.unheard.setdefault(size.name, set())
            complete = {end for end in unheard if self.heard(end) >= self.sources}
            new = set(range(size.first_end(max(before + 1, upto - self.sizes.correct)), upto + 1, size.step))
            unheard -= complete
            unheard |= {end for end in new if self.heard(end) < self.sources}
            unheard -= {end for end in unheard if end < upto - self.sizes.correct}
            for dim in self.sums if new or complete else ():
                ends = self.due.setdefault(dim, {}).setdefault(size.name, {})
                for end in new | complete:
                    # What is empty is not told, but an owner before may have told it when it was not.
                    ends[end] = ends.get(end, False) or not self._advanced
            self.upto[size.name] = max(before, upto)
        self._advanced = True

    def publish(self, now_us: int, go_on: Callable[[], bool]) -> list[Window]:
        """Return the windows that are due.

        Args:
            now_us: The clock (µs).
            go_on: Asked before each dimension; what is left over is told next time.
        """
        out: list[Window] = []
        for dim in list(self.due):
            if not go_on():
                break
            out += self._windows(dim, self.due.pop(dim), now_us)
        return out

    def _windows(self, dim: Dim, due: dict[str, dict[int, bool]], now_us: int) -> Iterator[Window]:
        reader = _Reader(self.sums.get(dim) or Sheet())
        for size in self.sizes.all:
            for end, must in sorted(due.get(size.name, {}).items()):
                amounts, live = reader.within(size, end), reader.live(end)
                if not (amounts or live or must):
                    continue
                version = self._epoch << _EPOCH_BITS | self._number
                self._number += 1
                yield window_of(
                    *(dim, size, end, amounts, live),
                    version=version,
                    as_of=now_us,
                    heard=self.heard(end),
                    parts=self.sources,
                )


class _Reader:
    """Reads sums; whole hours are summed up once."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._hours: dict[int, Amounts] = {}

    def within(self, size: Size, end: int) -> Amounts:
        """Return the sums of a window."""
        begin = end - size.length
        parts: list[Amounts] = []
        for hour in range(begin // HOUR, -(-end // HOUR)):
            zero = hour * HOUR
            if begin <= zero and zero + HOUR <= end:
                parts.append(self._hour(hour))
            else:
                parts += [a for at, a in self._sheet.buckets(hour).items() if begin <= zero + at < end]
        return total(parts, lambda name: name[0] != LIVE)

    def live(self, end: int) -> Amounts:
        """Return how jobs stood at the end."""
        amounts = self._sheet.buckets(end // HOUR).get(end % HOUR, {})
        return {name: amount for name, amount in amounts.items() if name[0] == LIVE}

    def _hour(self, hour: int) -> Amounts:
        known = self._hours.get(hour)
        if known is None:
            known = self._hours[hour] = total(self._sheet.buckets(hour).values())
        return known
