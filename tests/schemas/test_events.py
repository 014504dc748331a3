import json
from typing import Any, get_args

import pytest
from hypothesis import given
from pydantic import ValidationError

from ettwatch_schemas import (
    EVENT_TYPES,
    KINDS,
    MAX_EVENT_BYTES,
    AttemptEnded,
    AttemptStarted,
    BaseEvent,
    Cause,
    Event,
    JobSubmitted,
    Outcome,
    PhaseEnded,
    PhaseStarted,
    Progress,
    Source,
    Trigger,
    decode_event,
    decode_message,
    encode_event,
)
from ettwatch_schemas.fields import MAX_ATTRS_DEPTH
from support.examples import TS, events, events_of, plain


def progress(**changes: Any) -> Progress:
    return Progress(**plain(**changes))


@given(events())
def test_encoded_events_decode_to_the_same(event: Event) -> None:
    data = encode_event(event)
    assert decode_event(data) == event
    assert type(decode_event(data)) is type(event)
    assert encode_event(decode_event(data)) == data


@given(events())
def test_encoding_is_one_compact_line_without_nulls_of_its_own(event: Event) -> None:
    data = encode_event(event)
    assert b"\n" not in data
    fields = json.loads(data)
    assert list(fields) == [name for name in type(event).model_fields if getattr(event, name) is not None]
    assert json.dumps(fields, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    assert not data.startswith(b'{"v": ')


@pytest.mark.parametrize("model", EVENT_TYPES)
def test_unknown_fields_are_ignored_at_every_kind(model: type[BaseEvent]) -> None:
    @given(events_of(model))
    def check(event: Event) -> None:
        newer = {"newer": {"deep": [1, None]}} | json.loads(encode_event(event)) | {"ünknown": 1.5}
        data = json.dumps(newer).encode()
        assert decode_event(data) == event
        assert decode_message(b"[" + data + b"]").events == [event]

    check()


def test_kinds_follow_the_life_of_a_job() -> None:
    assert KINDS == (
        "job_submitted",
        "attempt_started",
        "phase_started",
        "phase_ended",
        "training_started",
        "progress",
        "checkpoint_durable",
        "training_ended",
        "attempt_ended",
        "job_ended",
        "heartbeat",
    )


def test_legal_values() -> None:
    assert get_args(Outcome) == ("succeeded", "failed", "preempted", "cancelled")
    assert get_args(Trigger) == ("initial", "failure", "preemption", "resize", "manual")
    assert get_args(Source) == ("trainer", "launcher", "scheduler")
    assert get_args(Cause) == (
        "hardware",
        "network",
        "storage",
        "host_memory",
        "gpu_memory",
        "timeout",
        "dependency",
        "maintenance",
        "capacity",
        "user_code",
        "config",
        "unknown",
    )


def test_defaults() -> None:
    event = progress()
    assert (event.v, event.rank, event.source, event.host, event.step) == (1, 0, "trainer", None, None)
    ended = AttemptEnded(id="e", job="j", ts=TS, attempt=0, outcome="failed")
    assert (ended.cause, ended.exit_code) == ("unknown", None)
    assert PhaseEnded(id="e", job="j", ts=TS, attempt=0, span="s").outcome == "ok"
    assert PhaseStarted(id="e", job="j", ts=TS, attempt=0, span="s", phase="shutdown").background is False


def test_encoding_leaves_none_out_and_keeps_defaults() -> None:
    assert encode_event(AttemptStarted(id="e", job="j", ts=TS, attempt=0, gpus=8)) == (
        b'{"v":1,"id":"e","kind":"attempt_started","job":"j","ts":1790000000000000,"attempt":0,"rank":0,'
        b'"source":"trainer","gpus":8}'
    )


def test_none_inside_attrs_is_kept() -> None:
    event = PhaseEnded(id="e", job="j", ts=TS, attempt=0, span="s", attrs={"a": None, "b": {"c": None}})
    assert decode_event(encode_event(event)) == event


def test_events_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        progress().position = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    "changes",
    [
        {"ts": TS / 1e6},
        {"ts": TS // 1000},
        {"position": "1"},
        {"position": True},
        {"id": ""},
        {"attempt": -1},
        {"v": 2},
    ],
)
def test_events_built_in_python_are_checked_too(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        progress(**changes)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 0


@pytest.mark.parametrize(
    ("attrs", "why"),
    [
        ({"a": float("nan")}, "finite"),
        ({"a": [{"b": float("-inf")}]}, "finite"),
        ({"a": 2**64}, "64 bits"),
        ({"a": -(2**63) - 1}, "64 bits"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\ud800": 1}, "unicode"),
        ({"a": {"\ud800": 1}}, "surrogate"),
        ({"a": nested(MAX_ATTRS_DEPTH)}, "too deeply"),
        ({"a": object()}, "JSON"),
        ({"a": (1, 2)}, "JSON"),
        ({str(n): n for n in range(257)}, "256"),
        ({"k" * 513: 1}, "512"),
    ],
)
def test_attrs_that_not_everyone_could_read_are_refused(attrs: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        PhaseEnded(id="e", job="j", ts=TS, attempt=0, span="s", attrs=attrs)


def test_attrs_at_the_limits_pass() -> None:
    attrs = {"a": nested(MAX_ATTRS_DEPTH - 1), "b": 2**64 - 1, "c": -(2**63), "k" * 512: "ü😀"}
    event = PhaseEnded(id="e", job="j", ts=TS, attempt=0, span="s", attrs=attrs)
    assert decode_event(encode_event(event)) == event


def test_an_event_that_nobody_would_take_is_not_encoded() -> None:
    labels = {str(n): "x" * 4096 for n in range(256)}
    event = JobSubmitted(id="big", job="j", ts=TS, labels=labels)
    with pytest.raises(ValueError, match=f"event 'big' has [0-9]+ bytes, more than {MAX_EVENT_BYTES}"):
        encode_event(event)
