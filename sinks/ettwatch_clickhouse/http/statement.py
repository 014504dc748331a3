"""What kind of statement a text is, as far as the front has to know."""

from dataclasses import dataclass
from typing import Final

from ettwatch_clickhouse.http.lexer import Token, tokens

__all__ = ["Statement", "parse"]

_STREAMED: Final = frozenset({"SELECT", "WITH", "(", "FROM"})
_DATA_ENDS: Final = frozenset({"SELECT", "WITH", "VALUES", "FROM"})


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement.

    Attributes:
        sql: The text, without inserted data that follows a FORMAT.
        verb: Its first word in upper case.
        form: The format that the text names; None if it names none.
        data: Where inserted data begin in the text that was parsed (bytes); None if none follow.
        values: Literal values follow, which were not looked at.
        several: More than one statement.
        words: Its tokens.
    """

    sql: bytes
    verb: str
    form: str | None
    data: int | None
    values: int | None
    several: bool
    words: tuple[Token, ...]

    @property
    def verbs(self) -> set[str]:
        """The first words in upper case of it, and of those that PARALLEL WITH ties to it."""
        three = zip(self.words, self.words[1:], self.words[2:], strict=False)
        return {self.verb} | {word.key for a, b, word in three if (a.key, b.key) == ("PARALLEL", "WITH")}

    @property
    def selects(self) -> bool:
        """It is a query whose answer can be sent as it comes."""
        return self.verb in _STREAMED


def parse(text: bytes) -> Statement:
    """Look at a text. Nothing is refused: what is wrong with it, the engine says."""
    words: list[Token] = []
    verb = ""
    form: str | None = None
    ended = several = False
    for token in tokens(text):
        if ended:
            several = True
            break
        if token.text == ";" and token.kind == "sign" and token.depth == 0:
            ended = True
            continue
        if not words:
            verb = token.key or token.text
        before = words[-1] if words else None
        words.append(token)
        if before is not None and before.key == "FORMAT" and before.depth == 0 and token.kind == "word":
            form = token.text
            if verb == "INSERT" and not _selects(words):
                head = text[: _begin(before)]
                return Statement(head, verb, form, _data(text, token.end), None, False, tuple(words))
        if verb == "INSERT" and token.key == "VALUES" and token.depth == 0 and not _selects(words[:-1]):
            return Statement(text, verb, None, None, token.end, False, tuple(words))
    return Statement(text, verb, form, None, None, several, tuple(words))


def _begin(token: Token) -> int:
    return token.end - len(token.text.encode())


def _selects(words: list[Token]) -> bool:
    return any(word.key in _DATA_ENDS and word.depth == 0 for word in words)


def _data(text: bytes, end: int) -> int:
    """Where data begin: after the rest of the line, if that is empty."""
    while end < len(text) and text[end] in b" \t\f\r":
        end += 1
    return end + 1 if end < len(text) and text[end] == ord("\n") else end
