"""Requests in plenty: each address has its own measure, and others go on."""

import asyncio
import ipaddress
from typing import Any

from ettwatch_monitor.api.guard import Guard
from ettwatch_monitor.api.settings import Limits, MonitorSettings

LIMITS = Limits(requests_s=50, burst=200)


class Ticking:
    """A clock that somebody moves, an application that says yes, and requests to it."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.guard = Guard(self.yes, MonitorSettings(limits=LIMITS, **settings), lambda: self.now)

    async def yes(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def ask(self, address: str, forwarded: str = "") -> int:
        headers = [(b"host", b"localhost")]
        if forwarded:
            headers.append((b"x-forwarded-for", forwarded.encode()))
        scope = {"type": "http", "path": "/", "raw_path": b"/", "headers": headers, "client": (address, 1)}
        found: list[int] = []

        async def send(message: Any) -> None:
            if "status" in message:
                found.append(message["status"])

        asyncio.run(self.guard(scope, None, send))  # type: ignore[arg-type]
        return found[0]


def test_a_thousand_requests_a_second_are_not_answered() -> None:
    guarded = Ticking()
    statuses = []
    for _ in range(2_000):
        guarded.now += 0.001
        statuses.append(guarded.ask("10.0.0.1"))
    assert 290 <= statuses.count(200) <= 301
    assert set(statuses) == {200, 429}
    assert guarded.ask("10.0.0.2") == 200
    guarded.now += 1
    assert guarded.ask("10.0.0.1") == 200


def test_behind_a_proxy_each_client_has_its_own_measure() -> None:
    guarded = Ticking(proxy_header="X-User", proxies=(ipaddress.ip_network("10.0.0.0/8"),))
    for _ in range(200):
        assert guarded.ask("10.0.0.1", "1.1.1.1, 2.2.2.2") == 200
    assert guarded.ask("10.0.0.1", "9.9.9.9, 2.2.2.2") == 429
    assert guarded.ask("10.0.0.1", "2.2.2.2, 3.3.3.3") == 200
    # Who is no proxy cannot choose whose measure it takes.
    for n in range(200):
        assert guarded.ask("11.0.0.1", f"4.4.4.{n}") == 200
    assert guarded.ask("11.0.0.1", "5.5.5.5") == 429


def test_a_client_that_accepts_nothing_is_let_go() -> None:
    async def stuck(message: Any) -> None:
        await asyncio.sleep(600)

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        while True:
            await send({"type": "http.response.body", "body": b"x", "more_body": True})

    guard = Guard(endless, MonitorSettings(limits=Limits(send_s=0.05)))
    scope = {"type": "http", "path": "/", "headers": [(b"host", b"localhost")], "client": ("10.0.0.1", 1)}
    asyncio.run(asyncio.wait_for(guard(scope, None, stuck), 60))  # type: ignore[arg-type]
