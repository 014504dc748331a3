"""The handed-out cases come out right, to the microsecond, in any order and doubled."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ettwatch_core import JobState, Rules, Verdict, apply, snapshot, summarize
from ettwatch_schemas import decode_event

CASES = sorted((Path(__file__).parent.parent / "cases").glob("*.jsonl"))
RULES = Rules(lateness=None)


def same(got: Any, want: Any) -> bool:
    if isinstance(want, dict):
        return isinstance(got, dict) and set(got) == set(want) and all(same(got[k], want[k]) for k in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float):
        return isinstance(got, float) and abs(got - want) < 1e-6
    return bool(got == want)


def test_there_are_cases() -> None:
    assert len(CASES) == 11


@pytest.mark.parametrize("order", ["told", "reversed", "shuffled and doubled"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, order: str) -> None:
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    events = [decode_event(line) for line in path.read_bytes().splitlines()]
    if order == "reversed":
        events.reverse()
    elif order == "shuffled and doubled":
        events += events
        Random(7).shuffle(events)
    state = JobState(events[0].job)
    verdicts = [apply(state, event, RULES) for event in events]
    assert verdicts.count(Verdict.DUPLICATE) == len(events) - len({event.id for event in events})
    now = expected.pop("now")
    expected.pop("why")
    got = snapshot(state, RULES, now).summary
    assert {key: value for key, value in got.model_dump().items() if not same(value, expected.get(key, value))} == {}
    assert summarize(state, RULES, now) == got
