import json

import pytest

from ettwatch_schemas import EVENT_TYPES, KINDS, decode_event, decode_message, encode_event, examples

EXAMPLES = dict(examples())
SINGLE = {name: data for name, data in EXAMPLES.items() if not data.startswith(b"[")}


def test_a_minimal_and_a_full_one_of_every_kind_and_an_array() -> None:
    assert set(EXAMPLES) == {f"{kind}.{size}" for kind in KINDS for size in ("minimal", "full")} | {"array"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_decode_and_encode_to_equal_events(name: str) -> None:
    decoded = decode_message(EXAMPLES[name])
    assert decoded.errors == []
    assert [decode_event(encode_event(event)) for event in decoded.events] == decoded.events


@pytest.mark.parametrize("name", SINGLE)
def test_minimal_ones_hold_what_is_needed_and_full_ones_everything(name: str) -> None:
    kind, size = name.split(".")
    model = EVENT_TYPES[KINDS.index(kind)]
    needed = {name for name, field in model.model_fields.items() if field.is_required()} | {"v", "kind"}
    fields = json.loads(SINGLE[name])
    assert fields["kind"] == kind
    assert set(fields) == (needed if size == "minimal" else set(model.model_fields))


def test_examples_are_single_lines_that_make_whole_jobs() -> None:
    assert all(data.count(b"\n") == 1 and data.endswith(b"\n") for data in EXAMPLES.values())
    events = [event for data in EXAMPLES.values() for event in decode_message(data).events]
    assert len({(event.job, event.id) for event in events}) == len(events)
    assert {event.job for event in events} == {"example-minimal", "example-full", "example-array"}
