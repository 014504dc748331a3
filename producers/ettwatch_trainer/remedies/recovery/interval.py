"""How often to save: what an interval wastes, and which one wastes least. Plain arithmetic, needs no torch.

An interval of τ seconds, a save that blocks for δ seconds and failures every M seconds on average waste about

    w(τ) = δ/τ + (τ/2 + u)/M + r/M

of the time: the saves themselves; what was trained since the last durable checkpoint, half an interval on average, and
`u` more if a save becomes durable only so long after it began; and `r` to get going again after each failure.

J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974.
J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Optimum:
    """The interval that wastes least, in seconds, and the share of time (0 to 1) that it wastes."""

    interval_s: float
    wasted_share: float


def wasted_share(
    interval_s: float,
    *,
    blocking_s: float,
    failures_per_day: float,
    durable_after_s: float = 0.0,
    recovery_s: float = 0.0,
) -> float:
    """The share of time that is wasted (0 to 1), by saving every `interval_s` and by failures.

    durable_after_s: from the beginning of a save to when it is durable. recovery_s: from a failure to training again.
    Raises ValueError for an interval that is not more than 0, and for amounts below 0.
    """
    _least("interval_s", interval_s, 0.0, open_end=True)
    for name, value in [("blocking_s", blocking_s), ("failures_per_day", failures_per_day)]:
        _least(name, value, 0.0)
    _least("durable_after_s", durable_after_s, 0.0)
    _least("recovery_s", recovery_s, 0.0)
    failures = failures_per_day / DAY_S
    return min(1.0, blocking_s / interval_s + failures * (interval_s / 2 + durable_after_s + recovery_s))


def young(blocking_s: float, failures_per_day: float) -> float:
    """Young's interval √(2δM), in seconds: where `wasted_share` is least. Infinite if nothing fails."""
    _least("blocking_s", blocking_s, 0.0)
    _least("failures_per_day", failures_per_day, 0.0)
    return math.inf if failures_per_day == 0 else math.sqrt(2 * blocking_s * DAY_S / failures_per_day)


def daly(blocking_s: float, failures_per_day: float) -> float:
    """Daly's interval, in seconds: √(2δM)·(1 + √(δ/2M)/3 + δ/18M) − δ while δ < 2M, else M.

    It holds also where saves take no small part of the time between failures; failures may hit saves, too.
    """
    if failures_per_day == 0 or blocking_s == 0:
        return young(blocking_s, failures_per_day)
    between = DAY_S / failures_per_day
    if blocking_s >= 2 * between:
        return between
    ratio = blocking_s / (2 * between)
    return young(blocking_s, failures_per_day) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - blocking_s


def optimum(
    blocking_s: float,
    failures_per_day: float,
    *,
    durable_after_s: float = 0.0,
    recovery_s: float = 0.0,
    minimum_s: float = 0.0,
    maximum_s: float = math.inf,
) -> Optimum:
    """The best interval from `minimum_s` to `maximum_s`, and what it wastes.

    It is never shorter than a save takes to become durable: at most one is under way.
    Raises ValueError if the bounds leave nothing, or if there is no bound and nothing fails.
    """
    if not 0 <= minimum_s <= maximum_s:
        raise ValueError(f"minimum_s {minimum_s} and maximum_s {maximum_s}: give 0 <= minimum <= maximum")
    interval_s = min(max(young(blocking_s, failures_per_day), durable_after_s, minimum_s), maximum_s)
    if not 0 < interval_s < math.inf:
        raise ValueError(
            f"no interval is best with blocking_s={blocking_s} and failures_per_day={failures_per_day}; "
            "give minimum_s and maximum_s"
        )
    share = wasted_share(
        interval_s,
        blocking_s=blocking_s,
        failures_per_day=failures_per_day,
        durable_after_s=durable_after_s,
        recovery_s=recovery_s,
    )
    return Optimum(interval_s, share)


def _least(name: str, value: float, least: float, *, open_end: bool = False) -> None:
    if not (math.isfinite(value) and (value > least if open_end else value >= least)):
        raise ValueError(f"{name}: {value} cannot be; give {'more than' if open_end else 'at least'} {least:g}")
