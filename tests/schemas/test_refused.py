"""What is refused, one by one: the code, the field, and what the sender is told to do."""

import math
import pickle
from typing import Any

import pytest

from ettwatch_schemas import (
    CODES,
    KINDS,
    MAX_EVENT_BYTES,
    MAX_TS,
    MIN_TS,
    DecodeError,
    decode_event,
    decode_message,
)
from support.examples import TS, wire

MICROSECONDS = "send integer microseconds since the Unix epoch, UTC"
JOB = {"attempt": ..., "position": ...}
PHASE = {"kind": "phase_started", "span": "s", "phase": "trainer_init", "position": ...}
ENDED = {"kind": "attempt_ended", "outcome": "failed", "position": ...}
BEGUN = {"kind": "training_started"}


def refused(data: bytes | str) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode_event(data)
    return caught.value


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 0


BYTES: dict[str, tuple[bytes, str, str]] = {
    "no bytes": (b"", "empty", "the message is empty; send one JSON object"),
    "only space": (b" \r\n\t", "empty", "the message is empty"),
    "cut off": (wire()[:-20], "bad_json", "is not JSON (EOF while parsing"),
    "two events": (wire() + wire(), "bad_json", "trailing characters"),
    "single quotes": (b"{'v':1}", "bad_json", "send one JSON object, or an array of them"),
    "no UTF-8": (b'{"a":"\xff"}', "not_utf8", "byte 0xff at offset 6 is not UTF-8; encode the message as UTF-8"),
    "UTF-16": (wire().decode().encode("utf-16"), "not_utf8", "byte 0xff at offset 0"),
    "gzip": (b"\x1f\x8b\x08\x00", "not_utf8", "byte 0x8b at offset 1"),
    "NUL bytes": (b"\0\0\0", "bad_json", "is not JSON"),
    "a NUL in a string": (wire().replace(b"j1", b"j\0"), "bad_json", "control character"),
    "a byte order mark": (b"\xef\xbb\xbf" + wire(), "bad_json", "byte order mark; send UTF-8 without it"),
    "a lone surrogate": (wire(job="\ud800"), "bad_json", "half of a surrogate pair"),
    "a lone surrogate in a field that is ignored": (wire(x="\udfff"), "bad_json", "send text as UTF-8"),
    "100,000 brackets": (b"[" * 100_000, "bad_json", "recursion limit"),
    "100,000 objects": (b'{"a":' * 100_000, "bad_json", "recursion limit"),
    "a number of 5,000 digits": (b'{"v":1,"x":' + b"9" * 5000 + b"}", "bad_json", "number out of range"),
    "10 MB": (b"x" * 10_000_000, "too_large", "10000000 bytes is more than the 1048576 bytes that an event may have"),
    "a number": (b"5", "not_an_object", "5 is an integer, not an event; send one JSON object"),
    "null": (b"null", "not_an_object", "null is not an event"),
    "a string": (b'"x"', "not_an_object", "'x' is a string, not an event"),
    "true": (b"true", "not_an_object", "true is not an event"),
}


@pytest.mark.parametrize(("data", "code", "words"), BYTES.values(), ids=BYTES)
def test_bytes_that_hold_no_event(data: bytes, code: str, words: str) -> None:
    error = refused(data)
    assert (error.code, error.field) == (code, None)
    assert words in str(error)


