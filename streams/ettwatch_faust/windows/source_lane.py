"""One partition of the jobs in stage 1: takes records, and says what to send. Pure, told the time."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Final

from ettwatch_core.ownership import Owners
from ettwatch_core.windows import (
    MINUTE_US,
    Clock,
    Entry,
    Ledger,
    Part,
    Recovered,
    Sizes,
    Source,
    dump_source,
    load_source,
    partition_of,
    write_clock,
    write_parts,
)
from ettwatch_faust.sender import Out
from ettwatch_faust.topics import Names
from ettwatch_schemas import UpdateError, decode_attempts, decode_segments, decode_summary

__all__ = ["MOST_NOTES", "SourceLane"]

MOST_NOTES: Final = 48
"""Notes since the last snapshot with which the next one is due."""

_HOURS: Final = 12
"""Hours of one dimension in one record."""


class SourceLane:
    """Stage 1 of one partition.

    Args:
        names: The topics.
        partition: Which.
        sizes: The windows.
        owners: Who owns which stage.
        partitions: How many each topic has.
        wait_us: How long after its end a window is told first.
    """

    def __init__(
        self, names: Names, partition: int, sizes: Sizes, owners: Owners, partitions: int, wait_us: int
    ) -> None:
        self.partition = partition
        self.offsets: dict[str, int] = {}
        """Scope topic, where to go on; a topic that is not there is read from its begin."""
        self.bad = 0
        """Records that could not be read."""
        self._names = names
        self._sizes = sizes
        self._owners = owners
        self._partitions = partitions
        self._wait_us = wait_us
        self._source: Source
        self._ledger: Ledger
        self._told = 0
        self._forgot = 0
        self._begun = False

    # Taking over

    def claim(self, found: Recovered, generation: int, now_us: int) -> list[list[Out]]:
        """Say that this owner goes before all others; return what has to be sent, each list after the one before.

        After that what an owner before still tells counts for nothing. What it told until then it has noted before, so
        the state has to be read once more.

        Args:
            found: The state as it is.
            generation: Of the consumer group.
            now_us: The clock.
        """
        self._ledger = Ledger(1, max(generation, found.epoch + 1), found)
        clock = max(found.clock, now_us // MINUTE_US // 60 * 60)
        return [[self._state(self._ledger.note({}, clock))], list(self._clocks(Clock(0, 0)))]

    def begin(self, found: Recovered, now_us: int) -> None:
        """Go on from the state.

        Raises:
            ValueError, LookupError, TypeError: The state cannot be read.
        """
        now = max(now_us // MINUTE_US, found.clock)
        if found.lines is None or found.layout != self._sizes.layout:
            # Sums for other windows are no use: they are made anew of all that the topics have.
            self._source, self.offsets = Source(self._sizes, now, self._owners), {}
        else:
            self._source = load_source(found.lines, self._sizes, self._owners)
            self.offsets = dict(found.offsets)
            self._source.turn(now)
        for places in found.redo:
            self._source.redo(places)
        self._begun = True

    @property
    def epoch(self) -> int:
        """Of this owner."""
        return self._ledger.epoch

    @property
    def jobs(self) -> int:
        """How many jobs are in memory."""
        return len(self._source.jobs)

    @property
    def refused(self) -> int:
        """Messages that would have changed a job that left memory."""
        return self._source.refused

    # Records

    def take(self, topic: str, value: bytes | None, time_ms: int) -> None:
        """Take a record of one of the three topics."""
        if value is None:
            return
        now = time_ms * 1000 // MINUTE_US
        try:
            if topic == self._names.jobs:
                self._source.summary(decode_summary(value), now)
            elif topic == self._names.attempts:
                self._source.attempts(decode_attempts(value), now)
            else:
                self._source.segments(decode_segments(value), now)
        except UpdateError:
            self.bad += 1  # the sink reads the same record, and puts it to the dead letters

    def own(self, owners: Owners) -> None:
        """Have stages owned by others from now on."""
        self._owners = owners
        if self._begun:
            self._source.own(owners)

    # Telling

    def due(self, now_us: int) -> bool:
        """Tell whether another minute is over."""
        return (now_us - self._wait_us) // MINUTE_US > self._told

    def tell(self, now_us: int) -> list[list[Out]]:
        """Return what has to be sent, each list after the one before. All of it has to arrive."""
        self._told = (now_us - self._wait_us) // MINUTE_US
        now = now_us // MINUTE_US
        self._source.turn(now)
        if self._source.clock > self._forgot:
            self._forgot = self._source.clock
            self._source.forget(now)
        places = self._source.dirty()
        note = self._ledger.note(places, self._source.clock)
        outs = [*self._parts(self._source.tell(places)), *self._clocks(Clock(self._told, self._source.clock))]
        return [[self._state(note)], outs]

    @property
    def full(self) -> bool:
        """Whether so much is noted that a snapshot is due."""
        return self._ledger.notes >= MOST_NOTES

    def snapshot(self, offsets: Mapping[str, int]) -> list[list[Out]]:
        """Return the records of a snapshot, each list to be sent after the one before.

        Args:
            offsets: Scope topic, where to go on after it.
        """
        lists = self._ledger.snapshot(dump_source(self._source), self._sizes.layout, offsets)
        return [[self._state(entry) for entry in entries] for entries in lists]

    def _parts(self, parts: Iterable[Part]) -> Iterator[Out]:
        for dim, of_dim in groupby(parts, key=lambda part: part.dim):
            key, partition = f"{dim.scope}/{dim.name}".encode(), partition_of(dim, self._partitions)
            while some := list(islice(of_dim, _HOURS)):
                value = write_parts(self.partition, self.epoch, self._sizes.layout, some)
                yield Out(self._names.parts, partition, key, value)

    def _clocks(self, clock: Clock) -> Iterator[Out]:
        value = write_clock(self.partition, self.epoch, self._sizes.layout, clock)
        for partition in range(self._partitions):
            yield Out(self._names.parts, partition, None, value)

    def _state(self, entry: Entry) -> Out:
        return Out(self._names.windows_state, self.partition, entry.key, entry.value)
