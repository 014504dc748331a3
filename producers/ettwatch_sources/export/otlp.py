"""A job's timeline as OpenTelemetry spans, in the JSON encoding of OTLP.

Sources: opentelemetry-proto 1.x, docs/specification.md (JSON Protobuf Encoding: ids in hex, 64-bit integers as texts,
enums as numbers) and trace/v1/trace.proto. A job is a trace: one span for it, a child for each attempt, and below it
one for each segment of the timeline. Ids follow from names and times, so that a job that is exported again replaces
itself where the backend can.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ettwatch_schemas import EFFECTIVE, AttemptSummary, JobSummary, Segment, component_of

_INTERNAL: Final = 1
_OK: Final = 1
_ERROR: Final = 2
_SCOPE: Final = {"name": "ettwatch", "version": "1"}

Json = dict[str, Any]


def request_of(summary: JobSummary, attempts: Sequence[AttemptSummary], segments: Iterable[Segment]) -> Json:
    """Return an ExportTraceServiceRequest with all spans of a job."""
    trace = _id("trace", summary.job, 32)
    root = _id("job", summary.job, 16)
    spans = [_job(summary, trace, root)]
    parents: dict[int, str] = {}
    for attempt in attempts:
        parents[attempt.attempt] = _id("attempt", f"{summary.job}\0{attempt.attempt}", 16)
        spans.append(_attempt(attempt, trace, root, parents[attempt.attempt]))
    ends = {attempt.attempt: (attempt.start, attempt.end) for attempt in attempts}
    spans += _segments(summary.job, segments, trace, root, parents, ends)
    resource = {
        "service.name": "training",
        "ettwatch.job": summary.job,
        "ettwatch.team": summary.team,
        "ettwatch.model": summary.model,
        "k8s.cluster.name": summary.cluster,
        **{f"ettwatch.label.{key}": value for key, value in summary.labels.items()},
    }
    return {
        "resourceSpans": [
            {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [{"scope": _SCOPE, "spans": spans}]}
        ]
    }


def parts_of(request: Json, most: int) -> Iterator[Json]:
    """Yield a request in pieces of at most `most` spans: receivers refuse what is too large."""
    (resource,) = request["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    for start in range(0, len(scope["spans"]), most):
        spans = scope["spans"][start : start + most]
        yield {"resourceSpans": [{**resource, "scopeSpans": [{**scope, "spans": spans}]}]}


def rejected(answer: Json) -> tuple[int, str]:
    """Return how many spans the receiver rejected by its answer, and why."""
    told = answer.get("partialSuccess")
    partial = told if isinstance(told, dict) else {}
    number = str(partial.get("rejectedSpans") or 0)
    return int(number) if number.isdecimal() else 0, str(partial.get("errorMessage") or "")


def span_count(request: Json) -> int:
    """Return how many spans a request has."""
    return sum(len(scope["spans"]) for part in request["resourceSpans"] for scope in part["scopeSpans"])


def _job(summary: JobSummary, trace: str, span: str) -> Json:
    told = {
        "ettwatch.status": summary.status,
        "ettwatch.ett_pct": summary.ett_pct,
        "ettwatch.e2e_s": summary.e2e_s,
        "ettwatch.effective_s": summary.effective_s,
        "ettwatch.tts_s": summary.tts_s,
        "ettwatch.ttr_s": summary.ttr_s,
        "ettwatch.nof": summary.nof,
        "ettwatch.nof_infra": summary.nof_infra,
        "ettwatch.nof_preempted": summary.nof_preempted,
        "ettwatch.unsaved_s": summary.unsaved_s,
        "ettwatch.gpus": summary.gpus,
        "ettwatch.version": summary.version,
        "ettwatch.flags": summary.flags,
        **{f"ettwatch.lost_s.{name}": seconds for name, seconds in summary.components.items()},
    }
    failed = summary.status in {"failed", "lost"}
    return _span(trace, span, "", summary.job, summary.t0, summary.t1, told, failed, "" if failed else None)


def _attempt(attempt: AttemptSummary, trace: str, parent: str, span: str) -> Json:
    told = {
        "ettwatch.attempt": attempt.attempt,
        "ettwatch.outcome": attempt.outcome,
        "ettwatch.cause": attempt.cause,
        "ettwatch.exit_code": attempt.exit_code,
        "ettwatch.signal": attempt.signal,
        "ettwatch.trigger": attempt.trigger,
        "ettwatch.gpus": attempt.gpus,
        "ettwatch.trained": attempt.trained,
        "ettwatch.open": attempt.open,
        "ettwatch.effective_s": attempt.effective_s,
        "ettwatch.tts_s": attempt.tts_s,
        "ettwatch.ttr_s": attempt.ttr_s,
    }
    failed = attempt.outcome in {"failed", "preempted"}
    name = f"attempt {attempt.attempt}"
    message = attempt.message or attempt.cause or ""
    made = _span(trace, span, parent, name, attempt.start, attempt.end, told, failed, message[:1000])
    marks = (("first batch", attempt.first_batch), ("last advance", attempt.last_advance))
    made["events"] = [{"timeUnixNano": _nanos(ts), "name": what} for what, ts in marks if ts is not None]
    return made


def _segments(
    job: str,
    segments: Iterable[Segment],
    trace: str,
    root: str,
    parents: dict[int, str],
    ends: dict[int, tuple[int, int]],
) -> Iterator[Json]:
    for segment in segments:
        start, end = ends.get(segment.attempt, (0, 0))
        # What lies between attempts belongs to the job.
        inside = start <= segment.start and segment.end <= end and segment.attempt in parents
        span = _id("segment", f"{job}\0{segment.attempt}\0{segment.start}\0{segment.stage}", 16)
        told = {
            "ettwatch.stage": segment.stage,
            "ettwatch.component": "" if segment.stage == EFFECTIVE else component_of(segment.stage),
            "ettwatch.effective": segment.stage == EFFECTIVE,
            "ettwatch.attempt": segment.attempt,
            "ettwatch.gpus": segment.gpus,
        }
        parent = parents[segment.attempt] if inside else root
        yield _span(trace, span, parent, segment.stage, segment.start, segment.end, told, False, None)


def _span(
    trace: str, span: str, parent: str, name: str, start: int, end: int, told: Json, failed: bool, message: str | None
) -> Json:
    made: Json = {
        "traceId": trace,
        "spanId": span,
        "name": name,
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanos(start),
        "endTimeUnixNano": _nanos(end),
        "attributes": _attributes(told),
        "status": {"code": _ERROR, "message": message or ""} if failed else {"code": _OK},
    }
    if parent:
        made["parentSpanId"] = parent
    return made


def _attributes(told: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in told.items() if value not in (None, "", [])]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _nanos(ts: int) -> str:
    return str(ts * 1000)


def _id(what: str, name: str, digits: int) -> str:
    """An id that follows from a name; never all zeros, which would mean that there is none."""
    return hashlib.sha256(f"ettwatch/{what}\0{name}".encode()).hexdigest()[:digits]
