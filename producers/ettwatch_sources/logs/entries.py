"""JSON objects in the lines of a file, as they are or inside the entries of Google's Cloud Logging."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ettwatch_sources.feed import Feed


class Entry(NamedTuple):
    """One object."""

    payload: dict[str, Any]
    timestamp: str | None
    """When Cloud Logging took it; None outside of it."""


def entries(feed: Feed, what: str) -> Iterator[Entry]:
    """Yield the objects of a file of JSON lines, or of one JSON array (`gcloud logging read --format json`)."""
    source = feed.lines()
    first = next(source, None)
    while first is not None and not first.text.strip():
        first = next(source, None)
    if first is None:
        return
    if first.text.lstrip().startswith("["):
        rest = feed.items_of(first, source)
        yield from (_entry(item.value) for item in rest if isinstance(item.value, dict))
        return
    line = first
    while line is not None:
        text = line.text.strip()
        if text:
            try:
                value = json.loads(text)
                if not isinstance(value, dict):
                    raise ValueError("no JSON object")
            except (ValueError, RecursionError) as error:
                if line.cut:
                    feed.flag("truncated")
                feed.refuse(f"no {what}: {error}")
            else:
                yield _entry(value)
        line = next(source, None)  # type: ignore[assignment]


def _entry(value: dict[str, Any]) -> Entry:
    payload = value.get("jsonPayload", value.get("json_payload"))
    stamp = value.get("timestamp")
    if isinstance(payload, dict):
        return Entry(payload, stamp if isinstance(stamp, str) else None)
    return Entry(value, None)
