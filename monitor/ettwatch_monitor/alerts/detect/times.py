"""The track of one stream of measurements: what is known of it so far, and the looks at it."""

import math
from bisect import bisect_left
from typing import Final

import numpy as np
from scipy import stats

from ettwatch_monitor.alerts.detect.calendar import DAY_US, Calendar
from ettwatch_monitor.alerts.detect.look import Effect, Look, Span
from ettwatch_monitor.alerts.detect.metrics import Metric
from ettwatch_monitor.alerts.detect.normalscores import Scores, kind_of
from ettwatch_monitor.alerts.detect.profile import Floats
from ettwatch_monitor.alerts.detect.sample import Sample
from ettwatch_monitor.alerts.detect.scan import best_start
from ettwatch_monitor.alerts.detect.settings import BETS, Settings

__all__ = ["TimesTrack", "hodges_lehmann"]

_MOST_PAIRED: Final = 400
"""Samples of each side that are compared pairwise at most; of more, evenly chosen ones."""
_CENTRAL: Final = 1.959964


class TimesTrack:
    """One stream of measurements.

    What it says is a function of the set of samples and of the time: their order, doubles and the number of looks in
    between change nothing. What is kept between looks only saves work.
    """

    def __init__(self, metric: Metric, calendar: Calendar, settings: Settings) -> None:
        self._metric = metric
        self._calendar = calendar
        self._settings = settings
        self._samples: list[Sample] = []
        self._holes: tuple[Span, ...] = ()
        self._cut = 0
        self._clear()

    def _clear(self) -> None:
        self._kept: list[Sample] = []
        self._scores = Scores(self._metric, self._calendar, self._settings, tuple(bet for bet, _ in BETS))

    def update(self, samples: list[Sample], holes: tuple[Span, ...] = (), cut: int = 0) -> None:
        """Say what is known now.

        Args:
            samples: All samples, as `in_order` returns them.
            holes: Times that say nothing of the usual level: maintenance, and regressions that are over.
            cut: What is older says nothing either: a new level was accepted then.
        """
        known = len(self._samples)
        same = (holes, cut) == (self._holes, self._cut) and self._samples == samples[:known]
        if not same:
            self._clear()
            self._holes, self._cut, known = holes, cut, 0
        for sample in samples[known:]:
            if sample.ts >= cut and not (holes and any(hole.holds(sample.ts) for hole in holes)):
                self._kept.append(sample)
                self._scores.add(sample)
        self._samples = samples[:]

    @property
    def shared(self) -> float:
        """How many times more the newest samples vary together than chance has it; their evidence is divided by it."""
        return self._scores.shared

    @property
    def last(self) -> int | None:
        """When the newest sample was complete."""
        return self._samples[-1].ts if self._samples else None

    def look(self, now: int) -> Look | None:
        """Return what the stream says of the thought that it got worse; None where it cannot say anything yet."""
        scores, settings = self._scores, self._settings
        number = len(scores.ts)
        if number < settings.least_before + settings.least_after:
            return None
        from_ = max(now - settings.scan_days * DAY_US, scores.ts[0] + settings.warm_days * DAY_US)
        first = max(bisect_left(scores.ts, from_), settings.least_before)
        last = number - settings.least_after
        if first > last:
            return None
        best: tuple[float, int, int, int] | None = None
        for (_, share), running in zip(BETS, scores.sums, strict=True):
            sums = np.frombuffer(running, dtype=np.float64)
            found = best_start(np.append(sums[first : last + 1], sums[-1]), share)
            del sums  # the buffer of an array that is looked at cannot grow
            if best is None or found[0] > best[0]:
                best = found
        assert best is not None
        evidence, place, early, late = best
        at = scores.ts
        return Look(
            p=min(1.0, math.exp(-min(evidence, 700.0))),
            onset=at[first + place],
            earliest=at[first + early - 1] if first + early else at[0],
            latest=at[first + late],
            before=first + place,
            after=number - first - place,
            pace=self._pace(from_),
        )

    def _pace(self, until: int) -> float:
        begin = max(until - self._settings.baseline_days * DAY_US, self._scores.ts[0])
        number = bisect_left(self._scores.ts, until) - bisect_left(self._scores.ts, begin)
        return number / max((until - begin) / DAY_US, 1.0)

    def sides(self, onset: int, now: int) -> tuple[list[Sample], list[Sample]]:
        """Return the samples of the baseline before an onset, and those since."""
        at = bisect_left(self._scores.ts, onset)
        first = bisect_left(self._scores.ts, onset - self._settings.baseline_days * DAY_US)
        last = bisect_left(self._scores.ts, now + 1)
        return self._kept[first:at], self._kept[at:last]

    def effect(self, onset: int, now: int) -> Effect | None:
        """Return by how much the stream moved at an onset; None where a side is empty."""
        before, after = self.sides(onset, now)
        if not before or not after:
            return None
        at = bisect_left(self._scores.ts, onset)
        level = np.frombuffer(self._scores.level, dtype=np.float64).copy()
        low_level, high_level = level[at - len(before) : at], level[at : at + len(after)]
        low, high = _aligned(before, after, low_level, high_level)
        if not len(low) or not len(high):
            low, high = low_level, high_level
        shift, shift_from, shift_to = hodges_lehmann(low, high)
        spread = max(1.4826 * float(np.median(np.abs(low - np.median(low)))), 1e-9)
        quantiles = _quantiles(before, after)
        share = self._metric.kind == "share"
        middle_low, middle_high = quantiles[0][1], quantiles[1][1]
        return Effect(
            before=len(before),
            after=len(after),
            jobs_before=len({sample.job for sample in before}),
            jobs_after=len({sample.job for sample in after}),
            low=quantiles[0],
            high=quantiles[1],
            ratio=middle_high / max(middle_low, 1e-9) if share else math.exp(self._metric.worse * shift),
            ratio_from=math.exp(self._metric.worse * shift_from),
            ratio_to=math.exp(self._metric.worse * shift_to),
            points=100 * (middle_high - middle_low) if share else 0.0,
            shift=shift / spread,
            shift_from=shift_from / spread,
            p_two_sample=float(stats.mannwhitneyu(high, low, alternative="greater").pvalue),
        )

    def recovered(self, onset: int, since: int, shift: float, now: int) -> int | None:
        """Return since when the stream is as it was before an onset again; None while it is not.

        Args:
            onset: Where the regression began: what lies before it is the level to come back to.
            since: Since when it is known; recovery is looked for from there on.
            shift: How large it was, in standard deviations.
            now: The time.
        """
        before, after = self.sides(onset, now)
        late = [at for at, sample in enumerate(after) if sample.ts > since]
        if not before or len(late) < self._settings.least_after:
            return None
        at = bisect_left(self._scores.ts, onset)
        level = np.frombuffer(self._scores.level, dtype=np.float64).copy()
        by_kind: dict[object, list[float]] = {}
        for sample, value in zip(before, level[at - len(before) : at], strict=True):
            by_kind.setdefault(kind_of(sample), []).append(float(value))
        for kin in by_kind.values():
            kin.sort()
        bet = min(max(shift, 0.5), 2.0)
        sums, where = [0.0], []
        for place in late:
            kin = by_kind.get(kind_of(after[place]), [])
            if len(kin) >= self._settings.least_after:
                rank = bisect_left(kin, level[at + place])
                score = float(stats.norm.ppf((rank + 0.5) / (len(kin) + 1)))
                sums.append(sums[-1] - (bet * score - bet * bet / 2))
                where.append(after[place].ts)
        if len(where) < self._settings.least_after:
            return None
        running: Floats = np.array(sums)
        last = len(where) - self._settings.least_after
        evidence, start, _, _ = best_start(np.append(running[: last + 1], running[-1]), 1.0)
        return where[start] if evidence >= -math.log(self._settings.resolve) else None


