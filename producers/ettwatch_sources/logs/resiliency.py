"""Event logs of AI-Hypercomputer's resiliency (goodput_measure): six events, JSON objects in lines.

Format: resiliency/goodput_measure/tracker.py and constant.py. Times are local times without a zone. `job_started` is
told by each node; a node that starts again begins the next attempt. Positions are known only where a checkpoint was
loaded or saved, so the redone part of an attempt and the unsaved part look alike: time after the last save of an
attempt that died is lost.
"""

from collections.abc import Iterator
from typing import Any, Final

from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.logs.entries import Entry, entries
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime
from ettwatch_sources.told import Told

_EVENTS: Final = (
    "user_scheduled",
    "user_terminated",
    "job_started",
    "job_terminated",
    "checkpoint_loaded",
    "checkpoint_saved",
)


class _Job:
    """A job and the nodes that started in its attempt."""

    def __init__(self, feed: Feed, name: str) -> None:
        self.pen = Pen(feed, name)
        self.nodes: set[int] = set()
        self.begun = self.submitted = False
        self.terminated: int | None = None


def read(feed: Feed) -> Iterator[Told]:
    """Read the events of one job or of several."""
    jobs: dict[str, _Job] = {}
    for entry in entries(feed, "event of resiliency", _when):
        payload = entry.payload
        name = payload.get("job_name")
        job = feed.options.job or (str(name) if name else feed.default_job)
        told = jobs.setdefault(job, _Job(feed, job))
        event = str(payload.get("event_type"))
        try:
            ts = feed.in_order(feed.time_of_text(_stamp(entry), job), job)
        except NoTime as error:
            feed.refuse(str(error))
            continue
        if event in _EVENTS:
            yield from _event(told, event, ts, payload)
        else:
            feed.unknown(event, job)
    for told in jobs.values():
        if not told.submitted:
            feed.flag("no_submit", told.pen.job)
        if told.terminated is not None:
            # No start follows: whether it was done or died is not told.
            feed.flag("no_outcome", told.pen.job)
            yield from told.pen.over(told.terminated, "cancelled", message="job_terminated")
        elif not told.pen.ended:
            feed.flag("no_end", told.pen.job)


def _stamp(entry: Entry) -> str:
    return str(entry.payload.get("timestamp") or entry.timestamp or "")


def _when(entry: Entry) -> str | None:
    return _stamp(entry).replace("T", " ") or None


def _event(job: _Job, event: str, ts: int, payload: dict[str, Any]) -> Iterator[Told]:
    pen = job.pen
    node, step = _whole(payload.get("node_rank")), _whole(payload.get("step"))
    if event == "user_scheduled":
        job.submitted = True
        yield from pen.submitted(ts)
    elif event == "user_terminated":
        pen.feed.flag("no_outcome", pen.job)
        yield from pen.over(ts, "cancelled", message="user_terminated")
        yield from pen.job_over(ts, "cancelled")
    elif event == "job_started":
        again = node in job.nodes if node is not None else job.begun
        if job.terminated is not None:
            # It started again, so it was cut short.
            yield from pen.over(job.terminated, "failed", message="job_terminated")
            job.terminated, again = None, True
        if again or (pen.ended and job.begun):
            pen.next_attempt()
            pen.feed.flag("counted_attempts", pen.job)
            job.nodes.clear()
        job.begun = True
        if node is not None:
            job.nodes.add(node)
        pen.rank = node or 0
        yield from pen.started(ts, trigger="initial" if pen.attempt == 0 else None)
        pen.rank = 0
    elif event == "job_terminated":
        job.terminated = ts if job.terminated is None else max(ts, job.terminated)
    elif step is None:
        pen.feed.refuse(f"{event} without a step")
    elif event == "checkpoint_loaded":
        pen.feed.flag("no_loop_start", pen.job)
        yield from pen.training(ts, pen.position(step), step=step)
    else:
        pen.feed.flag("position_is_saved_step", pen.job)
        yield from pen.progress(ts, pen.position(step), step=step)
        yield from pen.durable(ts, pen.position(step), step=step)


def _whole(value: object) -> int | None:
    """A number as Cloud Logging gives it: 40.0 for 40."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == int(value):
        return int(value)
    return None


def _is_it(head: str, name: str) -> bool:
    return '"event_type"' in head and any(f'"{event}"' in head for event in _EVENTS)


KIND: Final = Kind(
    name="resiliency",
    title="goodput event logs of AI-Hypercomputer's resiliency",
    read=read,
    is_it=_is_it,
    unknown=("no_eligible", "no_gpus", "no_phases", "no_data_wait", "save_length"),
)
