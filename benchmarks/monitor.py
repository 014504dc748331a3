"""The page over a large fleet: how soon the first view is drawn, what it weighs, what many live viewers cost.

``nice python benchmarks/monitor.py [--jobs 100000] [--days 30] [--viewers 200] [--folder FOLDER]``

Makes a fleet by SQL in the embedded engine, with its rollups, and serves it with ``ettwatch monitor``. A Chromium of
its own each time, so that nothing is kept from before, asks for the page; it is drawn when nothing loads any more. Then
viewers are connected to the live stream while a job changes every half second. A folder that is named is kept, and used
as it is if it holds a fleet.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from _common import save
from _rollup_fleet import OWNERS, fill
from ettwatch_clickhouse import Rollups, Store, connect, migrate, open_embedded

_COMMAND: Final = Path(sys.executable).parent / "ettwatch"
_VIEWS: Final = {"fleet, a day": "/", "fleet, 30 days": "/?range=30d", "jobs": "/jobs?range=30d"}
_RUNS: Final = 7
_WATCH_S: Final = 30.0
_TICK: Final = os.sysconf("SC_CLK_TCK")
_ENGINE: Final = """
import sys
from pathlib import Path
from ettwatch_clickhouse import open_embedded, serve
store = open_embedded(Path(sys.argv[1]))
front = serve(store)
print(front.url, flush=True)
sys.stdin.read()
front.close()
store.close()
"""


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="monitor-"))
    try:
        shape = _fleet(folder / "clickhouse", options.jobs, options.days)
        with _monitor("--data", str(folder)) as (url, _):
            views = _views(url)
        with _engine(folder / "clickhouse") as (database, engine), _monitor("--clickhouse", database) as (url, page):
            watched = _watched(url, database, options.viewers, {"page": page, "engine": engine})
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    weight = max(figures["kilobytes"] for figures in views.values())
    save(
        "monitor",
        {"fleet": shape, **views, "live": watched},
        {
            "first view drawn in at most 1 s": views["fleet, a day"]["median_s"] <= 1,
            "first view of 30 days in at most 1 s": views["fleet, 30 days"]["median_s"] <= 1,
            "the page weighs at most 500 KB": weight <= 500,
            f"{options.viewers} viewers: at most 20 % of a core": watched["page_cores"] <= 0.2,
        },
    )


def _fleet(folder: Path, jobs: int, days: int) -> dict[str, Any]:
    """Make the fleet, if it is not there; return its size."""
    folder.mkdir(parents=True, exist_ok=True)
    store = open_embedded(folder)
    try:
        migrate(store)
        if not _count(store, "jobs_log"):
            begun = time.monotonic()
            now = int(time.time()) // 3600 * 3600
            print("making the fleet ...", file=sys.stderr, flush=True)
            fill(store, 0, jobs=jobs, begin=now - 86_400 * days, hours=24 * days, gaps=4)
            columns = ("loaded", "digest", "stage_prefix", "cluster", "model", "system", "team", "contact", "source")
            rows = [(now * 1_000_000, "benchmark", *rule, "owners.yaml") for rule in OWNERS]
            store.insert("owners_log", columns, rows)
            Rollups(store).run()
            print(f"made in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        return {
            "jobs": _count(store, "jobs_log"),
            "hours of jobs": _count(store, "segments_log"),
            "days": days,
        }
    finally:
        store.close()


def _count(store: Store, table: str) -> int:
    ((count,),) = store.query(f"SELECT count() FROM {table}").rows
    assert isinstance(count, int)
    return count


@contextlib.contextmanager
def _engine(folder: Path) -> Iterator[tuple[str, int]]:
    """The engine in a process of its own, over HTTP: its address and its process."""
    command = [sys.executable, "-c", _ENGINE, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.stdin.close()
            process.wait(60)


@contextlib.contextmanager
def _monitor(*where: str) -> Iterator[tuple[str, int]]:
    """`ettwatch monitor`: its address and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(_COMMAND), "monitor", *where, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _answering(port)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(60)


def _answering(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as sock:
            sock.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            if sock.recv(20).startswith(b"HTTP/1.1 200"):
                return
        time.sleep(0.1)
    raise SystemExit("ettwatch monitor does not answer")


def _views(url: str) -> dict[str, dict[str, float]]:
    """Return for each view how long (s) it took until it was drawn, and its weight."""
    browser_path = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    if browser_path is None:
        raise SystemExit("Chromium is needed: apt-get install chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    found = {}
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=[*options, "--disable-gpu"])
        for name, path in _VIEWS.items():
            drawn, server, size = [], [], 0.0
            for _ in range(_RUNS):
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                page = context.new_page()
                begun = time.monotonic()
                page.goto(url + path, wait_until="commit")
                page.locator("main h1").first.wait_for()
                page.locator("main .loading").first.wait_for(state="detached")
                page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                drawn.append(time.monotonic() - begun)
                entries: list[Any] = page.evaluate(
                    "() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
                    ".map(e => [e.name, e.transferSize, e.responseEnd - e.requestStart])"
                )
                server.append(
                    max(took for asked, _, took in entries if "/api/" in asked and not asked.endswith("/live"))
                )
                size = sum(sent for _, sent, _ in entries) / 1e3
                context.close()
            found[name] = {
                "first_s": drawn[0],
                "median_s": median(drawn),
                "slowest_s": max(drawn),
                "slowest_answer_ms": median(server),
                "kilobytes": size,
            }
            print(f"{name}: {median(drawn):.2f} s", file=sys.stderr, flush=True)
        browser.close()
    return found


def _watched(url: str, database: str, viewers: int, processes: dict[str, int]) -> dict[str, float]:
    """Return what viewers of the live stream cost while a job changes every half second."""
    halt = threading.Event()
    writer = threading.Thread(target=_change, args=(database, halt))
    writer.start()
    try:
        return asyncio.run(_view(url, viewers, processes))
    finally:
        halt.set()
        writer.join()


def _change(database: str, halt: threading.Event) -> None:
    store = connect(database)
    version = 2
    with contextlib.closing(store):
        while not halt.wait(0.5):
            version += 1
            store.command(
                "INSERT INTO jobs_log SELECT * REPLACE ("
                f"{version} AS version, toUnixTimestamp64Micro(now64(6)) AS written) FROM jobs_log "
                "WHERE job = 'job-00000007' LIMIT 1"
            )


async def _view(url: str, viewers: int, processes: dict[str, int]) -> dict[str, float]:
    parts = urlsplit(url)
    told = [0] * viewers

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20)
        writer.write(b"GET /api/v1/live HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
        while line := await reader.readline():
            told[number] += line.startswith(b"id:")

    tasks = [asyncio.create_task(one(number)) for number in range(viewers)]
    await asyncio.sleep(5)
    before, used = list(told), {name: _cpu_s(pid) for name, pid in processes.items()}
    await asyncio.sleep(_WATCH_S)
    updates = [after - then for then, after in zip(before, told, strict=True)]
    cores = {f"{name}_cores": (_cpu_s(pid) - used[name]) / _WATCH_S for name, pid in processes.items()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "viewers": viewers,
        "fewest_updates": min(updates),
        "seconds_between": _WATCH_S / max(1, min(updates)),
        **cores,
    }


def _cpu_s(pid: int) -> float:
    fields = (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


if __name__ == "__main__":
    main()
