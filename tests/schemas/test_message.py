import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_schemas import (
    MAX_EVENT_BYTES,
    MAX_MESSAGE_BYTES,
    Decoded,
    DecodeError,
    Event,
    decode_event,
    decode_message,
    encode_event,
)
from support.examples import TS, events, wire


def array(*items: bytes) -> bytes:
    return b"[" + b",".join(items) + b"]"


def codes(decoded: Decoded) -> list[tuple[int | None, str]]:
    return [(error.index, error.code) for error in decoded.errors]


@given(events())
def test_a_single_event(event: Event) -> None:
    assert decode_message(encode_event(event)) == ([event], [])
    assert decode_message(b" \r\n\t" + encode_event(event) + b"\n") == ([event], [])


@given(st.lists(events(st.just("j")), min_size=1, max_size=5))
def test_an_array_of_events_of_one_job(some: list[Event]) -> None:
    data = array(*map(encode_event, some))
    assert decode_message(data) == (some, [])
    assert decode_message(b"\n " + data.replace(b"[", b"[ ", 1) + b" \n") == (some, [])


def test_bad_events_in_an_array_do_not_spoil_the_good_ones() -> None:
    decoded = decode_message(
        array(
            wire(id="a"),
            wire(ts=TS // 1000),
            b"7",
            array(wire()),
            wire(id="b"),
            wire(v=...),
            wire(position=float("nan")),
            wire(job="\ud800"),
            b'{"v":1,"x":' + b"9" * 5000 + b"}",
            wire(id="c"),
        )
    )
    assert [event.id for event in decoded.events] == ["a", "b", "c"]
    assert codes(decoded) == [
        (1, "wrong_time_unit"),
        (2, "not_an_object"),
        (3, "not_an_object"),
        (5, "missing_field"),
        (6, "not_finite"),
        (7, "bad_json"),
        (8, "bad_json"),
    ]
    assert str(decoded.errors[0]).startswith("[1] ts: 1790000000000 is in milliseconds; ")


@pytest.mark.parametrize("spoil", [lambda data: data, lambda data: data.replace(b'"v": 1', b'"V": 1')])
def test_events_of_another_job_than_the_first_good_one_are_refused(spoil: Callable[[bytes], bytes]) -> None:
    decoded = decode_message(array(wire(id="a", job="x"), spoil(wire(id="b", job="y")), wire(id="c", job="x")))
    assert [event.id for event in decoded.events] == ["a", "c"]
    assert [error.index for error in decoded.errors] == [1]


def test_the_first_good_event_tells_the_job() -> None:
    decoded = decode_message(array(wire(job="bad", ts=0), wire(job="x"), wire(job="y")))
    assert [event.job for event in decoded.events] == ["x"]
    assert codes(decoded) == [(0, "out_of_range"), (2, "mixed_jobs")]
    assert str(decoded.errors[1]) == (
        "[2] job: 'y' is another job than that of the first good event of the array, 'x'; "
        "send the events of each job in messages of their own"
    )


@pytest.mark.parametrize("data", [b"[]", b" [ \n] "])
def test_an_empty_array_is_refused(data: bytes) -> None:
    decoded = decode_message(data)
    assert (decoded.events, codes(decoded)) == ([], [(None, "empty")])
    assert str(decoded.errors[0]) == "the array is empty; send at least one event"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (array(wire())[:-1], "bad_json"),
        (array(wire()) + b"]", "bad_json"),
        (array(wire()).replace(b"}]", b"},]"), "bad_json"),
        (array(wire(), wire()).replace(b"},{", b"} {"), "bad_json"),
        (b"[,]", "bad_json"),
        (b"[", "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b'[{"a":' * 100_000, "bad_json"),
        (array(wire(), b'{"a":"\xff"}'), "not_utf8"),
        (b"\xef\xbb\xbf" + array(wire()), "bad_json"),
        (b"[" + b" " * MAX_MESSAGE_BYTES + b"]", "too_large"),
        (b"", "empty"),
    ],
)
def test_a_message_that_is_not_whole_yields_nothing(data: bytes, code: str) -> None:
    decoded = decode_message(data)
    assert (decoded.events, codes(decoded)) == ([], [(None, code)])


def test_decode_event_wants_no_array() -> None:
    with pytest.raises(DecodeError, match="is an array, not an event; send one JSON object") as caught:
        decode_event(array(wire()))
    assert caught.value.code == "not_an_object"


def test_a_message_may_be_larger_than_an_event_but_not_its_events() -> None:
    large = wire(x="x" * (MAX_EVENT_BYTES - 1000))
    too_large = wire(x="x" * MAX_EVENT_BYTES)
    decoded = decode_message(array(large, too_large, large))
    assert (len(decoded.events), codes(decoded)) == (2, [(1, "too_large")])
    single = decode_message(too_large)
    assert (single.events, codes(single)) == ([], [(None, "too_large")])


def test_an_array_of_bad_events_takes_no_more_than_a_few_times_as_long() -> None:
    items = [wire(id=str(n), position=-1 if n % 2 else 1) for n in range(2000)]
    start = time.perf_counter()
    decoded = decode_message(array(*items))
    assert time.perf_counter() - start < 30
    assert (len(decoded.events), len(decoded.errors)) == (1000, 1000)


mutated = st.fixed_dictionaries(
    {},
    optional={
        "ts": st.sampled_from([TS, 0, 1.5, None, "x", 10**30]),
        "v": st.sampled_from([1, 2, True, None]),
        "kind": st.sampled_from(["progress", "heartbeat", "new", 3]),
        "attempt": st.sampled_from([0, -1, None, 2**40]),
        "position": st.sampled_from([1, float("nan"), [], {}]),
        "job": st.sampled_from(["j1", "", "\ud800", 4]),
        "newer": st.sampled_from([{"a": [1]}, float("inf"), "NaN"]),
    },
)


@given(st.lists(mutated, min_size=1, max_size=6))
def test_each_event_is_judged_in_an_array_as_it_is_alone(changes: list[dict[str, object]]) -> None:
    items = [wire(**change) for change in changes]
    good: list[Event] = []
    bad: list[tuple[object, ...]] = []
    for index, item in enumerate(items):
        try:
            good.append(decode_event(item))
        except DecodeError as error:
            bad.append(error.at(index).args)
    decoded = decode_message(array(*items))
    assert decoded.events == good
    assert [error.args for error in decoded.errors] == bad


def test_json_text_of_an_event_is_cut_out_exactly() -> None:
    tricky = wire(id='],[{"\\', x={"a": ["]", "}"]})
    decoded = decode_message(array(tricky, wire(ts=0), tricky.replace(b", ", b" ,\n\t")))
    assert [event.id for event in decoded.events] == ['],[{"\\'] * 2
    assert codes(decoded) == [(1, "out_of_range")]
    assert json.loads(tricky)["id"] == decoded.events[0].id
