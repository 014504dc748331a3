"""The Acme traces of Shanghai AI Lab (2023): `trace_seren.csv` and `trace_kalos.csv`, one job in a row.

Format: https://github.com/InternLM/AcmeTrace. Times have zones. Restarts are not told: each row is a job of one
attempt.
"""

from collections.abc import Iterator
from typing import Final

from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.logs.rows import rows
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime
from ettwatch_sources.told import Told

STATES: Final = {
    "COMPLETED": ("succeeded", "unknown"),
    "FAILED": ("failed", "unknown"),
    "CANCELLED": ("cancelled", "unknown"),
    "TIMEOUT": ("failed", "timeout"),
    "NODE_FAIL": ("failed", "hardware"),
}
"""State of a job to outcome and cause."""


def read(feed: Feed) -> Iterator[Told]:
    """Read the trace, row by row."""
    for row in rows(feed):
        job = row.get("job_id", "").strip()
        if not job:
            feed.refuse("a row without a job_id")
            continue
        pen = Pen(feed, job, "scheduler", attempt=0)
        submit, start, end = (_time(feed, row, name, job) for name in ("submit_time", "start_time", "end_time"))
        if submit is None and start is None and end is None:
            feed.refuse(f"job {job} has no time")
            continue
        if start is not None and end is not None and end < start:
            feed.refuse(f"job {job} ends before it starts: its end is not taken")
            end = None
        gpus = _count(row.get("gpu_num"))
        state = row.get("state", "").strip()
        outcome, cause = STATES.get(state, ("cancelled", "unknown"))
        if state not in STATES:
            feed.unknown(f"state {state}", job)
        if outcome == "failed" and cause == "unknown":
            feed.flag("no_cause", job)
        labels = {name: row[name] for name in ("user", "type") if row.get(name)}
        if submit is None:
            feed.flag("no_submit", job)
        else:
            yield from pen.submitted(submit, gpus=feed.options.gpus or gpus, labels=labels or None)
        if start is None:
            feed.flag("no_start", job)
        else:
            yield from pen.started(start, gpus=feed.options.gpus or gpus, trigger="initial")
        if end is None:
            feed.flag("no_end", job)
            continue
        if start is not None:
            yield from pen.over(end, outcome, cause=cause, message=f"state {state}")
        yield from pen.job_over(end, outcome)


def _time(feed: Feed, row: dict[str, str], name: str, job: str) -> int | None:
    text = row.get(name, "").strip()
    if not text:
        return None
    try:
        return feed.time_of_text(text, job)
    except NoTime as error:
        feed.refuse(f"job {job}: {name}: {error}")
        return None


def _count(text: str | None) -> int | None:
    try:
        number = int(float(text or ""))
    except (ValueError, OverflowError):
        return None
    return number if number >= 0 else None


KIND: Final = Kind(
    name="acme",
    title="the Acme traces (trace_seren.csv, trace_kalos.csv)",
    read=read,
    is_it=lambda head, name: head.startswith("job_id,user,node_num,gpu_num"),
    unknown=("no_eligible", "no_attempts", "no_positions", "no_phases", "no_data_wait"),
)
