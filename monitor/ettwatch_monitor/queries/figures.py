"""Figures of the fleet from the rollups: the one statement that all numbers of jobs together come from."""

from dataclasses import dataclass
from typing import Any, Final, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.api.shapes import Figures
from ettwatch_monitor.queries.rows import by_component, hours, named, per_cent, seconds, summed
from ettwatch_monitor.queries.scope import Scope
from ettwatch_monitor.queries.span import DAY_US, HOUR_US, WEEK_US, Span

__all__ = ["Sums", "rolled", "sums", "sums_over_time"]

_COLUMNS: Final = (
    "team, model, cluster, jobs, us, effective_us, waited_us, gpu_us, gpu_effective_us, gpu_waited_us, stage, "
    "stage_us, stage_gpu_us, attempts, tts_us, ttr_us, cause, failures, infra, preempted, unsaved_gpu_us"
)
_TOTALS: Final = """
    sum(jobs) AS jobs, sum(us) AS us, sum(effective_us) AS effective_us, sum(gpu_us) AS gpu_us,
    sum(gpu_effective_us) AS gpu_effective_us, sum(waited_us) AS waited_us, sum(gpu_waited_us) AS gpu_waited_us,
    sum(unsaved_gpu_us) AS unsaved_gpu_us, sum(attempts) AS attempts,
    sum(length(tts_us)) AS starts, sum(length(ttr_us)) AS recoveries,
    quantilesExactInclusiveArray(0.5, 0.9, 0.99)(tts_us) AS tts,
    quantilesExactInclusiveArray(0.5, 0.9, 0.99)(ttr_us) AS ttr,
    sum(infra) AS infra, sum(preempted) AS preempted,
    sumMap(CAST(cause, 'Array(String)'), arrayMap(x -> toUInt64(x), failures)) AS causes
"""
_STAGES: Final = """
    sumMap(CAST(stage, 'Array(String)'), stage_us) AS stages_us,
    sumMap(CAST(stage, 'Array(String)'), stage_gpu_us) AS stages_gpu_us
"""
_NO_STAGES: Final = "([], []) AS stages_us, ([], []) AS stages_gpu_us"


_HOUR: Final = "fromUnixTimestamp64Second({{{}:Int64}}, 'UTC')"
_DAY: Final = "toDate32(intDiv({{{}:Int64}}, 86400))"
_STEPS: Final[dict[int | None, str]] = {
    None: "toInt64(0)",
    HOUR_US: "second",
    DAY_US: "second - second % 86400",
    WEEK_US: "second - (second - 345600) % 604800",
}


@dataclass(frozen=True, slots=True)
class Sums:
    """What some jobs did in some time.

    Attributes:
        figures: The figures.
        stages_gpu_us: GPU-microseconds by stage, effective_training too.
        stages_us: Microseconds by stage.
        job_times: Jobs of each hour or day, added up.
    """

    figures: Figures
    stages_gpu_us: dict[str, int]
    stages_us: dict[str, int]
    job_times: int

    @property
    def components(self) -> dict[str, float]:
        """GPU-hours by component."""
        return {name: hours(us) for name, us in by_component(self.stages_gpu_us).items()}


