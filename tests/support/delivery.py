"""For tests of delivery: alerts, channels that do as they are told, a receiver over HTTP."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from ettwatch_monitor.alerts.alert import Alert, Severity
from ettwatch_monitor.alerts.deliver import Channel, Delivery, Message, Outbox, Plan, Silence

T0: Final = 1_790_000_000_000_000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE


def firing(key: str = "tts|team=ads", at: int = T0, *, severity: Severity = "warning", **labels: str) -> Alert:
    """An alert that fires since `at`."""
    return Alert(
        key=key,
        status="firing",
        starts_at=at,
        ends_at=None,
        updated_at=at,
        severity=severity,
        labels={"metric": "tts", "team": "ads", **labels},
        title="TTS of ads rose from 5m to 6m",
        body="TTS of team ads rose from 5m to 6m since Monday.\nMost of it: trainer_init.checkpoint_load.",
        facts={"before_s": 300.0, "now_s": 360.0, "stage": "trainer_init.checkpoint_load"},
        sql=(("starts of the team", "SELECT * FROM attempts WHERE team = 'ads' AND tts_s < 600"),),
    )


def resolved(alert: Alert, at: int) -> Alert:
    """The same, ended at `at`."""
    return replace(alert, status="resolved", ends_at=at, updated_at=at)


class Killed(BaseException):
    """Stands for kill -9: nothing may catch it."""


@dataclass(slots=True)
class ScriptedChannel:
    """A channel that takes messages, or does what stands first in `faults`.

    Attributes:
        got: All messages that arrived.
        calls: The number of messages of each call that was tried.
        faults: Exceptions of the next calls; None for a call that works.
        after: The next fault comes after the messages arrived.
    """

    name: str = "chat"
    plan: Plan = field(default_factory=Plan)
    got: list[Message] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    faults: list[BaseException | None] = field(default_factory=list)
    after: bool = False
    unwanted: Callable[[Message], BaseException | None] | None = None

    def send(self, messages: Sequence[Message], now: int) -> None:
        self.calls.append(len(messages))
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not self.after:
            raise fault
        for message in messages:
            refusal = self.unwanted(message) if self.unwanted else None
            if refusal is not None:
                raise refusal
        self.got += messages
        if fault is not None:
            raise fault

    def close(self) -> None:
        pass

    @property
    def told(self) -> list[tuple[str, str]]:
        """Key and status of what arrived."""
        return [(message.alert.key, message.alert.status) for message in self.got]


@contextlib.contextmanager
def delivering(
    path: Path, *channels: Channel, silences: Sequence[Silence] = (), now: int = T0, chance: float = 1.0
) -> Iterator[Delivery]:
    """Delivery from an outbox, with a chance that is none."""
    with Delivery(Outbox(path), channels, silences, now=now, chance=lambda: chance) as delivery:
        yield delivery


@dataclass(slots=True)
class Request:
    """What a receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Receiver:
    """A receiver over HTTP.

    Attributes:
        got: The requests, those that were answered with an error too.
        answers: Status, headers and body of the next answers; then 200.
    """

    url: str
    got: list[Request] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    delay: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """A receiver on a free port of loopback."""
    box: list[Receiver] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(size := int(self.headers["Content-Length"]))
            if len(body) < size:  # who sent it was killed after its head: nothing has arrived
                return
            box[0].got.append(Request(self.path, dict(self.headers), body))
            status, headers, said = box[0].answers.pop(0) if box[0].answers else (200, {}, b"ok")
            if status == 0:
                box[0].delay.wait(60)
                return
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    box.append(Receiver(f"http://127.0.0.1:{server.server_address[1]}"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield box[0]
    finally:
        box[0].delay.set()
        server.shutdown()
        server.server_close()
        thread.join()
