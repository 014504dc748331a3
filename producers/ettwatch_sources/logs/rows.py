"""Rows of CSV out of lines, by the names of a header, each with the line in which it stood."""

import csv
from collections.abc import Iterator
from typing import Any

from ettwatch_sources.feed import Feed


def rows(feed: Feed, delimiter: str = ",") -> Iterator[dict[str, str]]:
    """Yield each row as a mapping; rows with too few or too many cells are refused."""
    header: list[str] | None = None
    for cells in csv.reader(_texts(feed), delimiter=delimiter):
        if not cells or not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = [cell.strip().lstrip("\ufeff") for cell in cells]
            continue
        if len(cells) != len(header):
            feed.refuse(f"the row has {len(cells)} cells, the header {len(header)}")
            continue
        yield dict(zip(header, cells, strict=True))


def _texts(feed: Feed) -> Iterator[Any]:
    for line in feed.lines():
        yield line.text + "\n"
