"""`ettwatch monitor`: the fleet as a page, and its JSON API."""

import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ettwatch_app.commands._folder import opened
from ettwatch_app.commands._shared import Refused, data_option, ends_cleanly, owners_for
from ettwatch_app.datafolder import living_up, locate
from ettwatch_app.monitor.settings import DEFAULT_LISTEN, parse_listen, settings_of

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store
    from ettwatch_clickhouse.address import Address
    from ettwatch_monitor.api.settings import MonitorSettings

_PATIENCE_S: Final = 60
_PLACE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--clickhouse",
    metavar="URL",
    help="The database, http[s]://user@host:8123/ettwatch.  [default: $ETTWATCH_CLICKHOUSE, else the data folder]",
)
@data_option
@click.option("--listen", metavar="HOST:PORT", help=f"Where to serve.  [default: {DEFAULT_LISTEN}]")
@click.option("--port", type=click.IntRange(0, 65_535), help="Short for --listen 127.0.0.1:PORT; 0 is any free one.")
@click.option("--tokens", type=_PLACE, envvar="ETTWATCH_MONITOR_TOKENS", help="File of tokens: ROLE USER TOKEN a line.")
@click.option("--proxy-header", metavar="NAME", help="Header in which a reverse proxy names the user.")
@click.option("--proxy-from", "proxies", metavar="NETWORK", multiple=True, help="From where that header is believed.")
@click.option("--operator", "operators", metavar="USER", multiple=True, help="A user of the proxy who is an operator.")
@click.option("--host", "hosts", metavar="NAME", multiple=True, help="A name by which the page is reached; * is any.")
@click.option("--secure", is_flag=True, help="The page is reached by https only, through a proxy.")
@click.option("--anybody", is_flag=True, help="Nobody has to say who they are, also from other machines.")
@click.option(
    "--alert-state",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="ETTWATCH_ALERT_STATE",
    help="The folder of `ettwatch alerts run`, for silences.  [default: $ETTWATCH_ALERT_STATE]",
)
@click.option("--audit", type=_PLACE, envvar="ETTWATCH_MONITOR_AUDIT", help="File to which each change is written.")
@click.option("--demo", is_flag=True, help="Show a fleet that is made up, in a folder that is removed at the end.")
@click.option("--demo-days", type=click.FloatRange(0.1, 90), default=3.0, show_default=True, help="Its past, in days.")
@ends_cleanly
def monitor(
    clickhouse: str | None,
    data: Path | None,
    listen: str | None,
    port: int | None,
    demo: bool,
    demo_days: float,
    **told: Any,
) -> None:
    """Serve the fleet as a page with its JSON API, until SIGTERM or Ctrl-C.

    On this machine nobody has to say who they are. For other machines to reach it, give --tokens or a proxy.

    Exit codes: 0 stopped as asked; 2 nothing done.
    """
    import ettwatch_clickhouse as sink
    from ettwatch_monitor.api.app import make_app
    from ettwatch_monitor.api.serve import ListenError, server_for
    from ettwatch_monitor.api.serve import listen as listen_at
    from ettwatch_monitor.api.sqlview import asker_for

    if listen is not None and port is not None:
        raise click.UsageError("give --listen or --port, not both")
    host, number = parse_listen(listen or f"127.0.0.1:{DEFAULT_LISTEN.rpartition(':')[2] if port is None else port}")
    settings = settings_of(host=host, demo=demo, **told)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_on((signal.SIGTERM,), lambda: sys.exit(128 + signal.SIGTERM)))
            # Before anything is made: a port that is taken costs no time.
            socket = stack.enter_context(contextlib.closing(listen_at(host, number)))
            if demo:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ettwatch-demo-")))
                settings = _with_silences(settings, folder)
                store, address = stack.enter_context(_made_up(folder, demo_days))
            else:
                store, address = stack.enter_context(_database(clickhouse, data))
            asker = asker_for(store, address, settings.limits)
            app = make_app(store, asker, settings, version=version("ettwatch"))
            shown = f"[{host}]" if ":" in host else host
            click.echo(f"http://{shown}:{socket.getsockname()[1]}/", err=True)
            # The server catches both, ends, and sends itself the signal once more: what comes after must be done, too.
            stack.enter_context(_on((signal.SIGTERM, signal.SIGINT), lambda: None))
            server_for(app, settings.limits).run(sockets=[socket])
    except (ListenError, sink.StoreError) as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot write to {error.filename}: {error.strerror}") from None


@contextlib.contextmanager
def _on(numbers: tuple[signal.Signals, ...], act: Callable[[], None]) -> Iterator[None]:
    """Have signals do something else inside of the block."""
    before = [(number, signal.signal(number, lambda *_: act())) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextlib.contextmanager
def _database(url: str | None, data: Path | None) -> "Iterator[tuple[Store, Address | None]]":
    """The database that is asked for: a server, or a data folder. Raises Refused, FolderError."""
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
    from ettwatch_clickhouse.address import Address

    if url is not None or (data is None and os.environ.get("ETTWATCH_CLICKHOUSE")):
        try:
            access = ClickHouseAccess.read(os.environ, url)
        except ClickHouseSettingError as error:
            raise Refused(str(error)) from None
        with contextlib.closing(access.connect(timeout_s=_PATIENCE_S)) as store:
            yield store, access.address
        return
    folder = locate(data)
    with opened(folder, "ettwatch monitor") as store:
        info = living_up(folder)
        yield store, Address.parse(info.url) if info is not None and info.url is not None else None


@contextlib.contextmanager
def _made_up(folder: Path, days: float) -> "Iterator[tuple[Store, Address | None]]":
    """A database of its own with a made-up fleet."""
    import ettwatch_clickhouse as sink
    from ettwatch_app.monitor.fleet import DemoFleet

    owners = owners_for(locate(None).owners)
    store = sink.open_embedded(folder / "clickhouse")
    try:
        sink.migrate(store)
        fleet = DemoFleet(store, owners, days, seed=1)
        click.echo(f"making up {days:g} day{'' if days == 1 else 's'} of a fleet; Ctrl-C ends it", err=True)
        click.echo(f"{fleet.fill():,} jobs", err=True)
        fleet.start()
        try:
            yield store, None
        finally:
            fleet.close()
    finally:
        store.close()


def _with_silences(settings: "MonitorSettings", folder: Path) -> "MonitorSettings":
    """Let silences be kept in a folder, unless they are kept elsewhere."""
    from ettwatch_monitor.alerts.deliver import Outbox

    if settings.outbox is not None:
        return settings
    outbox = folder / "outbox.sqlite"
    Outbox(outbox).close()
    return replace(settings, outbox=outbox)
