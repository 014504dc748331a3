"""`ettwatch top`: the fleet in a terminal, live."""

import contextlib
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ettwatch_app.commands._folder import opened
from ettwatch_app.commands._shared import Refused, data_option, ends_cleanly, owners_for
from ettwatch_app.datafolder import locate
from ettwatch_app.render import stdout_console
from ettwatch_schemas.durations import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from ettwatch_clickhouse import Store
    from ettwatch_monitor.top import Look

_LEAST_S: Final = 0.5
_PATIENCE_S: Final = 20
_SORTS: Final = ("lost", "gpus", "ett", "e2e", "nof", "t0")


@click.command()
@data_option
@click.option("--clickhouse", metavar="URL", help="The ClickHouse server, instead of the data folder.")
@click.option("--every", default="2s", show_default=True, metavar="DUR", help="Time between two looks.")
@click.option("--hours", type=click.IntRange(1, 24 * 366), default=24, show_default=True, help="How far to look back.")
@click.option(
    "--by",
    type=click.Choice(["team", "model", "cluster", "owner"]),
    default="team",
    show_default=True,
    help="By what losses are shown.",
)
@click.option("--sort", type=click.Choice(_SORTS), default="lost", show_default=True, help="Which jobs come first.")
@click.option("--team", help="Only jobs of this team.")
@click.option("--model", help="Only jobs of this model.")
@click.option("--cluster", help="Only jobs on this cluster.")
@click.option("--once", is_flag=True, help="Print one look, and end.")
@ends_cleanly
def top(
    data: Path | None,
    clickhouse: str | None,
    every: str,
    hours: int,
    by: str,
    sort: str,
    team: str | None,
    model: str | None,
    cluster: str | None,
    once: bool,
) -> None:
    """Show the fleet in the terminal: ETT%, where GPU time is lost, live jobs, alerts. Ctrl-C ends it.

    It reads the data folder (through `ettwatch up` where one lives), or a ClickHouse server. Where standard output is
    no terminal it prints one look.

    Exit codes: 0 done; 2 nothing done.
    """
    import ettwatch_clickhouse as sink
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
    from ettwatch_monitor.queries import Scope
    from ettwatch_monitor.top import look

    pause = _pause(every)
    folder = locate(data)
    owners = owners_for(folder.owners)
    scope = Scope(team, model, cluster)
    order = sort if sort == "ett" else f"-{sort}"
    with ExitStack() as stack:
        try:
            if clickhouse is not None:
                store: Store = ClickHouseAccess.read(os.environ, clickhouse).connect(timeout_s=_PATIENCE_S)
                stack.callback(store.close)
            else:
                store = stack.enter_context(opened(folder, "ettwatch top"))

            def ask() -> "Look":
                return look(store, owners, time.time_ns() // 1_000, hours, scope, by, order)

            first = ask()
        except (sink.StoreError, ClickHouseSettingError) as error:
            raise Refused(str(error)) from None
        with contextlib.suppress(KeyboardInterrupt):  # that is how it ends
            _show(first, None if once else ask, pause)


def _pause(text: str) -> float:
    try:
        return max(_LEAST_S, parse_duration(text) / 1_000_000)
    except ValueError as error:
        raise Refused(f"--every: {error}") from None


def _show(first: "Look", ask: "Callable[[], Look] | None", pause: float) -> None:
    """Print a look; on a terminal go on until Ctrl-C, also where the database is away for a while."""
    from rich.live import Live

    from ettwatch_app.render.top import draw_top
    from ettwatch_clickhouse import StoreError

    console = stdout_console()
    if ask is None or not console.is_terminal:
        console.print(draw_top(first, console.width, 50))
        return
    latest, stale = first, None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(draw_top(latest, console.width, console.height, stale), refresh=True)
            began = time.monotonic()
            time.sleep(pause)
            try:
                latest, stale = ask(), None
            except StoreError as error:
                stale = str(error)
            # A database that is slow is asked less often.
            pause = max(pause, min(60.0, 2 * (time.monotonic() - began - pause)))
