"""Objects out of one large JSON text, one at a time: the members of its outermost array, in bounded memory.

The array may be the text itself or the value of a key of an outermost object (`{"jobs": [...]}`).
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ettwatch_sources.lines import Line

_MOST: Final = 16 << 20
_SPACE: Final = " \t\r\n"


class Item(NamedTuple):
    """One member of the array."""

    line: int
    """The line in which it begins, from 1."""
    value: Any


class BadJson(ValueError):
    """The text is no JSON from some place on. `line` is where."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def items(source: Iterator[Line], key: str | None = None, first: int = 1) -> Iterator[Item]:
    """Yield the members of the outermost array, or of the array under `key` of the outermost object.

    `first` is the number of the first line. Raises BadJson at the first place that is no JSON; what came before it
    has been given.
    """
    text = _Text(source, first)
    opened = text.peek()
    if opened == "{" and key is not None:
        text.skip_to_array(key)
    elif opened != "[":
        raise BadJson(text.line, f"the text begins with {opened!r}, not with an array")
    text.take()
    while True:
        char = text.peek()
        while char == ",":
            text.take()
            char = text.peek()
        if char == "]":
            text.take()
            if opened == "[" and text.peek():
                raise BadJson(text.line, "text follows the end of the array")
            return
        if not char:
            raise BadJson(text.line, "the text ends in the middle of the array: the file was cut off")
        line = text.line
        yield Item(line, text.value())


class _Text:
    """Text that is read on as it is needed."""

    def __init__(self, source: Iterator[Line], first: int) -> None:
        self._source = source
        self._buffer = ""
        self._at = 0
        self._ended = False
        self.line = first

    def _more(self) -> bool:
        if self._ended:
            return False
        part = next(self._source, None)
        if part is None:
            self._ended = True
            return False
        if part.too_long:
            raise BadJson(part.number, "a line is longer than 8 MiB; write the JSON with line breaks (jq .)")
        self._buffer = self._buffer[self._at :] + part.text + "\n"
        self._at = 0
        return True

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            while self._at < len(self._buffer):
                char = self._buffer[self._at]
                if char not in _SPACE:
                    return char
                self.line += char == "\n"
                self._at += 1
            if not self._more():
                return ""

    def take(self) -> None:
        self._at += 1

    def value(self) -> Any:
        """Read the JSON value that begins here, or after white space."""
        self.peek()
        decoder = json.JSONDecoder()
        wanted = 0
        while True:
            have = len(self._buffer) - self._at
            if have >= wanted or self._ended:
                try:
                    value, end = decoder.raw_decode(self._buffer, self._at)
                except RecursionError:
                    raise BadJson(self.line, "the JSON is nested too deeply") from None
                except json.JSONDecodeError as error:
                    if self._ended:
                        raise BadJson(self.line, f"no JSON: {error.msg}; is the file cut off here?") from None
                    if have > _MOST:
                        raise BadJson(self.line, "a member of the array is larger than 16 MiB") from None
                    # Twice as much each time: all tries together cost no more than twice the last one.
                    wanted = 2 * have
                else:
                    self.line += self._buffer.count("\n", self._at, end)
                    self._at = end
                    return value
            self._more()

    def skip_to_array(self, key: str) -> None:
        """Go into the outermost object up to the array under `key`."""
        self.take()
        while True:
            char = self.peek()
            if char == ",":
                self.take()
                continue
            if char != '"':
                raise BadJson(self.line, f"there is no {key!r} in the outermost object")
            name = self.value()
            if self.peek() != ":":
                raise BadJson(self.line, "no JSON: a colon is missing")
            self.take()
            if name == key:
                if self.peek() != "[":
                    raise BadJson(self.line, f"{key!r} is no array")
                return
            self.value()