FIELDS: dict[str, tuple[dict[str, Any], str, str | None, str]] = {
    # version and kind
    "no v": ({"v": ...}, "missing_field", "v", "send 1, the version of the wire format"),
    "v 2": ({"v": 2}, "unsupported_version", "v", "send version 1, or update the receiver"),
    "v 2 of a newer kind": ({"v": 2, "kind": "new"}, "unsupported_version", "v", "update the receiver"),
    "v 0": ({"v": 0}, "unsupported_version", "v", "send version 1"),
    "no v, unknown kind": ({"v": ..., "kind": "new"}, "missing_field", "v", "send 1"),
    "v text": ({"v": "1"}, "bad_type", "v", "send 1"),
    "v text of a newer kind": ({"v": "2", "kind": "new"}, "bad_type", "v", "send 1"),
    "v true": ({"v": True}, "bad_type", "v", "send 1"),
    "v 1.0": ({"v": 1.0}, "bad_type", "v", "send 1"),
    "no kind": ({"kind": ...}, "missing_field", "kind", f"send one of {', '.join(KINDS)}"),
    "unknown kind": ({"kind": "progres"}, "unknown_kind", "kind", f"send one of {', '.join(KINDS)}"),
    "kind null": ({"kind": None}, "bad_type", "kind", "send one of job_submitted, "),
    "kind a list": ({"kind": ["progress"]}, "bad_type", "kind", "send one of job_submitted, "),
    # id and job
    "no id": ({"id": ...}, "missing_field", "id", "every progress event must carry it"),
    "id empty": ({"id": ""}, "bad_length", "id", "send at least one character"),
    "id too long": ({"id": "x" * 513}, "bad_length", "id", "send at most 512 characters"),
    "id a number": ({"id": 7}, "bad_type", "id", "send a string"),
    "no job": ({"job": ...}, "missing_field", "job", "every progress event must carry it"),
    "job empty": ({"job": ""}, "bad_length", "job", "send at least one character"),
    "job too long": ({"job": "x" * 1025}, "bad_length", "job", "send at most 1024 characters"),
    "job null": ({"job": None}, "bad_type", "job", "send a string"),
    # times
    "ts in seconds": ({"ts": TS // 10**6}, "wrong_time_unit", "ts", f"{MICROSECONDS} (multiply by 1000000)"),
    "ts in milliseconds": ({"ts": TS // 1000}, "wrong_time_unit", "ts", f"{MICROSECONDS} (multiply by 1000)"),
    "ts in nanoseconds": ({"ts": TS * 1000}, "wrong_time_unit", "ts", f"{MICROSECONDS} (divide by 1000"),
    "ts as time.time()": ({"ts": TS / 1e6}, "wrong_time_unit", "ts", f"{MICROSECONDS} (multiply by 1000000)"),
    "ts a float": ({"ts": float(TS)}, "bad_type", "ts", MICROSECONDS),
    "ts a string": ({"ts": str(TS)}, "bad_type", "ts", MICROSECONDS),
    "ts a date": ({"ts": "2026-09-21T12:00:00Z"}, "bad_type", "ts", MICROSECONDS),
    "ts null": ({"ts": None}, "bad_type", "ts", MICROSECONDS),
    "ts true": ({"ts": True}, "bad_type", "ts", MICROSECONDS),
    "ts a list": ({"ts": [TS]}, "bad_type", "ts", MICROSECONDS),
    "ts missing": ({"ts": ...}, "missing_field", "ts", "integer microseconds since the Unix epoch, UTC"),
    "ts negative": ({"ts": -TS}, "out_of_range", "ts", MICROSECONDS),
    "ts 0": ({"ts": 0}, "out_of_range", "ts", MICROSECONDS),
    "ts 1999": ({"ts": MIN_TS - 1}, "out_of_range", "ts", MICROSECONDS),
    "ts 2200": ({"ts": MAX_TS + 1}, "out_of_range", "ts", MICROSECONDS),
    "ts huge": ({"ts": 10**30}, "out_of_range", "ts", MICROSECONDS),
    "ts of 4,000 digits": ({"ts": 10**4000}, "out_of_range", "ts", MICROSECONDS),
    "ts 1e30": ({"ts": 1e30}, "bad_type", "ts", MICROSECONDS),
    "eligible_ts in seconds": (
        JOB | {"kind": "job_submitted", "eligible_ts": TS // 10**6},
        "wrong_time_unit",
        "eligible_ts",
        f"{MICROSECONDS} (multiply by 1000000)",
    ),
    "started_ts in milliseconds": (
        {"kind": "checkpoint_durable", "started_ts": TS // 1000},
        "wrong_time_unit",
        "started_ts",
        f"{MICROSECONDS} (multiply by 1000)",
    ),
    # numbers
    "attempt -1": ({"attempt": -1}, "out_of_range", "attempt", "send at least 0"),
    "no attempt": ({"attempt": ...}, "missing_field", "attempt", "every progress event must carry it"),
    "attempt null": ({"attempt": None}, "bad_type", "attempt", "send an integer"),
    "attempt huge": ({"attempt": 2**31}, "out_of_range", "attempt", "send at most 2147483647"),
    "position negative": ({"position": -5}, "out_of_range", "position", "send at least 0"),
    "no position": ({"position": ...}, "missing_field", "position", "samples of the data stream consumed so far"),
    "position true": ({"position": True}, "bad_type", "position", "send an integer"),
    "position 5.0": ({"position": 5.0}, "bad_type", "position", "send an integer"),
    "position text": ({"position": "5"}, "bad_type", "position", "send an integer"),
    "position an object": ({"position": {"a": 1}}, "bad_type", "position", "send an integer"),
    "position beyond int64": ({"position": 2**63}, "out_of_range", "position", "send at most 9223372036854775807"),
    "position 1e30": ({"position": 1e30}, "bad_type", "position", "send an integer"),
    "position NaN": ({"position": math.nan}, "not_finite", "position", "leave the field out, or send a finite number"),
    "step negative": ({"step": -1}, "out_of_range", "step", "send at least 0"),
    "data_wait_us negative": ({"data_wait_us": -1}, "out_of_range", "data_wait_us", "send at least 0"),
    "rank false": ({"rank": False}, "bad_type", "rank", "send an integer"),
    "rank null": ({"rank": None}, "bad_type", "rank", "send an integer"),
    "gpus negative": ({"kind": "attempt_started", "gpus": -8}, "out_of_range", "gpus", "send at least 0"),
    "exit_code huge": (ENDED | {"exit_code": 2**40}, "out_of_range", "exit_code", "send at most 4294967295"),
    "exit_code very small": (ENDED | {"exit_code": -(2**40)}, "out_of_range", "exit_code", "send at least -2147483648"),
    "report_every_s 0": (BEGUN | {"report_every_s": 0}, "out_of_range", "report_every_s", "send more than 0"),
    "report_every_s text": (BEGUN | {"report_every_s": "5"}, "bad_type", "report_every_s", "send a number"),
    "report_every_s of years": (
        BEGUN | {"report_every_s": 1e9},
        "out_of_range",
        "report_every_s",
        "send at most 31536000",
    ),
    "report_every_s -Infinity": (
        BEGUN | {"report_every_s": -math.inf},
        "not_finite",
        "report_every_s",
        "a finite number",
    ),
    "NaN where it would be ignored": ({"x": [1, {"y z": math.nan}]}, "not_finite", "x.1.'y z'", "a finite number"),
    # words
    "unknown component": (
        PHASE | {"phase": "traning.x"},
        "unknown_component",
        "phase",
        "begin with one of scheduling, hardware_setup, trainer_init, pt2_compilation, wasted_training, shutdown",
    ),
    "effective training as a phase": (
        PHASE | {"phase": "effective_training"},
        "unknown_component",
        "phase",
        "begin with",
    ),
    "phase empty": (PHASE | {"phase": ""}, "unknown_component", "phase", "begin with one of scheduling"),
    "phase in capitals": (PHASE | {"phase": "shutdown.Last"}, "bad_phase", "phase", "parts of a-z, 0-9 and _"),
    "phase with two dots": (PHASE | {"phase": "shutdown..x"}, "bad_phase", "phase", "parts of a-z, 0-9 and _"),
    "phase with a newline": (PHASE | {"phase": "shutdown\n"}, "unknown_component", "phase", "begin with one of"),
    "phase too long": (
        PHASE | {"phase": "shutdown." + "x" * 200},
        "bad_length",
        "phase",
        "send at most 200 characters",
    ),
    "phase null": (PHASE | {"phase": None}, "bad_type", "phase", "send a string"),
    "span missing": (PHASE | {"span": ...}, "missing_field", "span", "every phase_started event must carry it"),
    "background 1": (PHASE | {"background": 1}, "bad_type", "background", "send true or false"),
    "unknown source": ({"source": "me"}, "bad_value", "source", "send one of 'trainer', 'launcher' or 'scheduler'"),
    "source a number": ({"source": 5}, "bad_type", "source", "send one of 'trainer', 'launcher' or 'scheduler'"),
    "unknown outcome": (
        ENDED | {"outcome": "ok"},
        "bad_value",
        "outcome",
        "send one of 'succeeded', 'failed', 'preempted' or 'cancelled'",
    ),
    "no outcome": (JOB | {"kind": "job_ended"}, "missing_field", "outcome", "every job_ended event must carry it"),
    "unknown cause": (ENDED | {"cause": "gremlins"}, "bad_value", "cause", "'user_code', 'config' or 'unknown'"),
    "unknown trigger": (
        {"kind": "attempt_started", "trigger": "x"},
        "bad_value",
        "trigger",
        "send one of 'initial', 'failure', 'preemption', 'resize' or 'manual'",
    ),
    "unknown phase outcome": (
        {"kind": "phase_ended", "span": "s", "outcome": "succeeded"},
        "bad_value",
        "outcome",
        "send one of 'ok' or 'error'",
    ),
    "host too long": ({"host": "h" * 513}, "bad_length", "host", "send at most 512 characters"),
    "message too long": (ENDED | {"message": "x" * 65_537}, "bad_length", "message", "send at most 65536 characters"),
    # objects
    "labels a list": (JOB | {"kind": "job_submitted", "labels": [1]}, "bad_type", "labels", "send an object"),
    "a label that is a number": (
        JOB | {"kind": "job_submitted", "labels": {"a b\n": 1}},
        "bad_type",
        "labels.'a b\\n'",
        "send a string",
    ),
    "too many labels": (
        JOB | {"kind": "job_submitted", "labels": {str(n): "" for n in range(257)}},
        "bad_length",
        "labels",
        "send at most 256 fields",
    ),
    "attrs text": (PHASE | {"attrs": "x"}, "bad_type", "attrs", "send an object"),
    "attrs with a wide integer": (PHASE | {"attrs": {"a": [2**64]}}, "out_of_range", "attrs", "send it as a string"),
    "attrs too deep": (PHASE | {"attrs": {"a": nested(40)}}, "bad_length", "attrs", "send flat values"),
    "attrs with NaN": (PHASE | {"attrs": {"a": [math.nan]}}, "not_finite", "attrs.a.0", "a finite number"),
}


@pytest.mark.parametrize(("changes", "code", "field", "words"), FIELDS.values(), ids=FIELDS)
def test_fields_that_are_wrong(changes: dict[str, Any], code: str, field: str | None, words: str) -> None:
    error = refused(wire(**changes))
    assert (error.code, error.field) == (code, field), str(error)
    assert words in error.fix


@pytest.mark.parametrize(
    ("changes", "field"),
    [(BEGUN | {"report_every_s": 4321}, "report_every_s"), (PHASE | {"attrs": {"a": [4321]}}, "attrs")],
)
def test_a_number_that_overflows_is_not_finite(changes: dict[str, Any], field: str) -> None:
    error = refused(wire(**changes).replace(b"4321", b"1e999"))
    assert (error.code, error.field) == ("not_finite", field)


def test_the_message_of_a_time_in_seconds() -> None:
    assert str(refused(wire(ts=1_790_000_000))) == (
        "ts: 1790000000 is in seconds; send integer microseconds since the Unix epoch, UTC (multiply by 1000000)"
    )


def test_every_refusal_is_one_line_with_all_its_parts_and_a_known_code() -> None:
    seen = set()
    for data in [data for data, *_ in BYTES.values()] + [wire(**changes) for changes, *_ in FIELDS.values()]:
        error = refused(data)
        seen.add(error.code)
        line = str(error)
        assert line.isprintable()
        assert len(line) < 500
        assert error.fix in line
        assert error.reason in line
        assert error.value in line
        assert error.value or error.code == "missing_field"
    assert seen | {"mixed_jobs"} == set(CODES)


def test_alone_or_in_a_message_the_same_is_said() -> None:
    for data in [data for data, *_ in BYTES.values()] + [wire(**changes) for changes, *_ in FIELDS.values()]:
        if data.lstrip()[:1] != b"[":
            events, (error,) = decode_message(data)
            assert events == []
            assert error.args == refused(data).args


def test_a_str_is_taken_too_and_refused_where_it_is_not_unicode() -> None:
    assert decode_event(wire().decode()) == decode_event(wire())
    error = refused(wire().decode().replace("j1", "j\ud800"))
    assert (error.code, error.field) == ("not_utf8", None)
    assert "'\\ud800' at offset" in error.value


def test_the_size_is_looked_at_first() -> None:
    within = wire(x="x" * (MAX_EVENT_BYTES - len(wire(x=""))))
    assert len(within) == MAX_EVENT_BYTES
    assert decode_event(within).id == "e1"
    assert refused(within + b" ").code == "too_large"


def test_limits_are_legal_values() -> None:
    changes = {"position": 2**63 - 1, "attempt": 2**31 - 1, "id": "x" * 512, "job": "ü" * 1024}
    event = decode_event(wire(**changes))
    assert {name: getattr(event, name) for name in changes} == changes
    assert [decode_event(wire(ts=ts)).ts for ts in (MIN_TS, MAX_TS)] == [MIN_TS, MAX_TS]


def test_null_is_as_good_as_absent_where_a_field_is_optional() -> None:
    assert decode_event(wire(step=None, host=None, data_wait_us=None)) == decode_event(wire())


def test_of_doubled_keys_the_last_counts() -> None:
    assert decode_event(wire().replace(b"{", b'{"job": "first", ', 1)).job == "j1"
    assert refused(wire().replace(b"{", b'{"v": 2, ', 1)[:-1] + b', "v": 2}').code == "unsupported_version"


def test_words_that_look_like_constants_are_text() -> None:
    event = decode_event(wire(job="NaN Infinity", x="-Infinity"))
    assert event.job == "NaN Infinity"


def test_errors_survive_pickling() -> None:
    error = refused(wire(ts=0)).at(3)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.code, copy.field, copy.value, copy.index) == (
        str(error),
        "out_of_range",
        "ts",
        "0",
        3,
    )
