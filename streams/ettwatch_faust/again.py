"""Which jobs have to be told of once more some time after a take-over."""

from collections.abc import Iterable

__all__ = ["Again"]


class Again:
    """Jobs that were told of since a take-over, until it is time to tell of them once more, whole.

    An owner before may have stood still while it sent, and have told since of rows that were never told here, and so
    are never taken back. By that time it has said its last.

    Args:
        after_us: How long after the take-over (µs).
    """

    __slots__ = ("_after_us", "_jobs", "_time_us")

    def __init__(self, after_us: int) -> None:
        self._after_us = after_us
        self._time_us: int | None = None
        self._jobs: set[str] | None = set()

    def begin(self, now_us: int) -> None:
        """Count from now on, if it is not done yet."""
        if self._time_us is None:
            self._time_us = now_us + self._after_us

    def told(self, job: str) -> None:
        """Take note that a job was told of."""
        if self._jobs is not None:
            self._jobs.add(job)

    def due(self, now_us: int) -> Iterable[str]:
        """Return the jobs, once, when it is time."""
        if self._jobs is None or self._time_us is None or now_us < self._time_us:
            return ()
        jobs, self._jobs = self._jobs, None
        return jobs
