"""Amounts over time: by hour, and in it by bucket. Hours that are not in use are packed away."""

from collections.abc import Iterator

from ettwatch_core.windows.amounts import Amounts, Buckets, add, coarser, pack, unpack

__all__ = ["Sheet", "read_buckets"]


class Sheet:
    """Amounts by hour. An hour without any is not there."""

    __slots__ = ("_cold", "_hot")

    def __init__(self) -> None:
        self._hot: dict[int, tuple[int, Buckets]] = {}
        self._cold: dict[int, tuple[int, bytes]] = {}

    def __bool__(self) -> bool:
        return bool(self._hot or self._cold)

    def hours(self) -> list[int]:
        """Return the hours that have something."""
        return [*self._hot, *self._cold]

    def minutes(self, hour: int) -> int | None:
        """Return how many minutes a bucket of an hour has; None if there is nothing."""
        held = self._hot.get(hour) or self._cold.get(hour)
        return None if held is None else held[0]

    def buckets(self, hour: int) -> Buckets:
        """Return the buckets of an hour, not to be changed."""
        held = self._hot.get(hour)
        if held is not None:
            return held[1]
        cold = self._cold.get(hour)
        return {} if cold is None else read_buckets(unpack(cold[1]))

    def change(self, hour: int, minutes: int, more: Buckets, times: int = 1) -> None:
        """Add buckets of so many minutes to an hour, or take them away."""
        held = self._warm(hour, minutes)
        for at, amounts in more.items():
            into = held.setdefault(at, {})
            add(into, amounts, times)
            if not into:
                del held[at]
        if not held:
            del self._hot[hour]

    def put(self, hour: int, minutes: int, at: int, amounts: Amounts) -> Amounts:
        """Set one bucket; return what was there before."""
        held = self._warm(hour, minutes)
        before = held.pop(at, {})
        if amounts:
            held[at] = amounts
        if not held:
            del self._hot[hour]
        return before

    def coarsen(self, hour: int, minutes: int | None) -> None:
        """Make the buckets of an hour longer, where they are shorter; None: forget the hour."""
        held = self.minutes(hour)
        if held is None or (minutes is not None and minutes <= held):
            return
        buckets = {} if minutes is None else coarser(self.buckets(hour), minutes)
        self._hot.pop(hour, None)
        self._cold.pop(hour, None)
        if buckets and minutes is not None:
            self._hot[hour] = (minutes, buckets)

    def cool(self, before: int) -> None:
        """Pack the hours before one."""
        for hour in [hour for hour in self._hot if hour < before]:
            minutes, buckets = self._hot.pop(hour)
            self._cold[hour] = (minutes, pack(buckets))

    def packed(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield each hour: its number, the minutes of a bucket, and the buckets packed."""
        for hour, (minutes, buckets) in self._hot.items():
            yield hour, minutes, pack(buckets)
        for hour, (minutes, data) in self._cold.items():
            yield hour, minutes, data

    def restore(self, hour: int, minutes: int, data: bytes) -> None:
        """Take an hour as it was packed."""
        self._cold[hour] = (minutes, data)

    def _warm(self, hour: int, minutes: int) -> Buckets:
        held = self._hot.get(hour)
        if held is None:
            cold = self._cold.pop(hour, None)
            held = (minutes, {}) if cold is None else (cold[0], read_buckets(unpack(cold[1])))
            self._hot[hour] = held
        if held[0] != minutes:
            raise ValueError(f"hour {hour} has buckets of {held[0]} min, not {minutes}")
        return held[1]


def read_buckets(told: dict[str, Amounts]) -> Buckets:
    """Return buckets as JSON has them, with their numbers as numbers."""
    return {int(at): amounts for at, amounts in told.items()}
