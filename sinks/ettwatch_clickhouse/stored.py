"""Stored events in order, page by page: job by job, each job's by time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import EVENTS_TABLE

__all__ = ["count_events", "stored_events"]

_MOST: Final = 20_000
_PAGE_BYTES: Final = 16 << 20

_SQL: Final = f"""
SELECT job, raw, toUnixTimestamp64Micro(ts), uid
FROM {EVENTS_TABLE}
WHERE job >= {{job:String}}
    AND (job > {{job:String}} OR toUnixTimestamp64Micro(ts) > {{ts:Int64}}
        OR (toUnixTimestamp64Micro(ts) = {{ts:Int64}} AND uid > {{uid:UInt64}}))
ORDER BY job, ts, uid
LIMIT 1 BY job, ts, uid
LIMIT {{page:UInt32}}
"""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One stored event.

    Attributes:
        job: Its job.
        raw: Its JSON.
    """

    job: str
    raw: str


def stored_events(store: Store, *, page: int = 1_000) -> Iterator[StoredEvent]:
    """Yield all stored events, each once: by job, then time. Some 16 MiB of them are held in memory at once.

    Args:
        store: The database.
        page: How many are read first; then as many as fit.

    Raises:
        StoreError: They cannot be read.
    """
    place: dict[str, object] = {"job": "", "ts": -(2**62), "uid": 0}
    while True:
        rows = store.query(_SQL, {**place, "page": page}).rows
        size = 0
        for job, raw, _, _ in rows:
            size += len(str(raw))
            yield StoredEvent(str(job), str(raw))
        if len(rows) < page:
            return
        place = {"job": rows[-1][0], "ts": rows[-1][2], "uid": rows[-1][3]}
        page = max(100, min(_MOST, page * _PAGE_BYTES // size))


def count_events(store: Store) -> int:
    """Return how many events are stored, about: copies of an event may be counted twice."""
    found = store.query(f"SELECT count() FROM {EVENTS_TABLE}").rows[0][0]
    assert isinstance(found, int)
    return found
