"""Looking for an onset: the largest evidence over all of them, and what it is worth.

For an onset s the evidence at time t is a likelihood ratio E(s, t) of expectation 1 under no change. Read from t
backwards, the products E(t, t), E(t-1, t), ... are a martingale, so that by Ville's inequality
P(max over s of E(s, t) >= c) <= 1/c: the whole scan costs nothing beyond the bound itself. `exp(-max log E)` is
therefore a p value at each look, for any distribution, and what is corrected over the tests of a round. Over time the
maximum is Page's CUSUM; the mean time between false alarms grows in proportion to exp(threshold) (Lorden 1971; for
e-values: Shin, Ramdas and Rinaldo, "E-detectors").
"""

import math

from ettwatch_monitor.alerts.detect.profile import Floats

__all__ = ["best_start"]

_LIKELY = 2.0
"""Onsets whose log likelihood is less than the best one's by no more than this may well be right: about 95 %."""


def best_start(sums: Floats, share: float) -> tuple[float, int, int, int]:
    """Return the evidence for the best onset, its place, and between which places it may well lie.

    Args:
        sums: Running sums of the logarithm of the evidence: before each sample that may be an onset, then the last.
        share: The part of the error that may be spent here: its price is subtracted.
    """
    starts, end = sums[:-1], float(sums[-1])
    place = int(starts.argmin())
    log_evidence = end - float(starts[place])
    likely = (starts <= float(starts[place]) + _LIKELY).nonzero()[0]
    return log_evidence + math.log(share), place, int(likely[0]), int(likely[-1])
