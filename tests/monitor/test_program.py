"""The command as a process: it serves a made-up fleet, ends when it is told, and leaves nothing behind."""

import contextlib
import os
import signal
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
    assert [line for line in rest.splitlines() if " INFO " not in line] == []
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
