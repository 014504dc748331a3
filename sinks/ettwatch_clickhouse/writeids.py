"""Numbers for writes: they rise, also over restarts and small steps of the clock."""

from collections.abc import Callable

__all__ = ["WriteIds"]


class WriteIds:
    """Hands out write numbers: the time in microseconds, but always more than any number seen before.

    Args:
        clock: The time in seconds since the Unix epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> int:
        """Return a number that was never returned or seen."""
        self._last = max(self._last + 1, int(self._clock() * 1e6))
        return self._last

    def seen(self, number: int) -> None:
        """Take note of a number that was used by someone else."""
        self._last = max(self._last, number)
