"""Durations counted by size, so that a count can be taken back. Quantiles are right within 1 %.

A bucket that begins at `a` holds the whole microseconds from `a` to `a + 2 * (a // 100)`, as in DDSketch (Masson, Rim
and Lee, VLDB 2019) but with bounds in integers: they are the same on every machine. What stands for a bucket is its
middle, so no value in it is further away than `a // 100`, which is at most 1 % of it.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

__all__ = ["bucket_of", "middle_of", "quantile"]

_LONGEST_US: Final = 100 * 366 * 86_400_000_000
"""A century: whatever is longer is counted as if it were as long."""


def _begins() -> list[int]:
    begins = [0]
    at = 1
    while at <= _LONGEST_US:
        begins.append(at)
        at += 2 * (at // 100) + 1
    return begins


_BEGINS: Final = _begins()


def bucket_of(us: int) -> int:
    """Return the number of the bucket of a duration in microseconds; what is negative counts as 0."""
    return bisect_right(_BEGINS, max(us, 0)) - 1


def middle_of(bucket: int) -> int:
    """Return the duration in microseconds that stands for a bucket."""
    begin = _BEGINS[bucket]
    return begin + begin // 100


def quantile(counts: Mapping[int, int], per_cent: int) -> int | None:
    """Return the duration (µs) below or at which so many per cent of all lie, by nearest rank; None if there are none.

    Args:
        counts: How many durations each bucket has.
        per_cent: From 1 to 100.
    """
    total = sum(counts.values())
    if total <= 0:
        return None
    rank = -(-total * per_cent // 100)
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0:
            return middle_of(bucket)
    raise ValueError("counts below 0")
