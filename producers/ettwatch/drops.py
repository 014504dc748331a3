"""Events that were given up, counted by the reason why."""

import threading
from typing import Final

from ettwatch.log import warn

REASONS: Final = {
    "queue_full": "more events waited in memory than ETTWATCH_QUEUE_EVENTS allows",
    "spool_full": "the events that wait for Kafka would take more room than ETTWATCH_SPOOL_MB allows",
    "refused": "the brokers take no event of that size",
    "damaged": "a line of the spool folder was no event",
    "exit": "the process ended while the spool folder could not be written",
}
"""Every reason for which an event is given up, and what it means."""


class Drops:
    """Counts by reason. Safe for threads and signal handlers."""

    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.RLock()

    def count(self, reason: str, count: int) -> int:
        """Count events that were dropped for one of `REASONS`, and return how many there are of it now."""
        with self._lock:
            total = self._counts[reason] = self._counts.get(reason, 0) + count
        return total

    def add(self, reason: str, count: int = 1) -> None:
        """Count them, and say so in the log, once in a while."""
        if count:
            warn(f"drop:{reason}", f"events are dropped ({self.count(reason, count)} so far): {REASONS[reason]}")

    def counts(self) -> dict[str, int]:
        """Return how many were dropped, by reason; reasons that never applied are left out."""
        with self._lock:
            return dict(self._counts)
