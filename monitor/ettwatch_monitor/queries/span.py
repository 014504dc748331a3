"""The time that is asked for, in whole hours, and the rows of the rollups that hold it."""

from dataclasses import dataclass
from typing import Final, Self

__all__ = ["DAY_US", "HOUR_US", "WEEK_US", "Span", "SpanError", "week_of"]

HOUR_US: Final = 3_600_000_000
DAY_US: Final = 24 * HOUR_US
WEEK_US: Final = 7 * DAY_US
_MONDAY: Final = 4 * DAY_US
"""The first Monday after the epoch."""
_LONGEST: Final = 3_660 * DAY_US
_LATEST: Final = 4_000_000_000_000_000


class SpanError(ValueError):
    """No span of time. One line that says why."""


@dataclass(frozen=True, slots=True)
class Span:
    """Whole hours from `start` until before `end`; both in µs since the Unix epoch.

    Raises SpanError where it is empty, or longer than ten years.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start % HOUR_US or self.end % HOUR_US or not 0 <= self.start < self.end <= _LATEST:
            raise SpanError("the time must end after it begins, and both must be in this age, in µs since the epoch")
        if self.end - self.start > _LONGEST:
            raise SpanError("the time is longer than ten years; ask for less")

    @classmethod
    def around(cls, start: int, end: int) -> Self:
        """Return the whole hours in which a time lies, whatever its ends. Raises SpanError."""
        if start >= end:
            raise SpanError("the time must end after it begins")
        return cls(start - start % HOUR_US, end + -end % HOUR_US)

    @property
    def before(self) -> "Span | None":
        """The span of equal length before it; None where that would begin before the epoch."""
        start = 2 * self.start - self.end
        return Span(start, self.start) if start >= 0 else None

    @property
    def step(self) -> int:
        """How long (µs) a point of a chart is: an hour up to four days, a day up to half a year, else a week."""
        length = self.end - self.start
        return HOUR_US if length <= 4 * DAY_US else DAY_US if length <= 184 * DAY_US else WEEK_US

    def days(self) -> "tuple[int, int] | None":
        """Return the whole days in it, as (begin, end); None where there is none."""
        first, last = self.start + -self.start % DAY_US, self.end - self.end % DAY_US
        return (first, last) if first < last else None


def week_of(at: int) -> int:
    """Return the begin (µs) of the week, a Monday in UTC, in which a time lies."""
    return at - (at - _MONDAY) % WEEK_US
