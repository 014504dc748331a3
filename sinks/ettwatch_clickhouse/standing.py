"""What stands in the tables of the jobs of which everything is told anew."""

from typing import Final

from ettwatch_clickhouse.rows import ATTEMPT_KEY, PHASE_KEY
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import Tables
from ettwatch_clickhouse.takeup import as_int, chunks, plain
from ettwatch_clickhouse.updates import Standing, Wholes
from ettwatch_schemas import PhaseKey

__all__ = ["look_up"]

_HOURS: Final = """
SELECT job, toInt64(cell) * 1000000 AS hour
FROM {table}
WHERE job IN {{jobs:Array(String)}}
    AND (hour < transform(job, {{jobs:Array(String)}}, {{firsts:Array(Int64)}}, toInt64(0))
        OR hour > transform(job, {{jobs:Array(String)}}, {{lasts:Array(Int64)}}, toInt64(0)))
GROUP BY job, cell
HAVING argMax(notEmpty(stage), ver)
"""


def look_up(store: Store, wholes: Wholes, tables: Tables | None = None) -> Standing:
    """Return what the tables hold of these jobs. Some hundreds of jobs are asked for at once.

    Raises:
        StoreError: They cannot be read.
    """
    names, found = tables or Tables(), Standing()
    for some in chunks(wholes.attempts):
        for job, number in store.query(_pending_sql(names.attempts, ATTEMPT_KEY), {"jobs": some}).rows:
            found.attempts.setdefault(str(job), []).append(as_int(number))
    for some in chunks(wholes.phases):
        for job, attempt, phase, background, rank, start in store.query(
            _pending_sql(names.phases, PHASE_KEY), {"jobs": some}
        ).rows:
            key = PhaseKey(as_int(attempt), str(phase), bool(background), as_int(rank), as_int(start))
            found.phases.setdefault(str(job), []).append(key)
    for some in chunks(wholes.segments):
        bounds = [wholes.segments[job] for job in some]
        params = {"jobs": some, "firsts": [b.first for b in bounds], "lasts": [b.last for b in bounds]}
        for job, hour in store.query(_HOURS.format(table=names.segments), params).rows:
            found.hours.setdefault(str(job), []).append(as_int(hour))
    return found


def _pending_sql(table: str, key: tuple[str, ...]) -> str:
    """Return the query for the keys of rows that are neither final nor gone."""
    shown = ", ".join(plain(name) for name in key)
    return (
        f"SELECT {shown} FROM {table} WHERE job IN {{jobs:Array(String)}} "
        f"GROUP BY {', '.join(key)} HAVING NOT argMax(final OR gone, ver)"
    )
