"""Where a partition is read: which record comes next, and whether more wait to be read."""

from enum import Enum
from typing import Final

__all__ = ["Next", "Place"]

_AGAIN_S: Final = 2.0
_CAUGHT_UP_S: Final = 5.0
_STALLED_S: Final = 5.0


class Next(Enum):
    """What to do with a record that came."""

    TAKE = "take"
    SEEN = "seen"
    """It was taken before: records come twice after a rebalance."""
    SEEK = "seek"
    """Records before it are missing: read again from `Place.next`."""
    SKIP = "skip"
    """It was on its way when that was asked for; it will come again."""


class Place:
    """The place in one partition.

    Args:
        offset: Of the first record to take.
    """

    __slots__ = ("_caught_up_s", "_seek_s", "_sought", "_until", "_waits", "next", "stamp_s")

    def __init__(self, offset: int) -> None:
        self.next = offset
        self.stamp_s = 0.0
        self._sought: int | None = None
        self._seek_s = 0.0
        self._caught_up_s: float | None = None
        self._until: int | None = None
        self._waits = (-1, 0.0)

    def judge(self, offset: int, now_s: float) -> Next:
        """Say what to do with a record, and move on where it is taken."""
        if offset < self.next:
            return Next.SEEN
        if offset == self.next:
            self.next += 1
            return Next.TAKE
        # Lost on the way through the machinery, or there are none: the end of a transaction takes an offset as well.
        if self._sought == self.next and now_s - self._seek_s < _AGAIN_S:
            return Next.SKIP
        self._sought, self._seek_s = self.next, now_s
        return Next.SEEK

    def found(self, asked: int, first: int) -> None:
        """Take note that the first record from `asked` on is `first`: there are none between."""
        if self.next == asked and first > asked:
            self.next = self._sought = first

    def stalled(self, highwater: int | None, now_s: float) -> bool:
        """Tell, now and then, that a record should have come for a while: perhaps what is left holds none.

        Args:
            highwater: The next offset that will be written; None: not known yet.
            now_s: By a monotonic clock.
        """
        offset, since_s = self._waits
        waits = highwater is not None and highwater > self.next
        if waits and offset == self.next and now_s - since_s < _STALLED_S:
            return False
        self._waits = (self.next if waits else -1, now_s)
        return waits and offset == self.next

    def lag(self, highwater: int | None, clock_s: float) -> tuple[int, float]:
        """Return how many records wait to be read, and how long ago (s) the newest one that was read had arrived."""
        if highwater is None:
            return 0, 0.0
        lag = max(0, highwater - self.next)
        return lag, max(0.0, clock_s - self.stamp_s) if lag and self.stamp_s else 0.0

    def behind(self, highwater: int | None, clock_s: float, now_s: float) -> bool:
        """Tell whether records wait to be read, or may: until the brokers have said otherwise.

        Args:
            highwater: The next offset that will be written; None: not known yet.
            clock_s: The time.
            now_s: By a monotonic clock.
        """
        if highwater is not None:
            lag, delay_s = self.lag(highwater, clock_s)
            if self._until is None:
                # An owner before may have told of all that was there at the begin.
                self._until = highwater
            if self.next < self._until:
                return True
            if not lag or (self.stamp_s and delay_s < _CAUGHT_UP_S):
                self._caught_up_s = now_s
        return self._caught_up_s is None or now_s - self._caught_up_s > _CAUGHT_UP_S
