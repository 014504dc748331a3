"""What one line of an event file says: its events, and what is wrong with the rest."""

from dataclasses import dataclass, field
from typing import Final

from ettwatch_schemas import MAX_MESSAGE_BYTES, DecodeError, Event, decode_message

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an event, or a whole line, was not taken.

    Attributes:
        code: A stable slug, to count by.
        reason: What was wrong and what to do, in one line.
        field: The field at fault, if one is.
        value: Its value, shortened.
        index: The place of the event in its array, if it stood in one.
    """

    code: str
    reason: str
    field: str | None = None
    value: str | None = None
    index: int | None = None


@dataclass(slots=True)
class Message:
    """One line, decoded.

    Attributes:
        start: Where the line begins (byte offset in the file; of packed files, in what is packed).
        end: Where the next line begins.
        number: The line's number, from 1.
        raw: The line with its newline; of a line beyond the size limit, only its beginning.
        events: The events to apply, in order.
        refusals: What was refused while decoding.
        job: The job of the first event.
        low: The earliest time of its events (µs).
        high: The latest.
        tail: The last bytes before `end`, where `raw` is cut.
    """

    start: int
    end: int
    number: int
    raw: bytes
    events: list[Event] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    job: str | None = None
    low: int = 0
    high: int = 0
    tail: bytes | None = None


def decode_line(raw: bytes, start: int, number: int, *, latest: int, cut: bool = False) -> Message:
    """Decode one line.

    Args:
        raw: The line, with its newline if it has one.
        start: Its byte offset.
        number: Its number.
        latest: An event later than this (µs) is refused: it is too far ahead of the clock.
        cut: The line is the last of a finished file and has no newline: where it does not decode, say so.
    """
    message = Message(start, start + len(raw), number, raw)
    text = raw.removeprefix(_BOM) if start == 0 else raw
    if text.isspace() or not text:
        return message
    decoded = decode_message(text.rstrip(b"\r\n"))
    for error in decoded.errors:
        message.refusals.append(_refusal(error, cut))
    for event in decoded.events:
        if event.ts > latest:
            message.refusals.append(_ahead(event))
            continue
        if not message.events:
            message.job, message.low, message.high = event.job, event.ts, event.ts
        message.events.append(event)
        message.low = min(message.low, event.ts)
        message.high = max(message.high, event.ts)
    return message


def too_large(head: bytes, start: int, end: int, number: int, tail: bytes) -> Message:
    """Return the refusal of a line that is longer than a message may be, of which only `head` was read."""
    message = Message(start, end, number, head, tail=tail)
    message.refusals.append(
        Refusal(
            "too_large",
            f"the line has {end - start} bytes, a message may have {MAX_MESSAGE_BYTES}; "
            "send fewer events in one array, or end each event with a newline",
        )
    )
    return message


def _refusal(error: DecodeError, cut: bool) -> Refusal:
    if cut and error.code in ("bad_json", "not_utf8"):
        return Refusal(
            "truncated",
            "the file ends within this line: its writer was cut off before the newline; what it held is kept here",
            error.field,
            error.value,
            error.index,
        )
    return Refusal(error.code, str(error), error.field, error.value, error.index)


def _ahead(event: Event) -> Refusal:
    return Refusal(
        "ahead_of_clock",
        f"ts: {event.ts} of event {event.id!r} is more than 10 min ahead of this machine's clock; "
        "set the clocks of both machines right",
        "ts",
        str(event.ts),
    )
