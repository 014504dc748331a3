"""An interval that follows what is measured: what saves cost here, and how often this job fails. Told the time."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from ettwatch_trainer.remedies.recovery import book as books
from ettwatch_trainer.remedies.recovery.book import KEPT, Seen
from ettwatch_trainer.remedies.recovery.interval import DAY_S, Optimum, optimum

LOG = logging.getLogger("ettwatch.remedies")


class AdaptiveInterval:
    """The checkpoint interval of a job, in seconds, from `minimum_s` to `maximum_s`.

    failures_per_day: what is expected of a job of which nothing is known; it counts as much as `trust_days` of running.
    change: the interval moves only if the best one is further away than this part of it, so that it does not flutter.
    first_blocking_s: what a save is thought to block before one was measured.
    book: a file beside the checkpoints, in which attempts leave what they have seen. Only one rank may have it.
    """

    def __init__(
        self,
        *,
        minimum_s: float,
        maximum_s: float,
        failures_per_day: float = 3.0,
        trust_days: float = 1.0,
        change: float = 0.2,
        first_blocking_s: float = 1.0,
        book: Path | None = None,
    ) -> None:
        if not 0 < minimum_s <= maximum_s < math.inf:
            raise ValueError(f"minimum_s {minimum_s} and maximum_s {maximum_s}: give 0 < minimum <= maximum")
        for name, value in [("failures_per_day", failures_per_day), ("trust_days", trust_days), ("change", change)]:
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name}: {value} cannot be; give at least 0")
        self._minimum, self._maximum, self._change = minimum_s, maximum_s, change
        self._prior, self._trust, self._first = failures_per_day, trust_days, first_blocking_s
        self._book = book
        self._seen = Seen() if book is None else books.read(book)
        self._since: float | None = None
        self.interval_s = self.best.interval_s

    @property
    def failures_per_day(self) -> float:
        """What is expected now: seen and expected failures over seen and expected days."""
        days = self._trust + self._seen.seconds / DAY_S
        return self._prior if days == 0 else (self._prior * self._trust + self._seen.failures) / days

    @property
    def best(self) -> Optimum:
        """The best interval by what is known now, within the bounds."""
        return optimum(
            _usual(self._seen.blocking_s, self._first),
            self.failures_per_day,
            durable_after_s=_usual(self._seen.durable_after_s, 0.0),
            minimum_s=self._minimum,
            maximum_s=self._maximum,
        )

    def begin(self, now_s: float) -> None:
        """An attempt begins. If the one before left no word that it ended, it failed."""
        self._since = now_s
        failed = 1 if self._seen.running else 0
        self._move(replace(self._seen, running=True, failures=self._seen.failures + failed))
        self.interval_s = self.best.interval_s  # nothing to flutter between attempts

    def saved(self, now_s: float, blocking_s: float, durable_after_s: float = 0.0) -> None:
        """A save has blocked for `blocking_s`, and was durable `durable_after_s` after it began (0 if not known)."""
        if not (blocking_s >= 0 and durable_after_s >= 0 and math.isfinite(blocking_s + durable_after_s)):
            return  # a clock that was set; the other saves say enough
        lags = (*self._seen.durable_after_s, durable_after_s) if durable_after_s else self._seen.durable_after_s
        blocked = (*self._seen.blocking_s, blocking_s)
        self._ran(now_s)
        self._move(replace(self._seen, blocking_s=blocked[-KEPT:], durable_after_s=lags[-KEPT:]))

    def failed(self, now_s: float) -> None:
        """The job failed and goes on in this process: a rank was lost, say."""
        self._ran(now_s)
        self._move(replace(self._seen, failures=self._seen.failures + 1))

    def ended(self, now_s: float) -> None:
        """The attempt ends as it should; the next one does not take it for a failure."""
        self._ran(now_s)
        self._move(replace(self._seen, running=False))

    def _ran(self, now_s: float) -> None:
        if self._since is not None:
            self._seen = replace(self._seen, seconds=self._seen.seconds + max(0.0, now_s - self._since))
            self._since = now_s

    def _move(self, seen: Seen) -> None:
        self._seen = seen
        best = self.best.interval_s
        if abs(best - self.interval_s) > self._change * self.interval_s:
            self.interval_s = best
        if self._book is not None:
            try:
                books.write(self._book, seen)
            except OSError as error:
                LOG.warning("%s cannot be written (%s); the next attempt will know less", self._book, error)


def _usual(times: Sequence[float], otherwise: float) -> float:
    """The median: one save that hit a slow moment of the storage says little."""
    return median(times) if times else otherwise
