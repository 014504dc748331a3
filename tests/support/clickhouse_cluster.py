"""A cluster of two shards inside one embedded engine.

Both shards are the engine itself, so they share its tables: what is written through a Distributed table is there once,
and what is read through one would be seen twice. `part_shards` puts a view before each shard's tables that shows to a
shard its own jobs only; then the two are as if they were apart. Statements for all servers are run on the one there is,
and tables that would be replicated are plain ones: there is no Keeper.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import clickhouse_connect

from ettwatch_clickhouse import Store, Table
from ettwatch_clickhouse.address import DISTRIBUTED
from ettwatch_clickhouse.client import ClientStore
from ettwatch_clickhouse.cluster import LOCAL, SHARD, SHARD_BY
from ettwatch_clickhouse.tables import EVERYWHERE, SHARD_KEYS
from support.clickhouse import BASE_TABLES

NAME: Final = "two"

_CONFIG: Final = f"""
<clickhouse>
  <tcp_port>9000</tcp_port>
  <remote_servers>
    <{NAME}>
      <shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
      <shard><replica><host>localhost</host><port>9000</port></replica></shard>
    </{NAME}>
  </remote_servers>
  <macros><shard>01</shard><replica>a</replica></macros>
</clickhouse>
"""


class OneServer:
    """Runs on one server what is meant for all of a cluster, and keeps what it was told."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.told: list[str] = []

    def command(self, sql: str) -> None:
        self.told.append(sql)
        alone = re.sub(r" ON CLUSTER '\w+'", "", sql)
        alone = re.sub(r"Replicated(\w*MergeTree)\('[^']*', '[^']*'(?:, (\w+))?\)", r"\1(\2)", alone)
        self.inner.command(alone.replace(" replicated_deduplication_window", " non_replicated_deduplication_window"))

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Table:
        return self.inner.query(sql, params)

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        # Without the token: each shard has a table of its own to look for it, but here it is the same one.
        self.inner.insert(table, columns, rows)

    def close(self) -> None:
        self.inner.close()


class TwoShards(OneServer):
    """A database over two others, `shard_1` and `shard_2`, in which all that belongs to a shard is made.

    For each Distributed table stands a Merge table over those of the shards; rows are taken to their shard here, by the
    same key. What is small and whole on every server is in all three. Once in an engine.
    """

    def __init__(self, engine: "Engine", database: str) -> None:
        super().__init__(engine.store(database))
        self.shards = [OneServer(engine.store(name)) for name in ("shard_1", "shard_2")]

    def command(self, sql: str) -> None:
        told = re.match(r"\s*INSERT INTO (\w+) \(([^)]*)\)\s*SELECT", sql)
        if told is not None and told[1] not in EVERYWHERE and told[1] != "schema_migrations":
            select, settings = sql[told.end() - len("SELECT") :].rsplit("SETTINGS", 1)
            for number, into in enumerate(("shard_1", "shard_2")):
                self.inner.command(
                    f"INSERT INTO {into}.{told[1]}{LOCAL} ({told[2]}) SELECT * FROM "
                    f"(SELECT * FROM ({self._named(told[2], select)}) WHERE {self._key(told[1])} % 2 = {number}) "
                    f"SETTINGS {settings}"
                )
            return
        name = re.search(r"^(?:CREATE|ALTER)[A-Z ]*(?:TABLE|VIEW) (?:IF NOT EXISTS )?(\w+)", sql)
        of_shard = name is not None and name[1].endswith((LOCAL, SHARD))
        if of_shard or (name is not None and name[1] in EVERYWHERE):
            for shard in self.shards:
                shard.command(sql)
        if not of_shard:
            super().command(
                re.sub(r"Distributed\('\w+', '\w+', '(\w+)'[^\n]*", r"Merge(REGEXP('^shard_[12]$'), '^\1$')", sql)
            )

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        if "job" not in columns:
            self.inner.insert(table, columns, rows)
            return
        at = columns.index("job")
        jobs = sorted({str(row[at]) for row in rows})
        found = self.inner.query(
            f"SELECT job, {SHARD_BY} % 2 FROM (SELECT arrayJoin({{jobs:Array(String)}}) AS job)", {"jobs": jobs}
        ).rows
        of = {str(job): number for job, number in found}
        for number, shard in enumerate(self.shards):
            shard.inner.insert(table + LOCAL, columns, [row for row in rows if of[str(row[at])] == number])

    def _key(self, table: str) -> str:
        return SHARD_KEYS.get(table, SHARD_BY)

    def _named(self, columns: str, select: str) -> str:
        """The query with the names of the columns, whatever it calls them."""
        names = [name.strip() for name in columns.split(",")]
        shown = ", ".join(f"t.{i} AS {name}" for i, name in enumerate(names, 1))
        listed = select.strip().removeprefix("SELECT")
        return f"SELECT {shown} FROM (SELECT tuple(*) AS t FROM (SELECT {listed}))"


class Engine:
    """The engine; each database of it is a store of its own. One in a process."""

    def __init__(self, folder: Path) -> None:
        config = folder / "config.xml"
        config.write_text(_CONFIG)
        self._path = f"{folder / 'data'}?config-file={config}"
        self._stores: list[ClientStore] = []

    def store(self, database: str) -> ClientStore:
        """A store of a new, empty database."""
        client = clickhouse_connect.get_client(
            interface="chdb",
            path=self._path,
            tz_mode="aware",
            settings={"session_timezone": "UTC", "implicit_select": "0", **DISTRIBUTED},
        )
        made = ClientStore(client, self._path)
        self._stores.append(made)
        made.command(f"CREATE DATABASE {database}")
        client.database = database
        return made

    def close(self) -> None:
        for store in self._stores:
            store.close()


@contextlib.contextmanager
def two_shards(folder: Path) -> Iterator[Engine]:
    """The engine with the cluster `two`, for as long as the block lasts."""
    engine = Engine(folder)
    try:
        yield engine
    finally:
        engine.close()


def part_shards(store: Store) -> None:
    """From now on each shard sees its own jobs only. Nothing can be written through the Distributed tables any more."""
    for table in BASE_TABLES:
        store.command(f"RENAME TABLE {table}{LOCAL} TO {table}_disk")
        store.command(
            f"CREATE VIEW {table}{LOCAL} AS SELECT * FROM {table}_disk WHERE {SHARD_BY} % 2 = shardNum() - 1 "
            "SETTINGS asterisk_include_materialized_columns = 1"
        )
    # A view takes no FINAL: this one has to read the table itself.
    ((select,),) = store.query(
        f"SELECT as_select FROM system.tables WHERE database = currentDatabase() AND name = 'segments{SHARD}'"
    ).rows
    own = str(select).replace(f"segments_log{LOCAL}", "segments_log_disk")
    store.command(
        f"CREATE OR REPLACE VIEW segments{SHARD} AS SELECT * FROM ({own}) WHERE {SHARD_BY} % 2 = shardNum() - 1"
    )
