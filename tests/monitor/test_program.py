"""The command as a process: it serves a made-up fleet, ends when it is told, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.monitor import Client

PROGRAM = "from ettwatch_app.commands.monitor import monitor; monitor()"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_demo_serves_and_ends_when_it_is_told(number: signal.Signals, tmp_path: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, "--demo", "--demo-days", "0.1", "--port", "0"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path) as process:
        try:
            assert process.stderr is not None
            url = next((line.strip() for line in process.stderr if line.startswith("http")), None)
            assert url is not None
            client = Client(url.rstrip("/"))
            me = client.get("me")
            assert me["demo"]
            assert me["teams"]
            assert client.get("fleet")["total"]["jobs"] > 0
            assert len(client.get("alerts", {"status": "firing"})["alerts"]) == 2
            process.send_signal(number)
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []
