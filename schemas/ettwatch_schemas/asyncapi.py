"""The AsyncAPI document (version 3.0) of the topics: keys, headers, payloads and examples, made from the models."""

import json
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from ettwatch_schemas.alerts import EXAMPLE, AlertRecord
from ettwatch_schemas.anyevent import any_event
from ettwatch_schemas.errors import CODES
from ettwatch_schemas.letters import HANDLED, HEADER
from ettwatch_schemas.published import examples, topic_examples
from ettwatch_schemas.results import JobSummary
from ettwatch_schemas.windows import Window
from ettwatch_schemas.wire import AttemptsWire, PhasesWire, SegmentsWire

_REF: Final = "#/components/schemas/{model}"
_JOB_KEY: Final = {"type": "string", "description": "the job, in UTF-8"}
_WINDOW_KEY: Final = {"type": "string", "description": "scope and name of the window, with a slash between them"}

_ALERT_KEY: Final = {"type": "string", "description": "the key of the alert, in UTF-8"}

_HEADERS: Final = {
    "code": f"why it was refused, in a word: one of the worker's own, or {', '.join(CODES)}",
    "reason": "why it was refused, in a line",
    "field": "the field that is wrong, if one is",
    "fix": "what to do about it, if that is known",
    "topic": "where the message was read",
    "partition": "number of its partition",
    "offset": "its offset there",
    "index": "place of the event in the array, from 0; empty: the whole message",
    "time": "when it was refused, microseconds since the Unix epoch, UTC",
    "job": "job of the event, if known",
    "handled": f"what became of the dead letter: {' or '.join(HANDLED)}; in marks only",
}
"""Every header of a dead letter, without what all their names begin with."""

_OPTIONAL: Final = ("field", "fix", "job")


