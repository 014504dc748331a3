"""From what ClickHouse answers to numbers: small and total conversions."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

__all__ = ["by_component", "hours", "known", "micros", "named", "per_cent", "seconds", "summed"]

_US_AN_HOUR: Final = 3_600_000_000


def hours(us: object) -> float:
    """Microseconds as hours; GPU-microseconds as GPU-hours."""
    return int(cast(int, us)) / _US_AN_HOUR


def seconds(us: object) -> float | None:
    """Microseconds as seconds; what is missing, or no number, as None."""
    value = cast("float | None", us)
    return None if value is None or math.isnan(value) else value / 1_000_000


def per_cent(part: float, whole: float) -> float | None:
    """A share in percent; None of nothing."""
    return 100 * part / whole if whole else None


def micros(value: object) -> int:
    """A time as µs since the Unix epoch."""
    at = cast(datetime, value)
    return round(at.timestamp()) * 1_000_000 if not at.microsecond else int(at.timestamp()) * 1_000_000 + at.microsecond


def named(columns: list[str], row: tuple[object, ...]) -> dict[str, Any]:
    """A row by the names of its columns."""
    return dict(zip(columns, row, strict=True))


def known(text: object) -> str | None:
    """A text; None for the empty one."""
    return str(text) if text else None


def summed(told: object) -> dict[str, int]:
    """What `sumMap` of names and numbers gave, without what is 0."""
    keys, values = cast("tuple[list[str], list[int]]", told)
    return {str(key): int(value) for key, value in zip(keys, values, strict=True) if value}


def by_component(stages: Mapping[str, float]) -> dict[str, float]:
    """Sum up stages by their first dotted part."""
    found: dict[str, float] = {}
    for stage, value in stages.items():
        component = stage.partition(".")[0]
        found[component] = found.get(component, 0) + value
    return found
