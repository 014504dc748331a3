"""Rows of CSV out of lines, by the names of a header, each with the line in which it stood."""

import csv
from collections import deque
from collections.abc import Iterator

from ettwatch_sources.feed import Feed


def rows(feed: Feed, delimiter: str = ",") -> Iterator[dict[str, str]]:
    """Yield each row as a mapping; rows that cannot be read or have too few or too many cells are refused.

    A row of several lines that turns out wrong costs its first line, so that a quote that is never closed does not
    take with it what follows.
    """
    header: list[str] | None = None
    texts = _Texts(feed)
    reader = csv.reader(texts, delimiter=delimiter)
    while True:
        texts.taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            feed.refuse(f"the row cannot be read: {error}", texts.taken[0][0])
            texts.give_back()
            continue
        if not cells or not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = [cell.strip() for cell in cells]
            continue
        if cells == header:
            continue  # files that were put together, each with its own
        if len(cells) != len(header):
            feed.refuse(f"the row has {len(cells)} cells, the header {len(header)}", texts.taken[0][0])
            texts.give_back()
            continue
        yield dict(zip(header, cells, strict=True))


class _Texts:
    """The lines of a file as csv wants them; those of the row that is read can be given back."""

    def __init__(self, feed: Feed) -> None:
        self.taken: list[tuple[int, str]] = []
        """The lines of this row, with their numbers."""
        self._feed = feed
        self._lines = feed.lines()
        self._again: deque[tuple[int, str]] = deque()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._again:
            self.taken.append(self._again.popleft())
            self._feed.line = self.taken[-1][0]
        else:
            line = next(self._lines)
            self.taken.append((line.number, line.text + "\n"))
        return self.taken[-1][1]

    def give_back(self) -> None:
        """Have all lines of this row but the first read once more."""
        self._again.extendleft(reversed(self.taken[1:]))
