"""A monitor to ask: the addresses of a program that serves it, and a client."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

VIEWER: Final = "viewer-token-0123456789"
OPERATOR: Final = "operator-token-0123456789"
EVIL_JOB: Final = '<script>alert("x")</script>/../../etc/passwd\r\nSet-Cookie: a=b'
EVIL_TEAM: Final = "=cmd|'/c calc'!A1\"><img src=x onerror=alert(1)>"

FROM: Final = 1_789_344_000_000_000
"""Begin of the first day of the fleet, 2026-09-14."""
TO: Final = FROM + 14 * 86_400_000_000


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks one monitor. Headers are sent with every request."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self.place = urlsplit(url).netloc
        self.headers = dict(headers or {})

    def ask(
        self,
        path: str,
        params: Mapping[str, object] | None = None,
        *,
        method: str = "GET",
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and return what came back, whatever it is. Paths without a slash are of the API."""
        where = path if path.startswith("/") else f"/api/v1/{path}"
        if params:
            where += "?" + urlencode(params)
        sent = {**self.headers, **(headers or {})}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.place, timeout=60)
        try:
            connection.request(method, where, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, params: Mapping[str, object] | None = None) -> Any:
        """Return the JSON of a success."""
        answer = self.ask(path, params)
        assert answer.status == 200, (path, params, answer.status, answer.body[:300])
        return answer.json

    def changing(self) -> "Client":
        """Return the same client, whose requests may change something."""
        csrf = self.get("me")["csrf"]
        return Client(self.url, {**self.headers, **({"X-CSRF-Token": csrf} if csrf else {})})


class Served(NamedTuple):
    """The program's addresses.

    Attributes:
        folder: Of its data.
        sql: Of ClickHouse's HTTP front.
        plain: The monitor that needs no token.
        guarded: The monitor that needs one; the client sends none.
        hurried_plain: As `plain`, but a query has to end soon.
        hurried: As `guarded`, but a query has to end soon.
        impatient: As `plain`, but a request has to arrive soon.
    """

    folder: Path
    sql: str
    plain: Client
    guarded: Client
    hurried_plain: Client
    hurried: Client
    impatient: Client

    def viewer(self) -> Client:
        return Client(self.guarded.url, {"Authorization": f"Bearer {VIEWER}"})

    def operator(self) -> Client:
        return Client(self.guarded.url, {"Authorization": f"Bearer {OPERATOR}"})


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Serve the fleet of the cookbook, in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-m", "support.monitor_server", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, "the program ended before it served"
            sql, *monitors = json.loads(line)
            yield Served(folder, sql, *map(Client, monitors))
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