def rolled(span: Span, scope: Scope, step: int | None = None) -> tuple[str, dict[str, object]]:
    """Return the rows of the rollups that hold a span as a subquery, and its values.

    Days are read where they are whole, unless single hours are asked for. `at` of a row is the begin of its step in
    seconds since the epoch.

    Args:
        span: The time.
        scope: Whose jobs.
        step: HOUR_US, DAY_US or WEEK_US; None for the whole span.
    """
    days = span.days() if step != HOUR_US else None
    a, d = span.start // 1_000_000, span.end // 1_000_000
    b, c = (days[0] // 1_000_000, days[1] // 1_000_000) if days is not None else (d, d)
    read = [
        f"SELECT {_COLUMNS}, toInt64(toUnixTimestamp(hour)) AS second FROM rollup_hours FINAL WHERE parts > 0 "
        f"AND hour >= {_HOUR.format(low)} AND hour < {_HOUR.format(high)} AND {scope.where()}"
        for low, high, there in (("a", "b", a < b), ("c", "d", c < d))
        if there
    ]
    if days is not None:
        read.append(
            f"SELECT {_COLUMNS}, toInt64(toInt32(day)) * 86400 AS second FROM rollup_days FINAL WHERE parts > 0 "
            f"AND day >= {_DAY.format('b')} AND day < {_DAY.format('c')} AND {scope.where()}"
        )
    params: dict[str, object] = {"a": a, "b": b, "c": c, "d": d, **scope.params()}
    return f"(SELECT *, {_STEPS[step]} AS at FROM ({' UNION ALL '.join(read)}))", params


def sums(
    store: Store, span: Span, scope: Scope, by: str | None = None, *, stages: bool = True
) -> tuple[Sums | None, dict[str, Sums]]:
    """Return the sums of all, None where there is nothing, and by a dimension; no name is the empty text.

    Without `stages` those stay empty, and it takes half the time. Raises StoreError.
    """
    source, params = rolled(span, scope)
    key = f"toString({by})" if by else "''"
    grouped = f"GROUP BY GROUPING SETS ((toString({by})), ())" if by else ""
    alone = f"grouping(toString({by}))" if by else "1"
    parts = _STAGES if stages else _NO_STAGES
    answer = store.query(f"SELECT {key} AS key, {alone} AS alone, {_TOTALS}, {parts} FROM {source} {grouped}", params)
    total: Sums | None = None
    groups: dict[str, Sums] = {}
    for row in answer.rows:
        told = named(answer.columns, row)
        if told["alone"]:
            total = _sums(told) if told["us"] else None
        else:
            groups[str(told["key"])] = _sums(told)
    return total, groups


def sums_over_time(
    store: Store, span: Span, scope: Scope, step: int, by: str | None = None
) -> list[tuple[int, str, Sums]]:
    """Return (begin in µs, name, sums) by time, then name. Raises StoreError.

    Args:
        store: The database.
        span: The time.
        scope: Whose jobs.
        step: HOUR_US, DAY_US or WEEK_US.
        by: A dimension; None for all together, of which the name is empty.
    """
    source, params = rolled(span, scope, step)
    key = f"toString({by})" if by else "''"
    answer = store.query(
        f"SELECT at, {key} AS key, {_TOTALS}, {_STAGES} FROM {source} GROUP BY at, key ORDER BY at, key", params
    )
    found = []
    for row in answer.rows:
        told = named(answer.columns, row)
        found.append((cast(int, told["at"]) * 1_000_000, str(told["key"]), _sums(told)))
    return found


def _sums(told: dict[str, Any]) -> Sums:
    causes = summed(told["causes"])
    nof = sum(causes.values())
    held_us = told["gpu_us"] - told["gpu_waited_us"]
    tts, ttr = [seconds(q) for q in told["tts"]], [seconds(q) for q in told["ttr"]]
    figures = Figures(
        ett_pct=per_cent(told["gpu_effective_us"], told["gpu_us"]),
        ett_pct_jobs=per_cent(told["effective_us"], told["us"]),
        total_gpu_h=hours(told["gpu_us"]),
        effective_gpu_h=hours(told["gpu_effective_us"]),
        lost_gpu_h=hours(told["gpu_us"] - told["gpu_effective_us"]),
        waited_gpu_h=hours(told["gpu_waited_us"]),
        held_gpu_h=hours(held_us),
        unsaved_gpu_h=hours(told["unsaved_gpu_us"]),
        job_h=hours(told["us"]),
        jobs=None,
        attempts=told["attempts"],
        starts=told["starts"],
        tts_p50_s=tts[0],
        tts_p90_s=tts[1],
        tts_p99_s=tts[2],
        recoveries=told["recoveries"],
        ttr_p50_s=ttr[0],
        ttr_p90_s=ttr[1],
        ttr_p99_s=ttr[2],
        nof=nof,
        nof_infra=told["infra"],
        nof_preempted=told["preempted"],
        nof_per_1000_gpu_h=1_000 * nof / hours(held_us) if held_us else None,
        mtbf_h=hours(told["us"] - told["waited_us"]) / nof if nof else None,
        causes=causes,
    )
    return Sums(figures, summed(told["stages_gpu_us"]), summed(told["stages_us"]), told["jobs"])
