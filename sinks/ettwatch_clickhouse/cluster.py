"""From the statements of migrations, which are written for one server, to those of a cluster. No I/O.

Replicated: every table becomes a Replicated one; the replicas of a shard hold the same rows.

Sharded: the table ``x`` becomes ``x_local`` on each shard, and ``x`` a Distributed table over them. Rows are spread by
job: all rows of a job are on one shard. So a view is right on each shard by itself: the view ``y`` becomes ``y_shard``
over the shard's own rows, and ``y`` a Distributed table over those. Nothing is joined across shards. Tables without a
job are spread by their period, so that a period is on one shard; what is small is whole on every server.
"""

import re
from dataclasses import dataclass
from typing import Final

from ettwatch_clickhouse.facade import facade_alter, facade_column, shard_select
from ettwatch_clickhouse.shapes import AlterTable, CreateTable, CreateView, Part, UnknownShape, shape
from ettwatch_clickhouse.tables import EVERYWHERE, SHARD_KEYS

__all__ = ["LOCAL", "SHARD", "SHARD_BY", "Cluster", "ClusterError", "render", "render_records"]

LOCAL: Final = "_local"
"""What is appended to the name of a table for the one on each shard."""

SHARD: Final = "_shard"
"""What is appended to the name of a view for the one on each shard."""

SHARD_BY: Final = "cityHash64(job)"
"""The sharding key: it may never change, nor may the number of shards while there are rows."""

_NAME: Final = re.compile(r"[A-Za-z_][\w.-]{0,99}|\{\w+\}", re.ASCII)
_PATH: Final = re.compile(r"(/[\w.{}-]+)+", re.ASCII)
_WINDOW: Final = "non_replicated_deduplication_window"


