"""The writer: takes in events and results, and brings them into ClickHouse in batches, each row at least once.

Every row may be written any number of times: the views show one. So what may or may not have arrived is sent again.
"""

import random
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from ettwatch_clickhouse.changes import Changes, settled_changes, snapshot_changes
from ettwatch_clickhouse.known import KnownJobs
from ettwatch_clickhouse.retry import Retry, Retrying
from ettwatch_clickhouse.rows import ATTEMPTS, EVENTS, JOBS, PHASES, SEGMENTS, Row, event_row
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import EVENTS_TABLE, Tables
from ettwatch_clickhouse.takeup import take_up
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_core import Settled, Snapshot
from ettwatch_schemas import AttemptSummary, Event, PhaseSpan, Segment

__all__ = ["Writer"]

_KNOWN_ROWS: Final = 500_000
"""Rows remembered in order not to write them again: about 100 bytes each."""

_INSERT_ROWS: Final = 100_000
"""Rows in one insert at most."""


@dataclass(frozen=True, slots=True)
class _Insert:
    table: str
    columns: Sequence[str]
    rows: list[Row]
    token: str


class Writer:
    """Writes events and results in batches. For one thread.

    One writer at a time writes a job; jobs may move from one writer to another.

    Args:
        store: With all migrations applied.
        clock: The time in seconds since the Unix epoch.
        sleep: Waits for some seconds.
        max_rows: Rows that may wait; then a batch is written without being asked for.
        max_bytes: Bytes of events that may wait.
        retry: How long to wait for a ClickHouse that is away.
        chance: For the pauses: a number from 0 to 1.
        tables: The names of the derived tables.
        known_rows: How many rows to remember in order not to write them again.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        max_rows: int = 50_000,
        max_bytes: int = 32 << 20,
        retry: Retry | None = None,
        chance: Callable[[], float] = random.random,
        tables: Tables | None = None,
        known_rows: int = _KNOWN_ROWS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._retrying = Retrying(retry or Retry(), clock, sleep, chance)
        self._tables = tables or Tables()
        self._ids = WriteIds(clock)
        self._known = KnownJobs(known_rows)
        self._events: list[Row] = []
        self._bytes = 0
        self._results: dict[str, list[Snapshot | tuple[Settled, int]]] = {}
        self._result_rows = 0
        self._outbox: deque[_Insert] = deque()
        self._outbox_rows = 0

    def event(self, event: Event, raw: bytes) -> None:
        """Take in an event that counts.

        Args:
            event: The event.
            raw: Its JSON, stored as it is.

        Raises:
            StoreError: A batch was due and could not be written. It is kept; the event is in it.
        """
        self._events.append(event_row(event, raw, int(self._clock() * 1e6)))
        self._bytes += len(raw)
        self._relieve()

    def snapshot(self, snap: Snapshot) -> None:
        """Take in how a job stands: its summary, and what is not final. A later one of the job takes its place.

        Raises:
            StoreError: A batch was due and could not be written. It is kept.
        """
        waiting = self._results.setdefault(snap.summary.job, [])
        if waiting and isinstance(waiting[-1], Snapshot):
            self._result_rows -= _weight(waiting.pop())
        self._take(waiting, snap)

    def settled(self, settled: Settled, version: int) -> None:
        """Take in what became final of a job.

        Args:
            settled: As :func:`ettwatch_core.settle` returned it.
            version: Of a summary of the job made after that.

        Raises:
            StoreError: A batch was due and could not be written. It is kept.
        """
        job = _job_of(settled)
        if job is not None:
            self._take(self._results.setdefault(job, []), (settled, version))

    def flush(self) -> None:
        """Write everything; return when it is safe in ClickHouse.

        Raises:
            StoreUnavailable: ClickHouse was away for longer than patience lasts.
            StoreError: It refused.

        What was not written is kept in either case, and written by the next call.
        """
        self._encode()
        while self._outbox:
            insert = self._outbox[0]
            self._retrying.run(
                partial(self._store.insert, insert.table, insert.columns, insert.rows, token=insert.token)
            )
            self._outbox.popleft()
            self._outbox_rows -= len(insert.rows)

    @property
    def pending(self) -> int:
        """Rows that wait to be written."""
        return len(self._events) + self._result_rows + self._outbox_rows

    def _take(self, waiting: list[Snapshot | tuple[Settled, int]], item: Snapshot | tuple[Settled, int]) -> None:
        waiting.append(item)
        self._result_rows += _weight(item)
        self._relieve()

    def _relieve(self) -> None:
        if self.pending >= self._max_rows or self._bytes >= self._max_bytes:
            self.flush()

    def _encode(self) -> None:
        """Turn what waits into inserts. From then on it is sent as it is, however often."""
        if self._events:
            self._put(EVENTS_TABLE, EVENTS, self._events)
            self._events, self._bytes = [], 0
        if not self._results:
            return
        jobs = self._known.missing(self._results)
        if jobs:
            # Before anything changes here: this may fail.
            taken = self._retrying.run(lambda: take_up(self._store, self._tables, jobs, self._ids))
            for job, known in taken.items():
                self._known.put(job, known)
        changes = Changes()
        for job, items in self._results.items():
            known = self._known[job]
            for item in items:
                if isinstance(item, Snapshot):
                    snapshot_changes(known, item, self._ids, changes)
                else:
                    settled_changes(known, job, item[0], item[1], self._ids, changes)
            self._known.put(job, known)
        self._results, self._result_rows = {}, 0
        self._known.trim()
        names = self._tables
        self._put(names.phases, PHASES, changes.phases)
        self._put(names.attempts, ATTEMPTS, changes.attempts)
        self._put(names.segments, SEGMENTS, changes.segments)
        self._put(names.jobs, JOBS, changes.jobs)

    def _put(self, table: str, columns: Sequence[str], rows: list[Row]) -> None:
        for some in _slices(rows, min(self._max_rows, _INSERT_ROWS)):
            self._outbox.append(_Insert(table, columns, some, uuid.uuid4().hex))
            self._outbox_rows += len(some)


def _slices(rows: list[Row], size: int) -> Iterator[list[Row]]:
    for at in range(0, len(rows), size):
        yield rows[at : at + size]


def _weight(item: Snapshot | tuple[Settled, int]) -> int:
    part = item if isinstance(item, Snapshot) else item[0]
    return 1 + len(part.segments) + len(part.attempts) + len(part.spans)


def _job_of(settled: Settled) -> str | None:
    rows: Iterator[Segment | AttemptSummary | PhaseSpan] = chain(settled.segments, settled.attempts, settled.spans)
    first = next(rows, None)
    return None if first is None else first.job
