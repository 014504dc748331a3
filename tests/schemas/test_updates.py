"""Updates on the wire: what is written is read again, and what is no update is refused in one line."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from ettwatch_schemas import (
    AttemptSummary,
    AttemptsUpdate,
    Hour,
    JobSummary,
    PhaseKey,
    PhaseSpan,
    PhasesUpdate,
    Segment,
    SegmentsUpdate,
    Update,
    UpdateError,
    decode_attempts,
    decode_phases,
    decode_segments,
    decode_summary,
    encode_update,
)
from support.examples import ATTEMPT, JOB, TS
from support.updates import HOUR, summaries, updates

CELL = TS // HOUR * HOUR
SPAN = PhaseSpan("j1", 0, "trainer_init", TS, TS + 9, 2, True, False, 0, 9, 1, 4, False)
ATTEMPTS = AttemptsUpdate("j1", 5, True, [AttemptSummary(**ATTEMPT)], [], [2])
PHASES = PhasesUpdate("j1", 5, False, [SPAN], [], [PhaseKey.of(SPAN)])
SEGMENTS = SegmentsUpdate(
    "j1", 5, False, CELL, CELL, [Hour(CELL, [Segment("j1", 0, "shutdown", CELL + 7, CELL + 9, 8)]), Hour(0, [])]
)
DECODE: dict[type[Any], Callable[[bytes], Any]] = {
    AttemptsUpdate: decode_attempts,
    PhasesUpdate: decode_phases,
    SegmentsUpdate: decode_segments,
    JobSummary: decode_summary,
}


@given(updates())
def test_an_update_is_read_as_it_was_written(update: Update) -> None:
    assert DECODE[type(update)](encode_update(update)) == update


@given(summaries())
def test_a_summary_is_read_as_it_was_written(summary: JobSummary) -> None:
    assert decode_summary(encode_update(summary)) == summary


def test_the_form() -> None:
    head = {"v": 1, "job": "j1", "version": 5}
    assert json.loads(encode_update(ATTEMPTS)) == {
        **head,
        "whole": True,
        "open": [ATTEMPT],
        "final": [],
        "gone": [2],
    }
    assert json.loads(encode_update(PHASES)) == {
        **head,
        "whole": False,
        "open": [[0, "trainer_init", TS, TS + 9, 2, True, False, 0, 9, 1, 4, False]],
        "final": [],
        "gone": [[0, "trainer_init", True, 1, TS]],
    }
    assert json.loads(encode_update(SEGMENTS)) == {
        **head,
        "whole": False,
        "first": CELL,
        "last": CELL,
        "hours": [
            {"cell": CELL, "attempt": [0], "stage": ["shutdown"], "start": [7], "length": [2], "gpus": [8]},
            {"cell": 0, "attempt": [], "stage": [], "start": [], "length": [], "gpus": []},
        ],
    }
    assert json.loads(encode_update(JobSummary(**JOB))) == JOB


def test_the_rank_is_in_the_key_of_phases_in_the_background_only() -> None:
    assert PhaseKey.of(SPAN) == (0, "trainer_init", True, 1, TS)
    assert PhaseKey.of(SPAN._replace(background=False)) == (0, "trainer_init", False, 0, TS)


def newer(value: Any) -> Any:
    """The same as a newer worker could tell it: every object has a field more."""
    match value:
        case dict():
            return {name: newer(inner) for name, inner in value.items()} | {"newer": {"x": [1]}}
        case list():
            return [newer(inner) for inner in value]
        case _:
            return value


@pytest.mark.parametrize("update", [ATTEMPTS, PHASES, SEGMENTS])
def test_unknown_fields_are_passed_over(update: Update) -> None:
    body = newer(json.loads(encode_update(update)))
    for attempt in body.get("open", []):
        if isinstance(attempt, dict):  # these have names that are data
            for name in ("components", "stages", "hidden_s"):
                del attempt[name]["newer"]
    assert DECODE[type(update)](json.dumps(body).encode()) == update


def test_unknown_fields_of_summaries_are_passed_over() -> None:
    body = JOB | {"newer": {"x": [1]}, "v": 1}
    assert decode_summary(json.dumps(body).encode()) == JobSummary(**JOB)


def spoiled(update: Update, **changes: object) -> bytes:
    body = json.loads(encode_update(update)) | changes
    return json.dumps({name: value for name, value in body.items() if value is not ...}).encode()


HOUR_WIRE = {"cell": CELL, "attempt": [0], "stage": ["shutdown"], "start": [7], "length": [2], "gpus": [8]}
ROW = [0, "trainer_init", TS, TS + 9, 2, True, False, 0, 9, 1, 4, False]


@pytest.mark.parametrize(
    ("update", "changes", "message"),
    [
        (ATTEMPTS, {"v": ...}, "attempts update: v: is missing"),
        (ATTEMPTS, {"v": 2}, "attempts update: v: 2 is not 1, the version that this reader knows; update it"),
        (
            ATTEMPTS,
            {"v": 2, "open": "x", "job": ...},
            "attempts update: v: 2 is not 1, the version that this reader knows; update it",
        ),
        (ATTEMPTS, {"v": True}, "attempts update: v: true is not an integer"),
        (ATTEMPTS, {"job": ...}, "attempts update: job: is missing"),
        (ATTEMPTS, {"version": "5"}, "attempts update: version: '5' is a string, not an integer"),
        (ATTEMPTS, {"whole": None}, "attempts update: whole: null is not true or false"),
        (ATTEMPTS, {"gone": [0, 1.5]}, "attempts update: gone[1]: 1.5 is a float, not an integer"),
        (ATTEMPTS, {"final": [{}]}, "attempts update: final[0].job: is missing"),
        (
            ATTEMPTS,
            {"final": [ATTEMPT | {"stages": {"shutdown": "x", "newer": 1}}]},
            "attempts update: final[0].stages.shutdown: 'x' is a string, not a number",
        ),
        (
            ATTEMPTS,
            {"final": [ATTEMPT, ATTEMPT | {"job": "j2"}]},
            "attempts update: final[1].job: is not the job of the update",
        ),
        (
            ATTEMPTS,
            {"gone": [-1]},
            "attempts update: gone[0]: -1 does not fit: input should be greater than or equal to 0",
        ),
        (PHASES, {"open": {}}, "phases update: open: {} is an object, not an array"),
        (PHASES, {"final": [["0", *ROW[1:]]]}, "phases update: final[0].attempt: '0' is a string, not an integer"),
        (PHASES, {"final": [[*ROW[:-1], 0]]}, "phases update: final[0].open: 0 is an integer, not true or false"),
        (PHASES, {"final": [ROW[:-1]]}, "phases update: final[0].open: is missing"),
        (PHASES, {"gone": [[0, "shutdown", False, 0]]}, "phases update: gone[0].start: is missing"),
        (
            PHASES,
            {"gone": [[0, "shutdown", False, 0, 1, 2]]},
            "phases update: gone[0]: […] does not fit: tuple should have at most 5 items after validation, not 6",
        ),
        (SEGMENTS, {"first": None}, "segments update: first, last: one is null and the other is not"),
        (SEGMENTS, {"last": -1}, "segments update: last: -1 does not fit: input should be greater than or equal to 0"),
        (SEGMENTS, {"hours": [HOUR_WIRE | {"gpus": []}]}, "segments update: hours[0]: its columns differ in length"),
        (
            SEGMENTS,
            {"hours": [HOUR_WIRE | {"start": ["x"]}]},
            "segments update: hours[0].start[0]: 'x' is a string, not an integer",
        ),
        (SEGMENTS, {"hours": [{"cell": 1}]}, "segments update: hours[0].attempt: is missing"),
        (JobSummary(**JOB), {"v": 2}, "job summary: v: 2 is not 1, the version that this reader knows; update it"),
        (JobSummary(**JOB), {"t0": "x"}, "job summary: t0: 'x' is a string, not an integer"),
        (JobSummary(**JOB), {"t0": ...}, "job summary: t0: is missing"),
    ],
)
def test_what_is_no_update_is_refused_by_its_field(update: Update, changes: dict[str, object], message: str) -> None:
    with pytest.raises(UpdateError) as caught:
        DECODE[type(update)](spoiled(update, **changes))
    assert str(caught.value) == message


@pytest.mark.parametrize("decode", DECODE.values())
@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[]", b"\xff\xfe", b"{}", b'"x"', b'{"v":1e400}', b"NaN"])
def test_what_is_nothing_like_it_is_refused_in_a_line(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(UpdateError, match=r"^(attempts|phases|segments) update: |^job summary: ") as caught:
        decode(data)
    assert "\n" not in str(caught.value)


def test_a_line_it_is_whatever_the_names_are() -> None:
    body = JOB | {"stages": {"a\nb": "x"}}
    with pytest.raises(UpdateError) as caught:
        decode_summary(json.dumps(body).encode())
    assert str(caught.value).startswith("job summary: 'stages.a\\nb': 'x'")
