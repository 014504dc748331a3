"""Lines out of chunks, with their numbers, in bounded memory however long a line is."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Batch(NamedTuple):
    """Whole lines that came in one chunk."""

    first: int
    """Number of the first of them, counted from 1."""

    lines: list[bytes]
    """Without their line breaks; one that was too long stands here as an empty line."""

    cut: bool
    """True when the last of them has no line break: the input ends there."""


def batches(chunks: Iterable[bytes], limit: int, too_long: Callable[[int], None]) -> Iterator[Batch]:
    """Cut `chunks` into lines; `too_long(number)` is told of each line of more than `limit` bytes."""
    number = 1
    rest = b""
    skipping = False
    for chunk in chunks:
        data = chunk
        if skipping:
            at = data.find(b"\n")
            if at < 0:
                continue
            skipping = False
            number += 1
            data = data[at + 1 :]
        lines = (rest + data).split(b"\n")
        rest = lines.pop()
        if lines:
            # In a chunk that is no longer than the limit only the first can be: it began in an earlier one.
            for place in range(len(lines)) if len(data) > limit else (0,):
                if len(lines[place]) > limit:
                    too_long(number + place)
                    lines[place] = b""
            yield Batch(number, lines, False)
            number += len(lines)
        if len(rest) > limit:
            too_long(number)
            rest = b""
            skipping = True
    if rest:
        yield Batch(number, [rest], True)
