"""The track of one stream of failures: how often, per GPU-hour, and whether that is more than it was.

Failures are a Poisson process over GPU-hours, whose usual rate nobody knows. With n failures in S GPU-hours before an
onset and m in T since, the likelihood ratio of "r times the rate" to "the same rate", of what does not depend on the
rate itself, is r^m ((S + T) / (S + r T))^(n + m). Its expectation is 1 whatever the usual rate is, so that a short
baseline costs power and no false alarms. (The rate is a scale: the ratio of the maximal invariants, as in Lai 1976 for
sequential t tests.)
"""

import math
from bisect import bisect_left
from typing import Final

import numpy as np
from scipy import stats

from ettwatch_monitor.alerts.detect.calendar import BINS, DAY_US, HOUR_US, Calendar
from ettwatch_monitor.alerts.detect.look import Effect, Look, Span
from ettwatch_monitor.alerts.detect.metrics import Metric
from ettwatch_monitor.alerts.detect.profile import Floats, fit_hazard
from ettwatch_monitor.alerts.detect.sample import Exposure, Failed, Rate
from ettwatch_monitor.alerts.detect.settings import RATIO, Settings

__all__ = ["RateTrack"]

_LIKELY: Final = 2.0
_MINUTE_US: Final = 60_000_000
_THOUSAND: Final = 1000.0


