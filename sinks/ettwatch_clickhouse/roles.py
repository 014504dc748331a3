"""Three roles with the least rights: who migrates, who writes, who reads. SQL only; users are the operator's matter."""

from typing import Final

from ettwatch_clickhouse.cluster import LOCAL, SHARD, Cluster
from ettwatch_clickhouse.tables import (
    DERIVED,
    EVENTS_TABLE,
    EVERYWHERE,
    FLEET_VIEWS,
    ROLLUP_VIEWS,
    ROLLUPS,
    WINDOWS_TABLE,
)

__all__ = ["ROLES", "roles"]

ROLES: Final = ("ettwatch_migrator", "ettwatch_writer", "ettwatch_reader")
"""Names of the roles."""

_TABLES: Final = (EVENTS_TABLE, *DERIVED, *ROLLUPS, WINDOWS_TABLE)
_VIEWS: Final = (
    *(table.removesuffix("_log") for table in (EVENTS_TABLE, *DERIVED, WINDOWS_TABLE)),
    *ROLLUP_VIEWS,
    *FLEET_VIEWS,
)
_RECORDS: Final = "schema_migrations"
_MIGRATES: Final = (
    "SELECT, INSERT, CREATE DATABASE, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW, DROP TABLE, DROP VIEW"
)


def roles(database: str, cluster: Cluster | None = None) -> list[str]:
    """Return the statements that create the roles and give them their rights. They can be repeated.

    A view is read with the rights of who asks: a reader needs those on the tables behind it, too.

    Args:
        database: Where the tables are.
        cluster: The layout, if the database is on a cluster.
    """
    on = f" {cluster.on}" if cluster else ""
    sharded = cluster is not None and cluster.sharded
    migrator, writer, reader = ROLES
    engines = ["Memory", "ReplacingMergeTree"]
    if cluster is not None:
        engines += ["ReplicatedReplacingMergeTree", *(["Distributed"] if sharded else [])]
    whole = sorted(name for name in EVERYWHERE if name.endswith("_log"))
    written = [*_TABLES, *(table + LOCAL for table in _TABLES if sharded), *whole]
    # The rollups are made from views, with the rights of who makes them.
    read = [view + end for view in ("jobs", "attempts", *ROLLUP_VIEWS) for end in ("", SHARD)[: 1 + sharded]]
    shown = [*written, *_VIEWS, *(view + SHARD for view in _VIEWS if sharded), *sorted(EVERYWHERE - {*whole})]
    # Acknowledged means: on its shard. And a query inside a query means all shards, too.
    writes = " SETTINGS distributed_foreground_insert = 1, distributed_product_mode = 'global'" if sharded else ""
    reads = " SETTINGS readonly = 2" + (", distributed_product_mode = 'global'" if sharded else "")
    made = [
        f"CREATE ROLE IF NOT EXISTS {migrator}{on}",
        f"CREATE ROLE IF NOT EXISTS {writer}{on}{writes}",
        f"CREATE ROLE IF NOT EXISTS {reader}{on}{reads}",
        f"GRANT{on} {_MIGRATES} ON {database}.* TO {migrator}",
        # Only some servers ask for this one.
        *(f"GRANT{on} TABLE ENGINE ON {engine} TO {migrator}" for engine in engines),
        *(f"GRANT{on} SELECT, INSERT ON {database}.{table} TO {writer}" for table in written),
        *(f"GRANT{on} SELECT ON {database}.{view} TO {writer}" for view in read),
        f"GRANT{on} SELECT ON {database}.{_RECORDS} TO {writer}",
        *(f"GRANT{on} SELECT ON {database}.{name} TO {reader}" for name in shown),
    ]
    if cluster is not None:
        made.append(f"GRANT{on} CLUSTER, REMOTE, CREATE TEMPORARY TABLE ON *.* TO {migrator}")
        made.append(f"GRANT{on} SELECT ON system.tables TO {migrator}")
    return made
