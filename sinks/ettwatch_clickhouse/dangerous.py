"""What a migration may not do unless it says so: lose rows, rewrite them, or take away what somebody reads.

The list is one of what is harmless; all else is dangerous.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ettwatch_clickhouse.errors import SchemaRefused
from ettwatch_clickhouse.shapes import AlterTable, Column, CreateTable, CreateView, Part, UnknownShape, shape

__all__ = ["Danger", "Types", "dangers", "declared", "refuse_dangers"]

_DECLARED: Final = re.compile(r"^-- dangerous: (\S.*)$", re.M)
_HARMLESS: Final = (
    *("ADD INDEX", "ADD PROJECTION", "ADD CONSTRAINT", "ADD STATISTICS"),
    *("COMMENT COLUMN", "MODIFY COMMENT", "MODIFY SETTING", "RESET SETTING", "REMOVE TTL"),
)
_WHY: Final = {
    "DROP": "takes something away",
    "TRUNCATE": "removes all rows",
    "DELETE": "removes rows",
    "UPDATE": "rewrites parts",
    "MATERIALIZE": "rewrites parts",
    "CLEAR": "removes values",
    "RENAME": "takes a name away that somebody may use",
    "EXCHANGE": "puts something else under a name that somebody uses",
    "MODIFY TTL": "removes rows that are older",
    "MODIFY ORDER": "changes the key",
    "OPTIMIZE": "rewrites parts",
    "DETACH": "takes something away",
    "REPLACE": "replaces rows",
    "CREATE": "is not repeatable, or replaces a table",
}
_OTHER: Final = "is not known to be harmless"


class Danger(NamedTuple):
    """Something dangerous in a migration."""

    what: str
    """The statement or the command, its first words."""
    why: str
    """What it does."""


class Types:
    """The types of the columns, as far as the migrations before have told them."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], str] = {}

    def tell(self, table: str, column: Column) -> None:
        """Take note of the type of a column."""
        if column.kind:
            self._kinds[table, column.name] = column.kind

    def of(self, table: str, name: str) -> str | None:
        """Return the type of a column; None if no migration told it."""
        return self._kinds.get((table, name))


def declared(text: str) -> str | None:
    """Return why a migration says that it is dangerous: what stands in its line ``-- dangerous: why``."""
    found = _DECLARED.search(text)
    return found[1].strip() if found else None


def dangers(statements: Iterable[str], types: Types) -> list[Danger]:
    """Return what is dangerous in the statements of a migration.

    Args:
        statements: Of one migration.
        types: As all migrations before it have told; what this one tells is added.
    """
    return [danger for statement in statements for danger in _of_statement(statement, types)]


def refuse_dangers(migrations: Sequence[tuple[str, str, Sequence[str]]], pending: set[str], allowed: bool) -> None:
    """Refuse migrations that are dangerous and were not allowed.

    Args:
        migrations: Name, text and statements of all, in order.
        pending: Names of those that are to be applied.
        allowed: What says of itself that it is dangerous may be applied.

    Raises:
        SchemaRefused: One is dangerous, and is not allowed or does not say so.
    """
    types = Types()
    for name, text, statements in migrations:
        found = dangers(statements, types)
        why = declared(text)
        if name not in pending or not (found or why):
            continue
        if why is None:
            raise SchemaRefused(
                f"migration {name} is dangerous and does not say so: {found[0].what} {found[0].why}; nothing was "
                "applied; write a line `-- dangerous: why` into it, or change it"
            )
        if not allowed:
            raise SchemaRefused(
                f"migration {name} is dangerous: {why}; nothing was applied; make a backup, then allow it with "
                "--allow-dangerous"
            )


def _of_statement(statement: str, types: Types) -> list[Danger]:
    try:
        found = shape(statement)
    except UnknownShape:
        return [_danger(Part(statement.encode()))]
    if isinstance(found, CreateTable):
        for column in found.columns:
            types.tell(found.name, column)
        return []
    if isinstance(found, CreateView):
        return []
    return [danger for command in found.commands for danger in _of_command(found, command, types)]


def _of_command(alter: AlterTable, command: Part, types: Types) -> list[Danger]:
    kind = command.keys(2)
    if kind in _HARMLESS:
        return []
    if kind not in ("ADD COLUMN", "MODIFY COLUMN"):
        return [_danger(command)]
    at = 2 + (3 if command.cut(2).keys(3) == "IF NOT EXISTS" else 2 if command.cut(2).keys(2) == "IF EXISTS" else 0)
    try:
        column = Column.read(command.cut(at))
    except UnknownShape:
        return [_danger(command)]
    before = types.of(alter.name, column.name)
    if kind == "ADD COLUMN" and before is None:
        types.tell(alter.name, column)
        return []
    if not column.kind or column.kind == before:
        return []
    types.tell(alter.name, column)
    return [
        Danger(
            _first(command, at + 1),
            f"of {alter.name} changes the type from {before or 'an unknown one'} to {column.kind}: parts are "
            "rewritten, and values that do not fit are lost",
        )
    ]


def _danger(text: Part) -> Danger:
    first, two = text.keys(1), text.keys(2)
    return Danger(_first(text, 4), _WHY.get(two) or _WHY.get(first) or _OTHER)


def _first(text: Part, count: int) -> str:
    return " ".join(token.text for token in text.tokens[:count])