class RateTrack:
    """One stream of failures. As a TimesTrack, it is a function of what it was told last, and of the time."""

    def __init__(self, metric: Metric, calendar: Calendar, settings: Settings) -> None:
        self._metric = metric
        self._calendar = calendar
        self._settings = settings
        self._told: tuple[list[Failed], tuple[Span, ...], int] = ([], (), 0)
        self._counted: list[Failed] = []
        self._burst: dict[tuple[str, str], int] = {}
        self._spoken: dict[str, list[int]] = {}
        self._ts: Floats = np.zeros(0)
        self._edges: Floats = np.zeros(1)
        self._held: Floats = np.zeros(1)
        self._weighed: Floats = np.zeros(1)
        self._bins: list[int] = []
        self._hours: Floats = np.zeros(0)
        self._factor: Floats = np.zeros(0)
        self._start: int | None = None

    def update(self, stream: Rate, holes: tuple[Span, ...] = (), cut: int = 0) -> None:
        """Say what is known now: see TimesTrack. The failures are in order of (ts, id), each id once."""
        told = (list(stream.failures), holes, cut)
        if self._told != told:
            known = len(self._told[0])
            if (told[0][:known], holes, cut) != self._told:
                self._factor, known = np.zeros(0), 0
                self._counted, self._burst, self._spoken = [], {}, {}
            self._told = told
            for failure in told[0][known:]:
                if failure.ts >= cut and not (holes and any(hole.holds(failure.ts) for hole in holes)):
                    self._count(failure)
            self._ts = np.array([float(failure.ts) for failure in self._counted])
        self._expose(stream.exposure, holes, cut)

    def _count(self, failure: Failed) -> None:
        """Count a failure if it says something: one of a burst does, and a few a day of one job."""
        if failure.cause in self._settings.causes_out:
            return
        of = (failure.cluster, failure.cause)
        # A burst is counted from its first failure: a chain of single ones does not become one event.
        if failure.ts < self._burst.get(of, -DAY_US) + self._settings.burst_minutes * _MINUTE_US:
            return
        self._burst[of] = failure.ts
        day = [ts for ts in self._spoken.get(failure.job, ()) if ts > failure.ts - DAY_US]
        self._spoken[failure.job] = [*day, failure.ts]
        if len(day) < self._settings.repeats_a_day:
            self._counted.append(failure)

    def _expose(self, exposure: Exposure, holes: tuple[Span, ...], cut: int) -> None:
        """Lay the GPU-hours over time: as held, and weighed by how failures go with the hours of a week."""
        edges = exposure.edges
        hours = exposure.hours * _without(edges, holes, cut) if holes or cut else exposure.hours
        known = len(self._factor)
        if exposure.start != self._start or not np.array_equal(self._hours[:known], hours[:known]):
            self._start, self._factor, self._bins, known = exposure.start, np.zeros(0), [], 0
        for hour in range(len(self._bins), len(hours)):
            self._bins.append(self._calendar.bin(exposure.start + hour * HOUR_US))
        self._hours = hours
        while known < len(hours):
            week = self._calendar.week(exposure.start + known * HOUR_US)
            end = known
            while end < len(hours) and self._calendar.week(exposure.start + end * HOUR_US) == week:
                end += 1
            self._factor = np.concatenate([self._factor, self._hazard(week)[self._bins[known:end]]])
            known = end
        # The last hour may not be over: it is made anew next time.
        self._edges = edges
        self._held = np.concatenate([[0.0], np.cumsum(hours)])
        self._weighed = np.concatenate([[0.0], np.cumsum(hours * self._factor)])
        self._factor = self._factor[:-1]

    def _hazard(self, week: int) -> Floats:
        """Return how failures go with the hours of a week, from what was known when that week began."""
        reach = week - self._settings.baseline_days * DAY_US
        begin, end = np.searchsorted(self._ts, [reach, week])
        if end - begin < self._settings.least_failures_before or self._start is None:
            return np.ones(BINS)
        bins = np.array([self._calendar.bin(int(ts)) for ts in self._ts[begin:end]], dtype=np.int64)
        first, last = ((np.array([reach, week]) - self._start) // HOUR_US).clip(0, len(self._hours))
        exposed: Floats = np.bincount(self._bins[first:last], self._hours[first:last], minlength=BINS).astype(
            np.float64
        )
        return fit_hazard(np.bincount(bins, minlength=BINS).astype(np.float64), exposed)

    def _at(self, ts: "Floats | float", held: bool = False) -> Floats:
        return np.atleast_1d(np.interp(ts, self._edges, self._held if held else self._weighed))

    @property
    def last(self) -> int | None:
        """Until when anything is known."""
        return int(self._edges[-1]) if len(self._edges) > 1 else None

    def look(self, now: int) -> Look | None:
        """Return what the stream says of the thought that it got worse; None where it cannot say anything yet."""
        settings = self._settings
        number = len(self._ts)
        if number < settings.least_failures_before + settings.least_failures or len(self._edges) < 2:
            return None
        begin = float(self._edges[np.searchsorted(self._held, 0.0, side="right") - 1])
        from_ = max(now - settings.scan_days * DAY_US, begin + settings.warm_days * DAY_US)
        first = max(int(np.searchsorted(self._ts, from_)), settings.least_failures_before)
        last = number - settings.least_failures
        if first > last:
            return None
        starts = np.arange(first, last + 1)
        # The likelihood is largest where the new time is shortest, so each onset lies right before a failure, which
        # counts. Read backwards from now the likelihood ratio is a martingale that jumps up at each failure: the bound
        # on its maximum holds for what it is right after the jump as well.
        opened = self._at(self._ts[starts])
        oldest = self._at(self._ts[starts] - settings.baseline_days * DAY_US)
        n = starts - np.searchsorted(self._ts, self._ts[starts] - settings.baseline_days * DAY_US)
        base = np.maximum(opened - oldest, 1e-9)
        m = number - starts
        since = np.maximum(float(self._at(float(now))[0]) - opened, 0.0)
        evidence = m * math.log(RATIO) - (n + m) * np.log((base + RATIO * since) / (base + since))
        place = int(evidence.argmax())
        likely = np.flatnonzero(evidence >= evidence[place] - _LIKELY)
        at = starts[place]
        return Look(
            p=min(1.0, math.exp(-min(float(evidence[place]), 700.0))),
            onset=int(self._ts[at]),
            earliest=int(self._ts[starts[likely[0]]]),
            latest=int(self._ts[starts[likely[-1]]]),
            before=int(n[place]),
            after=number - int(at),
            pace=self._pace(from_),
        )

    def _pace(self, until: float) -> float:
        first, last = np.searchsorted(self._ts, [until - self._settings.baseline_days * DAY_US, until])
        begin = max(until - self._settings.baseline_days * DAY_US, float(self._edges[0]))
        return float(last - first) / max((until - begin) / DAY_US, 1.0)

    def sides(self, onset: int, now: int) -> tuple[list[Failed], list[Failed]]:
        """Return the failures that count, of the baseline before an onset and since."""
        first = bisect_left(self._ts, onset - self._settings.baseline_days * DAY_US)
        at, last = bisect_left(self._ts, onset), bisect_left(self._ts, now + 1)
        return self._counted[first:at], self._counted[at:last]

    def held(self, onset: int, now: int) -> tuple[float, float]:
        """Return the GPU-hours held in the baseline before an onset, and since."""
        reach = onset - self._settings.baseline_days * DAY_US
        begin, middle, end = self._at(np.array([reach, onset, now], dtype=np.float64), held=True)
        return float(middle - begin), float(end - middle)

    def effect(self, onset: int, now: int) -> Effect | None:
        """Return by how much the rate moved at an onset; None where a side is empty."""
        before, after = self.sides(onset, now)
        base, since = self.held(onset, now)
        reach = onset - self._settings.baseline_days * DAY_US
        begin, middle, end = self._at(np.array([reach, onset, now], dtype=np.float64))
        if not before or not after or min(base, since, middle - begin, end - middle) <= 0:
            return None
        n, m, odds = len(before), len(after), float((end - middle) / (middle - begin))
        # Of all failures, those since the onset are binomial: Clopper and Pearson give the interval of the ratio.
        low = float(stats.beta.ppf(0.025, m, n + 1))
        high = float(stats.beta.ppf(0.975, m + 1, n))
        rates = [_THOUSAND * n / base, _THOUSAND * m / since]
        ratio = m / n / odds
        return Effect(
            before=n,
            after=m,
            jobs_before=len({failure.job for failure in before}),
            jobs_after=len({failure.job for failure in after}),
            low=(rates[0], rates[0], rates[0]),
            high=(rates[1], rates[1], rates[1]),
            ratio=ratio,
            ratio_from=low / (1 - low) / odds,
            ratio_to=high / (1 - high) / odds,
            points=0.0,
            shift=math.log(ratio),
            shift_from=math.log(low / (1 - low) / odds),
            p_two_sample=float(stats.binomtest(m, n + m, odds / (1 + odds), alternative="greater").pvalue),
        )

    def recovered(self, onset: int, since: int, shift: float, now: int) -> int | None:
        """Return since when the rate is as it was before an onset again; None while it is not. See TimesTrack."""
        before, _ = self.sides(onset, now)
        reach = onset - self._settings.baseline_days * DAY_US
        begin, middle, end = self._at(np.array([reach, onset, now], dtype=np.float64))
        if not before or middle <= begin:
            return None
        usual = len(before) / float(middle - begin)
        ratio = min(max(math.exp(shift), 1.5), 4.0)
        late = self._ts[self._ts > since]
        starts = np.concatenate([[float(since)], late])
        opened = self._at(starts)
        m = len(late) - np.arange(len(starts))
        evidence = (ratio - 1) * usual * (float(end) - opened) - m * math.log(ratio)
        place = int(evidence.argmax())
        return int(starts[place]) if evidence[place] >= -math.log(self._settings.resolve) else None


def _without(edges: Floats, holes: tuple[Span, ...], cut: int) -> Floats:
    """Return which part of each hour counts."""
    lengths = np.maximum(np.diff(edges), 1.0)
    left = np.ones(len(lengths))
    for hole in (*holes, Span(0, cut)):
        overlap = np.minimum(edges[1:], hole.end) - np.maximum(edges[:-1], hole.start)
        left -= np.clip(overlap, 0.0, None) / lengths
    clipped: Floats = np.clip(left, 0.0, 1.0)
    return clipped
