"""The AsyncAPI document: whole, true to the code, and shaped as AsyncAPI 3.0 has it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft7Validator

from ettwatch_faust import TopicSettings, plan
from ettwatch_schemas import (
    AttemptsUpdate,
    DeadLetter,
    Event,
    JobSummary,
    PhasesUpdate,
    SegmentsUpdate,
    Update,
    encode_event,
    encode_update,
    letter_headers,
)
from ettwatch_schemas.asyncapi import asyncapi
from support.examples import events
from support.updates import letters, summaries, updates

DOCUMENT = asyncapi()
MESSAGES: dict[str, dict[str, Any]] = DOCUMENT["components"]["messages"]
NAMES = {AttemptsUpdate: "attempts", PhasesUpdate: "phases", SegmentsUpdate: "segments"}

_TEXT = {"type": "string", "minLength": 1}
_REF = {"type": "object", "properties": {"$ref": _TEXT}, "required": ["$ref"], "additionalProperties": False}


def closed(required: list[str], /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def many(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": inner, "minProperties": 1}


KAFKA = closed(["kafka"], kafka=closed(["key", "bindingVersion"], key={"type": "object"}, bindingVersion=_TEXT))
EXAMPLE = closed(["name", "payload"], name=_TEXT, payload={}, headers={"type": "object"})
# What the specification allows of what is used here.
SHAPE = closed(
    ["asyncapi", "info", "channels", "operations", "components"],
    asyncapi={"const": "3.0.0"},
    id={"type": "string", "pattern": "^urn:"},
    info=closed(
        ["title", "version"], title=_TEXT, version=_TEXT, description=_TEXT, license=closed(["name"], name=_TEXT)
    ),
    defaultContentType={"const": "application/json"},
    channels=many(
        closed(
            ["address", "messages", "parameters"],
            address={"type": "string", "pattern": r"^\{prefix\}\.[a-z.]+$"},
            description=_TEXT,
            messages=many(_REF),
            parameters=closed(["prefix"], prefix=closed([], default=_TEXT, description=_TEXT)),
        )
    ),
    operations=many(closed(["action", "channel"], action={"enum": ["send", "receive"]}, channel=_REF)),
    components=closed(
        ["messages", "schemas"],
        messages=many(
            closed(
                ["payload", "examples"],
                summary=_TEXT,
                contentType=_TEXT,
                headers={"type": "object"},
                payload={"type": "object"},
                bindings=KAFKA,
                examples={"type": "array", "items": EXAMPLE, "minItems": 1},
            )
        ),
        schemas=many({"type": "object", "required": ["title"]}),
    ),
)


def accepts(schema: dict[str, Any], value: object) -> bool:
    whole = {"components": DOCUMENT["components"], "allOf": [schema]}
    return Draft7Validator(whole).is_valid(value)


def test_it_is_shaped_as_asyncapi_documents_are() -> None:
    Draft7Validator(SHAPE).validate(DOCUMENT)


def _references(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                if name == "$ref":
                    yield inner
                yield from _references(inner)
        case list():
            for inner in value:
                yield from _references(inner)


def test_every_reference_leads_somewhere_and_everything_is_referred_to() -> None:
    led = set(_references(DOCUMENT))
    for reference in led:
        at: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            at = at[step]
    there = {f"#/components/{kind}/{name}" for kind, named in DOCUMENT["components"].items() for name in named}
    there |= {f"#/channels/{name}" for name in DOCUMENT["channels"]}
    assert led == there


def test_the_channels_are_the_topics_for_others() -> None:
    addresses = [channel["address"].format(prefix="ett") for channel in DOCUMENT["channels"].values()]
    topics = [spec.name for spec in plan(TopicSettings()) if not spec.name.endswith(("-changelog", ".parts", ".state"))]
    assert sorted(addresses) == sorted(topics)


def test_schemas_are_of_draft_7() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft7Validator.check_schema(schema)
    assert "prefixItems" not in json.dumps(DOCUMENT)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_example_is_one(name: str) -> None:
    message = MESSAGES[name]
    for example in message["examples"]:
        assert accepts(message["payload"], example["payload"])
        assert ("headers" in message) == ("headers" in example)
        if "headers" in message:
            assert accepts(message["headers"], example["headers"])


@given(updates())
def test_updates_pass(update: AttemptsUpdate | PhasesUpdate | SegmentsUpdate) -> None:
    payload, body = MESSAGES[NAMES[type(update)]]["payload"], _told(update)
    assert accepts(payload, body | {"newer": 1})
    for name in body:
        assert not accepts(payload, {key: value for key, value in body.items() if key != name})


def _told(update: Update) -> Any:
    return json.loads(encode_update(update))


@given(summaries())
def test_summaries_pass(summary: JobSummary) -> None:
    assert accepts(MESSAGES["job"]["payload"], _told(summary) | {"newer": 1})
    assert not accepts(MESSAGES["job"]["payload"], _told(summary) | {"t0": None})


@given(events())
def test_events_pass(event: Event) -> None:
    body = json.loads(encode_event(event))
    assert accepts(MESSAGES["event"]["payload"], body)
    assert accepts(MESSAGES["events"]["payload"], [body])
    assert not accepts(MESSAGES["event"]["payload"], body | {"v": 2})


@given(letters())
def test_headers_of_dead_letters_pass(letter: DeadLetter) -> None:
    headers = {name: data.decode() for name, data in letter_headers(letter)}
    assert accepts(MESSAGES["letter"]["headers"], headers)
    assert accepts(MESSAGES["mark"]["headers"], headers) == (letter.handled is not None)
    assert headers.keys() <= MESSAGES["letter"]["headers"]["properties"].keys()
