"""Two migrations of one database at once: real processes, against one server."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from ettwatch_clickhouse import Store, StoreError, StoreUnavailable, Table, connect, migrate
from ettwatch_clickhouse.cluster import Cluster
from ettwatch_clickhouse.lock import LOCK, MigrationLock
from ettwatch_clickhouse.migrate import migrations
from support.clickhouse import EVERY_TABLE, EVERY_VIEW
from support.clickhouse_server import ServerForTests, clickhouse_server
from support.spooled import until

__all__ = ["clickhouse_server"]

ALL: Final = [m.name for m in migrations()]
TABLES: Final = {*EVERY_TABLE, *EVERY_VIEW, "schema_migrations"}
ROUNDS: Final = 8

# Migrates each database that it is told of, and says what it applied and when it held the lock.
_CHILD: Final = """
import json, sys, time
from ettwatch_clickhouse import connect, migrate
from ettwatch_clickhouse.lock import MigrationLock
print("ready", flush=True)
for line in sys.stdin:
    store = connect(line.strip())
    with MigrationLock(store, limit_s=20, wait_s=300) as lock:
        begun = time.monotonic()
        applied = migrate(store, lock=lock)
        ended = time.monotonic()
    store.close()
    print(json.dumps([applied, begun, ended]), flush=True)
"""

_COMMAND: Final = "from ettwatch_app.commands.migrate import migrate; migrate(prog_name='migrate')"


class Child:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.line()

    def tell(self, url: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(url + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


def tables(store: Store) -> set[str]:
    rows = store.query("SELECT name FROM system.tables WHERE database = currentDatabase()").rows
    return {str(row[0]) for row in rows}


def drop(store: Store) -> None:
    store.command(f"DROP DATABASE {store.query('SELECT currentDatabase()').rows[0][0]} SYNC")
    store.close()


@pytest.fixture
def empty(clickhouse_server: ServerForTests) -> Iterator[tuple[Store, str]]:
    url = clickhouse_server.database()
    store = connect(url)
    yield store, url
    drop(store)


def test_two_processes_at_once_many_times(clickhouse_server: ServerForTests) -> None:
    children = [Child(), Child()]
    try:
        for _ in range(ROUNDS):
            url = clickhouse_server.database()
            connect(url).close()
            for child in children:
                child.tell(url)
            (one, one_begun, one_ended), (two, two_begun, two_ended) = (json.loads(child.line()) for child in children)
            assert sorted([one, two], key=len) == [[], ALL]
            assert one_ended <= two_begun or two_ended <= one_begun
            store = connect(url)
            assert tables(store) == TABLES
            assert store.query("SELECT count() FROM schema_migrations").rows == [(len(ALL),)]
            drop(store)
    finally:
        for child in children:
            child.close()


@pytest.mark.parametrize("statement", [1, 9])
def test_one_is_killed_in_the_middle_and_the_other_goes_on(empty: tuple[Store, str], statement: int) -> None:
    store, url = empty
    arguments = [sys.executable, "-c", _COMMAND, "--clickhouse", url, "--lock-limit", "1.5"]
    env = {**os.environ, "ETTWATCH_FAILPOINT": f"statement:{statement}"}
    # The second begins when the first is dead: one that only stood still for so long would live on without its lock.
    first = subprocess.Popen(arguments, env=env)
    assert first.wait(120) == -signal.SIGKILL
    assert [name.startswith(LOCK) for name in tables(store) - TABLES] == [True]
    second = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert second.returncode == 0, second.stderr
    assert f"waiting for another migration of this database: process {first.pid} on " in second.stderr
    assert second.stdout.split()[-1] == ALL[-1]
    assert tables(store) == TABLES
    assert migrate(store) == []


class Watch:
    """A clock for one who waits for the lock: it goes on only while the owner is heard of."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 0.0
        self.heard = self.comments()

    def comments(self) -> object:
        return self.store.query("SELECT comment FROM system.tables WHERE database = currentDatabase()").rows

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        until(lambda: self.comments() != self.heard)
        self.heard = self.comments()
        self.now += seconds

    strftime = staticmethod(time.strftime)
    gmtime = staticmethod(time.gmtime)


def test_a_living_owner_keeps_the_lock_for_longer_than_the_limit(
    empty: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, url = empty
    with MigrationLock(store, limit_s=1.5) as lock:
        other = connect(url)
        monkeypatch.setattr("ettwatch_clickhouse.lock.time", Watch(other))
        said: list[str] = []
        with (
            pytest.raises(StoreError, match=rf"another migration .*process {os.getpid()} on .*taken over 1.5 s after"),
            MigrationLock(other, limit_s=1.5, wait_s=4, said=said.append),
        ):
            pytest.fail("two hold the lock")
        other.close()
        assert len(said) == 1
        lock.check()
    assert tables(store) == set()


class Silent:
    """A store whose owner cannot tell that it lives."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def command(self, sql: str) -> None:
        if sql.startswith("ALTER"):
            raise StoreUnavailable("no way through")
        self.inner.command(sql)

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Table:
        return self.inner.query(sql, params)

    def insert(self, *args: object, **kwargs: object) -> None:
        raise AssertionError("nothing is inserted")

    def close(self) -> None:
        self.inner.close()


def test_an_owner_that_was_not_heard_of_stops_before_its_next_statement(empty: tuple[Store, str]) -> None:
    store, url = empty
    with MigrationLock(Silent(store), limit_s=0.5) as lost:
        other = connect(url)
        with MigrationLock(other, limit_s=0.5, wait_s=120) as held:
            with pytest.raises(StoreError, match="was taken over"):
                migrate(store, lock=lost)
            assert tables(store) == {held._name}
            migrate(other, lock=held)
        other.close()
    assert tables(store) == TABLES


def test_of_many_at_once_one_holds_it_at_a_time(empty: tuple[Store, str]) -> None:
    store, url = empty
    inside: list[int] = []
    most: list[int] = []

    def contend(number: int) -> None:
        mine = connect(url)
        with MigrationLock(mine, limit_s=20, wait_s=300):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.02)
            inside.remove(number)
        mine.close()

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert most == [1] * 5
    assert tables(store) == set()


def test_an_error_inside_lets_go_of_the_lock(empty: tuple[Store, str]) -> None:
    store, _ = empty
    seen: set[str] = set()

    def fail() -> None:
        with MigrationLock(store, limit_s=20):
            seen.update(tables(store))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [name.startswith(LOCK) for name in seen] == [True]
    assert tables(store) == set()


class Recorded(Silent):
    """Answers nothing, and keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def command(self, sql: str) -> None:
        self.told.append(sql)

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Table:
        self.told.append(sql)
        return Table([], [], [])


def test_on_a_cluster_all_servers_are_told_and_asked() -> None:
    store = Recorded()
    with MigrationLock(store, cluster=Cluster("prod", "ettwatch", replicated=True)):
        pass
    looks = [sql for sql in store.told if sql.startswith("SELECT")]
    assert len(looks) == 2
    assert all("clusterAllReplicas('prod', system.tables) WHERE database = 'ettwatch'" in sql for sql in looks)
    create, drop = (sql for sql in store.told if not sql.startswith("SELECT"))
    assert create.startswith(f"CREATE TABLE {LOCK}")
    assert drop.startswith(f"DROP TABLE IF EXISTS {LOCK}")
    assert " ON CLUSTER 'prod' " in create
    assert " ON CLUSTER 'prod' " in drop
