"""What a record holds, and what is said of what is wrong with it."""

import json
from typing import Any

import pytest

from ettwatch_faust import intake
from ettwatch_faust.intake import AHEAD_US, Origin, Taken, accepted_lines, few, is_home, late_letter, misplaced, read
from ettwatch_schemas import MAX_EVENT_BYTES, MAX_MESSAGE_BYTES, decode_event, decode_message

NOW = 1_790_000_000_000_000


def event(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"v": 1, "id": f"e{number}", "kind": "heartbeat", "job": "job", "ts": NOW, "attempt": 0, **fields}


def origin(value: Any, key: bytes | None = b"job") -> Origin:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Origin("ett.events", 3, 42, key, data, NOW)


def test_one_event() -> None:
    taken = read(origin(event()))
    assert (taken.job, list(taken.indexes), taken.letters) == ("job", [None], [])
    assert [e.id for e in taken.events] == ["e0"]


def test_an_array() -> None:
    taken = read(origin([event(i) for i in range(3)]))
    assert (taken.job, list(taken.indexes), taken.letters) == ("job", [0, 1, 2], [])
    assert list(read(origin(b" \n [" + json.dumps(event()).encode() + b"]")).indexes) == [0]


BAD = {
    "no_value": None,
    "empty": b"",
    "too_large": b'{"x": "' + b"y" * MAX_EVENT_BYTES + b'"}',
    "not_utf8": b"\xff\xfe",
    "bad_json": b"{",
    "not_finite": json.dumps(event(ts=float("nan"))).encode(),
    "not_an_object": b"17",
    "unsupported_version": event(v=2),
    "unknown_kind": event(kind="nothing"),
    "missing_field": {name: value for name, value in event().items() if name != "attempt"},
    "bad_type": event(attempt="one"),
    "bad_value": event(kind="job_ended", outcome="lovely"),
    "bad_length": event(job=""),
    "out_of_range": event(attempt=-1),
    "wrong_time_unit": event(ts=NOW // 1_000_000),
    "unknown_component": event(kind="phase_started", span="s", phase="lunch"),
    "bad_phase": event(kind="phase_started", span="s", phase="shutdown.Bad Name"),
}


@pytest.mark.parametrize(("code", "value"), BAD.items(), ids=BAD)
def test_what_is_wrong_is_said_with_where_it_was_read(code: str, value: Any) -> None:
    told = origin(value)
    taken = read(told)
    assert (taken.job, taken.events) == (None, ())
    (letter,) = taken.letters
    assert letter.code == code
    assert (letter.value, letter.key) == (told.value, b"job")
    assert (letter.topic, letter.partition, letter.offset, letter.index) == ("ett.events", 3, 42, None)
    assert (letter.time, letter.handled) == (NOW, None)
    assert letter.reason
    assert letter.fix
    assert letter.fix in letter.reason
    assert "\n" not in letter.reason


def test_too_large_a_message() -> None:
    (letter,) = read(origin(b"[" + b" " * MAX_MESSAGE_BYTES + b"]")).letters
    assert letter.code == "too_large"


def test_in_an_array_the_good_ones_count() -> None:
    told = origin([event(0), event(1, ts=NOW // 1_000_000), "nothing", event(3), event(4, job="other"), event(5)])
    taken = read(told)
    assert (taken.job, [e.id for e in taken.events], list(taken.indexes)) == ("job", ["e0", "e3", "e5"], [0, 3, 5])
    assert [(letter.code, letter.index) for letter in taken.letters] == [
        ("wrong_time_unit", 1),
        ("not_an_object", 2),
        ("mixed_jobs", 4),
    ]
    assert {letter.value for letter in taken.letters} == {told.value}


def test_one_good_event_in_an_array_has_its_place() -> None:
    taken = read(origin(["bad", event(1)]))
    assert list(taken.indexes) == [1]
    assert [letter.index for letter in taken.letters] == [0]


@pytest.mark.parametrize(
    ("key", "shown"), [(None, "none"), (b"other", "b'other'"), (b"\xff", r"b'\xff'"), (b"", "b''")]
)
def test_the_key_has_to_be_the_job(key: bytes | None, shown: str) -> None:
    taken = read(origin([event(0), "bad", event(2)], key))
    assert (taken.job, taken.events) == (None, ())
    assert [(letter.code, letter.index) for letter in taken.letters] == [
        ("not_an_object", 1),
        ("wrong_key", 0),
        ("wrong_key", 2),
    ]
    letter = taken.letters[1]
    assert letter.reason.startswith(f"key: {shown} is not the job 'job'; ")
    assert (letter.field, letter.job, letter.key) == ("key", "job", key)


def test_a_long_key_is_shown_in_short() -> None:
    (letter,) = read(origin(event(), b"x" * 10_000)).letters
    assert len(letter.reason) < 400


def test_events_ahead_of_the_clock() -> None:
    just, beyond = NOW + AHEAD_US, NOW + AHEAD_US + 1
    taken = read(origin([event(0, ts=just), event(1, ts=beyond), event(2)]))
    assert ([e.id for e in taken.events], list(taken.indexes)) == (["e0", "e2"], [0, 2])
    ((code, index, field, job),) = [(x.code, x.index, x.field, x.job) for x in taken.letters]
    assert (code, index, field, job) == ("ahead_of_clock", 1, "ts", "job")
    alone = read(origin(event(1, ts=beyond)))
    assert (alone.job, list(alone.events), [x.index for x in alone.letters]) == (None, [], [None])
    assert str(beyond) in alone.letters[0].reason


def test_a_record_in_a_wrong_partition() -> None:
    told = origin([event(0), event(1)])
    letters = misplaced(told, read(told))
    assert [(x.code, x.index, x.field, x.job) for x in letters] == [
        ("wrong_partition", 0, "partition", "job"),
        ("wrong_partition", 1, "partition", "job"),
    ]
    assert letters[0].reason.startswith("partition: 3 is not where the job 'job' belongs; ")


def test_keys_lie_where_the_java_client_puts_them() -> None:
    # By org.apache.kafka.common.utils.Utils.murmur2 for "21", "foobar" and "a-little-bit-long-string".
    for key, hashed in ((b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536)):
        home = (hashed & 0x7FFFFFFF) % 32
        assert [p for p in range(32) if is_home(key, p, 32)] == [home]


@pytest.mark.parametrize("code", ["late", "expired"])
def test_events_that_came_too_late(code: str) -> None:
    told = origin([event(0), event(1)])
    letter = late_letter(told, code, read(told).events[1], 1)
    assert (letter.code, letter.index, letter.field, letter.job) == (code, 1, "ts", "job")
    assert letter.reason.startswith("event 'e1' of job 'job': ")
    assert letter.reason.endswith(str(letter.fix))


def lines(value: Any, *numbers: int) -> list[bytes]:
    told = origin(value)
    taken = read(told)
    each = zip(taken.events, taken.indexes, strict=True)
    counted = [index for e, index in each if not numbers or int(e.id[1:]) in numbers]
    return accepted_lines(told, taken, counted)


def test_what_counts_whole_is_passed_on_as_it_was_told() -> None:
    odd = b'{"v":1,  "id":"e0","kind":"heartbeat","job":"job","ts":1790000000000000,"attempt":0,"later":{"a":[1]}}'
    assert lines(odd) == [odd]
    array = json.dumps([event(0), event(1)]).encode()
    assert lines(array) == [array]


@pytest.mark.parametrize("separator", ["\n", "\r\n"])
def test_what_has_several_lines_becomes_one(separator: str) -> None:
    told = [event(0), event(1, later={"a": ["line\nfeed", 1.5]})]
    value = json.dumps(told, indent=2).replace("\n", separator).encode()
    (line,) = lines(value)
    assert b"\n" not in line
    assert b"\r" not in line
    assert decode_message(line) == decode_message(json.dumps(told).encode())
    assert json.loads(line) == told


def test_of_an_array_with_a_bad_event_the_good_ones_are_passed_on() -> None:
    value = [event(0), "bad", event(2)]
    assert [decode_event(line).id for line in lines(value)] == ["e0", "e2"]


def test_what_does_not_count_is_not_passed_on() -> None:
    assert [decode_event(line).id for line in lines([event(0), event(1), event(2)], 1)] == ["e1"]
    told = json.dumps([event(0, later=1), event(1)], indent=1).encode()
    (line,) = lines(told, 0)
    assert b"\n" not in line
    assert json.loads(line) == event(0, later=1), "as it was told, with what this version does not know"


def test_a_long_message_is_not_repeated_for_each_of_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    told = origin([event(0), *["bad"] * 5])
    taken: Taken = read(told)
    assert few(taken.letters) == taken.letters
    assert few([]) == []
    monkeypatch.setattr(intake, "_MOST_BYTES", 3 * len(told.value or b""))
    assert few(taken.letters[:3]) == taken.letters[:3]
    (letter,) = few(taken.letters)
    assert letter.index is None
    assert letter.value == told.value
    assert letter.code == "not_an_object"
    assert letter.reason.startswith("5 events of the array were refused, the first at index 1: ")
    assert few(taken.letters[:1]) == taken.letters[:1]
