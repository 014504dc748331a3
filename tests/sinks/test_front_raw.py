"""The HTTP front, asked as curl would, and as nobody should."""

import contextlib
import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest

from ettwatch_clickhouse import EmbeddedStore, HttpFront, Limits, serve
from ettwatch_clickhouse.http.engine import Engine
from ettwatch_clickhouse.http.query import Query
from ettwatch_clickhouse.http.statement import parse

LZ4: Any = import_module("lz4.frame")


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str | None:
        return self.headers.get("X-ClickHouse-Exception-Code")


@pytest.fixture(scope="module")
def front(engine: EmbeddedStore) -> Iterator[HttpFront]:
    with serve(engine, limits=Limits(body_bytes=1 << 20, head_s=60)) as running:
        yield running


def ask(
    front: HttpFront,
    path: str = "/",
    body: Any = None,
    method: str | None = None,
    headers: dict[str, str] | None = None,
    **params: Any,
) -> Reply:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
    target = f"{path}?{urlencode(params)}" if params else path
    connection.request(method or ("GET" if body is None else "POST"), target, body=body, headers=headers or {})
    response = connection.getresponse()
    reply = Reply(response.status, dict(response.headers), response.read())
    connection.close()
    return reply


def talk(front: HttpFront, sent: bytes, *, shut: bool = False) -> bytes:
    """Send bytes as they are; return all that comes until the other side is done, which may be while it is told."""
    with socket.create_connection(("127.0.0.1", front.port), timeout=60) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(sent)
            if shut:
                connection.shutdown(socket.SHUT_WR)
        read = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                read += piece
        return read


