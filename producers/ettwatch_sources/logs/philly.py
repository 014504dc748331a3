"""The Philly trace of Microsoft (2017): `cluster_job_log`, a JSON array of jobs with their scheduling attempts.

Format: https://github.com/msr-fiddle/philly-traces. Times are local times of the US west coast, whole seconds; give
`--zone America/Los_Angeles`. An attempt that is followed by another was cut short, by what is not told.
"""

from collections.abc import Iterator
from typing import Any, Final

from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime
from ettwatch_sources.told import Told

_OUTCOMES: Final = {"Pass": "succeeded", "Killed": "cancelled", "Failed": "failed"}


def read(feed: Feed) -> Iterator[Told]:
    """Read the trace, job by job."""
    for item in feed.items():
        job = item.value
        if not isinstance(job, dict) or not isinstance(job.get("jobid"), str):
            feed.refuse("a member of the array that is no job")
            continue
        try:
            yield from _job(feed, job)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            feed.refuse(f"job {job['jobid']}: {error}")


def _time(feed: Feed, value: object, name: str) -> int | None:
    """A time of the job, or None where the trace has none."""
    if value in {None, "", "None"}:
        return None
    try:
        return feed.time_of_text(str(value), name)
    except NoTime as error:
        feed.refuse(f"job {name}: {error}")
        return None


def _job(feed: Feed, job: dict[str, Any]) -> Iterator[Told]:
    name = job["jobid"]
    pen = Pen(feed, name, "scheduler", attempt=0)
    attempts = [attempt for attempt in job.get("attempts") or [] if isinstance(attempt, dict)]
    known = [(index, _time(feed, attempt.get("start_time"), name)) for index, attempt in enumerate(attempts)]
    submitted = _time(feed, job.get("submitted_time"), name)
    gpus = [_gpus(attempt) for attempt in attempts]
    told: dict[str, Any] = {"team": feed.options.team or job.get("vc"), "gpus": feed.options.gpus}
    labels = {"user": str(job["user"])} if job.get("user") else None
    if submitted is not None:
        yield from pen.submitted(submitted, labels=labels, **{**told, "gpus": told["gpus"] or next(iter(gpus), None)})
    else:
        feed.flag("no_submit", name)
    ends = [_time(feed, attempt.get("end_time"), name) for attempt in attempts]
    if submitted is None and all(time is None for time in [*ends, *(start for _, start in known)]):
        feed.refuse(f"job {name} has no time")
        return
    outcome = _OUTCOMES.get(str(job.get("status")))
    if outcome is None:
        feed.unknown(f"status {job.get('status')}", name)
        outcome = "cancelled"
    if not attempts:
        feed.flag("no_end", name)
    end: int | None = None
    for index, start in known:
        last = index == len(attempts) - 1
        end = ends[index]
        if start is not None and end is not None and end < start:
            feed.refuse(f"job {name}: attempt {index} ends before it starts: its end is not taken")
            end = None
        pen.attempt = index
        if start is None:
            feed.flag("no_start", name)
        else:
            yield from pen.started(
                start, gpus=feed.options.gpus or gpus[index], trigger="initial" if not index else None
            )
        if end is None:
            feed.flag("no_end", name)
        elif start is None and end is not None and last:
            yield from pen.over(end, outcome)
        elif not last:
            feed.flag("no_cause", name)
            yield from pen.over(end, "failed", message="another attempt followed")
        else:
            yield from pen.over(end, outcome, message=f"status {job.get('status')}")
    if end is not None:
        yield from pen.job_over(end, outcome)


def _gpus(attempt: dict[str, Any]) -> int | None:
    held = sum(len(part.get("gpus") or ()) for part in attempt.get("detail") or () if isinstance(part, dict))
    return held or None


KIND: Final = Kind(
    name="philly",
    title="the Philly trace (cluster_job_log)",
    read=read,
    is_it=lambda head, name: '"jobid"' in head and '"attempts"' in head and head.lstrip().startswith("["),
    unknown=("no_eligible", "no_positions", "no_phases", "no_data_wait"),
)
