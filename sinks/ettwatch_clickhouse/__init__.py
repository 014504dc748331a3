"""ettwatch in ClickHouse: tables and views, a batched writer, a server or the embedded engine behind one port."""

from ettwatch_clickhouse.damage import broken_parts
from ettwatch_clickhouse.embedded import EmbeddedStore, open_embedded
from ettwatch_clickhouse.errors import (
    DataFolderInUse,
    DataFolderNotWritable,
    SchemaRefused,
    StoreError,
    StoreUnavailable,
)
from ettwatch_clickhouse.http import HttpFront, Limits, serve
from ettwatch_clickhouse.keeper import RollupKeeper
from ettwatch_clickhouse.migrate import migrate
from ettwatch_clickhouse.rebuild import RebuildReport, rebuild
from ettwatch_clickhouse.retention import retention, set_retention
from ettwatch_clickhouse.retry import Retry
from ettwatch_clickhouse.rollups import RolledUp, Rollups
from ettwatch_clickhouse.server import connect
from ettwatch_clickhouse.store import Store, Table
from ettwatch_clickhouse.writer import Writer

__all__ = [
    "DataFolderInUse",
    "DataFolderNotWritable",
    "EmbeddedStore",
    "HttpFront",
    "Limits",
    "RebuildReport",
    "Retry",
    "RolledUp",
    "RollupKeeper",
    "Rollups",
    "SchemaRefused",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "Table",
    "Writer",
    "broken_parts",
    "connect",
    "migrate",
    "open_embedded",
    "rebuild",
    "retention",
    "serve",
    "set_retention",
]
