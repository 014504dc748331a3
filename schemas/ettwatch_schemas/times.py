"""Times on the wire: integer microseconds since the Unix epoch, UTC, and how other units are told."""

from typing import Final

MIN_TS: Final = 946_684_800_000_000
"""The earliest time, in microseconds: 2000-01-01T00:00:00Z."""

MAX_TS: Final = 7_258_118_399_999_999
"""The latest time, in microseconds: the last one before 2200-01-01T00:00:00Z."""

TIME_FIX: Final = "send integer microseconds since the Unix epoch, UTC"

# (unit, how many make a microsecond, microseconds it lasts, what to do). The bounds are narrow enough that a
# number is a time in one unit at most: each range ends at 7.7 times its begin, and the units are 1000 apart.
_UNITS: Final = (
    ("seconds", 1, 1_000_000, "multiply by 1000000"),
    ("milliseconds", 1, 1_000, "multiply by 1000"),
    ("nanoseconds", 1_000, 1, "divide by 1000, rounding down"),
)


def wrong_unit(value: float) -> tuple[str, str] | None:
    """Return (unit, remedy) where `value` is a time in seconds, milliseconds or nanoseconds, else None."""
    for unit, per_microsecond, microseconds, remedy in _UNITS:
        if MIN_TS * per_microsecond <= value * microseconds <= MAX_TS * per_microsecond:
            return unit, remedy
    return None
