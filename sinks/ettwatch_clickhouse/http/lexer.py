"""ClickHouse SQL cut into tokens, on bytes: what is a word, and what only stands in a string or a comment."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Token", "tokens"]

_TOKEN: Final = re.compile(
    rb"""
    (?P<skip> [\s\x00]+ | --[^\n]* | \#[ !][^\n]* | /\*.*?\*/ | \xc2\xa0 | \xe2\x80[\x80-\x8f] | \xef\xbb\xbf )
    | (?P<string> '(?:[^'\\]|\\.|'')*' | \xe2\x80\x98.*?\xe2\x80\x99 | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
    | (?P<quoted> "(?:[^"\\]|\\.|"")*" | `(?:[^`\\]|\\.|``)*` | \xe2\x80\x9c.*?\xe2\x80\x9d )
    | (?P<word> [A-Za-z0-9_\x80-\xff]+ )
    | (?P<sign> . )
    """,
    re.S | re.X,
)


class Token(NamedTuple):
    """One token."""

    kind: str
    """``word``, ``quoted`` (an identifier in quotes), ``string`` or ``sign``."""
    text: str
    """As written; an identifier without its quotes."""
    end: int
    """Where it ends, in bytes."""
    depth: int
    """In how many brackets it stands."""

    @property
    def key(self) -> str:
        """A word in upper case, to compare with keywords; else empty."""
        return self.text.upper() if self.kind == "word" else ""


def tokens(sql: bytes, start: int = 0) -> Iterator[Token]:
    """Yield the tokens of a text, without spaces and comments."""
    depth = 0
    for found in _TOKEN.finditer(sql, start):
        kind = found.lastgroup
        if kind == "skip":
            continue
        if found["string"] is not None:  # a heredoc ends with the group of its tag
            kind = "string"
        text = found[0].decode("utf-8", "replace")
        if kind == "quoted":
            text = text[1:-1]
        elif text in "([{" and kind == "sign":
            depth += 1
        elif text in ")]}" and kind == "sign":
            depth -= 1
        yield Token(str(kind), text, found.end(), depth)
