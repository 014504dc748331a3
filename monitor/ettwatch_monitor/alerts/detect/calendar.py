"""The week as people live it: hours of a named time zone, so that a change of clocks moves nothing."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["BINS", "DAY_US", "HOUR_US", "WEEK_BLOCKS", "Calendar"]

HOUR_US: Final = 3_600_000_000
DAY_US: Final = 24 * HOUR_US
WEEK_BLOCKS: Final = 8
"""Blocks of three hours that a day is cut into."""
BINS: Final = 7 * WEEK_BLOCKS
"""Bins of a week: (weekday, block)."""

_QUARTER_US: Final = HOUR_US // 4
"""All zones are off by whole quarters of an hour: all instants of one share their bin."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Calendar:
    """Bins and weeks of one time zone. Times are microseconds since the epoch, UTC.

    A week is not 168 hours when the clocks change. Bins are taken from the local weekday and hour, never by counting
    hours back, and weeks begin on the local Monday at midnight.

    Args:
        zone: Name of the zone, such as ``Europe/Berlin``.

    Raises:
        ValueError: There is no such zone.
    """

    def __init__(self, zone: str = "UTC") -> None:
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no time zone {zone!r}; give one such as UTC or Europe/Berlin") from None
        self.zone = zone
        self._place = lru_cache(maxsize=1 << 16)(self._find)

    def bin(self, ts: int) -> int:
        """Return the bin of the week that an instant falls into, 0 to BINS - 1."""
        return self._place(ts // _QUARTER_US)[0]

    def week(self, ts: int) -> int:
        """Return when the local week of an instant began."""
        return self._place(ts // _QUARTER_US)[1]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, zone: str) -> "Calendar":
        """Return the calendar of a zone, the same each time: what it has worked out is kept. Raises ValueError."""
        return cls(zone)

    def _find(self, quarter: int) -> tuple[int, int]:
        local = (_EPOCH + timedelta(microseconds=quarter * _QUARTER_US)).astimezone(self._zone)
        monday = (local - timedelta(days=local.weekday())).date()
        # Built from the date, not by going back from the hour: midnight may be 167 or 169 hours ago.
        start = datetime(monday.year, monday.month, monday.day, tzinfo=self._zone)
        block = local.hour * WEEK_BLOCKS // 24
        return local.weekday() * WEEK_BLOCKS + block, (start - _EPOCH) // timedelta(microseconds=1)
