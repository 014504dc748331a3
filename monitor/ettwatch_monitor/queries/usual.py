"""What is usual: how other jobs of a model started, stage by stage, and what of the code they found compiled."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.api.shapes import StartRow, UsualStart
from ettwatch_monitor.queries.fleet import window_of
from ettwatch_monitor.queries.span import Span

__all__ = ["usual_start"]

_MOST: Final = 100
"""Starts that are looked at, the newest: a median of more says the same."""
_MOST_CACHES: Final = 50
"""Of these, starts whose events are read."""
_MOST_SPANS: Final = 20_000
_RECENT: Final = 5
_CACHE: Final = "JSONExtractString(raw, 'attrs', 'cache')"


class _Begun(NamedTuple):
    """The first attempt of a job: its number, begin and first batch (µs)."""

    attempt: int
    start: int
    first_batch: int


def usual_start(store: Store, job: str, span: Span) -> UsualStart | None:
    """Return how the other jobs of its model that began in a span started; None if there is no such job.

    Raises StoreError.
    """
    found = store.query("SELECT model FROM jobs_log FINAL WHERE job = {job:String}", {"job": job}).rows
    if not found:
        return None
    model = cast("str | None", found[0][0])
    others = _others(store, job, model, span) if model else []
    begun = _begun(store, [job, *(one.job for one in others)])
    others = [one for one in others if one.job in begun]
    stages = _stages(store, [one.job for one in others])
    warm, cold = _warmth(store, {one.job: begun[one.job] for one in others[:_MOST_CACHES]})
    ranked = sorted(others, key=lambda one: (one.tts_s, one.job))
    return UsualStart(
        job=job,
        model=model,
        window=window_of(span),
        starts=len(others),
        tts_p50_s=median(one.tts_s for one in others) if others else None,
        stages=stages,
        warm=warm,
        cold=cold,
        caches=_caches(store, job, begun[job]) if job in begun else {},
        middle=ranked[len(ranked) // 2] if ranked else None,
        recent=others[:_RECENT],
    )


def _others(store: Store, job: str, model: str, span: Span) -> list[StartRow]:
    rows = store.query(
        "SELECT job, toUnixTimestamp64Micro(t0), gpus, tts_us FROM jobs_log FINAL "
        "WHERE model = {model:String} AND job != {job:String} AND tts_us IS NOT NULL "
        "AND t0 >= fromUnixTimestamp64Micro({since:Int64}, 'UTC') "
        "AND t0 < fromUnixTimestamp64Micro({until:Int64}, 'UTC') "
        f"ORDER BY t0 DESC, job LIMIT {_MOST}",
        {"model": model, "job": job, "since": span.start, "until": span.end},
    ).rows
    return [
        StartRow(job=str(name), t0_us=cast(int, t0), gpus=cast(int, gpus), tts_s=cast(int, tts) / 1_000_000)
        for name, t0, gpus, tts in rows
    ]


def _begun(store: Store, jobs: Sequence[str]) -> dict[str, _Begun]:
    """The first attempts of jobs; where no first batch came, until its end."""
    rows = store.query(
        "SELECT job, argMin(attempt, attempt), argMin(toUnixTimestamp64Micro(start), attempt), "
        "argMin(toUnixTimestamp64Micro(ifNull(first_batch, end)), attempt) "
        "FROM attempts_log FINAL WHERE job IN {jobs:Array(String)} AND NOT gone GROUP BY job",
        {"jobs": list(jobs)},
    ).rows
    return {str(job): _Begun(*cast("tuple[int, int, int]", told)) for job, *told in rows}


def _stages(store: Store, jobs: Sequence[str]) -> dict[str, float]:
    """The median seconds of each stage before the first batch, over all of these jobs."""
    if not jobs:
        return {}
    rows = store.query(
        "SELECT job, stage, sum(least(toUnixTimestamp64Micro(end), until) - toUnixTimestamp64Micro(start)) "
        "FROM segments INNER JOIN ("
        "SELECT job, toUnixTimestamp64Micro(argMin(first_batch, attempt)) AS until FROM attempts_log FINAL "
        "WHERE job IN {jobs:Array(String)} AND NOT gone AND tts_us IS NOT NULL GROUP BY job) AS begun USING (job) "
        "WHERE job IN {jobs:Array(String)} AND toUnixTimestamp64Micro(start) < until GROUP BY job, stage",
        {"jobs": list(jobs)},
    ).rows
    told: defaultdict[str, list[float]] = defaultdict(list)
    for _, stage, us in rows:
        told[str(stage)].append(cast(int, us) / 1_000_000)
    return {stage: median([*seconds, *[0.0] * (len(jobs) - len(seconds))]) for stage, seconds in sorted(told.items())}


def _warmth(store: Store, begun: Mapping[str, _Begun]) -> tuple[int, int]:
    """How many of these starts found all compiled code, and how many did not."""
    if not begun:
        return 0, 0
    names = {f"job_{number}": job for number, job in enumerate(begun)}
    # By name and time, which the table is ordered by: of a long job nothing but its start is read.
    where = " OR ".join(f"(job = {{{name}:String}} AND {_until(begun[job])})" for name, job in names.items())
    rows = store.query(
        f"SELECT job, countIf({_CACHE} = 'hit'), countIf({_CACHE} = 'miss') FROM events_log "
        f"WHERE kind = 'phase_ended' AND ({where}) GROUP BY job",
        names,
    ).rows
    told = [(cast(int, hits), cast(int, misses)) for _, hits, misses in rows]
    return sum(hits > 0 and not misses for hits, misses in told), sum(misses > 0 for _, misses in told)


def _caches(store: Store, job: str, begun: _Begun) -> dict[str, str]:
    """By stage of a start, whether compiled code was found: warm, cold or mixed."""
    rows = store.query(
        f"SELECT kind, rank, JSONExtractString(raw, 'span'), JSONExtractString(raw, 'phase'), {_CACHE} FROM events_log "
        f"WHERE job = {{job:String}} AND kind IN ('phase_started', 'phase_ended') AND {_until(begun)} "
        f"AND attempt = {begun.attempt} ORDER BY ts LIMIT {_MOST_SPANS}",
        {"job": job},
    ).rows
    phases = {(rank, span): str(phase) for kind, rank, span, phase, _ in rows if kind == "phase_started"}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for kind, rank, span, _, cache in rows:
        if kind == "phase_ended" and cache in ("hit", "miss") and (rank, span) in phases:
            found[phases[rank, span]].add(str(cache))
    return {
        phase: "mixed" if len(told) > 1 else "warm" if told == {"hit"} else "cold"
        for phase, told in sorted(found.items())
    }


def _until(begun: _Begun) -> str:
    return (
        f"ts BETWEEN fromUnixTimestamp64Micro({begun.start}, 'UTC') "
        f"AND fromUnixTimestamp64Micro({begun.first_batch}, 'UTC')"
    )
