"""The page that `ettwatch up` serves: over its own engine, beside the work, and never in its way."""

import contextlib
import http.client
import io
import json
import re
import signal
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Final, cast

import pytest

from ettwatch_app import datafolder
from ettwatch_app.datafolder import DataFolder
from ettwatch_app.up.log import Log
from ettwatch_app.up.page import serve_page
from ettwatch_clickhouse import Store, StoreError
from support.monitor import Client
from support.spooled import until
from support.viewers import watching
from up.test_command import living
from up.world import beats


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_is_live_and_ends_in_silence_with_those_who_watch(tmp_path: Path, number: signal.Signals) -> None:
    folder = DataFolder(tmp_path / "data")
    with living(folder.root, "--page", "127.0.0.1:0") as one:
        started = one.until("started")
        client = Client(started["page"].rstrip("/"))
        assert f"page at {started['page']}" in started["message"]
        assert client.ask("/").status == 200
        assert client.get("jobs")["jobs"] == []
        pieces: list[bytes] = []
        viewers = [watching(client.place, pieces if n == 0 else []) for n in range(5)]
        until(lambda: b"event: live" in b"".join(pieces))
        # What is read from now on comes to the page by itself.
        (folder.spool / "a.jsonl").write_bytes(beats(1, 2, 3))
        until(lambda: re.search(rb'"changed":[2-9]', b"".join(pieces)), 200)
        until(lambda: client.get("jobs")["jobs"])
        query = {"query": "SELECT job, events FROM jobs"}
        assert client.changing().ask("sql", method="POST", body=query).json["rows"] == [["job", 3]]
        # ... and so does one that is in the middle of a long query.
        asking = threading.Thread(target=_ask_long, args=(client.changing(),), daemon=True)
        asking.start()
        with datafolder.open_store(folder) as store:
            until(lambda: store.query(_LONG_ONES).rows == [(1,)])
        assert one.end(number) == 0
        for thread in (*viewers, asking):
            thread.join(60)
            assert not thread.is_alive()
    told = [line["message"] for line in one.told if line["level"] != "info"]
    # That it waits for the answer is said after a second, which may pass where the machine has much to do.
    said = ("Cancel 1 running task", "the last questions to the database are being answered")
    assert [message for message in told if not any(words in message for words in said)] == []


_LONG_ONES: Final = "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(cityHash64(%'"


def _ask_long(client: Client) -> None:
    query = json.dumps({"query": "SELECT sum(cityHash64(number)) FROM numbers(1e12)"})
    with contextlib.closing(http.client.HTTPConnection(client.place, timeout=60)) as connection:
        connection.request("POST", "/api/v1/sql", query, {**client.headers, "Content-Type": "application/json"})
        assert connection.getresponse().status in (400, 503)


def test_an_address_that_is_taken_costs_the_page_and_no_more(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with living(folder.root, "--page", f"127.0.0.1:{port}") as one:
            told = one.until("no_page")
            assert f"cannot listen at 127.0.0.1:{port}" in told["message"]
            assert "--page" in told["message"]
            started = one.until("started")
            assert started["page"] is None
            (folder.spool / "a.jsonl").write_bytes(beats(1, 2, 3))
            one.until("progress")
            assert one.end() == 0


def no_page(monkeypatch: pytest.MonkeyPatch, store: object) -> str:
    log = io.StringIO()
    with ExitStack() as stack:
        assert serve_page(("127.0.0.1", 0), cast(Store, store), Log(log, "json"), stack) is None
    (line,) = log.getvalue().splitlines()
    told: dict[str, str] = json.loads(line)
    assert told["event"] == "no_page"
    return told["message"]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("ettwatch_monitor", "fastapi")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'ettwatch[monitor]'" in no_page(monkeypatch, None)


def test_a_database_that_answers_nothing_costs_the_page_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def query(self, *_: object) -> None:
            raise StoreError("ClickHouse is away")

    monkeypatch.setattr("ettwatch_clickhouse.EmbeddedStore", Away)
    monkeypatch.setattr("ettwatch_monitor.api.sqlview.EmbeddedStore", Away)
    assert no_page(monkeypatch, Away()) == "no page: ClickHouse is away"


def test_off(tmp_path: Path) -> None:
    with ExitStack() as stack:
        assert serve_page(None, cast(Store, None), Log(io.StringIO(), "json"), stack) is None
