"""Taking up a job: what of it stands in the database before this writer says its first word."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ettwatch_clickhouse.known import Known, Pending
from ettwatch_clickhouse.rows import ATTEMPT_KEY, ATTEMPTS, PHASE_KEY, PHASES, TIMES
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import Tables
from ettwatch_clickhouse.writeids import WriteIds

__all__ = ["as_int", "chunks", "plain", "take_up"]

_MOST_CHARS: Final = 60_000
"""Characters of job names in one query: servers bound the size of a parameter."""

_MOST_JOBS: Final = 500


def take_up(store: Store, tables: Tables, jobs: Iterable[str], ids: WriteIds) -> dict[str, Known]:
    """Return what is known of each of the jobs; numbers of writes that stand there are noted in `ids`.

    Raises:
        StoreError: It cannot be read.
    """
    found = {job: Known() for job in jobs}
    for some in chunks(found):
        params = {"jobs": some}
        for job, version, written in store.query(_newest_sql(tables), params).rows:
            known = found[str(job)]
            known.floor = as_int(version)
            known.behind = known.floor > 0
            ids.seen(as_int(written))
        for job, first, last in store.query(_cells_sql(tables), params).rows:
            found[str(job)].first_cell = as_int(first)
            found[str(job)].last_cell = as_int(last)
        for row in store.query(_pending_sql(tables.attempts, ATTEMPTS, ATTEMPT_KEY), params).rows:
            found[str(row[0])].attempts[as_int(row[1])] = Pending(None, tuple(row[2:]))
        for row in store.query(_pending_sql(tables.phases, PHASES, PHASE_KEY), params).rows:
            key: Any = row[1 : len(PHASE_KEY)]
            found[str(row[0])].phases[key] = Pending(None, tuple(row[len(PHASE_KEY) :]))
    return found


def chunks(jobs: Iterable[str]) -> Iterator[list[str]]:
    """Yield the jobs in lists, each short enough for one query."""
    chunk: list[str] = []
    chars = 0
    for job in jobs:
        if chunk and (chars + len(job) > _MOST_CHARS or len(chunk) >= _MOST_JOBS):
            yield chunk
            chunk, chars = [], 0
        chunk.append(job)
        chars += len(job)
    if chunk:
        yield chunk


def _newest_sql(tables: Tables) -> str:
    each = " UNION ALL ".join(
        f"SELECT job, version, written FROM {table} WHERE job IN {{jobs:Array(String)}}" for table in tables.all()
    )
    return f"SELECT job, max(version), max(written) FROM ({each}) GROUP BY job"


def _cells_sql(tables: Tables) -> str:
    return (
        f"SELECT job, toInt64(min(cell)) * 1000000, toInt64(max(cell)) * 1000000 FROM {tables.segments} "
        "WHERE job IN {jobs:Array(String)} AND notEmpty(stage) GROUP BY job"
    )


def _pending_sql(table: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return the query for the keys and contents of rows that are neither final nor gone."""
    after = columns[columns.index("gone") + 1 :]
    shown = ", ".join(plain(name) for name in (*key, *after))
    by = ", ".join(key)
    return (
        f"SELECT {shown} FROM (SELECT * FROM {table} WHERE job IN {{jobs:Array(String)}} "
        f"ORDER BY ver DESC LIMIT 1 BY {by}) WHERE NOT final AND NOT gone"
    )


def plain(name: str) -> str:
    """Return how to select a column: times as integers, as they are inserted."""
    return f"toUnixTimestamp64Micro({name})" if name in TIMES else name


def as_int(value: object) -> int:
    """Return a value of a column of integers."""
    assert isinstance(value, int)
    return value
