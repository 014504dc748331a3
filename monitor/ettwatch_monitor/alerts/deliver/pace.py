"""How fast a channel is used: pauses after failures, and a bound on the messages of a time. Told the time."""

from dataclasses import dataclass, replace
from typing import Final

__all__ = ["Bucket", "Rate", "pause"]

_FIRST: Final = 1_000_000
_LONGEST: Final = 300_000_000


def pause(failures: int, chance: float) -> int:
    """Return how long to wait after so many failures in a row, in microseconds.

    Twice as long after each one, from 1 s to 5 min; by chance, a number from 0 to 1, down to half of it: many senders
    must not come back at once.
    """
    longest = min(_LONGEST, _FIRST << min(failures - 1, 20))
    return int(longest * (0.5 + chance / 2))


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` messages in `per` microseconds, which may come at once."""

    count: int
    per: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is left of a rate at a time."""

    tokens: float
    at: int

    def filled(self, rate: Rate, now: int) -> "Bucket":
        """Return it as of a later time. A clock that was set back fills nothing, and takes nothing."""
        grown = max(0, now - self.at) * rate.count / rate.per
        return Bucket(min(float(rate.count), self.tokens + grown), now)

    def taken(self, count: int = 1) -> "Bucket":
        """Return it after so many messages."""
        return replace(self, tokens=self.tokens - count)

    def ready_at(self, rate: Rate) -> int:
        """Return from when on one more message may go (µs)."""
        missing = max(0.0, 1.0 - self.tokens)
        return self.at + int(missing * rate.per / rate.count) + (1 if missing else 0)
