"""The statements of migrations cut into their parts. What has none of these shapes is refused, not guessed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ettwatch_clickhouse.http.lexer import Token, tokens

__all__ = [
    "AlterTable",
    "Column",
    "CreateTable",
    "CreateView",
    "Part",
    "UnknownShape",
    "parts",
    "shape",
    "split",
    "words",
]

_NO_COLUMN: Final = frozenset({"INDEX", "PROJECTION", "CONSTRAINT", "PRIMARY"})
_AFTER_TYPE: Final = frozenset(
    {"DEFAULT", "MATERIALIZED", "EPHEMERAL", "ALIAS", "CODEC", "COMMENT", "TTL", "STATISTICS", "PRIMARY", "SETTINGS"}
    | {"FIRST", "AFTER", "REMOVE", "MODIFY", "RESET", "NOT", "NULL", "COLLATE"}
)


class UnknownShape(ValueError):
    """A statement, or a part of one, is none of those that are known. One line."""


class Part:
    """A stretch of SQL with its tokens. Bytes, as the tokens count them."""

    __slots__ = ("sql", "tokens")

    def __init__(self, sql: bytes) -> None:
        self.sql = sql.strip()
        self.tokens: list[Token] = list(tokens(self.sql))

    def __str__(self) -> str:
        return self.sql.decode()

    def keys(self, count: int) -> str:
        """The first tokens: words in upper case, with spaces between them."""
        return " ".join(token.key or token.text for token in self.tokens[:count])

    def begin(self, at: int) -> int:
        """Where a token begins, in bytes."""
        token = self.tokens[at]
        return token.end - len(token.text.encode()) - (2 if token.kind == "quoted" else 0)

    def cut(self, first: int, end: int | None = None) -> "Part":
        """The tokens from `first` to before `end`, as far as there are any, as they are written."""
        stop = len(self.tokens) if end is None else min(end, len(self.tokens))
        if first >= stop:
            return Part(b"")
        return Part(self.sql[self.begin(first) : self.tokens[stop - 1].end])

    def find(self, *keys: str, start: int = 0) -> int | None:
        """Where one of the keywords stands outside of brackets."""
        places = (i for i in range(start, len(self.tokens)) if self.tokens[i].depth == 0 and self.tokens[i].key in keys)
        return next(places, None)


@dataclass(frozen=True, slots=True)
class Column:
    """The definition of a column.

    Attributes:
        name: Its name.
        kind: Its type, with single spaces; empty where none is told.
        text: All of it.
    """

    name: str
    kind: str
    text: Part

    @classmethod
    def read(cls, text: Part) -> "Column":
        """Read ``name type ...``. Raises UnknownShape."""
        if len(text.tokens) < 2 or text.tokens[0].kind not in ("word", "quoted"):
            raise UnknownShape(f"this is no column: {_short(text)}")
        end = text.find(*_AFTER_TYPE, start=1)
        return cls(text.tokens[0].text, words(text.cut(1, end)), text)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE TABLE IF NOT EXISTS name (columns) ENGINE = engine(arguments) rest``.

    Attributes:
        name: The table.
        columns: Its columns.
        others: Indices, projections and constraints.
        engine: Name of the engine.
        arguments: What stands in its brackets.
        rest: What follows it: keys, settings, comment.
    """

    name: str
    columns: tuple[Column, ...]
    others: tuple[Part, ...]
    engine: str
    arguments: Part
    rest: Part


@dataclass(frozen=True, slots=True)
class CreateView:
    """``CREATE OR REPLACE VIEW name (columns) AS select``.

    Attributes:
        name: The view.
        columns: With the brackets.
        select: The query.
    """

    name: str
    columns: Part
    select: Part


@dataclass(frozen=True, slots=True)
class AlterTable:
    """``ALTER TABLE name command, command``.

    Attributes:
        name: The table.
        commands: What is to be changed.
    """

    name: str
    commands: tuple[Part, ...]


def shape(statement: str) -> CreateTable | CreateView | AlterTable:
    """Return the parts of a statement. Raises UnknownShape."""
    text = parts(statement)
    if text.keys(5) == "CREATE TABLE IF NOT EXISTS":
        return _table(text)
    if text.keys(4) == "CREATE OR REPLACE VIEW":
        return _view(text)
    if text.keys(2) == "ALTER TABLE" and len(text.tokens) > 3:
        return AlterTable(_name(text, 2), tuple(split(text.cut(3))))
    raise UnknownShape(f"a statement of this kind is not known: {_short(text)}")


def parts(statement: str) -> Part:
    """Return a statement without the comments before it and the semicolon after it."""
    text = Part(statement.encode())
    ends = bool(text.tokens) and text.tokens[-1].text == ";"
    return text.cut(0, len(text.tokens) - ends)


def split(text: Part) -> list[Part]:
    """Cut a list at its commas."""
    commas = [i for i, token in enumerate(text.tokens) if token.text == "," and token.depth == 0]
    begins, ends = [0, *(i + 1 for i in commas)], [*commas, len(text.tokens)]
    return [text.cut(first, end) for first, end in zip(begins, ends, strict=True)]


def words(text: Part) -> str:
    """Return the tokens with the least spaces between them, so that two spellings can be compared."""
    spelt = ""
    for token in text.tokens:
        apart = spelt and spelt[-1] not in "(," and token.text not in "(),"
        spelt += (" " if apart else "") + token.text
    return spelt


def _table(text: Part) -> CreateTable:
    name = _name(text, 5)
    inside, after = _brackets(text, 6)
    if text.cut(after).keys(1) != "ENGINE" or len(text.tokens) < after + 3 or text.tokens[after + 1].text != "=":
        raise UnknownShape(f"table {name} names no engine after its columns")
    engine = _name(text, after + 2)
    arguments, rest = Part(b""), after + 3
    if rest < len(text.tokens) and text.tokens[rest].text == "(":
        arguments, rest = _brackets(text, rest)
    entries = split(inside)
    columns = tuple(Column.read(entry) for entry in entries if entry.keys(1) not in _NO_COLUMN)
    others = tuple(entry for entry in entries if entry.keys(1) in _NO_COLUMN)
    return CreateTable(name, columns, others, engine, arguments, text.cut(rest))


def _view(text: Part) -> CreateView:
    name = _name(text, 4)
    _, after = _brackets(text, 5)
    if text.cut(after).keys(2) not in ("AS SELECT", "AS WITH"):
        raise UnknownShape(f"view {name} has no AS SELECT after its columns")
    return CreateView(name, text.cut(5, after), text.cut(after + 1))


def _name(text: Part, at: int) -> str:
    following = text.tokens[at + 1].text if at + 1 < len(text.tokens) else ""
    if at >= len(text.tokens) or text.tokens[at].kind not in ("word", "quoted") or following == ".":
        raise UnknownShape(f"a plain name is missing in: {_short(text)}")
    return text.tokens[at].text


def _brackets(text: Part, at: int) -> tuple[Part, int]:
    """What stands in the brackets that open at a token, and the token after them."""
    if at >= len(text.tokens) or text.tokens[at].text != "(":
        raise UnknownShape(f"a bracket is missing in: {_short(text)}")
    ends: Sequence[int] = [i for i in range(at, len(text.tokens)) if text.tokens[i].depth < text.tokens[at].depth]
    if not ends:
        raise UnknownShape(f"a bracket is not closed in: {_short(text)}")
    return text.cut(at + 1, ends[0]), ends[0] + 1


def _short(text: Part) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= 80 else line[:77] + "..."
