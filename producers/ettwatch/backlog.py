"""What could not be written yet: a bounded queue that sheds the least telling events first."""

from collections import deque


class Backlog:
    """Lines in the order in which they came, at most `limit` of them.

    When it is full the oldest progress or heartbeat is dropped, and only where there is none the oldest boundary
    event; `dropped` counts both.
    """

    __slots__ = ("_boundary", "_count", "_limit", "_passing", "dropped")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._boundary: deque[tuple[int, bytes]] = deque()
        self._passing: deque[tuple[int, bytes]] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._boundary) + len(self._passing)

    def push(self, line: bytes, boundary: bool) -> None:
        """Add a line; `boundary` tells whether it is one of those that are dropped last."""
        self._count += 1
        (self._boundary if boundary else self._passing).append((self._count, line))
        if len(self) > self._limit:
            (self._passing or self._boundary).popleft()
            self.dropped += 1

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
