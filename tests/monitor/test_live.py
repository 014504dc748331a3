"""What happens now reaches every viewer, and costs one look."""

import asyncio
import http.client
import json
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any, Final

from ettwatch_clickhouse import Table
from ettwatch_monitor.api.desk import Desk
from ettwatch_monitor.api.live import Hub
from ettwatch_monitor.api.settings import Limits
from support.monitor import VIEWER, Served

VIEWERS: Final = 20


class Quiet:
    """A database in which nothing happens; it counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def query(self, sql: str, params: Any = None) -> Table:
        self.asked.append(sql)
        if "max(written)" in sql:
            return Table(["a", "b", "c"], [], [(1, 1, 1)])
        if "count()" in sql and "GROUP BY" not in sql:
            return Table(["n"], [], [(0,)])
        return Table([], [], [])


def read_event(answer: http.client.HTTPResponse) -> dict[str, Any]:
    while True:
        line = answer.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            told: dict[str, Any] = json.loads(line[6:])
            return told


def test_a_viewer_is_told_at_once(fleet: Served) -> None:
    with closing(http.client.HTTPConnection(fleet.plain.place, timeout=60)) as connection:
        connection.request("GET", "/api/v1/live")
        with connection.getresponse() as answer:
            assert answer.getheader("content-type", "").startswith("text/event-stream")
            told = read_event(answer)
    assert told["firing"] == 1
    assert told["stale"] is None
    live = fleet.plain.get("jobs", {"status": "live"})
    assert sum(told["statuses"].values()) == live["total"] > 0
    assert [row["job"] for row in told["jobs"]] != []


def test_there_is_no_room_for_more_viewers_than_may_watch(fleet: Served) -> None:
    statuses = []
    with ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(closing(http.client.HTTPConnection(fleet.guarded.place, timeout=60)))
            connection.request("GET", "/api/v1/live", headers={"Authorization": f"Bearer {VIEWER}"})
            answer = stack.enter_context(connection.getresponse())
            statuses.append(answer.status)
            if answer.status == 200:
                read_event(answer)
    assert statuses == [200, 200, 200, 503]
    deadline = time.monotonic() + 60
    while fleet.viewer().ask("live-is-not-this").status == 404 and time.monotonic() < deadline:
        with closing(http.client.HTTPConnection(fleet.guarded.place, timeout=60)) as connection:
            connection.request("GET", "/api/v1/live", headers={"Authorization": f"Bearer {VIEWER}"})
            with connection.getresponse() as answer:
                if answer.status == 200:
                    return
        time.sleep(0.2)
    raise AssertionError("the room of those who left stayed taken")


def test_many_viewers_cost_one_look_and_nothing_new_costs_a_mark_only() -> None:
    store = Quiet()

    async def watch() -> list[bytes]:
        hub = Hub(Desk(store, Limits()), every_s=0.05)  # type: ignore[arg-type]
        streams = [hub.events() for _ in range(VIEWERS)]

        async def first(stream: Any) -> bytes:
            async for piece in stream:
                if piece.startswith(b"id:"):
                    return bytes(piece)
            raise AssertionError

        told = await asyncio.gather(*(first(stream) for stream in streams))
        async with asyncio.timeout(60):
            while sum("max(written)" in sql for sql in store.asked) < 5:
                await asyncio.sleep(0.05)
        for stream in streams:
            await stream.aclose()
        await hub.close()
        return told

    told = asyncio.run(watch())
    assert len(set(told)) == 1
    marks = [sql for sql in store.asked if "max(written)" in sql]
    others = [sql for sql in store.asked if "max(written)" not in sql]
    assert len(marks) >= 5
    assert len({*others}) == len(others), "the same was asked again though nothing had changed"


def test_the_same_question_at_one_time_is_asked_once() -> None:
    asked: list[int] = []

    def question(_: object) -> int:
        time.sleep(0.1)
        asked.append(1)
        return 7

    async def ask(many: Callable[[Desk], Any]) -> list[int]:
        found: list[int] = await many(Desk(Quiet(), Limits(keep_s=0.0)))  # type: ignore[arg-type]
        return found

    answers = asyncio.run(ask(lambda desk: asyncio.gather(*(desk.ask("key", question) for _ in range(50)))))
    assert answers == [7] * 50
    assert asked == [1]
