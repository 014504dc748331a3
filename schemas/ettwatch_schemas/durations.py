"""Durations and instants as a person types them on a command line, in whole microseconds."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from ettwatch_schemas.times import MAX_TS, MIN_TS

_UNITS = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(d|h|ms|m|us|s)")
_WHOLE = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:d|h|ms|m|us|s))+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_DIGITS = 40
_LONGEST = 100 * 365 * 86_400_000_000

# Between the bounds of the wire format a number of seconds, milliseconds or nanoseconds cannot be mistaken
# for one of microseconds.
_LOW, _HIGH = MIN_TS // 1_000_000, MAX_TS // 1_000_000 + 1
_OTHER_UNITS = (
    (_LOW, _HIGH, "seconds", "multiply by 1000000"),
    (_LOW * 1_000, _HIGH * 1_000, "milliseconds", "multiply by 1000"),
    (_LOW * 1_000_000_000, _HIGH * 1_000_000_000, "nanoseconds", "divide by 1000"),
)


def parse_duration(text: str) -> int:
    """Read `6h`, `90m`, `300s`, `1h30m`, `1.5h` or a bare number of seconds; give microseconds.

    Raises ValueError, with what to write instead, for anything else and for more than 100 years.
    """
    short = text.strip().lower()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", short):
        short += "s"
    if not _WHOLE.fullmatch(short):
        raise ValueError(
            f"{_shown(text)} is no duration; write it like 6h, 90m, 300s or 1h30m (a bare number is seconds)"
        )
    total = sum(Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(short))
    if total > _LONGEST:
        raise ValueError(f"{_shown(text)} is more than 100 years; write it like 6h, 90m or 300s")
    return int(total)


def parse_instant(text: str) -> int:
    """Read microseconds since the epoch or an RFC 3339 time with its zone; give microseconds since the epoch.

    Raises ValueError, naming the unit or the missing zone, for anything else.
    """
    short = text.strip()
    if re.fullmatch(r"[+-]?[0-9]+", short):
        if len(short) > _MOST_DIGITS:
            raise ValueError(f"{_shown(text)} is no time from 2000 to 2199 in microseconds since the Unix epoch")
        return _from_number(int(short))
    try:
        moment = datetime.fromisoformat(short)
    except ValueError:
        raise ValueError(
            f"{_shown(text)} is no time; give microseconds since the Unix epoch, "
            "or RFC 3339 such as 2026-09-21T14:13:20Z"
        ) from None
    if moment.tzinfo is None:
        raise ValueError(f"{_shown(text)} has no time zone; add Z for UTC or an offset such as +02:00")
    return _from_number((moment - _EPOCH) // _MICROSECOND)


def _shown(text: str) -> str:
    """The text in quotes, cut where it is longer than a message should be."""
    return repr(text if len(text) <= _MOST_DIGITS else f"{text[:_MOST_DIGITS]}…")


def _from_number(value: int) -> int:
    for low, high, unit, cure in _OTHER_UNITS:
        if low <= value < high:
            raise ValueError(f"{value} is in {unit}; give microseconds since the Unix epoch ({cure})")
    if not MIN_TS <= value <= MAX_TS:
        raise ValueError(f"{value} is no time from 2000 to 2199 in microseconds since the Unix epoch")
    return value
