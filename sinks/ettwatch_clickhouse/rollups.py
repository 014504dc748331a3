"""Rollups by hour and day: which rows are not what they have to be, and making those anew.

Every row holds a hash of what it was made from. A run compares that with what stands in the tables now and makes anew
what differs. So it does not matter how a row came to be wrong (a correction, a crash between two writes, two processes
at once, a rebuild by other rules): the next run that looks at it puts it right, and one more run changes nothing.

Most runs look at the jobs that were written of late only; a full one looks at everything.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ettwatch_clickhouse.retention import segments_days
from ettwatch_clickhouse.rollup_sql import DAYS, HOURS, Level, fill_jobs, fill_level, stale_periods
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.takeup import as_int

__all__ = ["RolledUp", "Rollups"]

_PAGE: Final = 200_000
"""Hours of jobs that one statement makes anew at most, about: some hundred MB of memory."""

_PERIODS: Final = {HOURS.table: 2_000, DAYS.table: 200}
"""Hours and days that one statement makes anew at most: they stand in it one by one, and each month is a part."""

_SLACK_US: Final = 15 * 60 * 1_000_000
"""Rows may be written with a number that is this much behind the newest: clocks differ, and writers have to wait."""

_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class RolledUp:
    """What a run did.

    Attributes:
        jobs: Rows of job and hour that were not what they had to be.
        hours: Hours of the fleet that were made anew.
        days: Days of the fleet that were made anew.
        full: Whether everything was looked at.
    """

    jobs: int
    hours: int
    days: int
    full: bool


class Rollups:
    """Keeps the rollups of a database. For one thread; several processes do no harm.

    Args:
        store: With all migrations applied.
        clock: The time in seconds since the Unix epoch.
        full_every_s: Seconds from one full run to the next; the first run is full.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time, full_every_s: float = 3_600) -> None:
        self._store = store
        self._clock = clock
        self._full_every_s = full_every_s
        self._full_at: float | None = None
        self._written = 0
        self._made = 0
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stopped

    def stop(self) -> None:
        """Have a run that is under way end after its present statement; the next one goes on from there."""
        self._stopped = True

    def kept_by_another(self, seconds: float) -> bool:
        """Tell whether another process has made something anew within the last three quarters of some seconds.

        Raises:
            StoreError: It cannot be read.
        """
        ((made,),) = self._store.query(_MADE).rows
        since = self._clock() * 1e6 - as_int(made)
        return as_int(made) > self._made and 0 <= since < 0.75e6 * seconds

    def run(self, *, full: bool = False) -> RolledUp:
        """Bring the rollups to what stands in the tables.

        Args:
            full: Look at everything, not only at what was written of late.

        Raises:
            StoreError: Something could not be read or written. The next run looks at everything again.
        """
        now = self._clock()
        full = full or self._full_at is None or not 0 <= now - self._full_at < self._full_every_s
        if full:
            self._full_at = None
        written, made = self._marks(now)
        where = self._pages() if full else [f"job IN ({_LATE.format(since=self._written - _SLACK_US)})"]
        kept = self._kept_from(now)
        jobs = sum(self._jobs(page, kept, made) for page in where)
        since = 0 if full else self._made - _SLACK_US
        hours, days = (self._level(level, since, made) for level in (HOURS, DAYS))
        if self._stopped:  # perhaps in the middle
            return RolledUp(jobs, hours, days, full)
        if full:
            self._full_at = now
        self._written, self._made = written, made
        return RolledUp(jobs, hours, days, full)

    def _marks(self, now: float) -> tuple[int, int]:
        """The newest number of a write, and the one of this run: greater than those of all before."""
        ((written,),) = self._store.query("SELECT max(written) FROM rollup_written").rows
        ((made,),) = self._store.query(_MADE).rows
        return as_int(written), max(int(now * 1e6), as_int(made) + 1)

    def _pages(self) -> Iterator[str]:
        """Conditions that part all jobs into pages."""
        rows = self._store.query(_JOBS.format(page=_PAGE)).rows
        bounds = [str(row[0]) for row in rows][:-1]
        for low, high in zip([None, *bounds], [*bounds, None], strict=True):
            parts = [
                f"job > {_text(low)}" if low is not None else "",
                f"job <= {_text(high)}" if high is not None else "",
            ]
            yield " AND ".join(part for part in parts if part) or "1"

    def _kept_from(self, now: float) -> str:
        """The condition for hours of which the segments are still there: what has expired stays as it was summed up."""
        days = segments_days(self._store)
        if days is None:
            return "1"
        return f"hour >= fromUnixTimestamp64Second({int(now) - (days - 1) * _DAY_S}, 'UTC')"

    def _jobs(self, page: str, kept: str, made: int) -> int:
        if self._stopped:
            return 0
        stale = f"{page} AND {kept}"
        sums = f"SELECT countIf(wanted != 0), countIf(wanted = 0) FROM rollup_jobs_stale WHERE {stale}"
        ((filled, zeros),) = self._store.query(sums).rows
        for number, statement in zip((filled, zeros), fill_jobs(page, stale, made), strict=True):
            if as_int(number):
                self._store.command(statement)
        return as_int(filled) + as_int(zeros)

    def _level(self, level: Level, since: int, made: int) -> int:
        rows = self._store.query(stale_periods(level, since)).rows
        periods = [(as_int(number), as_int(parts)) for number, parts in rows]
        for some in _chunks(periods, _PERIODS[level.table]):
            if self._stopped:
                break
            self._store.command(fill_level(level, some, made))
        return len(periods)


_LATE: Final = "SELECT job FROM rollup_written WHERE written >= {since}"

_MADE: Final = """
SELECT max(made) FROM (
    SELECT max(made) AS made FROM rollup_jobs
    UNION ALL SELECT max(made) FROM rollup_hours
    UNION ALL SELECT max(made) FROM rollup_days
)
"""

_JOBS: Final = """
SELECT max(job) FROM (
    SELECT job, intDiv(sum(cells) OVER (ORDER BY job), {page}) AS page
    FROM (SELECT job, count() AS cells FROM segments_log GROUP BY job)
)
GROUP BY page ORDER BY page
"""


def _chunks(periods: Sequence[tuple[int, int]], size: int) -> Iterator[Sequence[int]]:
    """Part periods, each with its rows of jobs, by their number and by their rows: a job of many years is not slow."""
    some: list[int] = []
    held = 0
    for number, parts in periods:
        if some and (len(some) == size or held + parts > _PAGE):
            yield some
            some, held = [], 0
        some.append(number)
        held += parts
    if some:
        yield some


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
