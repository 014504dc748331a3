"""Unions of half-open ranges of positions."""

from bisect import bisect_left, bisect_right

__all__ = ["Ranges"]


class Ranges:
    """The union of the position ranges that a job has passed, as disjoint sorted ranges ``[lo, hi)``."""

    __slots__ = ("highs", "lows")

    def __init__(self, lows: list[int] | None = None, highs: list[int] | None = None) -> None:
        self.lows = lows if lows is not None else []
        self.highs = highs if highs is not None else []

    def copy(self) -> "Ranges":
        """Return an independent copy."""
        return Ranges(self.lows.copy(), self.highs.copy())

    def covered(self, lo: int, hi: int) -> int:
        """Return how many positions of ``[lo, hi)`` lie in the union."""
        highs = self.highs
        if not highs or lo >= highs[-1]:
            return 0
        lows = self.lows
        total = 0
        for i in range(bisect_right(highs, lo), len(lows)):
            if lows[i] >= hi:
                break
            total += min(hi, highs[i]) - max(lo, lows[i])
        return total

    def add(self, lo: int, hi: int) -> None:
        """Add ``[lo, hi)``; touching ranges become one."""
        lows, highs = self.lows, self.highs
        if not highs or lo > highs[-1]:
            lows.append(lo)
            highs.append(hi)
            return
        if lo >= lows[-1]:  # by far the most frequent: the job goes on where it was
            highs[-1] = max(highs[-1], hi)
            return
        first = bisect_left(highs, lo)
        last = bisect_right(lows, hi)
        if first < last:
            lo = min(lo, lows[first])
            hi = max(hi, highs[last - 1])
        lows[first:last] = [lo]
        highs[first:last] = [hi]

    def holds(self, position: int) -> bool:
        """Tell whether a position stands inside the union; at the upper end of a range it does not."""
        i = bisect_right(self.lows, position) - 1
        return i >= 0 and position < self.highs[i]
