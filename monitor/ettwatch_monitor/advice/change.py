"""A change: one number of a fleet made another, for all jobs or for some."""

from dataclasses import dataclass
from math import prod
from typing import Final, Literal, TypeAlias

from ettwatch_monitor.advice.life import Attempt, Life

Attempts: TypeAlias = Literal["all", "first", "later"]
Cache: TypeAlias = Literal["job", "fleet"]

BEST: Final = "best"
"""An interval between saves: sqrt(2 x blocking x MTBF)."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is other. What is None, or False, stays.

    Attributes:
        stage, factor: What takes a time of this stage, or of one that begins with it, takes `factor` times as long.
        attempts: In which attempts.
        save_interval_s: Free running between two saves, in seconds, or `best`.
        save_blocking: The share of a save that still blocks; the rest is done in the background.
        detection_s: A failure is noticed so many seconds after the last advance, or sooner if it was.
        detection: Share of the time that noticing still takes.
        causes: ... of which failures; empty: of all.
        overlap: Stages of start-up wait for what they need, and not for each other.
        cache: Compiled code is found that the job, or the fleet, compiled before under the same key.
        stragglers: No host is slower than the others.
        notice: A preempted attempt saves before it goes.
        team, model, cluster: For which jobs; the empty text: for those that name none.
    """

    stage: str | None = None
    factor: float = 1.0
    attempts: Attempts = "all"
    save_interval_s: float | Literal["best"] | None = None
    save_blocking: float | None = None
    detection_s: float | None = None
    detection: float = 1.0
    causes: tuple[str, ...] = ()
    overlap: bool = False
    cache: Cache | None = None
    stragglers: bool = False
    notice: bool = False
    team: str | None = None
    model: str | None = None
    cluster: str | None = None

    def of(self, life: Life) -> bool:
        """Whether it is of this job."""
        return (
            self.team in (None, life.team or "")
            and self.model in (None, life.model or "")
            and self.cluster in (None, life.cluster or "")
        )


class Knobs:
    """All that is other for one job.

    Args:
        changes: Those of the job.
    """

    def __init__(self, changes: tuple[Change, ...]) -> None:
        self._stages = [change for change in changes if change.stage is not None]
        self._noticed = [c for c in changes if c.detection_s is not None or c.detection != 1]
        self.overlap = any(change.overlap for change in changes)
        caches = {change.cache for change in changes}
        self.cache: Cache | None = "fleet" if "fleet" in caches else "job" if "job" in caches else None
        self.stragglers = any(change.stragglers for change in changes)
        self.notice = any(change.notice for change in changes)
        self.save_interval_s = next((c.save_interval_s for c in changes[::-1] if c.save_interval_s is not None), None)
        self.save_blocking = next((c.save_blocking for c in changes[::-1] if c.save_blocking is not None), None)
        self._known: dict[tuple[str, bool], float] = {}

    def factor(self, stage: str, *, first: bool) -> float:
        """How many times as long a stage takes in the first attempt, or in a later one."""
        key = stage, first
        found = self._known.get(key)
        if found is None:
            found = 1.0
            for change in self._stages:
                prefix = change.stage
                fits = prefix is not None and (stage == prefix or stage.startswith(f"{prefix}."))
                if fits and change.attempts in ("all", "first" if first else "later"):
                    found *= change.factor
            self._known[key] = found
        return found

    def detection(self, attempt: Attempt) -> float:
        """The share of the time that noticing the failure of an attempt still takes."""
        if attempt.clean:
            return 1.0
        return prod(c.detection for c in self._noticed if not c.causes or attempt.cause in c.causes)

    def stands(self, attempt: Attempt) -> int:
        """How long (µs) an attempt stands still before it tells its last advance."""
        if attempt.loop is None or attempt.loop.still >= 0:
            return 0
        stood = -attempt.loop.still
        left = self.detection(attempt) if attempt.failed else 1.0
        return min(stood, round(left * (stood + sum(piece.length for piece in attempt.tail))))

    def tail(self, attempt: Attempt) -> float:
        """The share of the time from the last advance of a failed attempt to its end that is left."""
        whole = sum(piece.length for piece in attempt.tail)
        still = attempt.loop.still if attempt.loop is not None else 0
        left = self.detection(attempt)
        if left != 1 and whole > 0:  # what is noticed sooner is that it stands still, not that nothing is told
            left = max(0.0, (left * (whole - still) + still) / whole)
        for change in self._noticed:
            if change.causes and attempt.cause not in change.causes:
                continue
            if change.detection_s is not None and whole > 0:
                left = min(left, change.detection_s * 1_000_000 / whole)
        return left


__all__ = ["BEST", "Attempts", "Cache", "Change", "Knobs"]
