"""Times of other tools to integer microseconds since the Unix epoch, UTC, exactly or not at all."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from ettwatch_schemas import MAX_TS, MIN_TS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PER_UNIT: Final = {
    "s": Decimal(1_000_000),
    "ms": Decimal(1_000),
    "us": Decimal(1),
    "ns": Decimal("0.001"),
}
UNITS: Final = tuple(_PER_UNIT)
"""The units of numbers that are times."""

_TEXT: Final = re.compile(
    r"(\d{4})[-/](\d{2})[-/](\d{2})[T _](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"\s*(Z|z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)


class NoTime(ValueError):
    """What should be a time is none. The message says what stood there and why it is none."""


class Zero(NoTime):
    """The time is zero, which such tools write where they know none."""


class Read(NamedTuple):
    """A time that was read, and the flags that reading it raised."""

    ts: int
    flags: tuple[str, ...] = ()


def from_number(value: object, unit: str) -> int:
    """Return a number of `unit` (s, ms, us, ns) since the epoch in microseconds, the nearest one.

    Raises NoTime where it is no number, zero, or not between the years 2000 and 2200.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise NoTime(f"{value!r} is no time")
    try:
        # Through its shortest decimal form: what was written, not what a float makes of it.
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise NoTime(f"{value!r} is no time in {unit}") from None
    if not number.is_finite():
        raise NoTime(f"{value!r} is no time in {unit}")
    if number == 0:
        raise Zero("the time is 0")
    return in_range(int((number * _PER_UNIT[unit]).to_integral_value()), value)


def duration(value: object, unit: str) -> int:
    """Return a length of time in microseconds. Raises NoTime where it is no number or negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise NoTime(f"{value!r} is no duration")
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise NoTime(f"{value!r} is no duration in {unit}") from None
    if not number.is_finite() or number < 0 or number > 10**15:
        raise NoTime(f"{value!r} is no duration in {unit}")
    return int((number * _PER_UNIT[unit]).to_integral_value())


def in_range(ts: int, shown: object) -> int:
    """Return `ts` if the wire can hold it. Raises NoTime otherwise."""
    if not MIN_TS <= ts <= MAX_TS:
        raise NoTime(f"{str(shown)[:60]!r} is no time between the years 2000 and 2200")
    return ts


def from_text(text: str, zone: tzinfo | None) -> Read:
    """Read `2025-06-20 19:13:25,465`, RFC 3339 and what lies between; a text without a zone is in `zone`, else UTC.

    Raises NoTime where it is no such time.
    """
    found = _TEXT.fullmatch(text.strip())
    if not found:
        raise NoTime(f"{text[:60]!r} is no time")
    year, month, day, hour, minute, second, fraction, told = found.groups()
    if year == "0000" or (year, month, day) in {("1970", "01", "01"), ("0001", "01", "01")}:
        raise Zero(f"{text[:60]!r} is the time zero")
    micro = int((fraction or "0").ljust(6, "0")[:6])
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micro)
    except ValueError as error:
        raise NoTime(f"{text[:60]!r} is no time: {error}") from None
    flags: list[str] = [] if fraction else ["whole_seconds"]
    if told:
        return Read(in_range(_since(moment, _offset(told)), text), tuple(flags))
    flags.append("zone_given" if zone is not None else "zone_assumed")
    return Read(in_range(_local(moment, zone or UTC, flags), text), tuple(flags))


def _offset(told: str) -> tzinfo:
    if told in {"Z", "z", "UTC", "GMT"}:
        return UTC
    return datetime.strptime(told.replace(":", ""), "%z").tzinfo or UTC


def _local(moment: datetime, zone: tzinfo, flags: list[str]) -> int:
    """A local time; of one that occurs twice the earlier, of one that is left out what the clock before it says."""
    first, second = moment.replace(fold=0), moment.replace(fold=1)
    early, late = _since(first, zone), _since(second, zone)
    if early != late:
        back = (_EPOCH + early * _MICROSECOND).astimezone(zone).replace(tzinfo=None)
        flags.append("zone_ambiguous" if back == moment else "zone_gap")
    return min(early, late) if "zone_gap" not in flags else early


def _since(moment: datetime, zone: tzinfo) -> int:
    return (moment.replace(tzinfo=zone).astimezone(UTC) - _EPOCH) // _MICROSECOND
