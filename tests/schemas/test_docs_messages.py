"""docs/messages.md shows the messages as they are, and tells of every field, column and header."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from ettwatch_schemas import PhaseKey, PhaseSpan, topic_examples
from ettwatch_schemas.asyncapi import asyncapi
from ettwatch_schemas.wire import AttemptsWire, HourWire, KeyRow, PhaseRow, PhasesWire, SegmentsWire

PAGE = (Path(__file__).parents[2] / "docs" / "messages.md").read_text("utf-8")
TOLD = dict(topic_examples())
DOCUMENT = asyncapi()


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/messages.md has no section {title}"
    return found[1]


def table(head: str, text: str) -> list[list[str]]:
    """The rows under the head of a table."""
    found = re.search(rf"^\| {re.escape(head)} \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", text, re.MULTILINE)
    assert found, f"no table {head}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


def test_every_topic_has_its_section() -> None:
    addresses = {channel["address"].format(prefix="ett") for channel in DOCUMENT["channels"].values()}
    told = re.findall(r"^## (ett\.\S+)$", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(addresses - {"ett.events"})
    assert [row[0] for row in table("topic | key | a message is", PAGE)] == [
        f"[`{name}`](#{name.replace('.', '')})" for name in told
    ]


@pytest.mark.parametrize(
    ("topic", "shown"),
    [
        ("jobs", ["jobs.next"]),
        ("attempts", ["attempts.next"]),
        ("phases", ["phases.first", "phases.next"]),
        ("segments", ["segments.next"]),
    ],
)
def test_the_shown_messages_are_real(topic: str, shown: list[str]) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```", section(f"ett.{topic}"), re.MULTILINE | re.DOTALL)
    assert [json.loads(block) for block in blocks] == [json.loads(TOLD[name]) for name in shown]


def test_the_shown_lines_and_headers_are_real() -> None:
    assert f"```text\n{TOLD['accepted.lines'].decode()}\n```" in section("ett.accepted")
    letter = json.loads(TOLD["dlq.letter"])
    headers = "\n".join(f"{name}: {text}".strip() for name, text in letter["headers"].items())
    assert f"value `{letter['value']}`:\n\n```text\n{headers}\n```" in section("ett.events.dlq")


@pytest.mark.parametrize(
    ("topic", "head", "model"),
    [
        ("attempts", "field | meaning", AttemptsWire),
        ("phases", "field | meaning", PhasesWire),
        ("segments", "field | meaning", SegmentsWire),
        ("segments", "field of an hour | meaning", HourWire),
    ],
)
def test_every_field_is_told(topic: str, head: str, model: type[BaseModel]) -> None:
    # The wire puts what all updates have first.
    fields = [[f"`{name}`", field.description] for name, field in model.model_fields.items()]
    assert table(head, section(f"ett.{topic}")) == fields


@pytest.mark.parametrize(
    ("head", "row", "names"),
    [
        ("place | field of a phase | meaning", PhaseRow, PhaseSpan._fields[1:]),
        ("place | field of a key in `gone` | meaning", KeyRow, PhaseKey._fields),
    ],
)
def test_every_place_of_a_row_is_told(head: str, row: Any, names: tuple[str, ...]) -> None:
    told = [[field for field in place.__metadata__ if getattr(field, "title", None)][-1] for place in get_args(row)]
    assert tuple(field.title for field in told) == names
    assert table(head, section("ett.phases")) == [
        [str(place), f"`{field.title}`", field.description] for place, field in enumerate(told)
    ]


def test_every_header_is_told() -> None:
    properties = DOCUMENT["components"]["messages"]["letter"]["headers"]["properties"]
    rows = {name.strip("`"): meaning for name, meaning in table("header | meaning", section("ett.events.dlq"))}
    # The codes are not listed once more.
    assert rows == {name: schema["description"].partition(": one of")[0] for name, schema in properties.items()}
