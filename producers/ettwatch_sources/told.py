"""Events as a source tells them: checked, with an id made of what they say, and the place where it stood."""

import hashlib
import json
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ValidationError

from ettwatch_schemas import BaseEvent, Event, encode_event

_E = TypeVar("_E", bound=BaseEvent)

_TEXTS: Final = {
    "job": 1024,
    "span": 512,
    "parent": 512,
    "host": 512,
    "team": 512,
    "model": 512,
    "cluster": 512,
    "message": 65_536,
}


class Refused(ValueError):
    """A line cannot become an event. The message says why."""


class Told(NamedTuple):
    """An event and where it stood: `file:line`, or what else names the place; empty where there is none."""

    event: Event
    place: str = ""


def make(kind: type[_E], **fields: Any) -> _E:
    """Return an event whose id follows from its content, so that telling it twice is telling it once.

    Texts that are too long are cut. Raises Refused where a field is wrong.
    """
    for name, most in _TEXTS.items():
        text = fields.get(name)
        if isinstance(text, str) and (len(text) > most or not text.isascii()):
            fields[name] = text.encode("utf-8", "replace").decode()[:most]
    try:
        draft = kind(id="-", **{name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refused(f"{where}: {first['msg']}") from None
    digest = hashlib.sha256(draft.__pydantic_serializer__.to_json(draft, exclude_none=True)).hexdigest()
    return draft.model_copy(update={"id": f"src-{digest[:24]}"})


def line_of(told: Told) -> bytes:
    """Return the event as a line of JSON; its place goes along as `origin`, which consumers may ignore.

    Raises Refused where the event is larger than the wire allows.
    """
    try:
        data = encode_event(told.event)
    except ValueError as error:
        raise Refused(str(error)) from None
    if not told.place:
        return data + b"\n"
    place = json.dumps(told.place, ensure_ascii=True).encode()
    return data[:-1] + b',"origin":' + place + b"}\n"
