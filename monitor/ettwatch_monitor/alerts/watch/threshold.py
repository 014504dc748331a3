"""Plain thresholds, for those who want them: a figure of a window against a limit, with a delay and a way back."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ettwatch_monitor.alerts.alert import Severity
from ettwatch_monitor.alerts.detect import METRICS, Book, Incident, Sample, Stream, StreamKey, Times, in_order
from ettwatch_monitor.alerts.watch.words import amount

__all__ = ["FIGURES", "Figure", "Threshold", "check_thresholds"]

Figure = Literal["median", "p90", "p99", "mean", "count", "rate"]
FIGURES: Final[tuple[Figure, ...]] = ("median", "p90", "p99", "mean", "count", "rate")
_QUANTILES: Final[Mapping[str, float]] = {"median": 0.5, "p90": 0.9, "p99": 0.99}
_STEPS: Final = 6
"""So often the delay is looked at: the figure has to be beyond the limit each time."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """One rule.

    Attributes:
        name: Its name, unique among the rules.
        metric: Of which metric.
        figure: Which figure: of times and shares a quantile or the mean; `count` of samples or failures; `rate` of
            failures per 1000 GPU-hours.
        window: Over how long, in microseconds.
        limit: The limit, in seconds, as a share from 0 to 1, per 1000 GPU-hours, or a number.
        above: Whether above it is wrong, or below.
        back: Where it has to come back to.
        hold: How long it has to be beyond the limit, in microseconds.
        least: Samples that the window needs.
        match: Labels of the scopes it is for; empty is all scopes that are watched.
        severity: Of its alerts.
    """

    name: str
    metric: str
    figure: Figure
    window: int
    limit: float
    above: bool = True
    back: float | None = None
    hold: int = 0
    least: int = 1
    match: tuple[tuple[str, str], ...] = ()
    severity: Severity = "warning"

    def of(self, key: StreamKey) -> bool:
        """Whether it is for a stream."""
        return key.metric == self.metric and all(key.labels.get(name) == value for name, value in self.match)

    def beyond(self, value: float, limit: float) -> bool:
        """Whether a value is on the wrong side of a limit."""
        return value > limit if self.above else value < limit


def check_thresholds(
    rules: Sequence[Threshold], now: int, streams: Mapping[StreamKey, Stream], book: Book
) -> tuple[Book, list[Incident], list[Incident]]:
    """Return the book, the new episodes and the ended ones.

    Whether a rule fires depends on the samples only, also the delay: the figure is taken at `_STEPS` times within it.
    """
    opened: list[Incident] = []
    closed: list[Incident] = []
    named = {rule.name: rule for rule in rules}
    for one in list(book.all_open()):
        rule = named.get(_rule_name(one))
        if one.sort == "threshold" and (rule is None or _stream_key(one.key) not in streams):
            ended = one.end(now, "off" if rule is None else "quiet")
            book, closed = book.written(ended), [*closed, ended]
    for rule in rules:
        for key, stream in streams.items():
            if not rule.of(key):
                continue
            name = StreamKey(key.metric, (*key.scope, ("rule", rule.name)))
            standing = book.open(name)
            if standing is None:
                value = _fires(rule, stream, now)
                if value is not None:
                    one = _incident(rule, name, value, now)
                    book, opened = book.written(one), [*opened, one]
            elif (back := _is_back(rule, stream, now)) is not None:
                ended = replace(standing.end(now, back), back=None)
                book, closed = book.written(ended), [*closed, ended]
    return book, opened, closed


def _rule_name(one: Incident) -> str:
    return one.key.labels.get("rule", "")


def _stream_key(key: StreamKey) -> StreamKey:
    return StreamKey(key.metric, tuple(pair for pair in key.scope if pair[0] != "rule"))


def _fires(rule: Threshold, stream: Stream, now: int) -> float | None:
    times = [now] if not rule.hold else [now - rule.hold * step // _STEPS for step in range(_STEPS + 1)]
    values = [_figure(rule, stream, ts) for ts in times]
    if any(value is None or not rule.beyond(value, rule.limit) for value in values):
        return None
    return values[0]


def _is_back(rule: Threshold, stream: Stream, now: int) -> Literal["recovered", "quiet"] | None:
    value = _figure(rule, stream, now)
    if value is None:
        return "quiet"
    return None if rule.beyond(value, rule.limit if rule.back is None else rule.back) else "recovered"


def _figure(rule: Threshold, stream: Stream, now: int) -> float | None:
    if isinstance(stream, Times):
        some: list[Sample] = in_order(stream.samples, now)
        values = [sample.value for sample in some[bisect_left(some, now - rule.window, key=lambda one: one.ts) :]]
        if rule.figure == "count":
            return float(len(values))
        if len(values) < max(rule.least, 1):
            return None
        if rule.figure == "mean":
            return float(np.mean(values))
        return float(np.quantile(values, _QUANTILES[rule.figure]))
    failures = in_order(stream.failures, now)
    number = len(failures) - bisect_right(failures, now - rule.window, key=lambda one: one.ts)
    if rule.figure == "count":
        return float(number)
    held = np.concatenate([[0.0], np.cumsum(stream.exposure.hours)])
    low, high = np.interp([now - rule.window, now], stream.exposure.edges, held)
    if high <= low or number < rule.least:
        # Few failures are no reason to fire; hours without GPUs are none to stay.
        return 0.0 if high > low else None
    return 1000 * number / float(high - low)


def _incident(rule: Threshold, name: StreamKey, value: float, now: int) -> Incident:
    metric = METRICS[rule.metric]
    shown = f"{value:g}" if rule.figure == "count" else amount(metric, value)
    limit = f"{rule.limit:g}" if rule.figure == "count" else amount(metric, rule.limit)
    of = ", ".join(f"{label} {text}" for label, text in name.scope if label != "rule")
    note = (
        f"{rule.name}: {rule.figure} of {metric.title} of {of} is {shown}, {'above' if rule.above else 'below'} {limit}"
    )
    start = now - rule.hold
    return Incident(name, "threshold", start, start, now, now, 1.0, 0.0, note=note)
