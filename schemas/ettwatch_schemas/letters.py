"""Dead letters: what a worker refused, with its original bytes and, in headers, where it was read and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ettwatch_schemas.errors import UpdateError, shorten

HEADER: Final = "ettwatch."
"""What the names of all headers begin with."""

HANDLED: Final = ("replayed", "dropped")
"""What can become of a dead letter."""

_MOST_CHARS: Final = 4_000
"""Of a text in a header: a message may hold anything, and its record has to fit into the topic."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message, or an event of an array, that was refused; or the mark that one was dealt with.

    The same letter may come twice, after a crash: `origin` tells.

    Attributes:
        value: The original bytes of the whole message; None in a mark.
        key: Its original key.
        code: Why, in a word: one of CODES, or one of the worker's own.
        reason: Why, in a line.
        field: The field that is wrong; None where none is named.
        fix: What to do about it; None where nothing is known.
        topic: Where it was read.
        partition: Its number there.
        offset: Its place there.
        index: Of the event in an array, from 0; None: the whole message.
        time: When it was refused (µs since the Unix epoch).
        job: Of the event, if known.
        handled: `replayed` or `dropped` in a mark; else None.
    """

    value: bytes | None
    key: bytes | None
    code: str
    reason: str
    field: str | None
    fix: str | None
    topic: str
    partition: int
    offset: int
    index: int | None
    time: int
    job: str | None
    handled: str | None

    @property
    def origin(self) -> tuple[str, int, int, int | None]:
        """Topic, partition, offset and index: what tells a letter from all others."""
        return self.topic, self.partition, self.offset, self.index


def letter_headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """Return the headers of a dead letter's record. Long texts are shortened, and brought into one line."""
    texts: list[tuple[str, str | None]] = [
        ("code", letter.code),
        ("reason", _line(letter.reason)),
        ("field", None if letter.field is None else _line(letter.field)),
        ("fix", None if letter.fix is None else _line(letter.fix)),
        ("topic", letter.topic),
        ("partition", str(letter.partition)),
        ("offset", str(letter.offset)),
        ("index", "" if letter.index is None else str(letter.index)),
        ("time", str(letter.time)),
        ("job", letter.job),
        ("handled", letter.handled),
    ]
    return [(HEADER + name, text.encode("utf-8", "replace")) for name, text in texts if text is not None]


def read_letter(key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> DeadLetter:
    """Return the dead letter of a record.

    Args:
        key: Its key.
        value: Its value.
        headers: Its headers; those of others are passed over.

    Raises:
        UpdateError: A header is missing, or is not what it has to be.
    """
    texts: dict[str, str] = {}
    for name, data in headers:
        if name.startswith(HEADER) and data is not None:
            try:
                texts[name.removeprefix(HEADER)] = data.decode()
            except UnicodeDecodeError:
                raise UpdateError(f"dead letter: header {name}: is not UTF-8") from None
    handled = texts.get("handled")
    if handled is not None and handled not in HANDLED:
        raise UpdateError(f"dead letter: header {HEADER}handled: {shorten(handled)} is not {' or '.join(HANDLED)}")
    if handled is not None:
        texts = {"code": "", "reason": "", **texts}
    return DeadLetter(
        value=value,
        key=key,
        code=_text(texts, "code"),
        reason=_text(texts, "reason"),
        field=texts.get("field"),
        fix=texts.get("fix"),
        topic=_text(texts, "topic"),
        partition=_number(texts, "partition"),
        offset=_number(texts, "offset"),
        index=_number(texts, "index") if _text(texts, "index") else None,
        time=_number(texts, "time"),
        job=texts.get("job"),
        handled=handled,
    )


def _line(text: str) -> str:
    line = " ".join(text.splitlines())
    return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1]}…"


def _text(texts: dict[str, str], name: str) -> str:
    if name not in texts:
        raise UpdateError(f"dead letter: header {HEADER}{name}: is missing")
    return texts[name]


def _number(texts: dict[str, str], name: str) -> int:
    text = _text(texts, name)
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UpdateError(f"dead letter: header {HEADER}{name}: {shorten(text)} is not a number")
    return int(text)
