"""Events of torchelastic's agent (torchrun), as its handlers log them: one JSON object in a line.

Format: torch/distributed/elastic/events/api.py. The agent leaves `timestamp` 0, so the time must come from what stands
before the JSON (a log's prefix) or around it; a line without any time is refused.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ettwatch_sources.causes import cause_of
from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime, Zero, duration, from_text
from ettwatch_sources.told import Told

_TIME: Final = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?")
_NUMBER: Final = re.compile(r'"(?:timestamp|time|ts)"\s*:\s*(\d{10,15})')
_STATUS: Final = "torchelastic.worker.status."
_WRAPS: Final = ("time", "ts", "@timestamp", "asctime", "timestamp")


def read(feed: Feed) -> Iterator[Told]:
    """Read the events of one agent, or of several in one file."""
    pens: dict[str, Pen] = {}
    begun: dict[str, set[int]] = {}
    for line in feed.lines_in_time(_when):
        at = line.text.find("{")
        if at < 0 or ("torchelastic" not in line.text and '"agent_restarts"' not in line.text):
            continue
        try:
            entry, around = _unwrapped(json.loads(line.text[at:]))
            metadata = entry["metadata"]
            ts = feed.in_order(_time(feed, entry, around, line.text[:at]))
            state, restarts = str(metadata["state"]), int(metadata.get("agent_restarts") or 0)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, Zero):
                feed.flag("zero_time")
            if line.cut:
                feed.flag("truncated")
            feed.refuse(f"no event of torchelastic: {error}")
            continue
        run = metadata.get("run_id")
        job = feed.options.job or (str(run) if run and run != "none" else feed.default_job)
        pen = pens.setdefault(job, Pen(feed, job, "launcher"))
        pen.attempt = feed.options.attempt + restarts
        pen.rank = _count(metadata.get("global_rank")) or 0
        pen.host = str(metadata["hostname"]) if metadata.get("hostname") else None
        yield from _event(pen, begun.setdefault(job, set()), state, ts, metadata, str(entry.get("source")))
    for pen in pens.values():
        if not pen.ended:
            feed.flag("no_end", pen.job)


def _when(text: str) -> float | None:
    number = _NUMBER.search(text)
    if number:
        return float(number[1]) * (1e6 if len(number[1]) < 12 else 1e3)
    found = _TIME.search(text)
    try:
        return from_text(found[0], None).ts if found else None
    except NoTime:
        return None


def _unwrapped(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The event, and the object that a log shipper put around it."""
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    for name in ("message", "msg", "log", "event"):
        inner = value.get(name)
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            inner = json.loads(inner)
        if isinstance(inner, dict) and "metadata" in inner:
            return inner, value
    return value, {}


def _time(feed: Feed, entry: Mapping[str, Any], around: Mapping[str, Any], prefix: str) -> int:
    told = entry.get("timestamp")
    if told:
        return feed.time_of_number(told, "ms")
    for value in (around.get(name) for name in _WRAPS):
        if isinstance(value, str):
            return feed.time_of_text(value)
        if value:
            return feed.time_of_number(value, "s" if value < 10**11 else "ms")
    found = _TIME.search(prefix)
    if found:
        return feed.time_of_text(found[0])
    raise Zero("its timestamp is 0 and the line has no other time; log it with a handler that writes the time")


def _event(pen: Pen, begun: set[int], state: str, ts: int, metadata: Mapping[str, Any], source: str) -> Iterator[Told]:
    try:
        took = duration(metadata["duration_ms"], "ms") if metadata.get("duration_ms") is not None else None
    except NoTime:
        took = None
    if state == "START":
        if pen.attempt not in begun:
            yield from pen.started(ts, trigger="initial" if pen.attempt == 0 else "failure")
    elif state == "RENDEZVOUS" and took is not None:
        # The agent has its hardware by then.
        begun.add(pen.attempt)
        yield from pen.started(ts - took, trigger="initial" if pen.attempt == 0 else "failure")
        yield from pen.span("hardware_setup.rendezvous", ts - took, ts)
    elif state == "SUCCEEDED":
        # The agent speaks for all: a worker that is done may still wait for others.
        if source == "AGENT":
            yield from pen.over(ts, "succeeded")
            yield from pen.job_over(ts, "succeeded")
    elif state == "FAILED":
        inner = _inner(metadata)
        message = _message(metadata.get("raw_error"))
        code = inner.get("exit_code")
        code = code[0] if isinstance(code, list) and code else code
        fields: dict[str, Any] = {"message": message or None, "cause": cause_of(message)}
        if isinstance(code, int) and not isinstance(code, bool):
            fields |= {"signal": -code} if code < 0 else {"exit_code": code}
        if fields["cause"] == "unknown":
            pen.feed.flag("no_cause", pen.job)
        yield from pen.over(ts, "failed", **fields)
        if source == "AGENT":
            yield from pen.job_over(ts, "failed")
    elif state in {"TERMINATED", "RUNNING", "HEALTHY", "UNKNOWN", "INIT", "STOPPED", "UNHEALTHY"}:
        # Terminated: stopped by the agent because another rank failed, which that rank says itself.
        yield from pen.alive(ts)
    elif took is not None:
        yield from pen.alive(ts)  # EXIT_BARRIER and other steps of the agent's own
    else:
        pen.feed.unknown(state, pen.job)
        yield from pen.alive(ts)


def _inner(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        inner = json.loads(metadata.get("metadata") or "{}")
    except (ValueError, TypeError, RecursionError):
        return {}
    return inner if isinstance(inner, dict) else {}


def _message(raw: object) -> str:
    """What the error says, out of the error file that the agent passes on."""
    if not isinstance(raw, str):
        return ""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    while isinstance(value, dict) and "message" in value:
        value = value["message"]
    return value if isinstance(value, str) else raw


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


KIND: Final = Kind(
    name="torchelastic",
    title="events of torchelastic's agent (torchrun)",
    read=read,
    is_it=lambda head, name: _STATUS in head or ('"agent_restarts"' in head and '"rdzv_backend"' in head),
    unknown=("no_submit", "no_eligible", "no_gpus", "no_positions", "no_phases", "no_data_wait"),
)
