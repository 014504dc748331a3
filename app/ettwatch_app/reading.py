"""From the views of a ClickHouse to the values that reports are made of."""

from collections.abc import Mapping
from typing import Any, Final, cast

from ettwatch_app.goodput import Point
from ettwatch_app.joined import joined
from ettwatch_app.render import FleetView, JobView, Mark, Order
from ettwatch_clickhouse import Store, Table
from ettwatch_core.ownership import Owners
from ettwatch_schemas import AttemptSummary, JobSummary, PhaseSpan, Segment

__all__ = ["near_names", "read_fleet", "read_job", "read_points", "read_summaries"]

_JOB_TIMES = ("t0", "t1")
_ATTEMPT_TIMES = ("start", "end", "loop_start", "first_batch", "last_advance", "loop_end")
_MOST_SPANS = 20
_ORDERS: Final[Mapping[Order, str]] = {
    "newest": "t1 DESC",
    "lost": "gpu_e2e_s - gpu_effective_s DESC",
    "ett": "ett_pct ASC NULLS LAST",
    "tts": "tts_s DESC NULLS LAST",
    "nof": "nof DESC",
}


def read_summaries(store: Store, *, limit: int | None = None, order: Order = "newest") -> list[JobSummary]:
    """The jobs, by default those that ended (or were heard of) last first. Raises StoreError."""
    cut = "" if limit is None else f" LIMIT {limit}"
    return _summaries(
        store.query(f"SELECT {_columns(JobSummary, _JOB_TIMES)} FROM jobs ORDER BY {_ORDERS[order]}, job{cut}")
    )


def read_job(store: Store, job: str, owners: Owners) -> JobView | None:
    """All that a report shows of a job; None if there is no such job. Raises StoreError."""
    who = {"job": job}
    found = _summaries(
        store.query(f"SELECT {_columns(JobSummary, _JOB_TIMES)} FROM jobs WHERE job = {{job:String}}", who)
    )
    if not found:
        return None
    attempts = store.query(
        f"SELECT {_columns(AttemptSummary, _ATTEMPT_TIMES)} FROM attempts WHERE job = {{job:String}} ORDER BY attempt",
        who,
    )
    segments = store.query(
        f"SELECT {_columns(Segment, ('start', 'end'))} FROM segments WHERE job = {{job:String}} ORDER BY start, end",
        who,
    )
    spans = store.query(
        "SELECT job, attempt, phase, toUnixTimestamp64Micro(start), toUnixTimestamp64Micro(end), ranks, background, "
        "container, charged_us, hidden_us, last_rank, behind_us, open FROM phases "
        f"WHERE job = {{job:String}} AND behind_us > 0 ORDER BY behind_us DESC, start LIMIT {_MOST_SPANS}",
        who,
    )
    saves = store.query(
        "SELECT attempt, toUnixTimestamp64Micro(ts) FROM events "
        "WHERE job = {job:String} AND kind = 'checkpoint_durable' ORDER BY ts",
        who,
    )
    return JobView(
        summary=found[0],
        attempts=[AttemptSummary.model_validate(row) for row in _named(attempts)],
        segments=joined(Segment(*cast(Any, row)) for row in segments.rows),
        owners=owners,
        spans=[PhaseSpan(*cast(Any, row)) for row in spans.rows],
        marks=[Mark(cast(int, attempt), cast(int, ts), "checkpoint") for attempt, ts in saves.rows],
    )


def read_points(store: Store, job: str) -> list[Point]:
    """The positions that a job told. Raises StoreError."""
    rows = store.query(
        "SELECT attempt, rank, toUnixTimestamp64Micro(ts), JSONExtractUInt(raw, 'position'), kind = 'training_started' "
        "FROM events "
        "WHERE job = {job:String} AND kind IN ('training_started', 'progress', 'training_ended') ORDER BY ts",
        {"job": job},
    ).rows
    return [Point(cast(int, a), cast(int, r), cast(int, t), cast(int, p), bool(b)) for a, r, t, p, b in rows]


def read_fleet(store: Store, owners: Owners, limit: int | None, order: Order = "newest") -> FleetView:
    """All that a report shows of all jobs; at most `limit` of them by themselves. Raises StoreError."""
    totals = store.query(
        "SELECT count(), 100 * sum(gpu_effective_s) / nullIf(sum(gpu_e2e_s), 0), avgOrNull(ett_pct), sum(nof), "
        "sum(gpu_e2e_s) FROM jobs"
    )
    number, ett_pct, mean_ett_pct, nof, gpu_e2e_s = cast(Any, totals.rows[0])
    stages = store.query("SELECT stage, sum(gpu_us) FROM segments GROUP BY stage ORDER BY stage")
    return FleetView(
        jobs=read_summaries(store, limit=limit, order=order),
        order=order,
        owners=owners,
        number=number,
        ett_pct=ett_pct,
        mean_ett_pct=mean_ett_pct,
        nof=nof,
        gpu_e2e_s=gpu_e2e_s,
        gpu_stage_s={str(stage): cast(int, us) / 1_000_000 for stage, us in stages.rows},
    )


def near_names(store: Store, job: str, most: int = 3) -> list[str]:
    """Jobs whose names hold `job`, or are much like it, the most alike first. Raises StoreError."""
    found = store.query(
        "SELECT job, positionCaseInsensitiveUTF8(job, {job:String}) = 0 AS apart, "
        "jaroWinklerSimilarity(lower(job), lower({job:String})) AS likeness FROM jobs "
        f"WHERE NOT apart OR likeness > 0.8 ORDER BY apart, likeness DESC, job LIMIT {most}",
        {"job": job},
    )
    return [str(row[0]) for row in found.rows]


def _columns(model: type, times: tuple[str, ...]) -> str:
    """The columns by which a row becomes a `model`; `times` as microseconds since the epoch."""
    fields = getattr(model, "model_fields", None) or cast(Any, model)._fields
    return ", ".join(f"toUnixTimestamp64Micro({name}) AS {name}_" if name in times else name for name in fields)


def _summaries(table: Table) -> list[JobSummary]:
    return [JobSummary.model_validate(row) for row in _named(table)]


def _named(table: Table) -> list[dict[str, Any]]:
    names = [name.removesuffix("_") for name in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]
