"""How sure and how large: the settings of the detector, with the values that hold where nobody chose others."""

from dataclasses import dataclass, field
from typing import Final, Literal

from ettwatch_monitor.alerts.detect.metrics import METRICS

__all__ = ["BETS", "RATIO", "Settings"]

BETS: Final[tuple[tuple[float, float], ...]] = ((0.45, 0.8), (1.0, 0.15), (0.25, 0.05))
"""Sizes of a shift, in standard deviations, that are bet on, and how much of the error each may spend. A rise of 20 %
at a spread of 0.3 (standard deviation of the logarithm) is 0.6. The bet that decides soonest in the unlucky cases is
smaller than the shift: sqrt(2 log(1/p) / n) for n samples, which for 100 and p = 0.001 is 0.37."""

RATIO: Final = 2.0
"""The rise of a failure rate that is looked for. Others are found as well, somewhat later than by their own test."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the detector.

    Attributes:
        zone: The time zone whose hours and weekdays people keep.
        fdr: Rate of false discoveries among the findings of a round.
        alone: What a test of weight 1 needs at least, as a p value, however few tests there are: it is looked at
            again and again.
        dependence: ``positive``: tests that move together are no problem (Benjamini-Hochberg). ``any``: hold the rate
            whatever the tests have to do with each other (Benjamini-Yekutieli), at the price of later findings.
        baseline_days: How far back "as usual" reaches.
        scan_days: How far back an onset is looked for.
        warm_days: A stream is not tested before it has been seen for so long.
        least_before: Samples that the baseline has at least.
        least_after: Samples since the onset at least.
        least_jobs: Jobs among those at least, where the baseline has as many.
        least_failures_before: Failures that the baseline has at least.
        least_failures: Failures since the onset at least.
        burst_minutes: Failures of one cause in one cluster within so long are one event.
        repeats_a_day: So many samples or failures of one job within 24 hours count; more say nothing new.
        resolve: How unlikely the recovered level must be, were it still as bad, before an alert is resolved.
        accept_days: After so long a level is the new usual one, and the alert is resolved with that reason.
        quiet_days: An alert without a single sample for so long is resolved with that reason.
        storm_share: If so large a share of the scopes, and at least `storm_least`, get worse together, one alert of
            the fleet says so.
        storm_least: See there.
        together_days: Onsets so near to each other are one.
        outage_share: If so large a share of the running jobs, and at least `outage_least`, fail within
            `outage_minutes`, the fleet has an outage.
        outage_least: See there.
        outage_minutes: See there.
        most_new: So many alerts are opened in one round at most; if there are more, one alert names them all.
        weights: By metric: its part of the false discovery rate, in relation to the others.
        least_ratio: By metric: smaller changes, as a ratio, are not told.
        least_points: By metric: smaller changes of a share, in percentage points, are not told.
        off: Metrics that are not tested.
        causes_out: Failures of these causes do not count.
    """

    zone: str = "UTC"
    fdr: float = 0.1
    alone: float = 0.001
    dependence: Literal["positive", "any"] = "positive"
    baseline_days: int = 56
    scan_days: int = 35
    warm_days: int = 14
    least_before: int = 30
    least_after: int = 8
    least_jobs: int = 3
    least_failures_before: int = 15
    least_failures: int = 6
    burst_minutes: int = 10
    repeats_a_day: int = 2
    resolve: float = 0.003
    accept_days: int = 28
    quiet_days: int = 14
    storm_share: float = 0.4
    storm_least: int = 3
    together_days: int = 3
    outage_share: float = 0.3
    outage_least: int = 5
    outage_minutes: int = 30
    most_new: int = 20
    weights: dict[str, float] = field(default_factory=lambda: {m.name: m.weight for m in METRICS.values()})
    least_ratio: dict[str, float] = field(default_factory=lambda: {m.name: m.least_ratio for m in METRICS.values()})
    least_points: dict[str, float] = field(default_factory=lambda: {m.name: m.least_points for m in METRICS.values()})
    off: frozenset[str] = frozenset()
    causes_out: frozenset[str] = frozenset({"maintenance"})

    @property
    def history_days(self) -> int:
        """How much has to be read: onset, baseline before it, and the profile of that baseline's first week."""
        return self.scan_days + 2 * self.baseline_days + 8
