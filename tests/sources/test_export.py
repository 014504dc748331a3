"""OpenTelemetry spans and CloudEvents, posted to a receiver that checks them."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from ettwatch_app.commands.export import export
from ettwatch_sources.export.post import Poster, PostError
from support.receiver import Receiver, receiving

CASES = Path(__file__).parent.parent / "cases"
EXAMPLE = str(CASES / "01-worked-example.jsonl")

# After opentelemetry-proto's trace.proto in its JSON encoding.
_VALUE: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
    "properties": {
        "stringValue": {"type": "string"},
        "boolValue": {"type": "boolean"},
        "intValue": {"type": "string", "pattern": r"^-?\d+$"},
        "doubleValue": {"type": "number"},
        "arrayValue": {"type": "object", "properties": {"values": {"type": "array"}}},
    },
}
_ATTRIBUTES = {"type": "array", "items": {"required": ["key", "value"], "properties": {"value": _VALUE}}}
_NANOS = {"type": "string", "pattern": r"^\d{19}$"}
_SPAN = {
    "type": "object",
    "additionalProperties": False,
    "required": ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"],
    "properties": {
        "traceId": {"pattern": "^[0-9a-f]{32}$"},
        "spanId": {"pattern": "^[0-9a-f]{16}$"},
        "parentSpanId": {"pattern": "^[0-9a-f]{16}$"},
        "name": {"type": "string", "minLength": 1},
        "kind": {"enum": [0, 1, 2, 3, 4, 5]},
        "startTimeUnixNano": _NANOS,
        "endTimeUnixNano": _NANOS,
        "attributes": _ATTRIBUTES,
        "events": {
            "type": "array",
            "items": {"required": ["timeUnixNano", "name"], "properties": {"timeUnixNano": _NANOS}},
        },
        "status": {"properties": {"code": {"enum": [0, 1, 2]}, "message": {"type": "string"}}},
    },
}
_REQUEST = {
    "type": "object",
    "required": ["resourceSpans"],
    "properties": {
        "resourceSpans": {
            "type": "array",
            "items": {
                "required": ["resource", "scopeSpans"],
                "properties": {
                    "resource": {"properties": {"attributes": _ATTRIBUTES}},
                    "scopeSpans": {
                        "type": "array",
                        "items": {"properties": {"spans": {"type": "array", "items": _SPAN}}},
                    },
                },
            },
        }
    },
}
# After cloudevents.json of CloudEvents 1.0.2.
_CLOUDEVENT = {
    "type": "object",
    "required": ["id", "source", "specversion", "type"],
    "propertyNames": {"pattern": "^[a-z0-9]+$"},
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1, "format": "uri-reference"},
        "specversion": {"const": "1.0"},
        "type": {"type": "string", "minLength": 1},
        "datacontenttype": {"type": "string"},
        "subject": {"type": "string", "minLength": 1},
        "time": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"},
    },
}


def spans_of(receiver: Receiver) -> list[dict[str, Any]]:
    found = []
    for path, headers, body in receiver.posts:
        assert path == "/v1/traces"
        assert headers["Content-Type"] == "application/json"
        jsonschema.validate(body, _REQUEST)
        found += [span for part in body["resourceSpans"] for scope in part["scopeSpans"] for span in scope["spans"]]
    return found


def test_the_worked_example_as_spans() -> None:
    with receiving() as receiver:
        words = ["otlp", EXAMPLE, "--endpoint", receiver.url, "--header", "Authorization=Bearer s3cret"]
        done = CliRunner().invoke(export, words)
    assert done.exit_code == 0, done.output
    assert "s3cret" not in done.output
    assert receiver.posts[0][1]["Authorization"] == "Bearer s3cret"
    spans = spans_of(receiver)
    assert len({span["spanId"] for span in spans}) == len(spans)
    root = next(span for span in spans if "parentSpanId" not in span)
    attempts = [span for span in spans if span["name"].startswith("attempt ")]
    assert [span["parentSpanId"] for span in attempts] == [root["spanId"]] * 2
    assert attempts[0]["status"]["code"] == 2
    leaves = [span for span in spans if span not in [root, *attempts]]
    length = sum(int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) for span in leaves)
    # Segments are gapless: they are as long as the job, 6865 s.
    assert length == 6_865_000_000_000 == int(root["endTimeUnixNano"]) - int(root["startTimeUnixNano"])
    effective = sum(
        int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"]) for s in leaves if s["name"] == "effective_training"
    )
    assert effective / 1e9 == pytest.approx(3118.333333)
    # What waits between the attempts belongs to the job.
    assert {s["parentSpanId"] for s in leaves if s["name"] == "scheduling"} == {root["spanId"]}


def test_a_receiver_that_waits_refuses_and_rejects_a_part() -> None:
    waits: list[float] = []
    with receiving() as receiver:
        receiver.answers = [(503, {}, {}), (429, {"Retry-After": "7"}, {})]
        poster = Poster(f"{receiver.url}/v1/traces", "application/json", {}, sleep=waits.append)
        assert poster.post({"resourceSpans": []}) == {}
        assert waits == [1.0, 7.0]
        receiver.answers = [(400, {}, {"message": "bad"})]
        with pytest.raises(PostError, match="answers 400"):
            poster.post({})
        receiver.answers = [(500, {}, {})] * 2
        with pytest.raises(PostError, match="answers 500"):
            poster.post({})
        receiver.answers = []
        receiver.body = {"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}
        done = CliRunner().invoke(export, ["otlp", EXAMPLE, "--endpoint", receiver.url])
    assert done.exit_code == 1
    assert "3 spans were rejected: too old" in done.output


def test_nobody_there() -> None:
    waits: list[float] = []
    with pytest.raises(PostError, match="127.0.0.1"):
        Poster("http://127.0.0.1:9/", "application/json", {}, tries=3, sleep=waits.append).post({})
    assert waits == [1.0, 2.0]
    assert CliRunner().invoke(export, ["otlp", EXAMPLE, "--endpoint", "nowhere"]).exit_code == 2


def test_jobs_and_events_as_cloudevents() -> None:
    files = sorted(str(path) for path in CASES.glob("*.jsonl"))
    with receiving() as receiver:
        assert CliRunner().invoke(export, ["cloudevents", *files, "--endpoint", f"{receiver.url}/in"]).exit_code == 0
        ((path, headers, body),) = receiver.posts
        assert (path, headers["Content-Type"]) == ("/in", "application/cloudevents-batch+json")
        assert len(body) == len(files)
        receiver.posts.clear()
        words = ["cloudevents", EXAMPLE, "--what", "events", "--endpoint", receiver.url]
        assert CliRunner().invoke(export, words).exit_code == 0
        events = [event for _, _, batch in receiver.posts for event in batch]
    for event in [*body, *events]:
        jsonschema.validate(event, _CLOUDEVENT)
    assert len({(event["source"], event["id"]) for event in [*body, *events]}) == len(body) + len(events)
    loaded = [json.loads(line) for line in Path(EXAMPLE).read_text().splitlines()]
    wire = [one for message in loaded for one in (message if isinstance(message, list) else [message])]
    assert [event["data"]["id"] for event in events] == [one["id"] for one in wire]
    assert {event["type"] for event in events} >= {"io.ettwatch.event.progress.v1", "io.ettwatch.event.job_ended.v1"}
    job = next(event for event in body if event["subject"] == "worked-example")
    assert job["type"] == "io.ettwatch.job.v1"
    assert job["data"]["ett_pct"] == pytest.approx(45.42364651)


def test_without_an_endpoint_lines_go_to_standard_output(tmp_path: Path) -> None:
    done = CliRunner().invoke(export, ["otlp", EXAMPLE])
    line = done.stdout.splitlines()[0]
    jsonschema.validate(json.loads(line), _REQUEST)
    assert re.search(r"^61 spans of 1 job$", done.stderr, re.MULTILINE)
    # Exported again, it is the same.
    assert CliRunner().invoke(export, ["otlp", EXAMPLE]).stdout == done.stdout
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    assert CliRunner().invoke(export, ["otlp", str(bad)]).exit_code == 2
    assert CliRunner().invoke(export, ["cloudevents", EXAMPLE, str(bad)]).exit_code == 1
    assert CliRunner().invoke(export, ["otlp", EXAMPLE, "--header", "nonsense"]).exit_code == 2


def test_spans_as_protobuf_say_the_same() -> None:
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )

    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans, answer.partial_success.error_message = 2, "too old"
    with receiving() as receiver:
        words = ["otlp", EXAMPLE, "--endpoint", f"{receiver.url}/v1/traces"]
        assert CliRunner().invoke(export, words).exit_code == 0
        receiver.body = b""
        assert CliRunner().invoke(export, [*words, "--encoding", "protobuf"]).exit_code == 0
        receiver.body = answer.SerializeToString()
        done = CliRunner().invoke(export, [*words, "--encoding", "protobuf"])
        receiver.body = b"\xff no message"
        assert CliRunner().invoke(export, [*words, "--encoding", "protobuf"]).exit_code == 0
    assert done.exit_code == 1
    assert "2 spans were rejected: too old" in done.output
    (_, _, told), (path, headers, data), *_ = receiver.posts
    assert (path, headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
    assert headers["Content-Encoding"] == "gzip"
    message = ExportTraceServiceRequest.FromString(data)
    found = message.resource_spans[0].scope_spans[0].spans
    wanted = told["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [span.span_id.hex() for span in found] == [span["spanId"] for span in wanted]
    assert {span.trace_id.hex() for span in found} == {span["traceId"] for span in wanted}
    # All but ids and the names of enums is written alike.
    again = MessageToDict(message, use_integers_for_enums=True)["resourceSpans"][0]
    assert again["resource"] == told["resourceSpans"][0]["resource"]
    for one, span in zip(again["scopeSpans"][0]["spans"], wanted, strict=True):
        for key in ("name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"):
            assert one.get(key) == span[key], key
    assert CliRunner().invoke(export, ["otlp", EXAMPLE, "--encoding", "protobuf"]).exit_code == 2


def test_a_long_job_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(CliRunner().invoke(export, ["otlp", EXAMPLE]).stdout)
    monkeypatch.setattr("ettwatch_app.commands.export._MOST_SPANS", 20)
    with receiving() as receiver:
        assert CliRunner().invoke(export, ["otlp", EXAMPLE, "--endpoint", receiver.url]).exit_code == 0
    spans = spans_of(receiver)
    assert len(receiver.posts) == 4
    assert spans == whole["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert {json.dumps(body["resourceSpans"][0]["resource"]) for _, _, body in receiver.posts} == {
        json.dumps(whole["resourceSpans"][0]["resource"])
    }


@pytest.mark.parametrize("partial", [None, [], {"rejectedSpans": "many"}, {"rejectedSpans": -1}, "x"])
def test_odd_answers_of_a_receiver(partial: Any) -> None:
    with receiving() as receiver:
        receiver.body = {"partialSuccess": partial}
        assert CliRunner().invoke(export, ["otlp", EXAMPLE, "--endpoint", receiver.url]).exit_code == 0
