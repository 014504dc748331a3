"""Lines of text out of chunks of bytes, numbered, in bounded memory, whatever the bytes are."""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

LONGEST: Final = 8 << 20
"""Longer lines are given as empty ones, and told as too long."""
_UTF16: Final = frozenset({codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE})


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


def as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks of UTF-16, as PowerShell's `>` writes it with a mark, as UTF-8; others as they are."""
    source = iter(chunks)
    first = b""
    for chunk in source:
        first += chunk
        if len(first) >= 2:
            break
    if first[:2] not in _UTF16:
        yield first
        yield from source
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for chunk in chain((first,), source):
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def lines(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Cut `chunks` into lines. Carriage returns and NUL bytes at their ends, which crashes leave, are dropped.

    A carriage return inside a line, which progress bars write, begins another line of the same number.
    """
    number = 1
    rest: list[bytes] = []
    held = 0
    skipping = False
    for chunk in as_utf8(chunks):
        *whole, tail = chunk.split(b"\n")
        for part in whole:
            if skipping:
                yield Line(number, "", False, False, True)
            else:
                rest.append(part)
                yield from _lines(number, b"".join(rest), False)
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
        yield from _lines(number, last, True)


def _lines(number: int, data: bytes, cut: bool) -> Iterator[Line]:
    data = data.strip(b"\0\r").removeprefix(codecs.BOM_UTF8)
    if len(data) > LONGEST:
        yield Line(number, "", False, cut, True)
        return
    *before, last = data.split(b"\r") if b"\r" in data else (data,)
    for part in before:
        yield _line(number, part, False)
    yield _line(number, last, cut)


def _line(number: int, data: bytes, cut: bool) -> Line:
    try:
        return Line(number, data.decode(), False, cut, False)
    except UnicodeDecodeError:
        return Line(number, data.decode(errors="replace"), True, cut, False)
