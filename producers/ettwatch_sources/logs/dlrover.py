"""Training events of DLRover: `[time] [pid] [id] [target] [name] [type] {content}`, or the same as JSON objects.

Format: dlrover/python/training_event (event.py, predefined/). Times are local times without a zone. The files are
called `events_<rank>.log`. Older versions write no pid.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ettwatch_sources.causes import cause_of
from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.pen import Pen
from ettwatch_sources.told import Told

_LINE: Final = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d[T ][\d:.]+)\] (?:\[(?P<pid>\w+)\] )?\[(?P<id>[^\]]*)\] \[(?P<target>[^\]]*)\] "
    r"\[(?P<name>[^\]]*)\] \[(?P<type>BEGIN|END|INSTANT)\] (?P<content>.*)"
)
_TIME: Final = re.compile(r"(?:\[|event_time\": \")(\d{4}-\d\d-\d\d)[T ]([\d:.]+)")
_FILE: Final = re.compile(r"events_(\d{1,9})(?!\d)")
_PHASES: Final = {
    "#init": "trainer_init",
    "load_ckpt": "trainer_init.checkpoint_load",
    "load_dataset": "trainer_init.load_dataset",
    "#evaluate": "wasted_training.evaluation",
    "#predict": "wasted_training.predict",
    "#save": "wasted_training.checkpoint_save",
    "#rendezvous": "hardware_setup.rendezvous",
    "#pre_check": "hardware_setup.pre_check",
    "#network_check": "hardware_setup.network_check",
}
_ALIVE: Final = frozenset(
    {
        *("#epoch", "#substep", "#predict_step", "#init_end", "#agent_start", "#agent_exit", "#master_start"),
        *("#worker_create", "#worker_relaunch", "#worker_no_heartbeat", "#worker_event", "#node_join"),
        *("#fault_detect", "#fault_tolerance", "#process_restart", "#process_restart_membership"),
    }
)


class _Event(NamedTuple):
    time: str
    pid: str
    id: str
    target: str
    name: str
    type: str
    content: dict[str, Any]


class _Job:
    """One job of the file, and what is known of its attempt."""

    def __init__(self, feed: Feed) -> None:
        self.pen = Pen(feed, feed.default_job)
        self.starts = 0
        self.pids: set[str] = set()
        self.position = 0


def read(feed: Feed) -> Iterator[Told]:
    """Read the events of one process, or of several in one file."""
    job = _Job(feed)
    found = _FILE.search(feed.name)
    job.pen.rank = int(found[1]) if found else 0
    for line in feed.lines_in_time(_when):
        if not line.text.strip():
            continue
        try:
            event = _parse(line.text)
            ts = feed.in_order(feed.time_of_text(event.time))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if line.cut:
                feed.flag("truncated")
            feed.refuse(f"no event of DLRover: {error}")
            continue
        yield from _tell(job, event, ts)
    if not job.pen.ended:
        feed.flag("no_end", job.pen.job)


def _when(text: str) -> str | None:
    found = _TIME.search(text)
    return f"{found[1]} {found[2]}" if found else None


def _parse(text: str) -> _Event:
    if text.lstrip().startswith("{"):
        value = json.loads(text)
        content = value.get("content")
        return _Event(
            str(value["event_time"]),
            str(value.get("pid", "")),
            str(value.get("event_id", "")),
            str(value.get("target", "")),
            str(value["name"]),
            str(value["event_type"]),
            content if isinstance(content, dict) else {},
        )
    found = _LINE.search(text)
    if not found:
        raise ValueError(f"{text[:60]!r} is none")
    try:
        content = json.loads(found["content"])
    except ValueError:
        content = {}
    return _Event(
        found["time"],
        found["pid"] or "",
        found["id"],
        found["target"],
        found["name"],
        found["type"],
        content if isinstance(content, dict) else {},
    )


def _tell(job: _Job, event: _Event, ts: int) -> Iterator[Told]:
    pen = job.pen
    name = event.name.replace("#load_", "load_")
    key = f"{event.target}/{event.id}/{name}"
    step = _step(event.content)
    if name == "#start" or (name == "#init" and event.type == "BEGIN" and event.pid and event.pid not in job.pids):
        if name == "#start":
            if job.starts and (pen.trains or pen.ended or event.pid not in job.pids):
                pen.next_attempt()
                pen.feed.flag("counted_attempts", pen.job)
            job.starts += 1
        job.pids.add(event.pid)
    if name == "#start":
        yield from pen.alive(ts)
    elif name in _PHASES:
        if event.type == "BEGIN":
            yield from pen.begin(_PHASES[name], ts, key)
        elif event.type == "END":
            yield from pen.finish(key, ts, outcome=_outcome(event.content))
    elif name == "#train":
        yield from _train(job, event, ts, step)
    elif name == "#step":
        if event.type == "BEGIN" and not pen.trains and step is not None:
            yield from pen.training(ts, pen.position(max(step - 1, 0)), step=max(step - 1, 0))
        elif event.type == "END" and step is not None:
            yield from _progress(job, ts, step)
    elif name == "#log" and step is not None:
        yield from _progress(job, ts, step)
    elif name == "#persist_ckpt":
        if event.type == "BEGIN":
            yield from pen.begin("wasted_training.persist_checkpoint", ts, key, background=True)
        elif event.type == "END":
            yield from pen.finish(key, ts, outcome=_outcome(event.content))
            if step is not None and _outcome(event.content) == "ok":
                size = event.content.get("size")
                yield from pen.durable(ts, pen.position(step), step=step, bytes=size if isinstance(size, int) else None)
    elif name in {"#finish", "#process_succeeded"}:
        yield from pen.over(ts, "succeeded")
    elif name == "#process_fail":
        yield from _failed(pen, event, ts)
    elif name == "#master_exit":
        code = event.content.get("exit_code")
        yield from pen.job_over(ts, "succeeded" if code == 0 else "failed")
    elif name == "#job_train" or name in _ALIVE:
        yield from pen.alive(ts)
    else:
        pen.feed.unknown(event.name, pen.job)
        yield from pen.alive(ts)


def _train(job: _Job, event: _Event, ts: int, step: int | None) -> Iterator[Told]:
    pen = job.pen
    if event.type == "BEGIN":
        if step is None:
            # Where it resumes is told by its first step.
            yield from pen.alive(ts)
        else:
            yield from pen.training(ts, pen.position(step), step=step)
    elif event.type == "END" and pen.trains and _outcome(event.content) == "ok":
        yield from pen.trained(ts, job.position)
    else:
        yield from pen.alive(ts)


def _progress(job: _Job, ts: int, step: int) -> Iterator[Told]:
    job.position = job.pen.position(step)
    yield from job.pen.progress(ts, job.position, step=step)


def _failed(pen: Pen, event: _Event, ts: int) -> Iterator[Told]:
    text = json.dumps(event.content, ensure_ascii=False, default=str)
    cause = cause_of(text)
    if cause == "unknown":
        pen.feed.flag("no_cause", pen.job)
    yield from pen.over(ts, "failed", cause=cause, message=text)


def _step(content: Mapping[str, Any]) -> int | None:
    step = content.get("global_step")
    return step if isinstance(step, int) and not isinstance(step, bool) and step >= 0 else None


def _outcome(content: Mapping[str, Any]) -> str:
    return "error" if content.get("success") is False or content.get("error") else "ok"


def _is_it(head: str, name: str) -> bool:
    return bool(_LINE.search(head)) or ('"event_type": "' in head and '"event_time": "' in head and '"target"' in head)


KIND: Final = Kind(
    name="dlrover",
    title="training events of DLRover",
    read=read,
    is_it=_is_it,
    unknown=("no_submit", "no_eligible", "no_start", "no_gpus", "no_data_wait"),
    restarts=True,
)
