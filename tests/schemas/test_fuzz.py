"""Whatever the bytes: a DecodeError, or an event that stands a round trip."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_schemas import CODES, DecodeError, Event, decode_event, decode_message, encode_event, examples
from support.examples import events, wire

SEEDS = [data for _, data in examples()]
# Pieces that mean something to one of the parsers involved.
PIECES = [
    *(b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u", b"\\ud800", b"NaN", b"-Infinity", b"null", b"true"),
    *(b"1e999", b"-", b"9" * 50, b"0.1", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\n", b" ", b'"v":2,'),
]


def stands(data: bytes) -> None:
    failure = None
    try:
        event = decode_event(data)
    except DecodeError as error:
        failure = error
    if failure is None:
        assert decode_event(encode_event(event)) == event
    else:
        assert failure.code in CODES
        assert str(failure).isprintable()
    decoded = decode_message(data)
    assert decoded.events or decoded.errors


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode()))
def test_random_bytes(data: bytes) -> None:
    stands(data)
    stands(b"[" + data + b"]")


def spoiled(data: bytes, luck: random.Random) -> bytes:
    """Return `data` with one to three things cut out, doubled, put in or turned over."""
    for _ in range(luck.randint(1, 3)):
        start = luck.randrange(len(data) + 1)
        end = min(len(data), start + luck.choice([0, 1, 1, 2, 5, 40]))
        piece = luck.choice([b"", luck.choice(PIECES), data[start:end] * 2, bytes([luck.randrange(256)])])
        data = data[:start] + piece + data[end:]
    return data


@pytest.mark.parametrize("seed", range(8))
def test_examples_with_broken_bytes(seed: int) -> None:
    luck = random.Random(seed)
    for _ in range(500):
        stands(spoiled(luck.choice(SEEDS), luck))


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "shutdown.x", "ok", 10**30, 1e30, 1_790_000_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(events(), st.data())
def test_events_with_any_json_in_a_field(event: Event, data: st.DataObject) -> None:
    fields = json.loads(encode_event(event))
    name = data.draw(st.sampled_from(list(type(event).model_fields)))
    fields[name] = data.draw(_values)
    stands(json.dumps(fields).encode())


@given(_values)
def test_any_json(value: object) -> None:
    stands(json.dumps(value).encode())
    stands(wire(x=value))
