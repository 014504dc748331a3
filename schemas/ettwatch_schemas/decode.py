"""Bytes to events.

The whole check of a good event runs inside pydantic-core. Words for a bad one are found only after it failed.
"""

from collections.abc import Callable
from typing import Annotated, Final, NamedTuple, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from ettwatch_schemas.errors import DecodeError
from ettwatch_schemas.events import Event
from ettwatch_schemas.explain import (
    bad_json,
    empty_array,
    explain,
    mixed_jobs,
    no_version,
    not_utf8,
    too_large,
)
from ettwatch_schemas.limits import MAX_EVENT_BYTES, MAX_MESSAGE_BYTES
from ettwatch_schemas.scan import constant_in, may_hold_constant, split_array

_Any: TypeAlias = Annotated[Event, Field(discriminator="kind")]
_one: Final[Callable[[bytes], Event]] = TypeAdapter[Event](_Any).validator.validate_json
_many: Final[Callable[[bytes], list[Event]]] = TypeAdapter(list[_Any]).validator.validate_json


class Decoded(NamedTuple):
    """What a message held: the good events in their order, and one error for each bad one."""

    events: list[Event]
    errors: list[DecodeError]


def decode_event(data: bytes | str) -> Event:
    """Return the event in `data`, one JSON object. Raises DecodeError, and nothing else."""
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError as error:
            raise not_utf8(error) from None
    if len(data) > MAX_EVENT_BYTES:
        raise too_large(len(data), MAX_EVENT_BYTES, "an event")
    if may_hold_constant(data) and (found := constant_in(data)):
        raise found
    try:
        event = _one(data)
    except ValidationError as error:
        raise explain(error, data) from None
    if "v" not in event.__pydantic_fields_set__:
        raise no_version()
    return event


def decode_message(data: bytes) -> Decoded:
    """Return the events of a message, one event or an array of events of one job, and its errors.

    Never raises DecodeError: where nothing can be decoded, `events` is empty and `errors` says why. In an array
    each event is judged by itself, and the error of a bad one carries its index.
    """
    if data[:1] == b"{" or data.lstrip(b" \t\r\n")[:1] != b"[":
        try:
            return Decoded([decode_event(data)], [])
        except DecodeError as error:
            return Decoded([], [error])
    if len(data) > MAX_MESSAGE_BYTES:
        return Decoded([], [too_large(len(data), MAX_MESSAGE_BYTES, "a message")])
    # Whole arrays are decoded at once where nothing has to be looked at twice.
    if len(data) <= MAX_EVENT_BYTES and not may_hold_constant(data):
        try:
            events = _many(data)
        except ValidationError:
            return _decode_each(data)
        if events and _are_plain(events):
            return Decoded(events, [])
    return _decode_each(data)


def _are_plain(events: list[Event]) -> bool:
    """Tell whether all events are of one job and told their version."""
    job = events[0].job
    # Not model_fields_set, a property, and not a generator: this runs for every event.
    odd = [event for event in events if event.job != job or "v" not in event.__pydantic_fields_set__]
    return not odd


def _decode_each(data: bytes) -> Decoded:
    """Decode an array event by event, each from its own bytes."""
    try:
        items = split_array(data.decode())
    except UnicodeDecodeError as error:
        return Decoded([], [not_utf8(error)])
    except (ValueError, RecursionError) as error:
        return Decoded([], [bad_json(data, str(error))])
    if not items:
        return Decoded([], [empty_array()])
    decoded = Decoded([], [])
    for index, item in enumerate(items):
        try:
            event = decode_event(item)
        except DecodeError as error:
            decoded.errors.append(error.at(index))
            continue
        if decoded.events and event.job != decoded.events[0].job:
            decoded.errors.append(mixed_jobs(event.job, decoded.events[0].job).at(index))
            continue
        decoded.events.append(event)
    return decoded
