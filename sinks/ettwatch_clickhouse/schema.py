"""Whether the tables of a database are those of this version."""

from typing import Final

from ettwatch_clickhouse.errors import SchemaRefused, StoreError
from ettwatch_clickhouse.migrate import migrations
from ettwatch_clickhouse.store import Store

__all__ = ["check_schema"]

_UNKNOWN_TABLE: Final = 60


def check_schema(store: Store) -> None:
    """Return if exactly the migrations of this version were applied. Changes nothing.

    Raises:
        SchemaRefused: Some are missing, or the database is newer.
        StoreUnavailable: ClickHouse is away.
        StoreError: It refuses to answer.
    """
    known = {migration.number: migration.name for migration in migrations()}
    applied = _applied(store)
    newer = sorted(set(applied) - set(known))
    if newer:
        raise SchemaRefused(
            f"the database has migration {applied[newer[0]]}, which this ettwatch does not know (its newest is "
            f"{known[max(known)]}); use the newer ettwatch that made it"
        )
    missing = sorted(set(known) - set(applied))
    if missing:
        what = "no tables" if not applied else f"no migration {known[missing[0]]}"
        raise SchemaRefused(f"the database has {what}; run `ettwatch migrate` first, with the same address")


def _applied(store: Store) -> dict[int, str]:
    try:
        rows = store.query("SELECT DISTINCT number, name FROM schema_migrations").rows
    except StoreError as error:
        if error.code == _UNKNOWN_TABLE:
            return {}
        raise
    return {int(str(number)): str(name) for number, name in rows}
