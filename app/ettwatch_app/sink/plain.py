"""Events of the accepted topic as rows, quickly: a worker has checked every one of them before.

Only what a row says of an event is looked at, and only in the plainest form. Whatever is not in it goes the long way,
through the whole check.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic_core import from_json

from ettwatch_clickhouse.rows import Row

__all__ = ["NotPlain", "plain_rows"]

_BETWEEN: Final = re.compile(r"\}, ?\{")
_MOST_ATTEMPT: Final = 2**31
_SOURCES: Final = ("trainer", "launcher", "scheduler")


class NotPlain(Exception):
    """The line needs a closer look."""


def plain_rows(line: bytes, received: int) -> list[Row]:
    """Return the rows of the events in a line: one event, or an array of them. Raises NotPlain.

    Args:
        line: Without its newline.
        received: When the record was made (µs).
    """
    try:
        return [_row(told, text, received) for told, text in _items(line.decode())]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NotPlain from None


def _items(text: str) -> Iterator[tuple[Any, str]]:
    """Yield each event, and its own text."""
    if text.startswith("{"):
        yield from_json(text), text
        return
    # Where each piece is JSON by itself, the pieces are the items. A comma inside an item leaves a piece that is none.
    if not (text.startswith("[{") and text.endswith("}]")):
        raise ValueError("no event")
    for piece in _BETWEEN.split(text[2:-2]):
        item = "{" + piece + "}"
        yield from_json(item), item


def _row(told: dict[str, Any], text: str, received: int) -> Row:
    job, ts, event_id, kind = told["job"], told["ts"], told["id"], told["kind"]
    attempt, rank = told.get("attempt"), told.get("rank", 0)
    host, source = told.get("host"), told.get("source", "trainer")
    if not (
        type(ts) is int
        and type(rank) is int
        and (attempt is None or (type(attempt) is int and 0 <= attempt < _MOST_ATTEMPT))
        and told["v"] == 1
        and 0 <= rank < _MOST_ATTEMPT
        and (host is None or type(host) is str)
        and source in _SOURCES
        and type(job) is type(event_id) is type(kind) is str
    ):
        raise ValueError("not plain")
    return (job, ts, event_id, kind, 1, attempt, rank, host, source, text, received, "")
