"""How soon a doubling of a failure rate can be found at all: the best test there is, for a rate that is known.

Failures are a Poisson process over GPU-hours. For a rate that is known before and after, no test has a shorter mean
delay at as few false alarms than Page's CUSUM of the likelihood ratio (Moustakides 1986). Each failure adds log r, each
GPU-hour takes away (r - 1) times the usual rate; after a rise to r times the rate that makes log r - 1 + 1/r on average
for each failure, for a doubling 0.193. `python benchmarks/_detection_bound.py` prints the table of docs/alerts.md.
"""

import math
from typing import Final, NamedTuple

import numpy as np

RATIO: Final = 2.0
WITHIN: Final = 40
A_QUARTER: Final = 250
"""Failures of a team in a quarter: the mean of the benchmark's teams."""
Sums = np.ndarray[tuple[int], np.dtype[np.float64]]
_RUNS: Final = 20_000
_SETTLED: Final = 60


class Bound(NamedTuple):
    """What the best test does at one threshold; delays in failures after the onset."""

    threshold: float
    false: float
    """False alarms in a quarter."""
    mean: float
    p95: float
    within: float
    """The part that is found within 40 failures."""


def bound(threshold: float, rng: np.random.Generator) -> Bound:
    """Return what the best test does at a threshold, by simulation. The unit of time is that of one usual failure."""
    alarm = _times(threshold, np.zeros(400), 1.0, rng)
    sums = np.zeros(_RUNS)
    for _ in range(_SETTLED):
        sums = _next(sums, 1.0, rng)
        sums[sums >= threshold] = 0.0
    delay = _times(threshold, sums, RATIO, rng)
    high = float(np.percentile(delay, 95, method="higher"))
    return Bound(threshold, A_QUARTER / float(alarm.mean()), float(delay.mean()), high, float((delay <= WITHIN).mean()))


def _next(sums: Sums, rate: float, rng: np.random.Generator) -> Sums:
    gaps = rng.exponential(1 / rate, len(sums))
    following: Sums = np.maximum(sums - (RATIO - 1) * gaps, 0.0) + math.log(RATIO)
    return following


def _times(threshold: float, sums: Sums, rate: float, rng: np.random.Generator) -> Sums:
    """Return how many failures each run needs to the threshold."""
    took = np.zeros(len(sums))
    left = np.arange(len(sums))
    while len(left):
        sums = _next(sums, rate, rng)
        took[left] += 1
        on = sums < threshold
        left, sums = left[on], sums[on]
    return took


if __name__ == "__main__":
    chance = np.random.default_rng(1)
    print("threshold  false in a quarter  mean  95 %  within 40")
    for height in (4.0, 4.5, 5.0, 5.5, 6.0, 6.5):
        one = bound(height, chance)
        print(f"{one.threshold:>9.1f}{one.false:>20.2f}{one.mean:>6.0f}{one.p95:>6.0f}{one.within:>11.1%}")