class ClusterError(ValueError):
    """The settings of a cluster are wrong. One line."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """How the tables are laid out over several servers.

    Attributes:
        name: Of the cluster in the servers' ``remote_servers``, or a macro such as ``{cluster}``.
        database: Where the tables are.
        replicated: Tables are Replicated ones, by the servers' macros ``{shard}`` and ``{replica}``.
        sharded: Rows are spread over the shards by job.
        path: What the paths of the tables in Keeper begin with.

    Raises:
        ClusterError: The settings make no cluster.
    """

    name: str
    database: str
    replicated: bool = False
    sharded: bool = False
    path: str = "/clickhouse/tables"

    def __post_init__(self) -> None:
        """Refuse what would break a statement."""
        if not _NAME.fullmatch(self.name):
            raise ClusterError(f"{self.name!r} is no name of a cluster; give the one in the servers' remote_servers")
        if not re.fullmatch(r"[A-Za-z_]\w*", self.database, re.ASCII):
            raise ClusterError(f"{self.database!r} is no name of a database; it is made of letters, digits and _")
        if not _PATH.fullmatch(self.path):
            raise ClusterError(f"{self.path!r} is no path in Keeper; give one such as /clickhouse/tables")
        if not (self.replicated or self.sharded):
            raise ClusterError(
                f"say how the tables are laid out over cluster {self.name}: replicated, sharded, or both"
            )

    @property
    def on(self) -> str:
        """The words for a statement that all servers run."""
        return f"ON CLUSTER '{self.name}'"


def render(statement: str, cluster: Cluster) -> list[str]:
    """Return the statements that do to a cluster what one does to a single server.

    Each can be repeated if the given one can be. They mean the database of the cluster's settings.

    Args:
        statement: Of a migration.
        cluster: The layout.

    Raises:
        UnknownShape: It is none of the statements that are known.
    """
    found = shape(statement)
    if isinstance(found, CreateTable):
        return _tables(found, cluster)
    if isinstance(found, CreateView):
        return _views(found, cluster)
    return _alters(found, cluster)


def render_records(statement: str, cluster: Cluster) -> str:
    """Return the statement that creates a table of which every server of the cluster holds all rows.

    Raises:
        UnknownShape: It is no CREATE TABLE.
    """
    found = shape(statement)
    if not isinstance(found, CreateTable):
        raise UnknownShape(f"{found.name} is not created as a table")
    return _everywhere(found, cluster)


def _everywhere(table: CreateTable, cluster: Cluster) -> str:
    path = f"{cluster.path}/all/{cluster.database}/{table.name}"
    return _create(table, table.name, cluster, _replicated(table, path, "{shard}-{replica}"))


def _tables(table: CreateTable, cluster: Cluster) -> list[str]:
    if table.name in EVERYWHERE:
        return [_everywhere(table, cluster)]
    name = table.name + LOCAL if cluster.sharded else table.name
    engine = _plain(table)
    if cluster.replicated:
        engine = _replicated(table, f"{cluster.path}/{{shard}}/{cluster.database}/{name}", "{replica}")
    made = [_create(table, name, cluster, engine)]
    if cluster.sharded:
        by = SHARD_BY if "job" in [column.name for column in table.columns] else SHARD_KEYS.get(table.name)
        if by is None:
            raise UnknownShape(f"table {table.name} has no column job, by which rows are spread over the shards")
        columns = ",\n    ".join(facade_column(column.text) for column in table.columns)
        made.append(
            f"CREATE TABLE IF NOT EXISTS {table.name} {cluster.on}\n(\n    {columns}\n)\n"
            f"ENGINE = {_distributed(name, cluster, by)}{_comment(table.rest)}"
        )
    return made


def _create(table: CreateTable, name: str, cluster: Cluster, engine: str) -> str:
    entries = ",\n    ".join(str(entry) for entry in (*(column.text for column in table.columns), *table.others))
    rest = _window(str(table.rest)) if engine.startswith("Replicated") else str(table.rest)
    return f"CREATE TABLE IF NOT EXISTS {name} {cluster.on}\n(\n    {entries}\n)\nENGINE = {engine}\n{rest}".rstrip()


def _plain(table: CreateTable) -> str:
    if not table.engine.endswith("MergeTree") or table.engine.startswith(("Replicated", "Shared")):
        raise UnknownShape(f"table {table.name} has the engine {table.engine}; only plain MergeTrees are known")
    return f"{table.engine}({table.arguments})" if table.arguments.tokens else table.engine


def _replicated(table: CreateTable, path: str, replica: str) -> str:
    _plain(table)
    more = f", {table.arguments}" if table.arguments.tokens else ""
    return f"Replicated{table.engine}('{path}', '{replica}'{more})"


def _distributed(table: str, cluster: Cluster, key: str | None = None) -> str:
    return f"Distributed('{cluster.name}', '{cluster.database}', '{table}'{f', {key}' if key else ''})"


def _window(text: str) -> str:
    return re.sub(rf"\b{_WINDOW}\b", _WINDOW.removeprefix("non_"), text)


def _comment(rest: Part) -> str:
    at = rest.find("COMMENT")
    return f"\nCOMMENT {rest.cut(at + 1, at + 2)}" if at is not None else ""


def _views(view: CreateView, cluster: Cluster) -> list[str]:
    if not cluster.sharded or view.name in EVERYWHERE:
        return [f"CREATE OR REPLACE VIEW {view.name} {cluster.on}\n{view.columns}\nAS {view.select}"]
    return [
        f"CREATE OR REPLACE VIEW {view.name}{SHARD} {cluster.on}\n{view.columns}\n"
        f"AS {shard_select(view.select, LOCAL, SHARD)}",
        f"CREATE OR REPLACE TABLE {view.name} {cluster.on}\n{view.columns}\n"
        f"ENGINE = {_distributed(view.name + SHARD, cluster)}",
    ]


def _alters(alter: AlterTable, cluster: Cluster) -> list[str]:
    shown = [text for command in alter.commands for text in facade_alter(command)]  # refuses what is not known
    commands = ",\n    ".join(str(command) for command in alter.commands)
    spread = cluster.sharded and alter.name not in EVERYWHERE
    name = alter.name + LOCAL if spread else alter.name
    replicated = cluster.replicated or alter.name in EVERYWHERE
    made = [f"ALTER TABLE {name} {cluster.on}\n    {_window(commands) if replicated else commands}"]
    if spread and shown:
        made.append(f"ALTER TABLE {alter.name} {cluster.on}\n    " + ",\n    ".join(shown))
    return made
