"""Which jobs hold GPUs now, out of ClickHouse, and what is known of each."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ettwatch_clickhouse import Store
from ettwatch_monitor.preempt.history import History, Times
from ettwatch_monitor.preempt.observed import Durable, Observed, running_of
from ettwatch_monitor.preempt.running import Running
from ettwatch_monitor.queries import LIVE, Scope, Wanted
from ettwatch_monitor.queries.rows import known, micros, named

__all__ = ["HISTORY_DAYS", "STALE_S", "LeftOut", "Live", "read_live"]

STALE_S: Final = 600.0
"""Of what nothing is known for so long (seconds) it is not sure that it holds GPUs; the rules call it silent then."""
HISTORY_DAYS: Final = 30
"""So far back recoveries and start-ups are looked at."""
_DAY_US: Final = 86_400_000_000
_US: Final = 1_000_000
_AT_ONCE: Final = 500

_JOBS: Final = "SELECT job, status, team, model, cluster, ttr_us, as_of FROM jobs WHERE {where} ORDER BY job"
_ATTEMPTS: Final = """
SELECT job, attempt, gpus, start, end, first_batch, last_advance, loop_end, start_position, end_position,
    effective_s + stages['wasted_training.rework'] AS trained_s, flags
FROM attempts WHERE open AND job IN {jobs:Array(String)} ORDER BY job, attempt DESC LIMIT 1 BY job
"""
_STARTED: Final = """
SELECT job, groupArray(dateDiff('microsecond', start, assumeNotNull(first_batch)) / 1000000) FROM attempts
WHERE first_batch IS NOT NULL AND job IN {jobs:Array(String)} GROUP BY job
"""
_DURABLES: Final = """
SELECT job, ifNull(attempt, 0), toUnixTimestamp64Micro(ts) AS at, JSONExtractUInt(raw, 'position') AS position,
    JSONExtractInt(raw, 'started_ts')
FROM events WHERE kind = 'checkpoint_durable' AND job IN {jobs:Array(String)}
ORDER BY job, at DESC, position DESC LIMIT 64 BY job
"""
_PAST: Final = """
SELECT ifNull(team, ''), ifNull(model, ''), countIf(ttr_us IS NOT NULL), sum(ifNull(ttr_us, 0)) / 1000000,
    count(), sum(dateDiff('microsecond', start, assumeNotNull(first_batch))) / 1000000
