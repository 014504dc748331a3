"""Events as a source tells them: checked, with an id made of what they say, and the place where it stood."""

import hashlib
import json
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ValidationError

from ettwatch.wire import tidy_job
from ettwatch_schemas import MAX_EVENT_BYTES, BaseEvent, Event, encode_event

_E = TypeVar("_E", bound=BaseEvent)

_TEXTS: Final = {
    "span": 512,
    "parent": 512,
    "host": 512,
    "team": 512,
    "model": 512,
    "cluster": 512,
    "message": 65_536,
}

_PREFIX: Final = "src-"
_DIGITS: Final = 24


class Refused(ValueError):
    """A line cannot become an event. The message says why."""


class Told(NamedTuple):
    """An event and where it stood: `file:line`, or what else names the place; empty where there is none."""

    event: Event
    place: str = ""


def make(kind: type[_E], **fields: Any) -> _E:
    """Return an event whose id follows from its content, so that telling it twice is telling it once.

    Texts that are too long are cut; the name of a job then ends in a hash of the whole. Raises Refused where a field
    is wrong, or the event larger than the wire allows.
    """
    if isinstance(job := fields.get("job"), str):
        fields["job"] = tidy_job(job)
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
    content = draft.__pydantic_serializer__.to_json(draft, exclude_none=True)
    digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
    if len(content) + _DIGITS + len(_PREFIX) > MAX_EVENT_BYTES:
        raise Refused(f"the event has {len(content)} bytes, more than {MAX_EVENT_BYTES}")
    return draft.model_copy(update={"id": f"{_PREFIX}{digest}"})


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
    # A file's name may be no text: half a surrogate pair would spoil the line.
    place = json.dumps(told.place.encode("utf-8", "replace").decode(), ensure_ascii=True).encode()
    return data[:-1] + b',"origin":' + place + b"}\n"
