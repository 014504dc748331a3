"""The one line every few seconds that tells how far `ettwatch up` is."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ettwatch_app.up.log import Log, named

_ORDER: Final = (
    *("training", "starting", "recovering", "silent", "pending"),
    *("succeeded", "failed", "cancelled", "lost", "unknown"),
)


@dataclass(slots=True)
class Totals:
    """What one run has done so far.

    Attributes:
        lines: Lines read.
        taken: Events that counted.
        conflicts: Of these, those whose id had been told with another content.
        duplicates: Events that had been handled before.
        rejects: Refused lines and events, by code.
        removed: Spool files removed.
        troubles: Files and folders that could not be read.
    """

    lines: int = 0
    taken: int = 0
    conflicts: int = 0
    duplicates: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    troubles: int = 0

    @property
    def rejected(self) -> int:
        """How many lines and events were refused."""
        return self.rejects.total()


class Progress:
    """Tells the log how far it is, when something has changed and not too often.

    Args:
        log: Where to.
        rejected_to: The name of the dead letter file.
        every_s: The shortest time between two lines.
        monotonic: A monotonic clock (s).
    """

    def __init__(self, log: Log, rejected_to: str, every_s: float, monotonic: Callable[[], float]) -> None:
        self._log = log
        self._rejected_to = rejected_to
        self._every_s = every_s
        self._monotonic = monotonic
        self._told_s = monotonic()
        self._told: tuple[object, ...] = (0, 0, 0, 0, {})
        self._taken = 0

    def tell(self, totals: Totals, statuses: Counter[str], files: int, behind: int, *, now: bool = False) -> None:
        """Write the line if it is time for it.

        Args:
            totals: What was done.
            statuses: Jobs by status.
            files: How many event files there are.
            behind: Bytes that are not read yet.
            now: Do not wait for the time.
        """
        at_s = self._monotonic()
        if not now and at_s - self._told_s < self._every_s:
            return
        jobs = {status: statuses[status] for status in _ORDER if statuses[status]}
        state = (totals.taken, totals.duplicates, totals.rejected, totals.removed, jobs)
        if state == self._told:
            return
        fresh = totals.taken - self._taken
        rate = fresh / max(at_s - self._told_s, 0.001)
        parts = [f"{fresh:+,} events ({rate:,.0f}/s)"] if fresh else []
        parts.append(
            named(sum(jobs.values()), "job") + (": " if jobs else "") + ", ".join(f"{n} {s}" for s, n in jobs.items())
        )
        parts.append(named(files, "file"))
        if behind >= 1_000_000:
            parts.append(f"{behind / 1e6:,.0f} MB to read")
        if totals.duplicates:
            parts.append(f"{totals.duplicates:,} doubled")
        if totals.rejected:
            codes = ", ".join(f"{n} {code}" for code, n in totals.rejects.most_common(3))
            parts.append(f"{totals.rejected:,} rejected ({codes}): see {self._rejected_to}")
        self._log.say(
            "progress",
            " · ".join(parts),
            events=totals.taken,
            events_per_s=round(rate, 1),
            jobs=jobs,
            files=files,
            bytes_behind=behind,
            duplicates=totals.duplicates,
            rejects=dict(totals.rejects),
        )
        self._told_s, self._told, self._taken = at_s, state, totals.taken
