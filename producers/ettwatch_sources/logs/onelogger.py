"""Spans of NVIDIA's one-logger (NeMo, Megatron, Lightning), as its FileExporter writes them: JSON objects in lines.

Format: nv_one_logger/exporter/base_json_exporter.py and training_telemetry/api. A record is the start of a span, its
stop, both in one ("complete"), or an event inside a span. Times are milliseconds since the epoch.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ettwatch_sources.causes import cause_of
from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.pen import Pen
from ettwatch_sources.told import Told

_STAMP: Final = re.compile(r'"timestamp_msec"\s*:\s*(\d{1,18})')
_PHASES: Final = {
    "distributed_code_initialization": "trainer_init.process_group_init",
    "data_loader_initialization": "trainer_init.preproc_creation",
    "model_initialization": "trainer_init.train_module_creation",
    "optimizer_initialization": "trainer_init.optimizer_creation",
    "checkpoint_load": "trainer_init.checkpoint_load",
    "validation_loop": "wasted_training.evaluation",
    "testing_loop": "wasted_training.testing",
    "checkpoint_save_sync": "wasted_training.checkpoint_save",
    "checkpoint_save_async": "wasted_training.checkpoint_save",
    "checkpoint_save_finalization": "wasted_training.checkpoint_save",
}
_INSIDE: Final = frozenset(
    {
        *("training_single_iteration", "validation_single_iteration", "testing_single_iteration"),
        *("data_loading", "model_forward", "zero_grad", "model_backward", "optimizer_update"),
    }
)


class _Run:
    """One process that speaks: its attempt, and the names of its open spans."""

    def __init__(self, feed: Feed) -> None:
        self.pen = Pen(feed, feed.default_job)
        self.names: dict[str, str] = {}
        self.applications = 0
        self.position = 0
        self.first = 0


def read(feed: Feed) -> Iterator[Told]:
    """Read the records of one process, or of its attempts one after the other."""
    run = _Run(feed)
    for line in feed.lines_in_time(_when):
        if not line.text.strip():
            continue
        try:
            record = json.loads(line.text)
            kind = str(record["type"])
            yield from _record(run, kind, record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if line.cut:
                feed.flag("truncated")
            feed.refuse(f"no record of one-logger: {error}")
    if not run.pen.ended:
        feed.flag("no_end", run.pen.job)


def _when(text: str) -> float | None:
    return min((float(told) for told in _STAMP.findall(text)), default=None)


def _time(feed: Feed, event: dict[str, Any]) -> int:
    return feed.in_order(feed.time_of_number(event["attributes"]["timestamp_msec"], "ms"))


def _record(run: _Run, kind: str, record: dict[str, Any]) -> Iterator[Told]:
    pen = run.pen
    if kind in {"start", "complete"}:
        name, span = str(record["name"]).lower(), str(record["id"])
        attributes = record.get("attributes") or {}
        yield from _begin(run, name, span, _time(pen.feed, record["start_event"]), attributes)
    if kind in {"stop", "complete"}:
        name = str(record.get("name") or run.names.get(str(record["id"]), "")).lower()
        yield from _finish(run, name, str(record["id"]), _time(pen.feed, record["stop_event"]))
    elif kind == "event":
        yield from _event(run, str(record["event"]["name"]), record["event"]["attributes"], record["event"])
    elif kind == "application_error":
        text = json.dumps(record["event"]["attributes"], ensure_ascii=False)
        yield from pen.over(_time(pen.feed, record["event"]), "failed", cause=cause_of(text), message=text)
    elif kind not in {"start", "complete", "telemetry_data_error"}:
        pen.feed.unknown(kind, pen.job)


def _begin(run: _Run, name: str, span: str, ts: int, attributes: dict[str, Any]) -> Iterator[Told]:
    pen = run.pen
    run.names[span] = name
    if name == "application":
        if run.applications:
            pen.next_attempt()
            pen.feed.flag("counted_attempts", pen.job)
        run.applications += 1
        yield from pen.alive(ts)
    elif name == "training_loop":
        iterations = _whole(attributes.get("train_iterations_start")) or 0
        samples = _whole(attributes.get("train_samples_start"))
        run.first = run.position = samples if samples is not None else pen.position(iterations)
        yield from pen.training(ts, run.position, step=iterations)
    elif name in _PHASES:
        background = name == "checkpoint_save_finalization" or None
        yield from pen.begin(_PHASES[name], ts, span, background=background)
    elif name not in _INSIDE:
        pen.feed.unknown(name, pen.job)


def _finish(run: _Run, name: str, span: str, ts: int) -> Iterator[Told]:
    run.names.pop(span, None)
    if name == "application":
        # It closes on the way out, whatever the reason: an error is told before by a record of its own.
        if not run.pen.ended:
            yield from run.pen.over(ts, "succeeded")
    elif name == "training_loop":
        yield from run.pen.trained(ts, run.position)
    else:
        yield from run.pen.finish(span, ts)


def _event(run: _Run, name: str, attributes: dict[str, Any], event: dict[str, Any]) -> Iterator[Told]:
    pen = run.pen
    ts = _time(pen.feed, event)
    step = _whole(attributes.get("current_iteration"))
    if name == "one_logger_initialization":
        pen.rank = _whole(attributes.get("rank")) or 0
        pen.host = attributes.get("node_name") if isinstance(attributes.get("node_name"), str) else None
        yield from pen.submitted(ts, gpus=pen.feed.options.gpus or _whole(attributes.get("world_size")))
    elif name == "training_metrics_update" and step is not None:
        samples = _whole(attributes.get("num_train_samples"))
        start = _whole(attributes.get("train_samples_start"))
        # The iteration is counted from 0: this one is done.
        run.position = (start or 0) + samples if samples is not None else pen.position(step + 1)
        yield from pen.progress(ts, max(run.position, run.first), step=step + 1)
    elif name == "save_checkpoint_success" and step is not None:
        productive = _whole(attributes.get("productive_train_samples"))
        position = run.first + productive if productive is not None else pen.position(step)
        yield from pen.durable(ts, position, step=step)
    else:
        yield from pen.alive(ts)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _is_it(head: str, name: str) -> bool:
    return "timestamp_msec" in head and ('"start_event"' in head or '"span_id"' in head)


KIND: Final = Kind(
    name="onelogger",
    title="spans of NVIDIA one-logger (NeMo, Megatron, Lightning)",
    read=read,
    is_it=_is_it,
    unknown=("no_submit", "no_eligible", "no_start", "no_data_wait"),
    restarts=True,
)
