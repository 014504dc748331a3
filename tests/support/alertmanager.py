"""A real Prometheus Alertmanager on loopback, of Debian's package, which is not installed."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from support.ports import free_port

_PACKAGE: Final = "prometheus-alertmanager"
_ASSETS: Final = b"/usr/share/prometheus/alertmanager"
_SETTINGS: Final = """
route:
  receiver: hook
  group_by: [alertname, team]
  group_wait: 200ms
  group_interval: 500ms
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs: [{url: '%s', send_resolved: true}]
"""


@dataclass(slots=True)
class Alertmanager:
    """One that can be stopped and started again, with its memory of what it told."""

    folder: Path
    program: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it takes alerts."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    self.program,
                    f"--config.file={self.folder / 'settings.yml'}",
                    f"--storage.path={self.folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--cluster.listen-address=",
                ],
                cwd=self.program.parents[2],
                stdout=log,
                stderr=log,
            )
        until(self._ready)

    def stop(self) -> None:
        """Stop it in good order: it keeps what it told, and forgets which alerts it had."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
            self.process = None

    def alerts(self) -> list[dict[str, Any]]:
        """What it holds to be firing."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def kept(self) -> None:
        """Wait until it remembers what it told: at each interval it looks that up anew, and before that it keeps it."""
        before = self._looks()
        until(lambda: self._looks() > before)

    def _looks(self) -> float:
        """How often it looked up what it had told."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        (found,) = [line for line in lines if line.startswith("alertmanager_nflog_queries_total ")]
        return float(found.split()[1])

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextlib.contextmanager
def alertmanager(folder: Path, hook: str) -> Iterator[Alertmanager]:
    """An Alertmanager that tells a webhook."""
    folder.mkdir()
    (folder / "settings.yml").write_text(_SETTINGS % hook)
    running = Alertmanager(folder, program(), free_port())
    try:
        running.start()
        yield running
    finally:
        running.stop()


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def program() -> Path:
    """Where Alertmanager is; it is fetched if it must be, once, into the cache of the tools of the tests."""
    there = shutil.which(_PACKAGE)
    if there:
        return Path(there)
    cache = Path(os.environ.get("ETTWATCH_TEST_CACHE") or Path.home() / ".cache" / "ettwatch") / "bin"
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"{_PACKAGE}.tree"
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=cache) as made:
                _unpacked(Path(made)).rename(place)
    return place / "usr" / "bin" / _PACKAGE


def _unpacked(made: Path) -> Path:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip(f"needs apt-get, or {_PACKAGE} on PATH")
    fetch = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", _PACKAGE]
    done = subprocess.run(fetch, cwd=made, capture_output=True, text=True)
    if done.returncode:
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True, text=True)
        done = subprocess.run(fetch, cwd=made, capture_output=True, text=True)
    assert done.returncode == 0, f"the package {_PACKAGE} cannot be fetched: {done.stderr}"
    subprocess.run(["dpkg-deb", "-x", next(made.glob("*.deb")), made / "tree"], check=True, capture_output=True)
    # Debian's program looks for its templates below /usr, where nothing is installed: this copy looks below the
    # folder that it is started in. The path keeps its length.
    program = made / "tree" / "usr" / "bin" / _PACKAGE
    program.write_bytes(program.read_bytes().replace(_ASSETS, _ASSETS.replace(b"/usr/", b"usr//")))
    return made / "tree"
