"""What is different in the Distributed tables that stand before a cluster's shards, and in the views of one shard."""

from collections.abc import Iterator
from typing import Final

from ettwatch_clickhouse.shapes import Part, UnknownShape
from ettwatch_clickhouse.tables import (
    DERIVED,
    EVENTS_TABLE,
    EVERYWHERE,
    FLEET_VIEWS,
    ROLLUP_VIEWS,
    ROLLUPS,
    WINDOWS_TABLE,
)

__all__ = ["facade_alter", "facade_column", "shard_select"]

_BOTH: Final = ("ADD COLUMN", "MODIFY COLUMN", "COMMENT COLUMN", "DROP COLUMN", "RENAME COLUMN", "ALTER COLUMN")
_SHARD_ONLY: Final = (
    *("ADD INDEX", "DROP INDEX", "MATERIALIZE INDEX", "CLEAR INDEX"),
    *("ADD PROJECTION", "DROP PROJECTION", "MATERIALIZE PROJECTION"),
    *("MODIFY SETTING", "RESET SETTING", "MODIFY TTL", "REMOVE TTL", "MATERIALIZE TTL", "MODIFY COMMENT"),
    *("MATERIALIZE COLUMN", "MODIFY ORDER"),
)
_EDITS: Final = frozenset({"REMOVE", "RESET", "MODIFY"})
_ENDS_EPHEMERAL: Final = frozenset({"COMMENT", "CODEC", "TTL", "FIRST", "AFTER"})
_TABLES: Final = frozenset({EVENTS_TABLE, *DERIVED, *ROLLUPS, WINDOWS_TABLE})
_VIEWS: Final = frozenset(
    {*(t.removesuffix("_log") for t in (EVENTS_TABLE, *DERIVED, WINDOWS_TABLE)), *ROLLUP_VIEWS, *FLEET_VIEWS}
)
_BEFORE_TABLE: Final = frozenset({"FROM", "JOIN"})
_AFTER_TABLE: Final = frozenset(
    {"ANY", "ALL", "SEMI", "ANTI", "ASOF", "GLOBAL", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "JOIN", "ARRAY"}
    | {"FINAL", "SAMPLE", "ON", "USING", "PREWHERE", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER"}
    | {"LIMIT", "OFFSET", "FETCH", "SETTINGS", "UNION", "EXCEPT", "INTERSECT", "FORMAT"}
)


def facade_column(text: Part) -> str:
    """Return the definition of a column as the Distributed table has it.

    How it is stored is the shard's matter. An ephemeral column becomes one with a default: only so is its value sent
    on to the shard, where it is ephemeral.

    Raises:
        UnknownShape: It has a TTL, or is ephemeral without a default.
    """
    at = text.find("CODEC")
    if at is not None:
        end = next(i for i in range(at + 1, len(text.tokens)) if text.tokens[i].depth == 0)
        text = Part(f"{text.cut(0, at)} {text.cut(end + 1)}".encode())
    if text.find("TTL") is not None:
        raise UnknownShape(f"a column with a TTL is not known on a sharded cluster: {text}")
    at = text.find("EPHEMERAL")
    if at is None:
        return str(text)
    if at + 1 == len(text.tokens) or text.tokens[at + 1].key in _ENDS_EPHEMERAL:
        raise UnknownShape(f"an ephemeral column needs a default on a sharded cluster: {text}")
    return f"{text.cut(0, at)} DEFAULT {text.cut(at + 1)}"


def facade_alter(command: Part) -> list[str]:
    """Return what of a command of ALTER TABLE is done to the Distributed table too.

    Raises:
        UnknownShape: The command is not known.
    """
    kind = command.keys(2)
    if kind in _SHARD_ONLY:
        return []
    if kind not in _BOTH:
        raise UnknownShape(f"a change of this kind is not known on a cluster: ALTER TABLE ... {command.keys(4)}")
    if kind not in ("ADD COLUMN", "MODIFY COLUMN"):
        return [str(command)]
    at = 2 + (3 if command.cut(2).keys(3) == "IF NOT EXISTS" else 2 if command.cut(2).keys(2) == "IF EXISTS" else 0)
    definition = command.cut(at)
    if len(definition.tokens) < 2 or definition.tokens[1].key in _EDITS:
        raise UnknownShape(f"a change of this kind is not known on a cluster: {command.keys(at + 2)}")
    return [f"{command.cut(0, at)} {facade_column(definition)}"]


def shard_select(select: Part, local: str, shard: str) -> str:
    """Return the query of a view, of one shard's tables and views instead of all.

    They keep their names inside of the query, so that what is said of them elsewhere in it stays right. What every
    server holds whole is asked as it is.

    Args:
        select: The query.
        local: What is appended to the name of a table.
        shard: What is appended to the name of a view.

    Raises:
        UnknownShape: Another table or view is asked, or one in a way that is not known.
    """
    written, done = b"", 0
    for at, aliased in _places(select):
        name = select.tokens[at].text
        if name in EVERYWHERE:
            continue
        own = f"{name}{local if name in _TABLES else shard}"
        written += select.sql[done : select.begin(at)] + (own if aliased else f"{own} AS {name}").encode()
        done = select.tokens[at].end
    return (written + select.sql[done:]).decode()


def _places(select: Part) -> Iterator[tuple[int, bool]]:
    """Where tables and views stand, and whether each has another name in the query."""
    for at, token in enumerate(select.tokens[:-1]):
        after = select.tokens[at + 1]
        if token.key not in _BEFORE_TABLE or after.text == "(" or _array_join(select, at):
            continue
        following = select.tokens[at + 2] if at + 2 < len(select.tokens) else None
        plain = following is None or following.key in _AFTER_TABLE or following.text == ")"
        aliased = following is not None and following.kind == "word" and not plain
        if after.text not in _TABLES | _VIEWS | EVERYWHERE or not (plain or aliased):
            raise UnknownShape(f"what is asked here is not known on a cluster: {select.cut(at, at + 3)}")
        yield at + 1, aliased


def _array_join(select: Part, at: int) -> bool:
    return select.tokens[at].key == "JOIN" and at > 0 and select.tokens[at - 1].key == "ARRAY"
