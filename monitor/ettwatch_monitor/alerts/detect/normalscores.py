"""Sequential ranks: how unusual each sample is among the earlier ones of its own kind.

Under no change the rank of a sample among its predecessors is uniform, whatever the distribution, and independent of
the ranks before it. That makes looking again and again harmless: there is one number per sample, made once, and a test
over them may stop whenever it likes. (Sequential ranks: Barndorff-Nielsen 1963; as test martingales: Vovk, Gammerman
and Shafer, "Algorithmic Learning in a Random World", chapter 8.) The rank is turned into a normal score (van der
Waerden), which loses nothing against a t test for normal data, and gains for heavy tails.
"""

import math
from array import array
from bisect import bisect_left, bisect_right, insort
from collections import deque
from statistics import NormalDist
from typing import Final

import numpy as np

from ettwatch_monitor.alerts.detect.calendar import BINS, DAY_US, Calendar
from ettwatch_monitor.alerts.detect.metrics import Metric
from ettwatch_monitor.alerts.detect.profile import Floats, fit_levels
from ettwatch_monitor.alerts.detect.sample import Sample
from ettwatch_monitor.alerts.detect.settings import Settings

__all__ = ["Scores", "kind_of"]

_LEAST_KIN: Final = 10
"""A sample is ranked among at least so many of its kind."""
_BLOCKS: Final = (1, 3, 7)
"""Days of a block, in which samples may have something in common."""
_LEAST_BLOCKS: Final = 4
_LEAST_DAYS: Final = 14
_UNSURE: Final = 14
_CLEARLY: Final = 3.0
"""So many standard deviations above 1 the variance has to be, before it counts."""
_normal: Final = NormalDist()


def kind_of(sample: Sample) -> tuple[str, str, str, int]:
    """Return what has to be equal for two samples to be comparable: team, model, cluster, and about the size."""
    return (sample.team, sample.model, sample.cluster, max(sample.gpus, 1).bit_length())