def hodges_lehmann(low: Floats, high: Floats) -> tuple[float, float, float]:
    """Return the median of all differences between two samples, and its interval of 95 % (Moses).

    Of large samples evenly chosen values are compared, which widens the interval and keeps it right.
    """
    some_low, some_high = _thinned(low), _thinned(high)
    differences = np.sort((some_high[:, None] - some_low[None, :]).ravel())
    n, m = len(some_low), len(some_high)
    reach = _CENTRAL * math.sqrt(n * m * (n + m + 1) / 12)
    first = max(int(n * m / 2 - reach), 0)
    return float(np.median(differences)), float(differences[first]), float(differences[-1 - first])


def _thinned(values: Floats) -> Floats:
    if len(values) <= _MOST_PAIRED:
        return values
    chosen: Floats = values[np.linspace(0, len(values) - 1, _MOST_PAIRED).astype(int)]
    return chosen


def _aligned(before: list[Sample], after: list[Sample], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Take from each sample the usual level of its kind, so that another mix of jobs is no change."""
    usual: dict[object, float] = {}
    kinds: dict[object, list[int]] = {}
    for at, sample in enumerate(before):
        kinds.setdefault(kind_of(sample), []).append(at)
    came = {kind_of(sample) for sample in after}
    chosen: list[int] = []
    for kind, members in kinds.items():
        usual[kind] = float(np.median(low[members]))
        if kind in came:
            chosen += members
    chosen.sort()
    known = [at for at, sample in enumerate(after) if kind_of(sample) in usual]
    return (
        low[chosen] - np.array([usual[kind_of(before[at])] for at in chosen]),
        high[known] - np.array([usual[kind_of(after[at])] for at in known]),
    )


def _quantiles(
    before: list[Sample], after: list[Sample]
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Quantiles after, and before as they would have been with the kinds of jobs that came after."""
    weight: dict[object, float] = {}
    for sample in after:
        weight[kind_of(sample)] = weight.get(kind_of(sample), 0.0) + 1.0
    number: dict[object, int] = {}
    for sample in before:
        number[kind_of(sample)] = number.get(kind_of(sample), 0) + 1
    weights = np.array([weight.get(kind_of(sample), 0.0) / number[kind_of(sample)] for sample in before])
    if not weights.sum():
        weights = np.ones(len(before))
    return (
        _weighted(np.array([sample.value for sample in before]), weights),
        _weighted(np.array([sample.value for sample in after]), np.ones(len(after))),
    )


def _weighted(values: Floats, weights: Floats) -> tuple[float, float, float]:
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    low, middle, high = np.interp([0.1, 0.5, 0.9], reached, values[order])
    return float(low), float(middle), float(high)
