"""A ClickHouse of dictionaries, for tests of the loop that need no engine."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ettwatch_clickhouse import StoreError
from ettwatch_core import Settled, Snapshot
from ettwatch_schemas import Event, JobSummary


class Rows(NamedTuple):
    rows: list[tuple[object, ...]]


class FakeStore:
    """Holds what was flushed, and answers the queries of the loop."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], bytes] = {}
        self.received: dict[tuple[str, str], int] = {}
        self.jobs: dict[str, JobSummary] = {}
        self.published: list[JobSummary] = []
        self.queries = 0
        self.failures: list[Exception] = []

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Rows:
        self.queries += 1
        if self.failures:
            raise self.failures.pop(0)
        given = params or {}
        if "since" in given:
            since = given["since"]
            assert isinstance(since, int)
            return Rows([(raw.decode(),) for key, raw in self.events.items() if self.received[key] > since])
        if "DISTINCT job" in sql:
            return Rows([(job,) for job in sorted({job for job, _ in self.events})])
        mine = {event_id: raw for (job, event_id), raw in self.events.items() if job == given["job"]}
        if "DISTINCT id" in sql:
            ids = given["ids"]
            assert isinstance(ids, list)
            return Rows([(event_id,) for event_id in ids if event_id in mine])
        assert sql.startswith("SELECT raw FROM events"), sql
        return Rows([(raw.decode(),) for raw in mine.values()])


class FakeWriter:
    """Buffers rows and hands them to the store in one go."""

    def __init__(self, store: FakeStore, now_us: Callable[[], int]) -> None:
        self.store = store
        self.now_us = now_us
        self.events: dict[tuple[str, str], bytes] = {}
        self.received: dict[tuple[str, str], int] = {}
        self.snapshots: list[Snapshot] = []
        self.failures: list[Exception] = []

    @property
    def pending(self) -> int:
        return len(self.events) + len(self.snapshots)

    def event(self, event: Event, raw: bytes) -> None:
        self.events[event.job, event.id] = raw
        self.received[event.job, event.id] = self.now_us()

    def snapshot(self, snap: Snapshot) -> None:
        self.snapshots.append(snap)

    def settled(self, settled: Settled, version: int) -> None:
        assert version > 0

    def flush(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.store.events |= self.events
        self.store.received |= self.received
        for snap in self.snapshots:
            summary = snap.summary
            self.store.published.append(summary)
            if summary.job not in self.store.jobs or summary.version >= self.store.jobs[summary.job].version:
                self.store.jobs[summary.job] = summary
        self.events, self.received = {}, {}
        self.snapshots = []


def away() -> StoreError:
    return StoreError("ClickHouse is away")