FROM attempts ANY LEFT JOIN (SELECT job, team, model FROM jobs_log FINAL) AS told USING (job)
WHERE first_batch IS NOT NULL AND first_batch >= fromUnixTimestamp64Micro({since:Int64}, 'UTC')
GROUP BY 1, 2 ORDER BY 1, 2
"""


class LeftOut(NamedTuple):
    """A job that may run, and is not counted: its name, GPUs and why."""

    job: str
    gpus: int
    why: str


class Live(NamedTuple):
    """What runs.

    Attributes:
        jobs: Those that hold GPUs, by name.
        left_out: Those of which that is not sure.
        recovery_from: By job: from what its time to recover was made.
    """

    jobs: list[Running]
    left_out: list[LeftOut]
    recovery_from: dict[str, str]


def read_live(store: Store, now: int, scope: Scope | None = None, stale_s: float = STALE_S) -> Live:
    """Read what holds GPUs now. Raises StoreError.

    A job counts if it is not over, its attempt is open, and its state is no older than `stale_s`.

    Args:
        store: The database.
        now: The time (µs since the epoch).
        scope: Whose jobs; recoveries are looked at over all.
        stale_s: How old (seconds) a state may be, and for how long a job may be silent.
    """
    wanted = Wanted(scope or Scope(), statuses=LIVE)
    answer = store.query(_JOBS.format(where=wanted.where()), wanted.params())
    told = {str(row[0]): named(answer.columns, row) for row in answer.rows}
    recoveries, startups = _past(store, now)
    jobs: list[Running] = []
    left_out: list[LeftOut] = []
    sources: dict[str, str] = {}
    names = list(told)
    for i in range(0, len(names), _AT_ONCE):
        part = names[i : i + _AT_ONCE]
        own_startups = {str(job): list(took) for job, took in _pairs(store, _STARTED, part)}
        for seen in _observed(store, part, told):
            why = _doubt(str(told[seen.job]["status"]), seen, now, stale_s)
            if why is not None:
                left_out.append(LeftOut(seen.job, seen.gpus, why))
                continue
            own = [us / _US for us in told[seen.job]["ttr_us"]]
            recovery = recoveries.expected(seen.team, seen.model, own)
            startup = startups.expected(seen.team, seen.model, own_startups.get(seen.job, ()))
            jobs.append(running_of(seen, recovery, startup))
            sources[seen.job] = recovery.source
    return Live(jobs, left_out, sources)


def _doubt(status: str, seen: Observed, now: int, stale_s: float) -> str | None:
    """Why it is not sure that a job holds GPUs; None where it is."""
    if seen.gpus < 1:
        return "holds no GPUs"
    age = (now - seen.as_of) / _US
    if age > stale_s:
        return f"its state is {_minutes(age)} old; it may be over"
    if status == "silent":
        return "silent; it may be over"
    return None


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds < 7_200 else f"{seconds / 3_600:,.0f} h"


def _past(store: Store, now: int) -> tuple[History, History]:
    """Return recoveries and start-ups of the last weeks, of all that began to train."""
    recoveries, startups = History(), History()
    rows: Sequence[tuple[Any, ...]] = store.query(_PAST, {"since": max(0, now - HISTORY_DAYS * _DAY_US)}).rows
    for team, model, number, total, starts, start_total in rows:
        recoveries.add(team, model, Times(number, total))
        startups.add(team, model, Times(starts, start_total))
    return recoveries, startups


def _pairs(store: Store, sql: str, jobs: list[str]) -> Iterator[tuple[Any, Any]]:
    rows: Sequence[tuple[Any, ...]] = store.query(sql, {"jobs": jobs}).rows
    for row in rows:
        yield row[0], row[1]


def _observed(store: Store, jobs: list[str], told: Mapping[str, Mapping[str, Any]]) -> Iterator[Observed]:
    durables: defaultdict[str, list[Durable]] = defaultdict(list)
    rows: Sequence[tuple[Any, ...]] = store.query(_DURABLES, {"jobs": jobs}).rows
    for job, attempt, at, position, started in rows:
        durables[job].append(Durable(at, position, started or None, attempt))
    answer = store.query(_ATTEMPTS, {"jobs": jobs})
    for row in answer.rows:
        one = named(answer.columns, row)
        job = told[one["job"]]
        end = _micros(one["end"]) or 0
        loop_end, last_advance = _micros(one["loop_end"]), _micros(one["last_advance"])
        yield Observed(
            job=one["job"],
            team=known(job["team"]) or "",
            model=known(job["model"]) or "",
            cluster=known(job["cluster"]) or "",
            attempt=one["attempt"],
            gpus=one["gpus"],
            as_of=max(end, _micros(job["as_of"]) or 0),
            started=_micros(one["start"]) or 0,
            first_batch=_micros(one["first_batch"]),
            last_advance=last_advance,
            # The loop of an open attempt is cut where its state was made; if it ended before, it did so by itself.
            loop_end=loop_end if loop_end is not None and loop_end < end else None,
            start_position=one["start_position"],
            end_position=one["end_position"],
            trained_s=_trained_s(one["trained_s"], end, loop_end, last_advance),
            flags=one["flags"],
            durables=durables[one["job"]],
        )


def _trained_s(trained_s: float, end: int, loop_end: int | None, last_advance: int | None) -> float:
    """Return what was trained up to the last advance: what came after it is charged as training while the loop goes on.

    It may have been something else; but all time since the last advance counts as lost, and so no less than was lost.
    """
    if last_advance is None or loop_end is None or loop_end < end:
        return trained_s
    return max(0.0, trained_s - (end - last_advance) / _US)


def _micros(value: object) -> int | None:
    return None if value is None else micros(value)
