"""Lists of jobs: which fit, in what order, a page of them; and how many there are by status."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.api.shapes import JobPage, JobRow
from ettwatch_monitor.queries.rows import micros, named
from ettwatch_monitor.queries.scope import Scope
from ettwatch_monitor.queries.span import Span

__all__ = ["LIVE", "SORTS", "STATUSES", "Wanted", "all_jobs", "count_jobs", "job_rows", "list_jobs", "row_of"]

STATUSES: Final = (
    *("pending", "starting", "training", "recovering", "silent"),
    *("succeeded", "failed", "cancelled", "lost"),
)
LIVE: Final = STATUSES[:5]
"""Of jobs that are not over."""

SORTS: Final = {
    "job": "job",
    "status": "status",
    "team": "team",
    "model": "model",
    "cluster": "cluster",
    "attempts": "attempts",
    "gpus": "gpus",
    "t0": "t0",
    "t1": "t1",
    "e2e": "e2e_us",
    "ett": "ett_pct",
    "tts": "tts_us",
    "recovery": "recovery_us",
    "nof": "nof",
    "total": "gpu_e2e_s",
    "effective": "gpu_effective_s",
    "lost": "gpu_e2e_s - gpu_effective_s",
}
"""By what jobs can be sorted; with a minus before it the greatest first."""

_LATEST: Final = "jobs_log FINAL"
"""The same rows as the view `jobs`, without what is made from them: finding and counting take a tenth of the time."""

_ROW: Final = (
    "job, status, team, model, cluster, attempts, gpus, t0, t1, e2e_s, ett_pct, tts_s, recovery_s, nof, gpu_e2e_s, "
    "gpu_effective_s, stages"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs.

    Attributes:
        scope: Whose.
        span: Those that had time in it; None for all.
        statuses: Only these; empty for all.
        text: What their name holds, whatever its case.
    """

    scope: Scope = field(default_factory=Scope)
    span: Span | None = None
    statuses: Sequence[str] = ()
    text: str = ""

    def where(self) -> str:
        """Return the condition."""
        parts = [self.scope.where()]
        if self.span is not None:
            parts.append("t0 < fromUnixTimestamp64Micro({until:Int64}, 'UTC')")
            parts.append("t1 > fromUnixTimestamp64Micro({since:Int64}, 'UTC')")
        if self.statuses:
            parts.append("status IN {statuses:Array(String)}")
        if self.text:
            parts.append("positionCaseInsensitiveUTF8(job, {text:String}) > 0")
        return " AND ".join(parts)

    def params(self) -> dict[str, object]:
        """Return the values of the condition."""
        told: dict[str, object] = self.scope.params()
        if self.span is not None:
            told |= {"since": self.span.start, "until": self.span.end}
        if self.statuses:
            told["statuses"] = list(self.statuses)
        if self.text:
            told["text"] = self.text
        return told


def list_jobs(store: Store, wanted: Wanted, sort: str, page: int, size: int) -> JobPage:
    """Return one page of the jobs. Raises StoreError.

    Args:
        store: The database.
        wanted: Which.
        sort: A key of SORTS, perhaps with a minus before it.
        page: From 1.
        size: Jobs of a page.
    """
    order = _order(sort)
    where, params = wanted.where(), wanted.params()
    ((total,),) = store.query(f"SELECT count() FROM {_LATEST} WHERE {where}", params).rows
    found = store.query(
        f"SELECT job FROM {_LATEST} WHERE {where} ORDER BY {order} LIMIT {int(size)} OFFSET {int(size * (page - 1))}",
        params,
    )
    names = [str(row[0]) for row in found.rows]
    return JobPage(total=cast(int, total), page=page, size=size, sort=sort, jobs=job_rows(store, names))


def all_jobs(store: Store, wanted: Wanted, sort: str, most: int) -> list[JobRow]:
    """Return the jobs, at most so many. Raises StoreError."""
    answer = store.query(
        f"SELECT {_ROW} FROM jobs WHERE {wanted.where()} ORDER BY {_order(sort)} LIMIT {int(most)}", wanted.params()
    )
    return [row_of(named(answer.columns, row)) for row in answer.rows]


def _order(sort: str) -> str:
    return f"{SORTS[sort.removeprefix('-')]} {'DESC' if sort.startswith('-') else 'ASC'} NULLS LAST, job"


def job_rows(store: Store, names: Sequence[str]) -> list[JobRow]:
    """Return the jobs of these names, in this order; those that are not there are left out. Raises StoreError."""
    if not names:
        return []
    answer = store.query(f"SELECT {_ROW} FROM jobs WHERE job IN {{names:Array(String)}}", {"names": list(names)})
    told = (named(answer.columns, row) for row in answer.rows)
    rows = {str(one["job"]): row_of(one) for one in told}
    return [rows[name] for name in names if name in rows]


def row_of(told: dict[str, Any]) -> JobRow:
    """Return the row of a job from the columns of the view `jobs`."""
    lost = {stage: s for stage, s in told["stages"].items() if stage != "effective_training"}
    worst = max(sorted(lost), key=lambda stage: lost[stage], default=None)
    return JobRow(
        job=told["job"],
        status=told["status"],
        team=told["team"],
        model=told["model"],
        cluster=told["cluster"],
        attempts=told["attempts"],
        gpus=told["gpus"],
        t0_us=micros(told["t0"]),
        t1_us=micros(told["t1"]),
        e2e_s=told["e2e_s"],
        ett_pct=told["ett_pct"],
        tts_s=told["tts_s"],
        recovery_s=told["recovery_s"],
        nof=told["nof"],
        total_gpu_h=told["gpu_e2e_s"] / 3_600,
        effective_gpu_h=told["gpu_effective_s"] / 3_600,
        lost_gpu_h=(told["gpu_e2e_s"] - told["gpu_effective_s"]) / 3_600,
        worst_stage=worst,
        worst_s=lost[worst] if worst is not None else 0.0,
    )


def count_jobs(store: Store, wanted: Wanted, by: str | None = None) -> dict[str, dict[str, int]]:
    """Return how many there are by status, for each value of a dimension; no name is the empty text.

    Raises StoreError.
    """
    key = f"ifNull({by}, '')" if by else "''"
    rows = store.query(
        f"SELECT {key} AS key, status, count() FROM {_LATEST} WHERE {wanted.where()} GROUP BY key, status",
        wanted.params(),
    ).rows
    found: dict[str, dict[str, int]] = {}
    for name, status, number in rows:
        found.setdefault(str(name), {})[str(status)] = cast(int, number)
    return found
