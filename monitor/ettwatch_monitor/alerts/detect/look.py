"""What one look at one stream says: how unlikely it is that nothing happened, since when, and by how much."""

from dataclasses import dataclass

__all__ = ["Effect", "Look", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, in microseconds: from `start` up to but not including `end`."""

    start: int
    end: int

    def holds(self, ts: int) -> bool:
        """Whether an instant lies in it."""
        return self.start <= ts < self.end


@dataclass(frozen=True, slots=True)
class Look:
    """What a stream says now of the thought that it got worse.

    Attributes:
        p: Bound on the probability of as much evidence, for any onset of the scanned days, were nothing changed.
        onset: The likeliest onset, in microseconds.
        earliest: The onset may well be so early.
        latest: The onset may well be so late.
        before: Samples, or failures, that the baseline has.
        after: Samples, or failures, since the onset.
        pace: Samples, or failures, a day, before the days that are scanned.
    """

    p: float
    onset: int
    earliest: int
    latest: int
    before: int
    after: int
    pace: float


@dataclass(frozen=True, slots=True)
class Effect:
    """By how much a stream moved from before an onset to after it.

    Attributes:
        before: Number of samples or failures before.
        after: And after.
        jobs_before: Different jobs before.
        jobs_after: And after.
        low: 10 %, 50 % and 90 % quantiles before, of the jobs of the kinds that came after; of a rate, three times the
            failures per 1000 GPU-hours.
        high: The same after.
        ratio: After in relation to before (of shares: of the medians).
        ratio_from: Lower end of its interval of 95 %.
        ratio_to: Upper end.
        points: Difference in percentage points, of shares.
        shift: The shift in standard deviations of the usual spread; of a rate, the logarithm of the ratio.
        shift_from: Lower end of its interval.
        p_two_sample: p value of the plain test of two samples at this onset (Mann-Whitney, or binomial for a rate). It
            does not pay for the choice of the onset; the detector's own does.
    """

    before: int
    after: int
    jobs_before: int
    jobs_after: int
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    ratio: float
    ratio_from: float
    ratio_to: float
    points: float
    shift: float
    shift_from: float
    p_two_sample: float
