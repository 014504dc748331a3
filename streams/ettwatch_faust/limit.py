"""The limit of dead letters: where too much is refused, going on would hide a fault of the producers."""

from collections import deque
from typing import Final

from ettwatch_schemas import DeadLetter

__all__ = ["DeadLetterLimit", "Stopped"]

_WINDOW: Final = 1_000


class Stopped(Exception):
    """The worker must not go on. One line that says why and what to do."""


class DeadLetterLimit:
    """Counts the records of which something was refused, among the last 1,000.

    Args:
        most: So many may be, and no more; 0 for no limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._window: deque[bool] = deque(maxlen=_WINDOW)
        self._bad = 0

    def count(self, letters: list[DeadLetter]) -> None:
        """Count one record. Raises Stopped."""
        bad = bool(letters)
        if len(self._window) == _WINDOW:
            self._bad -= self._window[0]
        self._window.append(bad)
        self._bad += bad
        if bad and self._most and self._bad >= self._most:
            last = letters[-1]
            raise Stopped(
                f"{self._bad} of the last {len(self._window)} records were refused, the last one for {last.code} "
                f"({last.reason[:200]}); nothing since the last commit was taken: correct the producers, or raise "
                "--dlq-limit (0: no limit) to go on"
            )
