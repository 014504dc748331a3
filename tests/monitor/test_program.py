"""The command as a process: it serves a made-up fleet, ends when it is told, and leaves nothing behind."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.monitor import Client
from support.viewers import watching

PROGRAM: Final = "from ettwatch_app.commands.monitor import monitor; monitor()"

VIEWERS: Final = 5
FEW_S: Final = 40.0
"""Within this it has to end, also where the machine has much to do; alone it takes two seconds."""


@contextlib.contextmanager
def demo(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """Run it with a fleet of two hours, and give a client of it. It ends with the block at the latest."""
    words = [sys.executable, "-c", PROGRAM, "--demo", "--demo-days", "0.1", "--port", "0"]
    env = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env, cwd=folder) as process:
        try:
            assert process.stderr is not None
            url = next((line.strip() for line in process.stderr if line.startswith("http")), None)
            assert url is not None
            yield process, Client(url.rstrip("/"))
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_soon_and_in_silence_while_people_watch(number: signal.Signals, tmp_path: Path) -> None:
    with demo(tmp_path) as (process, client):
        told: list[list[bytes]] = [[] for _ in range(VIEWERS)]
        viewers = [watching(client.place, pieces) for pieces in told]
        deadline = time.monotonic() + 60
        while not all(b"event: live" in b"".join(pieces) for pieces in told):
            assert time.monotonic() < deadline, "somebody was told nothing"
            time.sleep(0.05)
        begin = time.monotonic()
        process.send_signal(number)
        assert process.wait(60) == 0
        took = time.monotonic() - begin
        for viewer in viewers:
            viewer.join(60)
            assert not viewer.is_alive()
        assert process.stderr is not None
        rest = process.stderr.read()
    assert took < FEW_S, took
    # That a look at the database comes to its end first is said after a second, which may pass on a busy machine.
    said = [line for line in rest.splitlines() if " INFO " not in line]
    assert [line for line in said if "the last questions to the database are being answered" not in line] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_demo_serves_and_ends_when_it_is_told(number: signal.Signals, tmp_path: Path) -> None:
    with demo(tmp_path) as (process, client):
        me = client.get("me")
        assert me["demo"]
        assert me["teams"]
        assert client.get("fleet")["total"]["jobs"] > 0
        assert len(client.get("alerts", {"status": "firing"})["alerts"]) == 2
        process.send_signal(number)
        assert process.wait(60) == 0
    assert list(tmp_path.iterdir()) == []


STUCK: Final = """
import asyncio, sys
from ettwatch_monitor.api.guard import Guard
from ettwatch_monitor.api.serve import listen, server_for
from ettwatch_monitor.api.settings import MonitorSettings

async def app(scope, receive, send):
    while (message := await receive())["type"].startswith("lifespan"):
        await send({"type": message["type"] + ".complete"})

async def ends():
    await asyncio.sleep(3600)

socket = listen("127.0.0.1", 0)
print(socket.getsockname()[1], flush=True)
settings = MonitorSettings()
server_for(Guard(app, settings, ends=ends), settings.limits).run(sockets=[socket])
"""


def test_who_asks_once_more_does_not_wait() -> None:
    words = [sys.executable, "-c", STUCK]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            place = ("127.0.0.1", int(process.stdout.readline()))
            _until_it_answers(place)
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline().startswith("ending: ")
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert process.stderr.read() == ""
        finally:
            process.kill()


def _until_it_answers(place: tuple[str, int]) -> None:
    """Its signals are heard from when it serves."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.create_connection(place, timeout=60) as line, contextlib.suppress(TimeoutError):
            line.settimeout(1)
            line.sendall(b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n")
            if line.recv(1):
                return
    raise AssertionError("it does not serve")
