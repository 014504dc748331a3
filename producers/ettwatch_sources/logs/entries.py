"""JSON objects in the lines of a file, as they are or inside the entries of Google's Cloud Logging."""

import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from ettwatch_sources.feed import Feed
from ettwatch_sources.ordering import in_time


class Entry(NamedTuple):
    """One object."""

    line: int

    payload: dict[str, Any]
    timestamp: str | None
    """When Cloud Logging took it; None outside of it."""
    text: str
    """What stood there."""


def entries(feed: Feed, what: str, when: Callable[[Entry], float | str | None]) -> Iterator[Entry]:
    """Yield the objects of a file of JSON lines, or of one JSON array, in the order of their times.

    `gcloud logging read` writes the newest first. `when` reads the time of an object.
    """
    for entry in in_time(_entries(feed, what), when, lambda entry: entry.text, lambda: feed.flag("out_of_order")):
        feed.line = entry.line
        yield entry


def _entries(feed: Feed, what: str) -> Iterator[Entry]:
    source = feed.lines()
    first = next(source, None)
    while first is not None and not first.text.strip():
        first = next(source, None)
    if first is None:
        return
    if first.text.lstrip().startswith("["):
        for item in feed.items_of(first, source):
            if isinstance(item.value, dict):
                yield _entry(item.line, item.value, json.dumps(item.value))
        return
    for line in chain((first,), source):
        text = line.text.strip()
        if not text:
            continue
        try:
            value = json.loads(text)
            if not isinstance(value, dict):
                raise ValueError("no JSON object")
        except (ValueError, RecursionError) as error:
            if line.cut:
                feed.flag("truncated")
            feed.refuse(f"no {what}: {error}")
        else:
            yield _entry(line.number, value, text)


def _entry(line: int, value: dict[str, Any], text: str) -> Entry:
    payload = value.get("jsonPayload", value.get("json_payload"))
    stamp = value.get("timestamp")
    if isinstance(payload, dict):
        return Entry(line, payload, stamp if isinstance(stamp, str) else None, text)
    return Entry(line, value, None, text)
