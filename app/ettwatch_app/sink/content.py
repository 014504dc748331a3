"""From the bytes of a record to what it tells. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ettwatch_app.sink.plain import NotPlain, plain_rows
from ettwatch_clickhouse.fits import check_fits
from ettwatch_clickhouse.rows import Row, event_row
from ettwatch_schemas import (
    Update,
    UpdateError,
    Window,
    decode_attempts,
    decode_message,
    decode_phases,
    decode_segments,
    decode_summary,
    decode_window,
)
from ettwatch_schemas.scan import split_array

BAD_UPDATE: Final = "bad_update"
BAD_ACCEPTED: Final = "bad_accepted"

_DECODERS: Final[Mapping[str, Callable[[bytes], Update]]] = {
    "jobs": decode_summary,
    "attempts": decode_attempts,
    "segments": decode_segments,
    "phases": decode_phases,
}


@dataclass(frozen=True, slots=True)
class Bad:
    """Why a record, or a line of one, cannot be used.

    Attributes:
        code: In a word.
        reason: In a line.
        line: Number of the line, from 0; None: the whole record.
    """

    code: str
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What a record tells.

    Attributes:
        update: An update or a summary, if it is one.
        window: A window, if it is one.
        events: Rows of events.
        bad: What could not be read.
    """

    update: Update | None = None
    events: list[Row] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    window: Window | None = None


def content_of(kind: str, value: bytes | None, received: int) -> Content:
    """Return what a record tells.

    Args:
        kind: What the records of its topic are: `jobs`, `attempts`, `segments`, `phases`, `windows` or `accepted`.
        value: Its value. None tells nothing: in a compacted topic it removes what was there.
        received: When the record was made (µs).
    """
    if value is None:
        return Content()
    if kind == "accepted":
        return _accepted(value, received)
    try:
        if kind == "windows":
            return Content(window=decode_window(value))
        update = _DECODERS[kind](value)
        check_fits(update)
    except UpdateError as error:
        return Content(bad=[Bad(BAD_UPDATE, str(error))])
    return Content(update)


def _accepted(value: bytes, received: int) -> Content:
    """Take in lines of events. Workers pass on each event once, so that no second spelling of it has to be known."""
    content = Content()
    for number, line in enumerate(value.split(b"\n")):
        try:
            content.events.extend(plain_rows(line, received))
        except NotPlain:
            _slowly(content, number, line, received)
    return content


def _slowly(content: Content, number: int, line: bytes, received: int) -> None:
    """Take in the events of a line that needs a closer look; each is stored as it was told."""
    if not line.strip():
        return
    decoded = decode_message(line)
    content.bad.extend(Bad(BAD_ACCEPTED, str(error), number) for error in decoded.errors)
    if not decoded.events:
        return
    bad = {error.index for error in decoded.errors}
    told = split_array(line.decode()) if line.lstrip()[:1] == b"[" else [line.decode()]
    good = [text for index, text in enumerate(told) if index not in bad] if bad else told
    for event, text in zip(decoded.events, good, strict=True):
        content.events.append(event_row(event, text.encode(), received, known=True))
