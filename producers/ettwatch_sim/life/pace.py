"""How fast simulated time goes, or how fast events do."""

import math
import re
from dataclasses import dataclass
from typing import Final, Self

from ettwatch_sim.life.dice import US

_WORDS: Final = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)\s*(x|/s)")


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit: times as fast as life, or events a second. Without either there is none."""

    times: float | None = None
    events: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `max`, `60x` or `5000/s`. Raises ValueError."""
        word = text.strip().lower()
        if word == "max":
            return cls()
        match = _WORDS.fullmatch(word)
        value = float(match[1]) if match else 0.0
        if match is None or not 0 < value < math.inf:
            raise ValueError(
                f"{text!r} is no rate; write max, 60x (times as fast as life), or 5000/s (events a second)"
            )
        return cls(times=value) if match[2] == "x" else cls(events=value)


class Clock:
    """Says how long to wait before something is sent. It is told the time.

    Args:
        rate: The limit.
        began: When the first is sent (monotonic seconds).
    """

    def __init__(self, rate: Rate, began: float) -> None:
        self._rate = rate
        self._began = began
        self._first: int | None = None
        self._sent = 0

    def wait(self, ts: int, now: float) -> float:
        """Return for how many seconds to wait before something is sent that happens at `ts` (µs, simulated)."""
        if self._first is None:
            self._first = ts
        due = now
        if self._rate.times is not None:
            due = self._began + (ts - self._first) / US / self._rate.times
        elif self._rate.events is not None:
            due = self._began + self._sent / self._rate.events
        return max(0.0, due - now)

    def sent(self, events: int) -> None:
        """Tell that so many events were sent."""
        self._sent += events
