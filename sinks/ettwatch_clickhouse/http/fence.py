"""What a client of the front may not do: reach files, programs and networks with the rights of this process.

Any process of this machine can speak to a loopback port, and the embedded engine by itself would read and write every
file that its owner can. A server keeps such things in a folder; here they are refused. It is a fence, no wall: give
the port to nobody whom you would not let query the data.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ettwatch_clickhouse.http.lexer import Token, tokens
from ettwatch_clickhouse.http.statement import Statement

__all__ = ["Fence", "Refusal"]


class Refusal(Exception):
    """The front refuses a request.

    Attributes:
        code: ClickHouse's number of the error.
        name: Its name.
    """

    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name


_TABLE_FUNCTIONS: Final = frozenset(
    {"numbers", "numbers_mt", "zeros", "zeros_mt", "generaterandom", "generateseries", "generate_series", "values"}
    | {"view", "viewexplain", "viewifpermitted", "null", "input", "format", "primes", "sqlstandardvalues", "dictionary"}
    | {"mergetreeindex", "mergetreeprojection", "mergetreeanalyzeindexes", "fuzzjson"}
)
_FUNCTIONS: Final = frozenset({"file"})
_ENGINES: Final = frozenset(
    {"memory", "log", "tinylog", "stripelog", "null", "set", "join", "buffer", "view", "materializedview", "alias"}
    | {"generaterandom", "atomic", "mergetree", "replacingmergetree", "summingmergetree", "aggregatingmergetree"}
    | {"collapsingmergetree", "versionedcollapsingmergetree", "coalescingmergetree", "graphitemergetree"}
)
_VERBS: Final = frozenset({"BACKUP", "RESTORE", "ATTACH"})
_SYSTEM: Final = frozenset({"FLUSH", "START", "STOP", "SYNC", "WAIT"})
_SETTINGS: Final = ("format_template_", "format_schema")
"""Settings that name files."""
_OUTSIDE: Final = "default"
"""The embedded engine's database of this name shows the files of the machine as tables."""

_HINT: Final = "not over HTTP; stop `ettwatch up` and open the data folder in a program of yours"


class Fence:
    """Refuses statements that reach out of the database.

    Args:
        table_functions: Names of all table functions of the engine; those that are not known to be harmless are
            refused.
    """

    def __init__(self, table_functions: Iterable[str]) -> None:
        self._calls = ({name.lower() for name in table_functions} - _TABLE_FUNCTIONS) | _FUNCTIONS

    def check(self, statement: Statement, params: Mapping[str, str]) -> None:
        """Raise Refusal if a statement may not be run.

        Args:
            statement: The statement.
            params: The request's parameters; ``param_…`` may be names of tables.
        """
        words = statement.words
        if not words:
            raise Refusal(62, "SYNTAX_ERROR", "Empty query")
        if statement.several:
            raise Refusal(62, "SYNTAX_ERROR", "Multi-statements are not allowed: send one statement in a request")
        self._check_verb(statement)
        self._check_words(words)
        if statement.values is not None and self._suspicious(statement.sql[statement.values :]):
            self._check_words(list(tokens(statement.sql, statement.values)))
        for name, value in params.items():
            if name.startswith(_SETTINGS):
                raise _refusal(name)
            if name.startswith("param_") and _OUTSIDE in (value, value.partition(".")[0]) and _names(words, name[6:]):
                raise _refusal("the database default")

    def _check_verb(self, statement: Statement) -> None:
        keys = [word.key for word in statement.words[:4]]
        if keys[0] in _VERBS or (keys[0] == "SYSTEM" and len(keys) > 1 and keys[1] not in _SYSTEM):
            raise _refusal(" ".join(keys[:2]))
        if keys[0] in ("CREATE", "REPLACE") and "DICTIONARY" in keys:
            raise _refusal("CREATE DICTIONARY")
        if keys[0] == "USE" and len(statement.words) > 1 and statement.words[1].text == _OUTSIDE:
            raise _refusal("the database default")

    def _check_words(self, words: Sequence[Token]) -> None:
        for before, word, after in zip(words, words[1:], [*words[2:], None], strict=False):
            if before.key == "INTO" and word.key == "OUTFILE":
                raise Refusal(358, "INTO_OUTFILE_NOT_ALLOWED", "INTO OUTFILE is not allowed")
            if before.key == "FROM" and word.key == "INFILE":
                raise _refusal("FROM INFILE")
            if before.text.lower().startswith(_SETTINGS) and word.text == "=":
                raise _refusal(before.text)
            if word.text == "(" and before.kind in ("word", "quoted"):
                self._check_call(before)
            if word.text == "." and before.kind in ("word", "quoted") and _plain(before) == _OUTSIDE:
                raise _refusal("the database default")
            if before.key == "ENGINE" and words[0].key in ("CREATE", "REPLACE"):
                named = after if word.text == "=" else word
                if named is not None and named.kind in ("word", "quoted") and _plain(named).lower() not in _ENGINES:
                    raise _refusal(f"engine {named.text}")

    def _check_call(self, name: Token) -> None:
        if _plain(name).lower() in self._calls:
            raise _refusal(f"{name.text}()")

    def _suspicious(self, values: bytes) -> bool:
        folded = values.lower()
        return b"\\" in folded or any(name.encode() in folded for name in self._calls)


def _plain(token: Token) -> str:
    """An identifier that hides its letters is taken for the worst one."""
    return "file" if token.kind == "quoted" and "\\" in token.text else token.text


def _names(words: Sequence[Token], param: str) -> bool:
    """Whether a parameter is used as a name: {x:Identifier}."""
    return any(a.text == param and c.key == "IDENTIFIER" for a, _, c in zip(words, words[1:], words[2:], strict=False))


def _refusal(what: str) -> Refusal:
    return Refusal(497, "ACCESS_DENIED", f"{what} is refused: {_HINT}")
