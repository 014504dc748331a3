"""docs/events.md says what the code does: kinds, fields, defaults, codes, limits, messages."""

import re
from pathlib import Path
from typing import get_args

import pytest

from ettwatch_schemas import (
    CODES,
    EVENT_TYPES,
    KINDS,
    MAX_EVENT_BYTES,
    MAX_MESSAGE_BYTES,
    STAGES,
    BaseEvent,
    DecodeError,
    decode_event,
    decode_message,
)
from ettwatch_schemas.jsonschema import schemas
from support.examples import wire

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")
COMMON = set(BaseEvent.model_fields)
JSON_TYPES = {"integer": "integer", "number": "number", "string": "text", "boolean": "boolean", "object": "object"}


def section(title: str) -> str:
    """Return the text under a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/events.md has no section {title}"
    return found[1]


def rows(title: str) -> dict[str, list[str]]:
    """Return the cells of the table in a section, by the name in the first one."""
    lines = [line.strip("|").split("|") for line in section(title).splitlines() if line.startswith("| `")]
    return {name.strip().strip("`"): [cell.strip() for cell in rest] for name, *rest in lines}


def test_the_kinds_are_those_of_the_code() -> None:
    assert tuple(re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE)) == KINDS


@pytest.mark.parametrize("model", EVENT_TYPES)
def test_every_field_stands_with_its_type_need_and_default(model: type[BaseEvent]) -> None:
    kind = model.model_fields["kind"].default
    table = rows(f"`{kind}`")
    own = {name: field for name, field in model.model_fields.items() if name not in COMMON}
    assert list(table) == list(own)
    properties = schemas()[kind]["properties"]
    for name, field in own.items():
        needed = "yes" if field.is_required() else "no"
        if not field.is_required() and field.default is not None:
            needed = "no, false" if field.default is False else f"no, `{field.default}`"
        shape = properties[name].get("anyOf", [properties[name]])[0]
        kind_of = "time" if name.endswith("_ts") else JSON_TYPES[shape["type"]]
        assert table[name][:2] == [kind_of, needed], f"{kind}.{name}"
        for value in shape.get("enum", []):
            assert f"`{value}`" in table[name][2], f"{kind}.{name} does not tell {value}"


def test_common_fields_and_who_needs_an_attempt() -> None:
    assert set(rows("Fields of every event")) == COMMON
    without = [
        model.model_fields["kind"].default for model in EVENT_TYPES if not model.model_fields["attempt"].is_required()
    ]
    assert f"every kind except {' and '.join(f'`{kind}`' for kind in without)}" in PAGE
    for source in get_args(BaseEvent.model_fields["source"].annotation):
        assert f"`{source}`" in rows("Fields of every event")["source"][2]


def test_codes_and_stages_are_listed_with_their_meanings() -> None:
    assert {code: cells[0] for code, cells in rows("What is refused").items()} == dict(CODES)
    assert {stage: cells[0] for stage, cells in rows("Phases").items()} == dict(STAGES)


def test_limits_are_those_of_the_schemas() -> None:
    told = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", section("Limits"), re.MULTILINE))
    assert told["an event"] == f"{MAX_EVENT_BYTES} bytes of JSON"
    assert told["a message (an array)"] == f"{MAX_MESSAGE_BYTES} bytes of JSON"
    by_field = {name: limit for names, limit in told.items() for name in re.findall(r"`(\w+)`", names)}
    limited = set()
    for kind in KINDS:
        for name, field in schemas()[kind]["properties"].items():
            shape = field.get("anyOf", [field])[0]
            limits = [shape[key] for key in ("minimum", "maxLength", "maximum", "maxProperties") if key in shape]
            # The version, times and seconds are told where the fields are.
            if limits and name not in ("v", "report_every_s") and not name.endswith("ts"):
                limited.add(name)
                assert [str(limit) for limit in limits if str(limit) not in by_field[name]] == [], f"{kind}.{name}"
    assert limited == set(by_field)


def test_shown_messages_decode() -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    assert [len(decode_message(block.encode()).events) for block in blocks] == [1, 2]
    assert all(not decode_message(block.encode()).errors for block in blocks)


def test_the_shown_error_is_the_real_one() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_event(wire(ts=1_790_000_000))
    assert f"```text\n{caught.value}\n```" in PAGE
