"""Dead letters: their headers and what is read from them."""

from dataclasses import replace

import pytest
from hypothesis import given

from ettwatch_schemas import DeadLetter, UpdateError, letter_headers, read_letter
from support.updates import letters

LETTER = DeadLetter(
    value=b"{}",
    key=b"j1",
    code="missing_field",
    reason="v is missing",
    field="v",
    fix="send 1",
    topic="ett.events",
    partition=3,
    offset=1_000,
    index=None,
    time=1_790_000_000_000_000,
    job="j1",
    handled=None,
)


@given(letters())
def test_a_letter_is_read_as_it_was_written(letter: DeadLetter) -> None:
    headers = [("trace", b"\xff"), *letter_headers(letter), ("other", None)]
    assert read_letter(letter.key, letter.value, headers) == letter


def test_the_headers() -> None:
    assert letter_headers(LETTER) == [
        ("ettwatch.code", b"missing_field"),
        ("ettwatch.reason", b"v is missing"),
        ("ettwatch.field", b"v"),
        ("ettwatch.fix", b"send 1"),
        ("ettwatch.topic", b"ett.events"),
        ("ettwatch.partition", b"3"),
        ("ettwatch.offset", b"1000"),
        ("ettwatch.index", b""),
        ("ettwatch.time", b"1790000000000000"),
        ("ettwatch.job", b"j1"),
    ]
    assert LETTER.origin == ("ett.events", 3, 1000, None)


def test_long_texts_of_several_lines_become_short_ones() -> None:
    letter = replace(LETTER, reason="a\nb\r\nc", field="x" * 2_000_000, fix="no\n")
    read = read_letter(letter.key, letter.value, letter_headers(letter))
    assert (read.reason, read.fix) == ("a b c", "no")
    assert read.field is not None
    assert len(read.field) == 4_000
    assert read.field.endswith("x…")


def test_half_a_surrogate_pair_does_not_stop_a_letter() -> None:
    letter = replace(LETTER, reason="bad \ud800")
    assert read_letter(None, b"", letter_headers(letter)).reason == "bad ?"


def test_a_mark_needs_only_the_origin() -> None:
    wanted = {"ettwatch.topic", "ettwatch.partition", "ettwatch.offset", "ettwatch.index", "ettwatch.time"}
    headers = [header for header in letter_headers(LETTER) if header[0] in wanted]
    mark = read_letter(None, None, [*headers, ("ettwatch.handled", b"dropped")])
    assert mark.origin == LETTER.origin
    assert (mark.handled, mark.code, mark.value) == ("dropped", "", None)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("code", None, "dead letter: header ettwatch.code: is missing"),
        ("reason", None, "dead letter: header ettwatch.reason: is missing"),
        ("topic", None, "dead letter: header ettwatch.topic: is missing"),
        ("partition", b"x", "dead letter: header ettwatch.partition: 'x' is not a number"),
        ("offset", b"-1", "dead letter: header ettwatch.offset: '-1' is not a number"),
        ("offset", b"", "dead letter: header ettwatch.offset: '' is not a number"),
        ("index", b"first", "dead letter: header ettwatch.index: 'first' is not a number"),
        ("index", None, "dead letter: header ettwatch.index: is missing"),
        ("time", "²".encode(), "dead letter: header ettwatch.time: '²' is not a number"),
        ("job", b"\xff", "dead letter: header ettwatch.job: is not UTF-8"),
        ("handled", b"forgotten", "dead letter: header ettwatch.handled: 'forgotten' is not replayed or dropped"),
    ],
)
def test_what_is_no_letter_is_refused_by_its_header(name: str, data: bytes | None, message: str) -> None:
    headers: list[tuple[str, bytes | None]] = [h for h in letter_headers(LETTER) if h[0] != f"ettwatch.{name}"]
    with pytest.raises(UpdateError) as caught:
        read_letter(b"j1", b"{}", [*headers, (f"ettwatch.{name}", data)])
    assert str(caught.value) == message
