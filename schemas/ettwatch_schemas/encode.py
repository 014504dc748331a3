"""Events to bytes."""

from ettwatch_schemas.events import Event
from ettwatch_schemas.limits import MAX_EVENT_BYTES


def encode_event(event: Event) -> bytes:
    """Return the event as compact JSON in UTF-8: one line without newline, None fields left out.

    The fields stand in the order of the model. Raises ValueError where the event is larger than
    MAX_EVENT_BYTES, which only large `labels` or `attrs` can bring about.
    """
    data = event.__pydantic_serializer__.to_json(event, exclude_none=True)
    if len(data) > MAX_EVENT_BYTES:
        raise ValueError(
            f"event {event.id!r} has {len(data)} bytes, more than {MAX_EVENT_BYTES}; shorten labels or attrs"
        )
    return data
