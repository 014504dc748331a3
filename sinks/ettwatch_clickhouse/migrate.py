"""Numbered migrations: each is applied once, in order, and never changed after that."""

import re
import time
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from ettwatch_clickhouse.cluster import LOCAL, Cluster, render, render_records
from ettwatch_clickhouse.dangerous import refuse_dangers
from ettwatch_clickhouse.errors import SchemaRefused, StoreError
from ettwatch_clickhouse.lock import MigrationLock
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import (
    DERIVED,
    EVENTS_TABLE,
    EVERYWHERE,
    FLEET_VIEWS,
    ROLLUP_VIEWS,
    ROLLUPS,
    WINDOWS_TABLE,
)

__all__ = ["Migration", "migrate", "migrations", "pending", "restore", "script", "statements"]

_RECORDS: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations
(
    number UInt32 COMMENT 'number of the migration',
    name String COMMENT 'its name',
    checksum String COMMENT 'SHA-256 of its text',
    applied DateTime64(6, 'UTC') COMMENT 'when it was applied'
)
ENGINE = ReplacingMergeTree
ORDER BY number
COMMENT 'migrations that were applied'
"""


class Migration(NamedTuple):
    """One migration file."""

    number: int
    name: str
    """Its file name without the extension."""
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return sha256(self.text.encode()).hexdigest()


def migrations() -> list[Migration]:
    """Return the migrations of this version in order."""
    found = []
    for file in files("ettwatch_clickhouse").joinpath("migrations").iterdir():
        name = re.fullmatch(r"((\d{4})_\w+)\.sql", file.name)
        if name:
            found.append(Migration(int(name[2]), name[1], file.read_text(encoding="utf-8")))
    return sorted(found)


def statements(text: str) -> list[str]:
    """Split the text of a migration; a statement ends with a semicolon at the end of a line."""
    return [part.strip() for part in re.split(r";[ \t]*(?:\n|\Z)", text) if _has_sql(part)]


def _has_sql(part: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("--") for line in part.splitlines())


def migrate(
    store: Store,
    *,
    cluster: Cluster | None = None,
    lock: MigrationLock | None = None,
    allow_dangerous: bool = False,
    doing: Callable[[str], None] | None = None,
) -> list[str]:
    """Bring a database to the tables and views of this version; return the names of the migrations applied now.

    To be called as often as one likes, also after a migration that stopped half-way: each statement can be repeated.

    Args:
        store: The database.
        cluster: The layout, if the database is on a cluster.
        lock: Held already. Needed where others may migrate the same database at the same time.
        allow_dangerous: Apply also what says of itself that it loses or rewrites rows.
        doing: Called before each statement, with the name of the migration.

    Raises:
        SchemaRefused: The database is newer than this version, was made by other migrations or with another layout,
            or a migration is dangerous. Nothing was changed.
        StoreError: A statement failed, or the lock was lost.
    """
    wanted = pending(store, cluster=cluster)
    refuse_dangers(
        [(m.name, m.text, statements(m.text)) for m in migrations()], {m.name for m in wanted}, allow_dangerous
    )
    for migration in wanted:
        for statement in _rendered(migration, cluster):
            if lock is not None:
                lock.check()
            if doing is not None:
                doing(migration.name)
            store.command(statement)
        row = (migration.number, migration.name, migration.checksum, time.time_ns() // 1_000)
        store.insert("schema_migrations", ("number", "name", "checksum", "applied"), [row])
    return [migration.name for migration in wanted]


def pending(store: Store, *, cluster: Cluster | None = None) -> list[Migration]:
    """Return the migrations that are not applied yet. Changes nothing.

    Raises:
        SchemaRefused: The database is newer than this version, or was made by other migrations or with another layout.
        StoreError: It cannot be read.
    """
    known = migrations()
    applied = _applied(store)
    _check(known, applied)
    _check_layout(store, cluster)
    return [migration for migration in known if migration.number not in applied]


def script(database: str, cluster: Cluster | None = None) -> list[str]:
    """Return all statements, those that note what was applied among them, for somebody who runs them by hand.

    Args:
        database: Its name.
        cluster: The layout, if the database is on a cluster.
    """
    on = f" {cluster.on}" if cluster else ""
    made = [f"CREATE DATABASE IF NOT EXISTS {database}{on}", f"USE {database}"]
    for migration in migrations():
        made += _rendered(migration, cluster)
        made.append(
            "INSERT INTO schema_migrations (number, name, checksum, applied) "
            f"SELECT {migration.number}, '{migration.name}', '{migration.checksum}', now64(6)"
        )
    return made


def _rendered(migration: Migration, cluster: Cluster | None) -> list[str]:
    """The statements of a migration; before those of the first one, that for the table of records."""
    own = statements(migration.text)
    records = [_RECORDS.strip()] if migration.number == 1 else []
    if cluster is None:
        return records + own
    return [render_records(each, cluster) for each in records] + [s for each in own for s in render(each, cluster)]


def restore(store: Store) -> None:
    """Make derived tables and views that somebody dropped anew, empty. To be called after :func:`migrate`.

    Raises:
        SchemaRefused: The database is on a cluster, where that is not supported.
        StoreError: The table of events is missing: nothing can be made without it. Or a statement failed.
    """
    layout = _layout(store)
    if layout is not None and layout != _SINGLE:
        raise SchemaRefused(
            f"the database is {_layout_words(layout)}; tables can be made anew on a single server only: there, from "
            "a copy of the events, or feed the events once more into a new database of the cluster"
        )
    found = store.query("SELECT name FROM system.tables WHERE database = currentDatabase()").rows
    missing = {EVENTS_TABLE, "events", *DERIVED, *(table.removesuffix("_log") for table in DERIVED)}
    missing |= {*ROLLUPS, *ROLLUP_VIEWS, *FLEET_VIEWS, *EVERYWHERE, WINDOWS_TABLE, WINDOWS_TABLE.removesuffix("_log")}
    missing -= {str(row[0]) for row in found}
    if EVENTS_TABLE in missing:
        raise StoreError(
            f"table {EVENTS_TABLE} is missing, from which all others are made; restore it from a backup, or feed the "
            "events once more into a new database"
        )
    if missing:
        for migration in migrations():  # each statement can be repeated
            for statement in statements(migration.text):
                store.command(statement)


def _applied(store: Store) -> dict[int, tuple[str, str]]:
    exists = store.query(
        "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'schema_migrations'"
    )
    if exists.rows[0][0] == 0:
        return {}
    rows = store.query("SELECT DISTINCT number, name, checksum FROM schema_migrations ORDER BY number, checksum").rows
    return {int(str(number)): (str(name), str(checksum)) for number, name, checksum in rows}


_SINGLE: Final = (False, False)
"""A layout: replicated, sharded."""


def _layout(store: Store) -> tuple[bool, bool] | None:
    """How the tables of the database are laid out; None if there are none."""
    rows = store.query(
        "SELECT name, engine FROM system.tables "
        f"WHERE database = currentDatabase() AND name IN ('{EVENTS_TABLE}', '{EVENTS_TABLE}{LOCAL}')"
    ).rows
    found = {str(name): str(engine) for name, engine in rows}
    if not found:
        return None
    sharded = found.get(EVENTS_TABLE, "Distributed") == "Distributed"
    own = found.get(EVENTS_TABLE + LOCAL if sharded else EVENTS_TABLE, "")
    return own.startswith("Replicated"), sharded


def _layout_words(layout: tuple[bool, bool]) -> str:
    named = [word for word, so in zip(("replicated", "sharded"), layout, strict=True) if so]
    return " and ".join(named) or "on a single server"


def _check_layout(store: Store, cluster: Cluster | None) -> None:
    found = _layout(store)
    wanted = (cluster.replicated, cluster.sharded) if cluster else _SINGLE
    if found is not None and found != wanted:
        raise SchemaRefused(
            f"the database is {_layout_words(found)}; the settings say: {_layout_words(wanted)}; correct --cluster, "
            "--replicated and --sharded, or use a new database"
        )


def _check(known: list[Migration], applied: dict[int, tuple[str, str]]) -> None:
    newest = known[-1].number
    for number, (name, checksum) in applied.items():
        if number > newest:
            raise SchemaRefused(
                f"the database has migration {name}, which this ettwatch does not know (its newest is "
                f"{known[-1].name}); use the newer ettwatch that made it"
            )
        mine = next((m for m in known if m.number == number), None)
        if mine is None or mine.checksum != checksum:
            raise SchemaRefused(
                f"migration {name} of the database is not the one of this ettwatch (checksum {checksum[:12]}, here "
                f"{mine.checksum[:12] if mine else 'none'}); use the ettwatch that made the database, or a new one"
            )
    missing = [m.name for m in known if m.number not in applied and applied and m.number < max(applied)]
    if missing:
        raise SchemaRefused(
            f"migration {missing[0]} was never applied although later ones were; restore table schema_migrations, "
            "or use a new database"
        )