def asyncapi() -> dict[str, Any]:
    """Return the document. Who sends and who receives is told from the side of the workers."""
    messages = _messages()
    channels = _channels(messages)
    return {
        "asyncapi": "3.0.0",
        "id": "urn:ettwatch:v1:topics",
        "info": {
            "title": "ettwatch topics",
            "version": "1",
            "description": (
                "What producers send to ettwatch workers on Kafka, and what workers make of it. Readers pass over "
                "fields that they do not know. Of rows with one key the one with the greatest version counts."
            ),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": {_operation(name): _does(name) for name in channels},
        "components": {"messages": messages, "schemas": _schemas()},
    }


def _channels(messages: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, address, sent, description in (
        ("events", "events", ("event", "events"), "What producers send; a message has events of one job."),
        ("accepted", "accepted", ("accepted",), "Events that count, on their way to the store."),
        ("jobs", "jobs", ("job",), "Summaries of jobs; the last one of a job counts."),
        ("attempts", "attempts", ("attempts",), "What changed of the attempts of a job."),
        ("phases", "phases", ("phases",), "What changed of the phases of a job."),
        ("segments", "segments", ("segments",), "What changed of the timeline of a job, by hours."),
        ("windows", "windows", ("window",), "Figures of rolling windows over the fleet."),
        ("alerts", "alerts", ("alert",), "Every state of every alert on a regression."),
        ("deadLetters", "events.dlq", ("letter", "mark"), "What was refused, and marks of what was dealt with."),
    ):
        out[name] = {
            "address": f"{{prefix}}.{address}",
            "description": description,
            "messages": {key: {"$ref": f"#/components/messages/{key}"} for key in messages if key in sent},
            "parameters": {"prefix": {"default": "ett", "description": "what the names of all topics begin with"}},
        }
    return out


def _operation(channel: str) -> str:
    verb = "receive" if channel == "events" else "send"
    return f"{verb}{channel[0].upper()}{channel[1:]}"


def _does(channel: str) -> dict[str, Any]:
    action = "receive" if channel == "events" else "send"
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}


def _messages() -> dict[str, Any]:
    told = dict(topic_examples())
    events = [(name, json.loads(data)) for name, data in examples()]
    arrays = [(name, body) for name, body in events if isinstance(body, list)]
    letter = json.loads(told["dlq.letter"])
    origin = ("topic", "partition", "offset", "index", "time")
    of_mark = {HEADER + name: letter["headers"][HEADER + name] for name in origin} | {HEADER + "handled": "replayed"}
    return {
        "event": _message("One event.", _ref("Event"), [e for e in events if e not in arrays]),
        "events": _message("Events of one job.", {"type": "array", "items": _ref("Event"), "minItems": 1}, arrays),
        "accepted": {
            "summary": "Lines, each an event, or an array of events as it was sent. The key is null.",
            "contentType": "application/x-ndjson",
            "payload": {"type": "string"},
            "examples": [{"name": "lines", "payload": told["accepted.lines"].decode()}],
        },
        "job": _message("The summary of a job.", _ref("JobSummary"), _of(told, "jobs")),
        "attempts": _message("Attempts that changed.", _ref("AttemptsUpdate"), _of(told, "attempts")),
        "phases": _message("Phases that changed.", _ref("PhasesUpdate"), _of(told, "phases")),
        "segments": _message("Hours that changed.", _ref("SegmentsUpdate"), _of(told, "segments")),
        "window": _message("The figures of a window.", _ref("Window"), _of(told, "windows"), _WINDOW_KEY),
        "alert": _message("One state of an alert.", _ref("AlertRecord"), [("firing", EXAMPLE)], _ALERT_KEY),
        "letter": {
            "summary": "A message, or an event of an array, that was refused; the value is the original message.",
            "contentType": "application/octet-stream",
            "headers": _headers(required=[name for name in _HEADERS if name not in (*_OPTIONAL, "handled")]),
            "payload": {"type": "string"},
            "bindings": _bindings({"type": "string", "description": "the key that the message had"}),
            "examples": [{"name": "letter", "headers": letter["headers"], "payload": letter["value"]}],
        },
        "mark": {
            "summary": "The dead letter with the same topic, partition, offset and index was dealt with.",
            "headers": _headers(required=[*origin, "handled"]),
            "payload": {"type": "null"},
            "bindings": _bindings({"type": "string", "description": "the key that the message had"}),
            "examples": [{"name": "mark", "headers": of_mark, "payload": None}],
        },
    }


def _of(told: dict[str, bytes], topic: str) -> list[tuple[str, Any]]:
    return [(name.partition(".")[2], json.loads(data)) for name, data in told.items() if name.startswith(f"{topic}.")]


def _message(
    summary: str, payload: dict[str, Any], shown: list[tuple[str, Any]], key: dict[str, Any] = _JOB_KEY
) -> dict[str, Any]:
    return {
        "summary": summary,
        "contentType": "application/json",
        "payload": payload,
        "bindings": _bindings(key),
        "examples": [{"name": name, "payload": body} for name, body in shown],
    }


def _bindings(key: dict[str, Any]) -> dict[str, Any]:
    return {"kafka": {"key": key, "bindingVersion": "0.5.0"}}


def _headers(required: list[str]) -> dict[str, Any]:
    properties = {HEADER + name: {"type": "string", "description": meaning} for name, meaning in _HEADERS.items()}
    return {"type": "object", "properties": properties, "required": [HEADER + name for name in required]}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}


def _schemas() -> dict[str, Any]:
    union = any_event(_REF)
    models = (JobSummary, AttemptsWire, PhasesWire, SegmentsWire, Window, AlertRecord)
    _, updates = models_json_schema([(model, "serialization") for model in models], ref_template=_REF)
    found = union.pop("$defs") | updates["$defs"]
    found["Event"] = {"title": "Event", "description": "Any event.", **union}
    plain = {_renamed(name): _as_draft_7(found[name]) for name in sorted(found)}
    for name, schema in plain.items():
        schema["title"] = name
    return plain


def _renamed(name: str) -> str:
    return name.replace("HourWire", "Hour").replace("Wire", "Update")


def _as_draft_7(value: Any) -> Any:
    """Return a schema of pydantic's as AsyncAPI has them: arrays by the older words, references by the names here.

    Of summaries also unknown fields are allowed: a reader passes over them.
    """
    if isinstance(value, list):
        return [_as_draft_7(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, inner in value.items():
        match name:
            case "prefixItems":
                out["items"] = _as_draft_7(inner)
                out["additionalItems"] = False
            case "$ref":
                out[name] = _renamed(inner)
            case "discriminator":
                pass
            case "additionalProperties" if inner is False:
                pass
            case _:
                out[name] = _as_draft_7(inner)
    return out
