"""Numbered migrations: each is applied once, in order, and never changed after that."""

import re
import time
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from ettwatch_clickhouse.errors import SchemaRefused, StoreError
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import DERIVED, EVENTS_TABLE

__all__ = ["Migration", "migrate", "migrations", "restore", "statements"]

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


def migrate(store: Store) -> list[str]:
    """Bring a database to the tables and views of this version; return the names of the migrations applied now.

    To be called as often as one likes, also after a migration that stopped half-way: each statement can be repeated.

    Raises:
        SchemaRefused: The database is newer than this version, or was made by other migrations.
        StoreError: A statement failed.
    """
    known = migrations()
    applied = _applied(store)
    _check(known, applied)
    done: list[str] = []
    for migration in known:
        if migration.number in applied:
            continue
        if not applied and not done:
            store.command(_RECORDS)
        for statement in statements(migration.text):
            store.command(statement)
        row = (migration.number, migration.name, migration.checksum, time.time_ns() // 1_000)
        store.insert("schema_migrations", ("number", "name", "checksum", "applied"), [row])
        done.append(migration.name)
    return done


def restore(store: Store) -> None:
    """Make derived tables and views that somebody dropped anew, empty. To be called after :func:`migrate`.

    Raises:
        StoreError: The table of events is missing: nothing can be made without it. Or a statement failed.
    """
    found = store.query("SELECT name FROM system.tables WHERE database = currentDatabase()").rows
    missing = {EVENTS_TABLE, "events", *DERIVED, *(table.removesuffix("_log") for table in DERIVED)}
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
