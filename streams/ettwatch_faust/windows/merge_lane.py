"""One partition of dimensions in stage 2: takes parts, and says which windows to publish. Pure, told the time."""

from collections.abc import Callable, Mapping
from typing import Final

from ettwatch_core.windows import (
    MINUTE_US,
    BadPart,
    Entry,
    Ledger,
    Merger,
    Recovered,
    Sizes,
    dump_merger,
    load_merger,
    read_told,
)
from ettwatch_faust.sender import Out
from ettwatch_faust.topics import Names
from ettwatch_schemas import encode_window

__all__ = ["MergeLane"]

_PATIENCE_US: Final = 20_000_000
"""How long to wait for partitions of the jobs that have not told everything yet."""


class MergeLane:
    """Stage 2 of one partition.

    Args:
        names: The topics.
        partition: Which.
        sizes: The windows.
        partitions: How many each topic has.
        wait_us: How long after its end a window is told first.
    """

    def __init__(self, names: Names, partition: int, sizes: Sizes, partitions: int, wait_us: int) -> None:
        self.partition = partition
        self.offsets: dict[str, int] = {}
        """Scope topic, where to go on; a topic that is not there is read from its begin."""
        self.bad = 0
        """Records that could not be read."""
        self._names = names
        self._sizes = sizes
        self._partitions = partitions
        self._wait_us = wait_us
        self._merger: Merger
        self._ledger: Ledger
        self._upto = 0
        self._left = False

    def claim(self, found: Recovered, generation: int) -> list[list[Out]]:
        """Say that this owner goes before all others; return what has to be sent."""
        self._ledger = Ledger(2, max(generation, found.epoch + 1), found)
        return [[self._state(self._ledger.note({}, 0))]]

    def begin(self, found: Recovered) -> None:
        """Go on from the state.

        Raises:
            ValueError, LookupError, TypeError: The state cannot be read.
        """
        if found.lines is None or found.layout != self._sizes.layout:
            self._merger, self.offsets = Merger(self._sizes, self._partitions, self._ledger.epoch), {}
        else:
            self._merger = load_merger(found.lines, self._sizes, self._partitions, self._ledger.epoch)
            self.offsets = dict(found.offsets)

    @property
    def dims(self) -> int:
        """How many dimensions are in memory."""
        return len(self._merger.sums)

    @property
    def refused(self) -> int:
        """Parts that were no use."""
        return self._merger.refused

    def take(self, value: bytes | None) -> None:
        """Take a record of the parts."""
        if value is None:
            return
        try:
            self._merger.take(read_told(value))
        except BadPart:
            self.bad += 1

    def due(self, now_us: int) -> bool:
        """Tell whether windows can be published: all partitions have told their part, or that took too long."""
        if self._left:
            return True
        minute = (now_us - self._wait_us) // MINUTE_US
        if minute <= self._upto:
            return False
        late_us = now_us - self._wait_us - minute * MINUTE_US
        return late_us >= _PATIENCE_US or self._merger.heard(minute) >= self._partitions

    def tell(self, now_us: int, go_on: Callable[[], bool]) -> list[Out]:
        """Return windows to publish. All of them have to arrive.

        Args:
            now_us: The clock.
            go_on: Asked before each dimension; what is left over is told next time.
        """
        minute = (now_us - self._wait_us) // MINUTE_US
        if minute > self._upto:
            self._upto = minute
            self._merger.advance(minute)
        windows = self._merger.publish(now_us, go_on)
        self._left = bool(self._merger.due)
        return [
            Out(self._names.windows, self.partition, f"{window.scope}/{window.name}".encode(), encode_window(window))
            for window in windows
        ]

    def snapshot(self, offsets: Mapping[str, int]) -> list[list[Out]]:
        """Return the records of a snapshot, each list to be sent after the one before.

        Args:
            offsets: Scope topic, where to go on after it.
        """
        lists = self._ledger.snapshot(dump_merger(self._merger), self._sizes.layout, offsets)
        return [[self._state(entry) for entry in entries] for entries in lists]

    def _state(self, entry: Entry) -> Out:
        return Out(self._names.windows_state, self.partition, entry.key, entry.value)
