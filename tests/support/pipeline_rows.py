"""What the views say of all jobs, read at once: a query for each job would take minutes."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from ettwatch_clickhouse import Store
from ettwatch_schemas import AttemptSummary, JobSummary, PhaseSpan, Segment
from support.clickhouse import Truth

__all__ = ["Stored", "read_all", "read_events"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN: Final = {"charged": "charged_us", "hidden": "hidden_us", "behind": "behind_us"}


class Stored(NamedTuple):
    """What is stored of a job, and when that was true."""

    truth: Truth
    as_of: int
    """The second that counted as now (µs)."""


def read_all(store: Store) -> dict[str, Stored]:
    """Return what the views say of each job. Rows of jobs that have no summary count as a job without one: KeyError."""
    jobs = _by_job(store, "jobs", [*JobSummary.model_fields, "as_of"], "job")
    attempts = _by_job(store, "attempts", list(AttemptSummary.model_fields), "attempt")
    segments = _by_job(store, "segments", Segment._fields, "start")
    spans = _by_job(
        store,
        "phases",
        [_SPAN.get(name, name) for name in PhaseSpan._fields],
        "attempt, start, end, phase, background, last_rank",
    )
    strangers = {*attempts, *segments, *spans} - {*jobs}
    assert not strangers, f"rows of {len(strangers)} jobs that have no summary: {sorted(strangers)[:5]}"
    found = {}
    for job, rows in jobs.items():
        assert len(rows) == 1, f"{len(rows)} summaries of {job}"
        *values, as_of = rows[0]
        summary = JobSummary.model_validate(dict(zip(JobSummary.model_fields, values, strict=True)))
        tried = [
            AttemptSummary.model_validate(dict(zip(AttemptSummary.model_fields, row, strict=True)))
            for row in attempts.get(job, ())
        ]
        truth = Truth(
            summary,
            tried,
            [Segment(*row) for row in segments.get(job, ())],
            [PhaseSpan(*row) for row in spans.get(job, ())],
        )
        found[job] = Stored(truth, as_of)
    return found


def read_events(store: Store) -> dict[str, list[bytes]]:
    """Return the events of each job as they are stored."""
    found: dict[str, list[bytes]] = defaultdict(list)
    for job, raw in store.query("SELECT job, raw FROM events").rows:
        found[str(job)].append(str(raw).encode())
    return found


def _by_job(store: Store, view: str, columns: Sequence[str], order: str) -> dict[str, list[list[Any]]]:
    found: dict[str, list[list[Any]]] = defaultdict(list)
    where = columns.index("job")
    for row in store.query(f"SELECT {', '.join(columns)} FROM {view} ORDER BY job, {order}").rows:
        found[str(row[where])].append([_plain(value) for value in row])
    return found


def _plain(value: object) -> object:
    return (value - _EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value
