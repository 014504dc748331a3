"""Every derived table anew from the stored events."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ettwatch_clickhouse.migrate import restore
from ettwatch_clickhouse.retention import retention
from ettwatch_clickhouse.rollups import Rollups
from ettwatch_clickhouse.shadow import Shadows
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.stored import StoredEvent, count_events, stored_events
from ettwatch_clickhouse.tables import EVENTS_TABLE, Tables
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_clickhouse.writer import Writer
from ettwatch_core import JobState, Rules, Verdict, apply, settle, snapshot
from ettwatch_schemas import DecodeError, decode_event

__all__ = ["RebuildReport", "rebuild"]

_SETTLE_EVERY: Final = 500
_TELL_EVERY: Final = 1_000
_DAY_US: Final = 86_400_000_000
_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild did.

    Attributes:
        jobs: Jobs made anew.
        events: Stored events read, each once.
        rejected: Of these, how many could not be read, or came too late for the rules.
        kept: Jobs left as they were, because some of their events have expired.
    """

    jobs: int
    events: int
    rejected: int
    kept: int


def rebuild(
    store: Store,
    rules: Rules,
    *,
    now: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.time,
) -> RebuildReport:
    """Make jobs, attempts, segments and phases anew from the stored events.

    Readers see the old tables until all is done, then the new ones. A writer may live on meanwhile: what it writes is
    taken along. One rebuild at a time. The rollups follow at its end. Derived tables and views that are missing are
    created first.

    Args:
        store: With all migrations applied.
        rules: Settings of the fold.
        now: The clock for jobs that are open (µs). Without it each job is made as of the time of its stored summary,
            and one that has none as of its newest event.
        progress: Called now and then with how many events are done, and how many there are, about.
        clock: The time in seconds since the Unix epoch.

    Raises:
        StoreError: The rows are as they were before; the table of events may be missing.
    """
    restore(store)
    shadows = Shadows(store)
    try:
        kept_sql = _expired_sql(store, clock)
        kept: set[str] = set()
        if kept_sql is not None:
            kept = {str(row[0]) for row in store.query(kept_sql).rows}
        if kept and kept_sql is not None:
            shadows.keep(kept_sql)
        report = _fold_all(store, rules, now, kept, progress, clock)
        ids = WriteIds(clock)
        ids.seen(shadows.since)
        shadows.mark_final(ids.next())
        shadows.swap()
    except BaseException:
        shadows.clear_up()
        raise
    shadows.drop()
    Rollups(store, clock=clock).run()
    return report


def _expired_sql(store: Store, clock: Callable[[], float]) -> str | None:
    """Return the query for the jobs of which more events were counted than are left, if events expire at all."""
    days = retention(store, "events")
    if days is None:
        return None
    before = int(clock() * 1e6) - days * _DAY_US
    return (
        "SELECT job FROM"
        " (SELECT job, argMax(version, ver) AS newest, argMax(t0, ver) AS begun FROM jobs_log GROUP BY job) AS j"
        f" LEFT JOIN (SELECT toString(job) AS job, uniqExact(uid) AS number FROM {EVENTS_TABLE} GROUP BY job) AS e"
        f" USING (job) WHERE toUnixTimestamp64Micro(begun) < {before} AND bitShiftRight(newest, 32) > number"
    )


def _fold_all(
    store: Store,
    rules: Rules,
    now: int | None,
    kept: set[str],
    progress: Callable[[int, int], None] | None,
    clock: Callable[[], float],
) -> RebuildReport:
    total = count_events(store)
    writer = Writer(store, clock=clock, tables=Tables.shadow())
    published = _Published(store)
    jobs = events = rejected = 0
    for job, stored in groupby(stored_events(store), key=lambda event: event.job):
        fold = _Fold(job, rules, writer)
        for event in stored:
            events += 1
            if job not in kept:
                fold.take(event)
            if progress is not None and events % _TELL_EVERY == 0:
                progress(events, max(events, total))
        if fold.state.accepted:
            jobs += 1
            fold.finish(now if now is not None else published.as_of(job))
        rejected += fold.rejected
    writer.flush()
    if progress is not None:
        progress(events, events)
    return RebuildReport(jobs, events, rejected, len(kept))


class _Fold:
    """One job on its way from events to rows."""

    def __init__(self, job: str, rules: Rules, writer: Writer) -> None:
        self.state = JobState(job)
        self.rejected = 0
        self._rules = rules
        self._writer = writer
        self._taken = 0

    def take(self, stored: StoredEvent) -> None:
        try:
            event = decode_event(stored.raw)
        except DecodeError:
            self.rejected += 1  # stored by a newer ettwatch
            return
        self.rejected += apply(self.state, event, self._rules) is Verdict.LATE
        self._taken += 1
        if self._taken % _SETTLE_EVERY == 0:
            settled = settle(self.state, self._rules)
            if settled is not None:
                self._writer.settled(settled, self.state.accepted << 32 | self.state.newest // _SECOND_US)

    def finish(self, now: int | None) -> None:
        self._writer.snapshot(snapshot(self.state, self._rules, now))


class _Published:
    """The times as of which the stored summaries were made, read along with the jobs, which come in order."""

    _PAGE: Final = 5_000

    def __init__(self, store: Store) -> None:
        self._store = store
        self._page: dict[str, int] = {}
        self._last = ""
        self._more = True

    def as_of(self, job: str) -> int | None:
        """Return the clock of a job's stored summary (µs); None if there is no summary."""
        while self._more and job > self._last:
            self._turn(job)
        return self._page.get(job)

    def _turn(self, job: str) -> None:
        rows = self._store.query(
            "SELECT job, argMax(version, ver), toUnixTimestamp64Micro(argMax(t1, ver)) FROM jobs_log "
            f"WHERE job >= {{job:String}} GROUP BY job ORDER BY job LIMIT {self._PAGE}",
            {"job": job},
        ).rows
        self._page = dict(_as_of(*row) for row in rows)
        self._more = len(rows) == self._PAGE
        self._last = str(rows[-1][0]) if rows else job


def _as_of(job: object, version: object, t1: object) -> tuple[str, int]:
    """A version tells the second; where the job was open, its end tells the rest."""
    assert isinstance(version, int)
    assert isinstance(t1, int)
    second = version & 0xFFFFFFFF
    return str(job), t1 if t1 // _SECOND_US == second else second * _SECOND_US + _SECOND_US - 1
