"""The HTTP front, asked by clickhouse-connect in its ways."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError, OperationalError

from ettwatch_clickhouse import EmbeddedStore, HttpFront, Limits, StoreError, connect, serve


@pytest.fixture(scope="module")
def front(engine: EmbeddedStore) -> Iterator[HttpFront]:
    with serve(engine, limits=Limits(head_s=60)) as running:
        yield running


def client_of(front: HttpFront, **options: Any) -> Any:
    return clickhouse_connect.get_client(host="127.0.0.1", port=front.port, database="ettwatch", **options)


@pytest.fixture
def client(front: HttpFront) -> Iterator[Any]:
    found = client_of(front)
    found.command("DROP TABLE IF EXISTS t SYNC")
    found.command("CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
    yield found
    found.close()


ROWS = [[number, f"row {number} ü"] for number in range(1000)]


def test_rows_go_in_and_come_back(client: Any) -> None:
    assert client.insert("t", ROWS, column_names=["a", "b"]).written_rows == 1000
    result = client.query("SELECT * FROM t ORDER BY a")
    assert [list(row) for row in result.result_rows] == ROWS
    assert result.column_names == ("a", "b")
    assert int(result.summary["read_rows"]) == 1000
    assert result.query_id


@pytest.mark.parametrize("compress", ["lz4", "zstd", "gzip", False])
def test_every_compression_both_ways(front: HttpFront, client: Any, compress: str | bool) -> None:
    other = client_of(front, compress=compress)
    other.insert("t", ROWS, column_names=["a", "b"])
    assert other.query("SELECT count(), sum(a) FROM t").result_rows == [(1000, 499500)]
    large = other.query("SELECT number, repeat('x', 50) FROM numbers(200000)").result_columns
    assert (len(large[0]), large[0][-1]) == (200_000, 199_999)
    other.close()


def test_an_insert_of_many_blocks_arrives_whole(client: Any) -> None:
    columns = [list(range(300_000)), ["x" * 20] * 300_000]
    client.insert("t", columns, column_names=["a", "b"], column_oriented=True)
    assert client.query("SELECT count(), max(a), uniqExact(b) FROM t").result_rows == [(300_000, 299_999, 1)]


def test_frames(client: Any) -> None:
    client.insert("t", ROWS, column_names=["a", "b"])
    assert client.query_np("SELECT a FROM t ORDER BY a").sum() == 499500
    assert client.query_arrow("SELECT a, b FROM t ORDER BY a").num_rows == 1000
    assert list(client.query_df("SELECT * FROM t").columns) == ["a", "b"]
    client.insert_arrow("t", client.query_arrow("SELECT a + 5000 AS a, b FROM t"))
    assert client.query("SELECT count() FROM t").result_rows == [(2000,)]


def test_streams(client: Any) -> None:
    with client.query_row_block_stream("SELECT number FROM numbers(500000)") as stream:
        assert sum(len(block) for block in stream) == 500_000
    with client.query_arrow_stream("SELECT number FROM numbers(100000)") as stream:
        assert sum(batch.num_rows for batch in stream) == 100_000
    lines = client.raw_stream("SELECT number FROM numbers(3)", fmt="CSV").read()
    assert lines == b"0\n1\n2\n"


def test_an_error_in_the_middle_of_a_stream_is_an_error(client: Any) -> None:
    sql = "SELECT throwIf(number = 300000, 'in the middle') FROM numbers(1000000) SETTINGS max_block_size = 1000"
    rows: list[Any] = []

    def read() -> None:
        with client.query_rows_stream(sql) as stream:
            rows.extend(stream)

    with pytest.raises(ClickHouseError, match="in the middle"):
        read()
    assert client.query("SELECT 1").result_rows == [(1,)]


def test_places_for_values(client: Any) -> None:
    given = {"a": "it's", "b": [1, 2], "c": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "long": "ü" * 20_000}
    sql = "SELECT {a:String}, {b:Array(UInt8)}, {c:DateTime('UTC')}, length({long:String})"
    assert client.query(sql, parameters=given).result_rows == [("it's", [1, 2], datetime(2026, 1, 2, 3, 4, 5), 40_000)]
    assert client.command("SELECT {x:UInt8} + 1", parameters={"x": 4}) == 5


def test_settings(client: Any) -> None:
    assert client.command("SELECT getSetting('max_block_size')", settings={"max_block_size": 77}) == 77
    assert client.command("SELECT getSetting('max_block_size')") != 77
    with pytest.raises(DatabaseError) as caught:
        client.raw_query("SELECT 1", settings={"max_block_size": "many"})
    assert caught.value.code in (27, 72)


@pytest.mark.parametrize(
    ("sql", "code", "name"),
    [
        ("SELECT nope", 47, "UNKNOWN_IDENTIFIER"),
        ("SELECT * FROM nope", 60, "UNKNOWN_TABLE"),
        ("SELEC", 62, "SYNTAX_ERROR"),
        ("SELECT sleep(3) SETTINGS max_execution_time = 0.2", 159, "TIMEOUT_EXCEEDED"),
        ("SELECT throwIf(1, 'x')", 395, "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"),
    ],
)
def test_errors_have_number_and_name(client: Any, sql: str, code: int, name: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        client.query(sql)
    assert (caught.value.code, caught.value.name) == (code, name)


def test_a_refused_insert_leaves_nothing(client: Any) -> None:
    with pytest.raises(DatabaseError) as caught:
        client.raw_insert("t", ["a", "b"], b"1,x\n2,y\nthree,z\n", fmt="CSV")
    assert caught.value.code == 27
    assert client.query("SELECT count() FROM t").result_rows == [(0,)]


def test_raw_inserts(client: Any) -> None:
    assert client.raw_insert("t", ["a", "b"], b"1,x\n2,y\n", fmt="CSV").written_rows == 2
    assert client.raw_insert("t", ["a", "b"], iter([b'{"a":3,', b'"b":"z"}\n']), fmt="JSONEachRow").written_rows == 1
    client.command("INSERT INTO t VALUES (4, 'a;b'), (5, 'not a file(')")
    client.command("INSERT INTO t FORMAT Values (6, 'v')")
    client.command("INSERT INTO t SELECT number + 10, 's' FROM numbers(3)")
    client.command("INSERT INTO t FORMAT TSV", data="7\tdata")
    rows = client.query("SELECT a, b FROM t ORDER BY a").result_rows
    assert rows[:7] == [(1, "x"), (2, "y"), (3, "z"), (4, "a;b"), (5, "not a file("), (6, "v"), (7, "data")]
    assert len(rows) == 10


def test_sessions_keep_what_is_theirs(front: HttpFront) -> None:
    mine = client_of(front, session_id="mine")
    mine.command("CREATE TEMPORARY TABLE own (x Int8)")
    mine.insert("own", [[1]], column_names=["x"])
    assert mine.query("SELECT x FROM own").result_rows == [(1,)]
    theirs = client_of(front, session_id="theirs")
    with pytest.raises(DatabaseError):
        theirs.query("SELECT x FROM own")
    mine.close()
    theirs.close()


def test_the_asynchronous_client(front: HttpFront, client: Any) -> None:
    async def ask() -> list[Any]:
        other = await clickhouse_connect.get_async_client(host="127.0.0.1", port=front.port, database="ettwatch")
        try:
            await other.insert("t", ROWS, column_names=["a", "b"])
            return await asyncio.gather(*(other.query(f"SELECT sum(a) + {n} FROM t") for n in range(20)))
        finally:
            await other.close()

    assert [result.result_rows for result in asyncio.run(ask())] == [[(499500 + n,)] for n in range(20)]


def test_many_threads_at_once(front: HttpFront, client: Any) -> None:
    client.insert("t", ROWS, column_names=["a", "b"])
    answers: list[Any] = []

    def ask(number: int) -> None:
        other = client_of(front)
        right = [(499500, number)]
        answers.extend(other.query(f"SELECT sum(a), {number} FROM t").result_rows == right for _ in range(5))
        other.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 40


def test_a_store_over_it(front: HttpFront) -> None:
    store = connect(front.url)
    assert store.query("SELECT currentDatabase(), timezone()").rows[0][0] == "ettwatch"
    store.close()
    named = connect(f"{front.url}/elsewhere")
    assert named.query("SELECT currentDatabase()").rows == [("elsewhere",)]
    named.command("DROP DATABASE elsewhere SYNC")
    named.close()


def test_read_only(engine: EmbeddedStore, client: Any) -> None:
    client.insert("t", ROWS, column_names=["a", "b"])
    with serve(engine, readonly=True) as front:
        other = client_of(front)
        assert other.query("SELECT count() FROM t").result_rows == [(1000,)]
        changes: list[Callable[[], Any]] = [
            lambda: other.insert("t", ROWS, column_names=["a", "b"]),
            lambda: other.raw_insert("t", ["a", "b"], b"1,x\n", fmt="CSV"),
            lambda: other.command("INSERT INTO t VALUES (1, 'x')"),
            lambda: other.command("DROP TABLE t"),
            lambda: other.command("CREATE TABLE u (a Int8) ENGINE = Memory"),
            lambda: other.command("ALTER TABLE t DELETE WHERE 1"),
        ]
        for change in changes:
            with pytest.raises(DatabaseError) as caught:
                change()
            assert caught.value.code == 164
        in_session = client_of(front, session_id="s")
        with pytest.raises(DatabaseError) as caught:
            in_session.command("DROP TABLE t")
        assert caught.value.code == 164
        store = connect(front.url)
        with pytest.raises(StoreError, match="this address answers queries but takes no changes"):
            store.command("DROP TABLE t")
        store.close()
        other.close()
        in_session.close()
    assert client.query("SELECT count() FROM t").result_rows == [(1000,)]


def test_a_password(engine: EmbeddedStore) -> None:
    with serve(engine, password="sesame") as front:
        right = client_of(front, password="sesame")
        assert right.query("SELECT 1").result_rows == [(1,)]
        right.close()
        with pytest.raises(DatabaseError) as caught:
            client_of(front, password="guess")
        assert caught.value.code == 516
        with pytest.raises(StoreError, match="check user and password"):
            connect(front.url)


def test_after_closing_nobody_answers(engine: EmbeddedStore) -> None:
    front = serve(engine)
    client = client_of(front)
    front.close()
    front.close()
    with pytest.raises(OperationalError):
        client.query("SELECT 1")
    client.close()
    again = serve(engine, port=front.port)
    assert client_of(again).query("SELECT 1").result_rows == [(1,)]
    again.close()
