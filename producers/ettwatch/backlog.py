"""What could not be written yet: a bounded queue that sheds the least telling events first."""

from collections import deque
from itertools import islice


class Backlog:
    """Lines in the order in which they came, at most `limit` of them.

    When it is full the oldest progress or heartbeat is dropped, and only where there is none the oldest boundary
    event; `dropped` counts both.
    """

    __slots__ = ("_boundary", "_count", "_limit", "_passing", "dropped", "filled")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._boundary: deque[tuple[int, bytes]] = deque()
        self._passing: deque[tuple[int, bytes]] = deque()
        self.dropped = 0
        self.filled = False
        """Whether there is any line: what every event has to ask."""

    def __len__(self) -> int:
        return len(self._boundary) + len(self._passing)

    @property
    def is_pressed(self) -> bool:
        """Whether the next line would cost a boundary event."""
        return not self._passing and len(self._boundary) >= self._limit

    def push(self, line: bytes, boundary: bool) -> int:
        """Add a line and return how many were dropped for it; `boundary`: it is one of those that are dropped last."""
        self.filled = True
        self._count += 1
        (self._boundary if boundary else self._passing).append((self._count, line))
        if len(self) <= self._limit:
            return 0
        (self._passing or self._boundary).popleft()
        self.dropped += 1
        return 1

    def _first(self) -> deque[tuple[int, bytes]]:
        if not self._passing or (self._boundary and self._boundary[0] < self._passing[0]):
            return self._boundary
        return self._passing

    def peek(self) -> bytes:
        """Return the oldest line; IndexError if there is none."""
        return self._first()[0][1]

    def pop(self) -> None:
        """Take the oldest line away."""
        self._first().popleft()
        self.filled = bool(self._boundary or self._passing)

    def oldest(self, limit: int) -> list[tuple[int, bytes]]:
        """Return the oldest lines, at most `limit` of them, each with its number; they stay."""
        return sorted([*islice(self._boundary, limit), *islice(self._passing, limit)])[:limit]

    def discard(self, last: int) -> None:
        """Take away every line up to the one with this number."""
        for lines in (self._boundary, self._passing):
            while lines and lines[0][0] <= last:
                lines.popleft()
        self.filled = bool(self._boundary or self._passing)