class Scores:
    """Scores of the samples of one stream, made in order of time.

    Each depends on the samples of the `baseline_days` before it and on nothing else: neither on when it was looked at
    nor on what came after it.

    Attributes:
        ts: When each sample was complete.
        level: Its value on the metric's scale, without the usual ups and downs of the week.
        score: The normal score of its rank, larger being worse; NaN where there were too few of its kind.
        size: How much to bet on it, around 1: of shares more for many GPUs, less for one more of a job that spoke
            already.
        shared: How many times more the scores of some days together vary than chance has it: see `_weather`.
        sums: For each size of a shift, the running sum of the evidence, before each sample and after the last.
    """

    def __init__(self, metric: Metric, calendar: Calendar, settings: Settings, bets: tuple[float, ...]) -> None:
        self._metric = metric
        self._calendar = calendar
        self._reach = settings.baseline_days * DAY_US
        self._repeats = settings.repeats_a_day
        self._bets = bets
        self._kin: dict[tuple[object, ...], list[float]] = {}
        self._live: deque[tuple[int, float, int, tuple[object, ...], tuple[object, ...]]] = deque()
        self._spoke: dict[str, list[int]] = {}
        self._week = -1
        self._profile: Floats = np.zeros(BINS)
        self._raw: list[float] = []
        self._bins = array("q")
        self._kinds: list[tuple[object, ...]] = []
        self._doublings = 0
        self.shared = 1.0
        self.ts = array("q")
        self.level = array("d")
        self.score = array("d")
        self.size = array("d")
        self.sums = [array("d", [0.0]) for _ in bets]

    def add(self, sample: Sample) -> None:
        """Take one sample, which is not older than the one before."""
        value = self._metric.scale(sample.value)
        self._turn(sample.ts)
        bin_ = self._calendar.bin(sample.ts)
        level = value - float(self._profile[bin_])
        kind = kind_of(sample)
        wide = kind[:2]
        score = self._rank(level, kind, wide)
        size = self._bet_size(sample)
        for own in (kind, wide):
            insort(self._kin.setdefault(own, []), level)
        self._live.append((sample.ts, level, kind[3], kind, wide))
        self._doublings += kind[3]
        self.ts.append(sample.ts)
        self._raw.append(value)
        self._bins.append(bin_)
        self._kinds.append(kind)
        self.level.append(level)
        self.score.append(score)
        self.size.append(size)
        for bet, sums in zip(self._bets, self.sums, strict=True):
            shift = bet * size
            # The likelihood ratio of two normal scores; 0 evidence where there is no rank. Where scores go up and down
            # together, so many of them say as little as one.
            evidence = 0.0 if math.isnan(score) else (shift * score - shift * shift / 2) / self.shared
            sums.append(sums[-1] + evidence)

    def _rank(self, level: float, kind: tuple[object, ...], wide: tuple[object, ...]) -> float:
        for own in (kind, wide):
            kin = self._kin.get(own, [])
            if len(kin) >= _LEAST_KIN:
                middle = (bisect_left(kin, level) + bisect_right(kin, level)) / 2
                return _normal.inv_cdf((middle + 0.5) / (len(kin) + 1))
        return float("nan")

    def _bet_size(self, sample: Sample) -> float:
        """Return a size that is known before the value: the stakes may depend on the past only."""
        spoken = [ts for ts in self._spoke.get(sample.job, ()) if ts > sample.ts - DAY_US]
        self._spoke[sample.job] = [*spoken, sample.ts]
        if len(spoken) >= self._repeats:
            return 0.0
        if self._metric.kind != "share":
            return 1.0 / (1 + len(spoken))
        doublings = kind_of(sample)[3]
        usual = self._doublings / len(self._live) if self._live else doublings
        heavy = math.exp2((doublings - usual) / 4)
        return min(max(heavy, 0.7), 1.3) / (1 + len(spoken))

    def _turn(self, now: int) -> None:
        """Let go of what is too old; on a new week, look anew at how a week goes."""
        while self._live and self._live[0][0] < now - self._reach:
            _, level, doublings, kind, wide = self._live.popleft()
            self._doublings -= doublings
            for own in (kind, wide):
                kin = self._kin[own]
                del kin[bisect_left(kin, level)]
        week = self._calendar.week(now)
        if week == self._week:
            return
        self._week = week
        self._spoke = {job: told for job, told in self._spoke.items() if told[-1] > now - DAY_US}
        self.shared = self._weather(week)
        first = bisect_left(self.ts, week - self._reach)
        last = bisect_left(self.ts, week)
        if last - first < 2 * _LEAST_KIN:
            self._profile = np.zeros(BINS)
            return
        values = np.array(self._raw[first:last])
        groups: dict[tuple[object, ...], list[int]] = {}
        for at, kind in enumerate(self._kinds[first:last]):
            groups.setdefault(kind, []).append(at)
        for members in groups.values():
            values[members] -= np.median(values[members])
        self._profile = fit_levels(values, np.array(self._bins[first:last], dtype=np.int64))

    def _weather(self, week: int) -> float:
        """Return how many times more the scores of some days together vary than those of independent samples.

        Jobs share clusters: a full queue or a storm of preemptions makes all of them worse for some days, and that is
        no change of anything. The scores of what is usual are measured in blocks of one, three and seven days before
        this week; what lies within the limits of chance counts as 1. The last days are left out where there are enough
        before them: a change that nobody found yet is no weather.
        """
        until = week - _UNSURE * DAY_US
        if not len(self.ts) or until - max(self.ts[0], week - self._reach) < _LEAST_DAYS * DAY_US:
            until = week
        first, last = bisect_left(self.ts, week - self._reach), bisect_left(self.ts, until)
        score = np.frombuffer(self.score, dtype=np.float64)[first:last].copy()
        days = (week - 1 - np.frombuffer(self.ts, dtype=np.int64)[first:last]) // DAY_US
        known = np.isfinite(score) & (np.frombuffer(self.size, dtype=np.float64)[first:last] > 0)
        score, days = score[known], days[known]
        found = 1.0
        for length in _BLOCKS if len(score) >= 2 * _LEAST_KIN else ():
            block = days // length
            numbers = np.bincount(block)
            filled = numbers >= 2
            if filled.sum() < _LEAST_BLOCKS:
                continue
            sums = np.bincount(block, score)[filled]
            ratio = float((sums**2).sum() / numbers[filled].sum())
            if ratio > 1 + _CLEARLY * math.sqrt(2 / filled.sum()):
                found = max(found, ratio)
        return found
