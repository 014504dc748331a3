"""What a record tells, and what becomes of one that cannot be read."""

import json
from typing import Any

import pytest

from ettwatch_app.sink.batch import Batch, Place, Record
from ettwatch_app.sink.content import Content, content_of
from ettwatch_clickhouse.fits import check_fits
from ettwatch_clickhouse.rows import EVENTS
from ettwatch_core import CELL, Published
from ettwatch_schemas import (
    Hour,
    Segment,
    SegmentsUpdate,
    Update,
    UpdateError,
    decode_event,
    encode_event,
    encode_update,
)
from support.story import START, Story

STORY = Story("j").submitted().started(60).phase(70, 90, "trainer_init.device_init").trains(100).progress(200, 5)
LINES = [encode_event(event) for event in STORY.events]


def column(content: Content, name: str) -> list[Any]:
    return [row[EVENTS.index(name)] for row in content.events]


def test_each_topic_has_its_decoder() -> None:
    said = Published().publication(STORY.at(now=300))
    assert said.summary is not None
    updates: dict[str, Update] = {
        "jobs": said.summary,
        "attempts": said.attempts[0],
        "phases": said.phases[0],
        "segments": said.segments[0],
    }
    for kind, update in updates.items():
        assert content_of(kind, encode_update(update), 7) == Content(update)
        others = [name for name in updates if name != kind]
        assert all(content_of(name, encode_update(update), 7).update is None for name in others)


@pytest.mark.parametrize("kind", ["jobs", "attempts", "segments", "phases"])
@pytest.mark.parametrize("value", [b"", b"{}", b"nonsense", b"\xff\xfe", b"[]", b"null"])
def test_what_is_no_update_is_told(kind: str, value: bytes) -> None:
    content = content_of(kind, value, 7)
    assert content.update is None
    assert [(bad.code, bad.line) for bad in content.bad] == [("bad_update", None)]


@pytest.mark.parametrize("kind", ["jobs", "accepted"])
def test_a_record_without_a_value_tells_nothing(kind: str) -> None:
    assert content_of(kind, None, 7) == Content()


def test_lines_are_events_or_arrays_of_them() -> None:
    spaced = json.dumps([json.loads(LINES[1]), {**json.loads(LINES[2]), "new_field": [1, {"a": "]"}]}]).encode()
    content = content_of("accepted", b"\n".join([LINES[0], spaced, b"", b" ", *LINES[3:]]), 7)
    assert content.bad == []
    assert column(content, "id") == [event.id for event in STORY.events]
    assert column(content, "received") == [7] * len(LINES)
    assert all(
        decode_event(raw).id == told for raw, told in zip(column(content, "raw"), column(content, "id"), strict=True)
    )
    assert "new_field" in column(content, "raw")[2]  # kept, though no version knows it


def test_bad_lines_are_told_and_the_others_count() -> None:
    value = b"\n".join([LINES[0], b'{"v": 1}', b"[" + LINES[1] + b',{"v":1},' + LINES[2] + b"]", b"x", b"[" + LINES[3]])
    content = content_of("accepted", value, 7)
    assert column(content, "id") == [event.id for event in STORY.events[:3]]
    assert [(bad.code, bad.line) for bad in content.bad] == [("bad_accepted", line) for line in (1, 2, 3, 4)]
    assert content.bad[1].reason.startswith("[1] ")


def test_numbers_that_fit_into_no_column_are_told() -> None:
    snap = STORY.at(now=300)
    (attempt,), summary = snap.attempts, snap.summary
    said = Published().publication(snap)
    check_fits(summary)
    check_fits(said.attempts[0])
    for field in ("attempt", "gpus", "world_size", "signal", "exit_code", "end", "loop_start", "tts_s"):
        wrong = attempt.model_copy(update={field: 2**64})
        with pytest.raises(UpdateError, match=f"AttemptsUpdate: {field} is too large or too small"):
            check_fits(said.attempts[0].__class__("j", 1, False, [wrong], [], []))
    for field, value in {"attempts": -1, "nof": 2**32, "t0": 2**64, "e2e_s": 1e300, "version": 2**63}.items():
        with pytest.raises(UpdateError, match=f"JobSummary: {field} is"):
            check_fits(summary.model_copy(update={field: value}))
    with pytest.raises(UpdateError, match="stages is"):
        check_fits(summary.model_copy(update={"stages": {"shutdown": 1e18}}))
    long = Segment("j", 0, "shutdown", START, START + 2**32, 1)
    with pytest.raises(UpdateError, match="a segment is"):
        check_fits(SegmentsUpdate("j", 1, False, None, None, [Hour(START // CELL * CELL, [long])]))


def record(offset: int, value: bytes = b"x", topic: str = "ett.jobs", partition: int = 0) -> Record:
    return Record(Place(topic, partition), offset, 1_000 + offset, b"k", value)


def batch(*records: Record) -> Batch:
    made = Batch()
    for each in records:
        made.add(each, Content(), 5.0)
    return made


def test_a_batch_knows_where_to_go_on() -> None:
    made = batch(record(4), record(5), record(9, b"yyy", partition=1), record(7))
    assert made.offsets() == {Place("ett.jobs", 0): 8, Place("ett.jobs", 1): 10}
    assert (made.bytes, made.born, made.newest_ms) == (6, 5.0, 1_009)
    assert Batch().born is None


def test_the_token_is_that_of_the_records() -> None:
    mine, other = [record(4), record(5)], [record(0, partition=1), record(1, partition=1)]
    token = batch(*mine, *other).token("jobs_log")
    assert batch(mine[0], other[0], other[1], mine[1]).token("jobs_log") == token
    for different in (
        batch(*mine),
        batch(*mine, other[0]),
        batch(*mine, other[0], record(1, b"z", partition=1)),  # the same offsets in a topic made anew
        batch(record(4, b"xx"), record(5, b""), *other),
        batch(*mine, *(each._replace(place=Place("ett.phases", 1)) for each in other)),
    ):
        assert different.token("jobs_log") != token
    assert batch(*mine, *other).token("phases_log") != token