def eventually(works: Callable[[], bool]) -> bool:
    """Whether something works at last: threads start and end when the machine lets them."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(ConnectionError):
            if works():
                return True
        time.sleep(0.1)
    return False


def test_ping_and_root(front: HttpFront) -> None:
    assert ask(front, "/ping") == ask(front, "/ping")._replace(status=200, body=b"Ok.\n")
    assert ask(front, "/").body == b"Ok.\n"
    assert ask(front, "/replicas_status").body == b"Ok.\n"
    assert ask(front, "/nothing", query="SELECT 1").status == 404


def test_a_query_in_the_address_or_in_the_body_or_half_and_half(front: HttpFront) -> None:
    assert ask(front, query="SELECT 1").body == b"1\n"
    assert ask(front, body=b"SELECT 1").body == b"1\n"
    assert ask(front, query="SELECT", body=b"1").body == b"1\n"
    assert ask(front, body=b"SELECT {x:Int8} = 3 AND '%41+&' != 'A &'", headers=FORM, param_x=3).body == b"1\n"
    assert ask(front, query="SELECT", body=b"1", headers=FORM).body == b"1\n"


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
"""What curl says of any body."""


def test_what_the_headers_say(front: HttpFront) -> None:
    reply = ask(front, query="SELECT 1 AS x FORMAT JSON", query_id="my-id", wait_end_of_query=1)
    assert json.loads(reply.body)["data"] == [{"x": 1}]
    assert reply.headers["X-ClickHouse-Query-Id"] == "my-id"
    assert reply.headers["X-ClickHouse-Format"] == "JSON"
    assert reply.headers["X-ClickHouse-Timezone"] == "UTC"
    assert reply.headers["Content-Type"] == "application/json; charset=UTF-8"
    assert json.loads(reply.headers["X-ClickHouse-Summary"])["result_rows"] == "1"
    assert "X-ClickHouse-Exception-Code" not in reply.headers


@pytest.mark.parametrize(
    ("query", "params", "form", "body"),
    [
        ("SELECT 1, 'a'", {}, "TabSeparated", b"1\ta\n"),
        ("SELECT 1, 'a'", {"default_format": "CSV"}, "CSV", b'1,"a"\n'),
        ("SELECT 1, 'a' FORMAT TSVWithNames", {"default_format": "CSV"}, "TSVWithNames", b"1\t\\'a\\'\n1\ta\n"),
        ("SELECT 1 AS a FORMAT JSONEachRow;", {}, "JSONEachRow", b'{"a":1}\n'),
        ("SELECT 'FORMAT CSV' -- FORMAT CSV", {}, "TabSeparated", b"FORMAT CSV\n"),
        ("SHOW DATABASES LIKE 'ettwatch'", {}, "TabSeparated", b"ettwatch\n"),
        ("SELECT 1 WHERE 0", {}, "TabSeparated", b""),
    ],
)
def test_formats(front: HttpFront, query: str, params: dict[str, Any], form: str, body: bytes) -> None:
    reply = ask(front, query=query, **params)
    assert (reply.status, reply.headers["X-ClickHouse-Format"], reply.body) == (200, form, body)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("SELECT nope", 404, "47"),
        ("SELECT * FROM nope", 404, "60"),
        ("SELEC", 400, "62"),
        ("", 400, "62"),
        ("-- only words", 400, "62"),
        ("SELECT 1; SELECT 2", 400, "62"),
        ("SELECT * FROM file('/etc/passwd', 'LineAsString')", 403, "497"),
        ("SELECT 1 INTO OUTFILE '/tmp/x'", 500, "358"),
        ("SELECT 1 FORMAT NoSuchFormat", 400, "73"),
    ],
)
def test_errors_have_status_number_and_text(front: HttpFront, query: str, status: int, code: str) -> None:
    for reply in (ask(front, body=query.encode()), ask(front, body=b"", query=query)):
        assert (reply.status, reply.code) == (status, code)
        assert reply.body.startswith(f"Code: {code}. DB::Exception: ".encode())
        assert b" (version " in reply.body
        assert reply.body.endswith(b")\n")
    if query:
        assert ask(front, query=query).status == status


def test_a_query_that_takes_too_long_is_told_so(engine: EmbeddedStore) -> None:
    with serve(engine, limits=Limits(query_s=1.0, head_s=60)) as hurried:
        reply = ask(hurried, query="SELECT sleep(2)")
    assert (reply.status, reply.code) == (408, "159")
    assert reply.body.startswith(b"Code: 159. DB::Exception: ")


def test_get_changes_nothing(front: HttpFront) -> None:
    ask(front, body=b"CREATE OR REPLACE TABLE g (a Int8) ENGINE = MergeTree ORDER BY a")
    for query in (
        "DROP TABLE g",
        "INSERT INTO g VALUES (1)",
        "INSERT INTO g FORMAT CSV\n1\n",
        "CREATE TABLE h (a Int8) ENGINE = Memory",
    ):
        assert ask(front, query=query).code == "164"
        assert ask(front, query=query, session_id="get").code == "164"
    assert ask(front, query="SELECT count() FROM g").body == b"0\n"
    assert ask(front, body=b"INSERT INTO g VALUES (1)", session_id="get").status == 200
    assert ask(front, body=b"INSERT INTO g VALUES (1)", readonly=2).code == "164"
    assert ask(front, query="SELECT 1", readonly=1, max_threads=1).status == 200
    assert ask(front, query="SELECT count() FROM g").body == b"1\n"


@pytest.mark.parametrize("readonly", [{"method": "GET"}, {"method": "POST", "body": b"", "readonly": 2}])
def test_what_the_engine_runs_in_spite_of_readonly_is_refused(front: HttpFront, readonly: dict[str, Any]) -> None:
    ask(front, body=b"CREATE OR REPLACE TABLE u (a Int8) ENGINE = MergeTree ORDER BY a")
    ask(front, body=b"DROP TABLE u")
    for query in (
        "UNDROP TABLE u",
        "KILL QUERY WHERE 1 ASYNC",
        "kill query WHERE query_id = 'x'",
        "/* a */ -- b\nKILL MUTATION WHERE 0",
        "CREATE TEMPORARY TABLE k (a Int8) PARALLEL WITH KILL QUERY WHERE query_id = 'x'",
    ):
        assert ask(front, query=query, **readonly).code == "164", query
    assert ask(front, query="EXISTS u").body == b"0\n"
    assert ask(front, query="SELECT 'KILL' AS kill", **readonly).body == b"KILL\n"
    assert ask(front, body=b"KILL QUERY WHERE query_id = 'x'").status == 200
    assert ask(front, body=b"UNDROP TABLE u").status == 200
    ask(front, body=b"DROP TABLE u")


def test_head_has_no_body(front: HttpFront) -> None:
    reply = ask(front, method="HEAD", query="SELECT 1")
    assert (reply.status, reply.body) == (200, b"")
    assert ask(front, method="HEAD", query="SELECT nope").status == 404
    assert ask(front, "/ping", method="HEAD").body == b""


def test_one_connection_serves_many_requests(front: HttpFront) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
    for number in range(20):
        bad = number % 3 == 0
        connection.request("POST", "/", body="SELECT nope" if bad else f"SELECT {number}")
        response = connection.getresponse()
        assert (response.status, response.read()[:3]) == ((404, b"Cod") if bad else (200, f"{number}\n".encode()))
    connection.close()


def test_answers_do_not_wait_for_a_slow_network(front: HttpFront) -> None:
    """Without TCP_NODELAY a second request on a connection would take 40 ms."""
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
    connection.request("POST", "/", body="SELECT 1")
    connection.getresponse().read()
    mine = connection.sock.getsockname()
    with front._server._open_lock:
        (served,) = [one for one in front._server._open if peer(one) == mine]
        assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    connection.close()


def peer(connection: socket.socket) -> object:
    try:
        return connection.getpeername()
    except OSError:  # it was closed just now
        return None


@pytest.mark.parametrize("encoding", ["gzip", "lz4", "zstd", "deflate"])
def test_answers_are_packed_where_that_is_asked_for(front: HttpFront, encoding: str) -> None:
    query = "SELECT repeat('x', 100) FROM numbers(1000)"
    asked = {"Accept-Encoding": f"br;q=1, {encoding}, identity"}
    for whole in (0, 1):
        packed = ask(front, body=query, headers=asked, enable_http_compression=1, wait_end_of_query=whole)
        assert packed.headers["Content-Encoding"] == encoding
        assert len(packed.body) < 5_000
    assert "Content-Encoding" not in ask(front, body=query, headers=asked).headers
    only_br = ask(front, body=query, headers={"Accept-Encoding": "br, gzip;q=0"}, enable_http_compression=1)
    assert "Content-Encoding" not in only_br.headers


def test_a_packed_body_may_have_several_frames(front: HttpFront) -> None:
    ask(front, body=b"CREATE OR REPLACE TABLE f (a Int32) ENGINE = MergeTree ORDER BY a")
    parts = [b"INSERT INTO f FORMAT CSV\n1\n", b"2\n3", b"\n4\n"]
    lz4 = b"".join(LZ4.compress(part) for part in parts)
    assert ask(front, body=lz4, headers={"Content-Encoding": "lz4"}).status == 200
    zipped = b"".join(gzip.compress(part, mtime=0) for part in parts)
    assert ask(front, body=zipped, headers={"Content-Encoding": "gzip"}).status == 200
    in_pieces = iter([lz4[n : n + 7] for n in range(0, len(lz4), 7)])
    assert ask(front, body=in_pieces, headers={"Content-Encoding": "lz4"}).status == 200
    assert ask(front, query="SELECT count(), sum(a) FROM f").body == b"12\t30\n"


@pytest.mark.parametrize(
    ("body", "encoding", "code"),
    [
        (b"no gzip", "gzip", "271"),
        (gzip.compress(b"SELECT 1", mtime=0)[:-9], "gzip", "271"),
        (LZ4.compress(b"SELECT 1")[:-3], "lz4", "271"),
        (LZ4.compress(b"SELECT 1") + b"rest", "lz4", "271"),
        (b"x", "zstd", "271"),
        (b"SELECT 1", "br", "89"),
    ],
)
def test_a_broken_packed_body_is_refused(front: HttpFront, body: bytes, encoding: str, code: str) -> None:
    assert ask(front, body=body, headers={"Content-Encoding": encoding}).code == code


def test_a_body_may_not_be_larger_than_the_limit_not_even_unpacked(front: HttpFront) -> None:
    large = b"SELECT '" + b"x" * (2 << 20) + b"'"
    assert ask(front, body=large).code == "229"
    assert ask(front, body=gzip.compress(large, mtime=0), headers={"Content-Encoding": "gzip"}).code == "229"
    ask(front, body=b"CREATE OR REPLACE TABLE l (a String) ENGINE = MergeTree ORDER BY a")
    rows = iter([b"INSERT INTO l FORMAT CSV\n", *[b"x" * 1000 + b"\n"] * 2000])
    assert ask(front, body=rows).code == "229"
    assert ask(front, query="SELECT count() FROM l").body == b"0\n"


@pytest.mark.parametrize("name", ["compress", "decompress"])
def test_the_native_compression_is_refused_with_what_to_do(front: HttpFront, name: str) -> None:
    options: dict[str, Any] = {name: 1}
    reply = ask(front, body=b"SELECT 1", **options)
    assert (reply.status, reply.code) == (501, "48")
    assert b"use Content-Encoding and Accept-Encoding" in reply.body


def test_a_page_in_a_browser_cannot_ask(front: HttpFront) -> None:
    assert ask(front, query="SELECT 1", headers={"Host": f"evil.example:{front.port}"}).status == 403
    assert ask(front, query="SELECT 1", headers={"Origin": "https://evil.example"}).status == 403
    assert ask(front, query="SELECT 1", headers={"Host": "127.0.0.1.evil.example"}).status == 403
    for host in ("localhost", "127.0.0.1", "[::1]:99"):
        assert ask(front, query="SELECT 1", headers={"Host": host}).status == 200
    assert ask(front, query="SELECT 1", headers={"Origin": front.url}).status == 200
    for site in ("cross-site", "same-site", "Cross-Site", "what comes next"):  # a picture or a link has no Origin
        assert ask(front, query="KILL QUERY WHERE 1", headers={"Sec-Fetch-Site": site}).status == 403
    for site in ("none", "same-origin"):
        assert ask(front, query="SELECT 1", headers={"Sec-Fetch-Site": site}).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"BREW / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET http://[x HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nSELECT 1\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nSELECT",
        b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nSELECT 1",
    ],
)
def test_what_is_no_request_is_refused_and_hurts_nobody(front: HttpFront, sent: bytes) -> None:
    read = talk(front, sent, shut=True)
    assert read.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
    assert ask(front, query="SELECT 1").body == b"1\n"


def test_clients_that_say_nothing_more_are_let_go(engine: EmbeddedStore) -> None:
    with serve(engine, limits=Limits(idle_s=1.5, head_s=60)) as hurried:
        begun = time.monotonic()
        for sent in (b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nSELECT"):
            read = talk(hurried, sent)
            assert b"200 OK" not in read
        assert 3 < time.monotonic() - begun < 100
        assert eventually(lambda: ask(hurried, query="SELECT 1").body == b"1\n")


def test_a_client_that_goes_away_in_its_answer_hurts_nobody(front: HttpFront) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", front.port)) as connection:
            query = quote("SELECT number FROM numbers(100000000)")
            connection.sendall(f"GET /?query={query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            connection.recv(10)
    assert eventually(lambda: ask(front, query="SELECT 1").body == b"1\n")


def test_beyond_the_limit_of_connections_clients_are_told_to_come_back(engine: EmbeddedStore) -> None:
    with serve(engine, limits=Limits(head_s=60, connections=4)) as front:
        held = [socket.create_connection(("127.0.0.1", front.port)) for _ in range(4)]
        refused = talk(front, b"")
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 1" in refused
        for connection in held:
            connection.close()
        assert eventually(lambda: ask(front, query="SELECT 1").body == b"1\n")


def test_old_clients_get_a_plain_stream(front: HttpFront) -> None:
    read = talk(front, b"GET /?query=SELECT+number+FROM+numbers(3) HTTP/1.0\r\n\r\n")
    head, _, body = read.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body == b"0\n1\n2\n"


def test_sessions_end(engine: EmbeddedStore, front: HttpFront) -> None:
    assert ask(front, query="SELECT 1", session_id="none", session_check=1).code == "372"
    assert ask(front, body=b"SET max_block_size = 55", session_id="one").status == 200
    assert ask(front, query="SELECT getSetting('max_block_size')", session_id="one").body == b"55\n"
    assert ask(front, query="SELECT 1", session_id="x", session_timeout="soon").code == "374"

    def asked_meanwhile() -> bool:
        slow = threading.Thread(target=lambda: ask(front, query="SELECT sleep(0.5)", session_id="one"))
        slow.start()
        codes = set()
        while slow.is_alive():
            codes.add(ask(front, query="SELECT 1", session_id="one").code)
        slow.join()
        return "373" in codes

    assert eventually(asked_meanwhile)


def test_a_session_that_is_over_is_forgotten(engine: EmbeddedStore) -> None:
    now = [0.0]
    runner = Engine(engine, readonly=False, query_s=5, query_bytes=1 << 30, monotonic=lambda: now[0])
    query = Query(parse(b"SELECT 1"), None, {"session_id": "a", "session_timeout": "10"})
    with runner.run(query, changes=True) as answer:
        assert b"".join(answer.pieces) == b"1\n"
    first = runner._sessions["a"]
    now[0] = 9.0
    with runner.run(query, changes=True):
        assert runner._sessions["a"] is first
    now[0] = 20.0
    with runner.run(query, changes=True):
        assert runner._sessions["a"] is not first
    runner.close()


def test_the_owners_lock_keeps_clients_out(engine: EmbeddedStore) -> None:
    lock = threading.Lock()
    with serve(engine, lock=lock) as front:
        answers: list[bytes] = []
        with lock:
            thread = threading.Thread(target=lambda: answers.append(ask(front, query="SELECT 1").body))
            thread.start()
            time.sleep(0.3)
            assert answers == []
        thread.join(60)
        assert answers == [b"1\n"]


def test_only_loopback_unless_asked(engine: EmbeddedStore) -> None:
    for host in ("0.0.0.0", "::", "example.com", "10.0.0.1"):
        with pytest.raises(ValueError, match=f"host: {host} may be reached by other machines"):
            serve(engine, host)
    with serve(engine, "0.0.0.0", anywhere=True, password="p") as front:
        assert ask(front, query="SELECT 1").status == 403
        assert ask(front, query="SELECT 1", headers={"X-ClickHouse-Key": "p", "Host": "any.name"}).status == 200
        assert ask(front, query="SELECT 1", password="p").status == 200


def test_an_address_that_is_taken(engine: EmbeddedStore, front: HttpFront) -> None:
    with pytest.raises(OSError, match="in use"):
        serve(engine, port=front.port)


def test_only_the_embedded_engine_can_be_served() -> None:
    other: Any = object()
    with pytest.raises(ValueError, match="store: only the embedded engine"):
        serve(other)


@pytest.mark.parametrize("wanted", [{}, {"max_memory_usage": 0}, {"max_memory_usage": 9 << 40}])
def test_a_statement_has_no_more_memory_than_the_limit(engine: EmbeddedStore, wanted: dict[str, Any]) -> None:
    with serve(engine, limits=Limits(query_bytes=50 << 20)) as front:
        reply = ask(front, body=b"SELECT groupArray(number) FROM numbers(3000000000)", **wanted)
        assert reply.code == "241"
        assert ask(front, query="SELECT getSetting('max_memory_usage')", max_memory_usage=99).body == b"99\n"
        assert ask(front, query="SELECT 1", max_memory_usage="9G").code == "72"


@pytest.mark.parametrize("session", ["", "&session_id=gone"])
def test_the_statement_of_a_client_that_is_gone_is_cancelled(engine: EmbeddedStore, session: str) -> None:
    with serve(engine) as front:
        running = "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(sipHash64(%'"

        def runs(number: bytes) -> Callable[[], bool]:
            return lambda: ask(front, query=running).body == number

        with socket.create_connection(("127.0.0.1", front.port)) as client:
            query = quote("SELECT sum(sipHash64(number)) FROM numbers(100000000000)")
            client.sendall(f"GET /?query={query}{session} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert eventually(runs(b"1\n"))
            time.sleep(1.2)
            assert runs(b"1\n")()  # as long as it waits for the answer
        assert eventually(runs(b"0\n"))


def test_connections_without_a_request_soon_make_room(engine: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("ettwatch_clickhouse.http.front.time", SimpleNamespace(monotonic=lambda: now[0]))
    with serve(engine, limits=Limits(head_s=5, connections=4)) as front:
        kept = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
        kept.request("GET", "/ping")
        assert kept.getresponse().read() == b"Ok.\n"
        held = [socket.create_connection(("127.0.0.1", front.port)) for _ in range(3)]
        for connection in held:
            connection.sendall(b"GET / HTTP/1.1\r\nHo")
        now[0] = 4.9
        time.sleep(0.3)  # it looks all the time
        assert talk(front, b"").startswith(b"HTTP/1.1 503 ")
        now[0] = 5.1
        assert eventually(lambda: ask(front, query="SELECT 1").body == b"1\n")
        kept.request("GET", "/ping")  # one that has asked before may pause
        assert kept.getresponse().read() == b"Ok.\n"
        kept.close()
        for connection in held:
            connection.close()
