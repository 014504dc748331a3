"""Which dead letters count, without a broker."""

from dataclasses import replace
from typing import Any

import pytest

from ettwatch_app.dlq import Letters, Place, Route, Router, Wanted, by_code, job_key, message_of, messages
from ettwatch_schemas import DeadLetter

USUAL = DeadLetter(
    value=b'{"job":"a"}',
    key=b"a",
    code="missing_field",
    reason="id: is missing",
    field="id",
    fix="give one",
    topic="ett.events",
    partition=0,
    offset=7,
    index=None,
    time=1_000,
    job="a",
    handled=None,
)


def letter(**other: Any) -> DeadLetter:
    return replace(USUAL, **other)


def mark(of: DeadLetter, how: str = "replayed") -> DeadLetter:
    return replace(of, value=None, handled=how, time=of.time + 1)


def taken(*records: DeadLetter, wanted: Wanted | None = None) -> Letters:
    found = Letters(wanted or Wanted())
    for offset, record in enumerate(records):
        found.add(Place(0, offset), record)
    return found


def places(found: Letters, *, handled: bool = False) -> list[int]:
    return [entry.place.offset for entry in found.selected(handled=handled)]


def test_a_letter_that_came_twice_counts_once() -> None:
    assert places(taken(letter(), letter(time=2_000))) == [0]


def test_a_double_has_the_time_of_its_first() -> None:
    double = letter(time=2_000)
    assert places(taken(letter(), double, wanted=Wanted(since=2_000))) == []
    assert places(taken(letter(index=0), double, wanted=Wanted(since=2_000))) == [1]


def test_events_of_one_array_are_letters_of_their_own_about_one_message() -> None:
    found = taken(letter(index=0), letter(index=2), letter(index=2, time=9_000), letter(offset=8))
    assert places(found) == [0, 1, 3]
    assert [len(of) for of in messages(found.selected()).values()] == [2, 1]


def test_what_was_dealt_with_is_left_out_and_a_double_that_comes_later_too() -> None:
    found = taken(letter(), letter(offset=8), mark(letter()), letter(time=3_000), mark(letter(offset=8), "dropped"))
    assert places(found) == []
    assert [(e.place.offset, e.handled) for e in found.selected(handled=True)] == [(0, "replayed"), (1, "dropped")]


def test_a_mark_of_the_old_topic_says_nothing_about_the_new_one() -> None:
    new = letter(value=b"{}", time=5_000)
    found = taken(letter(), mark(letter()), new)
    assert places(found) == [2]
    assert places(taken(letter(), mark(letter()), new, mark(new))) == []


def test_a_mark_of_one_event_says_nothing_about_its_neighbours() -> None:
    assert places(taken(letter(index=0), letter(index=1), letter(), mark(letter(index=0)))) == [1, 2]


def test_a_mark_without_its_letter_is_passed_over() -> None:
    assert places(taken(mark(letter()))) == []


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(), [0, 1, 2, 3]),
        (Wanted(codes=frozenset({"late", "expired"})), [1, 2]),
        (Wanted(jobs=frozenset({"b"})), [2]),
        (Wanted(topics=frozenset({"ett.jobs"})), [3]),
        (Wanted(since=2_000), [1, 2, 3]),
        (Wanted(until=2_000), [0]),
        (Wanted(since=2_000, until=4_000), [1, 2]),
        (Wanted(codes=frozenset({"late"}), jobs=frozenset({"b"})), []),
    ],
)
def test_filters(wanted: Wanted, expected: list[int]) -> None:
    found = taken(
        letter(),
        letter(code="late", offset=8, time=2_000),
        letter(code="expired", job="b", offset=9, time=3_000),
        letter(code="bad_update", job=None, topic="ett.jobs", time=4_000),
        wanted=wanted,
    )
    assert places(found) == expected
    assert wanted.everything == (wanted == Wanted())


def test_they_come_by_their_time() -> None:
    assert places(taken(letter(time=3_000), letter(offset=8, time=1_000), letter(offset=9, time=2_000))) == [1, 2, 0]


def test_the_bytes_are_not_remembered() -> None:
    [entry] = taken(letter(value=b"x" * 5_000_000)).selected()
    assert (entry.letter.value, entry.size, len(entry.head)) == (None, 5_000_000, 240)


def test_no_value_is_not_an_empty_value() -> None:
    same = [letter(value=None), letter(value=b""), letter(key=None), letter(key=b""), letter(value=b"aa", key=b"")]
    assert len({message_of(each) for each in same}) == len(same)


def test_counts_by_code() -> None:
    found = taken(letter(), letter(code="late", offset=8), letter(code="late", offset=9))
    assert list(by_code(found.selected())) == [("late", 2), ("missing_field", 1)]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b'{"job":"a"}', b"a"),
        ('{"job":"größer"}'.encode(), "größer".encode()),
        (b'[{"job":"a"},{"job":"a"},7,{"id":"x"}]', b"a"),
        (b'[{"job":"a"},{"job":"b"}]', None),
        (b'{"job":7}', None),
        (b'{"job":""}', None),
        (b'{"job":"\\ud800"}', None),
        (b"[]", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
        (b"", None),
        (None, None),
    ],
)
def test_the_job_of_a_message(value: bytes | None, key: bytes | None) -> None:
    assert job_key(value) == key


ROUTER = Router("ett.events", frozenset({"ett.jobs"}))


@pytest.mark.parametrize(
    ("of", "route"),
    [
        (letter(), Route("ett.events", b"a", None)),
        (letter(key=b"other"), Route("ett.events", b"a", None)),
        (letter(key=None), Route("ett.events", b"a", None)),
        (letter(value=b"?", key=b"other"), Route("ett.events", b"other", None)),
        (letter(value=b"?", key=None, partition=3), Route("ett.events", None, 3)),
        (letter(topic="ett.jobs", key=b"a", value=b'{"job":"b"}', partition=3), Route("ett.jobs", b"a", 3)),
        (letter(topic="other.events"), None),
    ],
)
def test_where_a_message_goes(of: DeadLetter, route: Route | None) -> None:
    assert ROUTER.route(of) == route
