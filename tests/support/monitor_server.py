"""A program for tests: the fleet of the cookbook, served by ClickHouse's HTTP front and by five monitors.

`python -m support.monitor_server FOLDER` prints the six addresses, then waits until its standard input ends. One
monitor asks the embedded engine and needs no token. Another one asks the front, needs tokens, believes a proxy on
this machine, keeps silences and an audit, and has small limits. Both give whoever asks plenty of time. Two are the
same, but give a query little; the last one needs no token, and gives a request little to arrive.
"""

import ipaddress
import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from ettwatch_clickhouse import EmbeddedStore, Rollups, Writer, connect, migrate, open_embedded, serve
from ettwatch_clickhouse import Limits as FrontLimits
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
    front = serve(store, limits=FrontLimits(head_s=60))
    (folder / "static").mkdir()
    (folder / "static" / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "static" / "app-1a2b3c4d.js").write_text("export {}")
    (folder / "secret.txt").write_text("a secret of the machine")
    Outbox(folder / "outbox.sqlite").close()
    plenty = Limits(head_s=60, send_s=60, sql_s=60)
    open_settings = MonitorSettings(every_s=0.2, limits=replace(plenty, requests_s=10_000, burst=10_000, keep_s=0.2))
    guarded = MonitorSettings(
        tokens=parse_tokens(f"viewer ada {VIEWER}\noperator bob {OPERATOR}\n", "tokens"),
        proxy_header="X-User",
        proxies=(ipaddress.ip_network("127.0.0.0/8"),),
        operators=frozenset({"eve"}),
        outbox=folder / "outbox.sqlite",
        audit=folder / "audit.jsonl",
        every_s=0.2,
        limits=replace(plenty, requests_s=500, burst=500, body_bytes=2_000, sql_rows=100, viewers=3),
    )
    address = Address.parse(front.url)
    through = connect(front.url)
    urls = [front.url]
    with ExitStack() as stack:
        for settings, database, where in (
            (open_settings, store, None),
            (guarded, through, address),
            (_changed(open_settings, sql_s=2), store, None),
            (_changed(guarded, sql_s=2), through, address),
            (_changed(open_settings, head_s=1), store, None),
        ):
            asker = asker_for(database, where, settings.limits)
            app = make_app(database, asker, settings, version="test", static=folder / "static")
            at = listen("127.0.0.1", 0)
            urls.append(f"http://127.0.0.1:{at.getsockname()[1]}")
            stack.enter_context(beside(app, at, settings.limits))
        print(json.dumps(urls), flush=True)
        sys.stdin.read()


def _changed(settings: MonitorSettings, **limits: float) -> MonitorSettings:
    return replace(settings, audit=None, limits=replace(settings.limits, **limits))  # type: ignore[arg-type]


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
