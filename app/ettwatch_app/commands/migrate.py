"""`ettwatch migrate`: the tables and views of this version on a ClickHouse server or cluster."""

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
from ettwatch_app.commands._shared import Command, Refused, ends_cleanly
from ettwatch_app.up.failpoint import failpoint

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store
    from ettwatch_clickhouse.cluster import Cluster

MISSING: Final = 1
"""Exit code of --check where something is missing."""

_UNKNOWN_DATABASE: Final = 81
_NOWHERE: Final = "http://localhost"


def _options(command: Command) -> Command:
    for add in reversed(
        (
            click.option(
                "--clickhouse",
                "url",
                metavar="URL",
                help="The server, http[s]://user@host:port/database.  [default: $ETTWATCH_CLICKHOUSE]",
            ),
            click.option(
                "--cluster", metavar="NAME", help="The cluster, where it is one.  [default: $ETTWATCH_CLUSTER]"
            ),
            click.option("--replicated", is_flag=True, help="The replicas of a shard hold the same rows."),
            click.option("--sharded", is_flag=True, help="Rows are spread over the shards by job."),
            click.option(
                "--keeper-path",
                "path",
                metavar="PATH",
                default="/clickhouse/tables",
                show_default=True,
                help="What the paths of replicated tables begin with.",
            ),
            click.option("--check", is_flag=True, help="Say what is missing; change nothing."),
            click.option("--print", "print_sql", is_flag=True, help="Print all statements; ask no server."),
            click.option("--print-roles", is_flag=True, help="Print the SQL for three roles; ask no server."),
            click.option("--allow-dangerous", is_flag=True, help="Apply also migrations that lose or rewrite rows."),
            click.option(
                "--wait",
                type=click.FloatRange(0, 86_400),
                default=600.0,
                show_default=True,
                help="Seconds to wait for another migration of the same database.",
            ),
            click.option(
                "--lock-limit",
                type=click.FloatRange(0.5, 86_400),
                default=60.0,
                show_default=True,
                help="Seconds without a sign of life after which another migration counts as dead.",
            ),
            ends_cleanly,
        )
    ):
        command = add(command)
    return command


@click.command()
@_options
def migrate(
    url: str | None,
    check: bool,
    print_sql: bool,
    print_roles: bool,
    allow_dangerous: bool,
    wait: float,
    lock_limit: float,
    **layout: Any,
) -> None:
    """Bring a ClickHouse server or cluster to the tables and views of this version.

    It may be repeated, also after it was interrupted; of several at once one waits for the other. The database is
    created where it is missing.

    Exit codes: 0 done; 1 something is missing (with --check); 2 refused or failed.
    """
    import ettwatch_clickhouse as sink

    if check + print_sql + print_roles > 1:
        raise Refused("give one of --check, --print and --print-roles")
    try:
        offline = print_sql or print_roles
        access = ClickHouseAccess.read(os.environ, url or (_somewhere() if offline else None))
        cluster = _cluster(access.address.database, **layout)
        if print_sql:
            _print_sql(access.address.database, cluster)
        elif print_roles:
            _print_roles(access.address.database, cluster)
        elif check:
            _check(access, cluster)
        else:
            _apply(access, cluster, allow_dangerous, wait, lock_limit)
    except ClickHouseSettingError as error:
        raise Refused(str(error)) from None
    except sink.StoreError as error:
        raise Refused(str(error)) from None


def _somewhere() -> str | None:
    """An address for what asks no server: only the name of the database counts."""
    return None if os.environ.get("ETTWATCH_CLICKHOUSE") else _NOWHERE


def _cluster(database: str, cluster: str | None, replicated: bool, sharded: bool, path: str) -> "Cluster | None":
    from ettwatch_clickhouse.cluster import Cluster, ClusterError

    name = cluster if cluster is not None else os.environ.get("ETTWATCH_CLUSTER") or None
    if name is None:
        if replicated or sharded:
            raise Refused("--replicated and --sharded are layouts of a cluster; name it with --cluster")
        return None
    try:
        return Cluster(name, database, replicated, sharded, path)
    except ClusterError as error:
        raise Refused(f"{error} (--cluster, --replicated, --sharded, --keeper-path)") from None


def _print_sql(database: str, cluster: "Cluster | None") -> None:
    from ettwatch_clickhouse.migrate import script

    for statement in script(database, cluster):
        click.echo(f"{statement};\n")


def _print_roles(database: str, cluster: "Cluster | None") -> None:
    from ettwatch_clickhouse.roles import roles

    for statement in roles(database, cluster):
        click.echo(f"{statement};")


def _check(access: ClickHouseAccess, cluster: "Cluster | None") -> None:
    import ettwatch_clickhouse as sink
    from ettwatch_clickhouse.migrate import migrations, pending

    try:
        with contextlib.closing(access.connect()) as store:
            missing = pending(store, cluster=cluster)
    except sink.StoreError as error:
        if error.code != _UNKNOWN_DATABASE:
            raise
        click.echo(f"missing: database {access.address.database}")
        missing = migrations()
    for migration in missing:
        click.echo(f"missing: {migration.name}")
    if missing:
        raise SystemExit(MISSING)
    click.echo(f"all {len(migrations())} migrations are applied at {access.where}")


def _apply(
    access: ClickHouseAccess, cluster: "Cluster | None", allow_dangerous: bool, wait: float, lock_limit: float
) -> None:
    import ettwatch_clickhouse as sink
    from ettwatch_clickhouse.lock import MigrationLock
    from ettwatch_clickhouse.migrate import migrations

    current = ""

    def doing(name: str) -> None:
        nonlocal current
        if name != current:
            if current:
                click.echo(f"applied {current}")
            current = name
        failpoint("statement")

    try:
        with (
            contextlib.closing(_connected(access, cluster)) as store,
            MigrationLock(store, cluster=cluster, limit_s=lock_limit, wait_s=wait, said=_say) as lock,
        ):
            done = sink.migrate(store, cluster=cluster, lock=lock, allow_dangerous=allow_dangerous, doing=doing)
    except sink.StoreError as error:
        hint = f" (in migration {current}; once that is put right, migrate again: it goes on from there)"
        raise Refused(f"{error}{hint if current else ''}") from None
    if done:
        click.echo(f"applied {done[-1]}")
    else:
        click.echo(f"nothing to do: all {len(migrations())} migrations are applied at {access.where}")


def _say(line: str) -> None:
    click.echo(line, err=True)


def _connected(access: ClickHouseAccess, cluster: "Cluster | None") -> "Store":
    """Connect to the database, which is created where it is missing: on a cluster, on all servers."""
    import ettwatch_clickhouse as sink

    if cluster is None:
        return access.connect(create=True)
    try:
        return access.connect()
    except sink.StoreError as error:
        if error.code != _UNKNOWN_DATABASE:
            raise
    with contextlib.closing(ClickHouseAccess(replace(access.address, database="default")).connect()) as maker:
        maker.command(f"CREATE DATABASE IF NOT EXISTS {cluster.database} {cluster.on}")
    return access.connect()
