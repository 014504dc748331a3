"""What people set up without a detector: a threshold over a day's window, and three standard deviations of the days."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ettwatch_monitor.alerts.detect import Rate, Stream, Times

DAY_US: Final = 86_400_000_000
_COOL_US: Final = DAY_US
"""One alert is one alert until it has been quiet for a day."""
_LEAST: Final = 5


@dataclass(frozen=True, slots=True)
class Days:
    """A stream as a figure for the last 24 hours, and for each whole day before."""

    now: float
    before: tuple[float, ...]
    number: int


def figures(stream: Stream, rounds: Iterable[int], begin: int) -> list[Days]:
    """Return for each round the last day's median (or failures per GPU-hour), and those of up to 28 days before it."""
    if isinstance(stream, Times):
        ts = np.array([sample.ts for sample in stream.samples])
        values = np.array([sample.value for sample in stream.samples])

        def one(start: int, end: int) -> tuple[float, int]:
            first, last = np.searchsorted(ts, [start, end])
            return (float(np.median(values[first:last])), int(last - first)) if last > first else (np.nan, 0)
    else:
        ts = np.array([failure.ts for failure in stream.failures])
        edges, held = stream.exposure.edges, np.concatenate([[0.0], np.cumsum(stream.exposure.hours)])

        def one(start: int, end: int) -> tuple[float, int]:
            first, last = np.searchsorted(ts, [start, end])
            low, high = np.interp([start, end], edges, held)
            return (float(last - first) / float(high - low), int(last - first)) if high > low else (np.nan, 0)

    told, days = [], {}
    for now in rounds:
        current, number = one(now - DAY_US, now)
        before = []
        for back in range(1, 29):
            day = now - (back + 1) * DAY_US
            if day < begin:
                break
            if day not in days:
                days[day] = one(day, day + DAY_US)[0]
            before.append(days[day])
        told.append(Days(current, tuple(value for value in before if not np.isnan(value)), number))
    return told


def threshold(days: Days, usual: float, factor: float) -> bool:
    """Whether the last day is above a fixed multiple of what was usual when the threshold was set."""
    return days.number >= _LEAST and days.now > factor * usual


def three_sigma(days: Days) -> bool:
    """Whether the last day is more than three standard deviations above the 28 days before it."""
    if days.number < _LEAST or len(days.before) < 14:
        return False
    return days.now > float(np.mean(days.before)) + 3 * float(np.std(days.before, ddof=1))


def alerts(rounds: Iterable[int], above: Iterable[bool]) -> list[int]:
    """Return when alerts began: one that comes back within a day is the same."""
    begun, last = [], -(10**18)
    for now, high in zip(rounds, above, strict=True):
        if high:
            if now - last > _COOL_US:
                begun.append(now)
            last = now
    return begun


def usual(stream: Times | Rate, begin: int) -> float:
    """Return the level of the first four weeks, from which somebody would set a threshold."""
    end = begin + 28 * DAY_US
    if isinstance(stream, Times):
        return float(np.median([sample.value for sample in stream.samples if sample.ts < end]))
    number = sum(failure.ts < end for failure in stream.failures)
    return number / float(stream.exposure.hours[: 28 * 24].sum())
