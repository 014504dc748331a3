"""Lines of text out of chunks of bytes, numbered, in bounded memory, whatever the bytes are."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

LONGEST: Final = 8 << 20
"""Longer lines are given as empty ones, and told as too long."""


class Line(NamedTuple):
    """A line without its line break."""

    number: int
    """From 1."""
    text: str
    broken: bool
    """Whether some of its bytes were no UTF-8."""
    cut: bool
    """Whether the input ends in it without a line break."""
    too_long: bool


def lines(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Cut `chunks` into lines. Carriage returns and NUL bytes at their ends, which crashes leave, are dropped."""
    number = 1
    rest: list[bytes] = []
    held = 0
    skipping = False
    for chunk in chunks:
        *whole, tail = chunk.split(b"\n")
        for part in whole:
            if skipping:
                yield Line(number, "", False, False, True)
            else:
                rest.append(part)
                yield _line(number, b"".join(rest), False)
            number += 1
            rest, held, skipping = [], 0, False
        if tail and not skipping:
            rest.append(tail)
            held += len(tail)
            if held > LONGEST:
                rest, held, skipping = [], 0, True
    if skipping:
        yield Line(number, "", False, True, True)
    elif rest and (last := b"".join(rest)).strip(b"\0 \t\r"):
        yield _line(number, last, True)


def _line(number: int, data: bytes, cut: bool) -> Line:
    data = data.strip(b"\0\r")
    if len(data) > LONGEST:
        return Line(number, "", False, cut, True)
    try:
        return Line(number, data.decode(), False, cut, False)
    except UnicodeDecodeError:
        return Line(number, data.decode(errors="replace"), True, cut, False)
