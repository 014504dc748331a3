"""A program for tests: the fleet of the cookbook, served by ClickHouse's HTTP front and by two monitors.

`python -m support.monitor_server FOLDER` prints the three addresses, then waits until its standard input ends. One
monitor asks the embedded engine and needs no token. The other one asks the front, needs tokens, believes a proxy on
this machine, keeps silences and an audit, and has small limits.
"""

import ipaddress
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ettwatch_clickhouse import EmbeddedStore, Rollups, Writer, connect, migrate, open_embedded, serve
from ettwatch_clickhouse.address import Address
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_monitor.alerts.deliver import Outbox
from ettwatch_monitor.api.app import make_app
from ettwatch_monitor.api.serve import beside, listen
from ettwatch_monitor.api.settings import Limits, MonitorSettings
from ettwatch_monitor.api.sqlview import asker_for
from ettwatch_monitor.api.tokens import parse_tokens
from ettwatch_schemas import decode_event, encode_event
from support.fleet import CASES, NOW, fill
from support.monitor import EVIL_JOB, EVIL_TEAM, OPERATOR, VIEWER

_SOON: Final = 2_000_000_000_000_000


def main() -> None:
    """Serve until standard input ends."""
    folder = Path(sys.argv[1])
    store = open_embedded(folder / "clickhouse")
    migrate(store)
    fill(store)
    _evil(store)
    _alert(store)
    front = serve(store)
    (folder / "static").mkdir()
    (folder / "static" / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "static" / "app-1a2b3c4d.js").write_text("export {}")
    (folder / "secret.txt").write_text("a secret of the machine")
    Outbox(folder / "outbox.sqlite").close()
    open_settings = MonitorSettings(every_s=0.2, limits=Limits(requests_s=10_000, burst=10_000, sql_s=2, keep_s=0.2))
    guarded = MonitorSettings(
        tokens=parse_tokens(f"viewer ada {VIEWER}\noperator bob {OPERATOR}\n", "tokens"),
        proxy_header="X-User",
        proxies=(ipaddress.ip_network("127.0.0.0/8"),),
        operators=frozenset({"eve"}),
        outbox=folder / "outbox.sqlite",
        audit=folder / "audit.jsonl",
        every_s=0.2,
        limits=Limits(
            requests_s=500, burst=500, body_bytes=2_000, head_s=1, send_s=5, sql_s=2, sql_rows=100, viewers=3
        ),
    )
    address = Address.parse(front.url)
    through = connect(front.url)
    urls = [front.url]
    with ExitStack() as stack:
        for settings, database, asker in (
            (open_settings, store, asker_for(store, None, open_settings.limits)),
            (guarded, through, asker_for(through, address, guarded.limits)),
        ):
            app = make_app(database, asker, settings, version="test", static=folder / "static")
            at = listen("127.0.0.1", 0)
            urls.append(f"http://127.0.0.1:{at.getsockname()[1]}")
            stack.enter_context(beside(app, at, settings.limits))
        print(json.dumps(urls), flush=True)
        sys.stdin.read()


def _evil(store: EmbeddedStore) -> None:
    """A job whose names would be a script, a path and a formula, if somebody let them."""
    events = [decode_event(line) for line in (CASES / "01-worked-example.jsonl").read_bytes().splitlines()]
    state = JobState(EVIL_JOB)
    writer = Writer(store, clock=lambda: float(NOW))
    for event in events:
        told = event.model_copy(update={"job": EVIL_JOB})
        if hasattr(told, "team"):
            told = told.model_copy(update={"team": EVIL_TEAM})
        apply(state, told, Rules())
        writer.event(told, encode_event(told))
    writer.snapshot(snapshot(state, Rules()))
    writer.flush()
    Rollups(store, clock=lambda: float(NOW + 60)).run(full=True)


def _alert(store: EmbeddedStore) -> None:
    columns = [
        "key",
        "episode",
        "seq",
        "id",
        "status",
        "severity",
        "starts_at",
        "updated_at",
        "labels",
        "title",
        "body",
    ]
    row = ("tts|team=ads", 1, 0, "x", "firing", "warning", _SOON, _SOON, {"team": "ads"}, "starts are slow", "why")
    store.insert("alerts_log", columns, [row])


if __name__ == "__main__":
    main()
