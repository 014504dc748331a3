"""Every published example of every kind passes through the fold."""

import pytest

from ettwatch_core import JobState, Rules, Verdict, apply, dump, load, snapshot
from ettwatch_schemas import KINDS, decode_message, examples

EXAMPLES = dict(examples())


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    decoded = decode_message(EXAMPLES[name])
    assert decoded.errors == []
    rules = Rules()
    state = JobState(decoded.events[0].job)
    for event in decoded.events:
        assert apply(state, event, rules) is Verdict.ACCEPTED
    assert snapshot(load(dump(state)), rules) == snapshot(state, rules)
    assert snapshot(state, rules).summary.job == decoded.events[0].job


def test_every_kind_has_an_example() -> None:
    kinds = {event.kind for data in EXAMPLES.values() for event in decode_message(data).events}
    assert kinds == set(KINDS)
