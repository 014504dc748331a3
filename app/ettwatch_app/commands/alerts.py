"""`ettwatch alerts`: find what got worse in a fleet, and tell whoever it concerns."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ettwatch_app.asked import stop_by_signal
from ettwatch_app.commands._alerts import access_to, alert_options, now_us, remembered, rules_of, watching
from ettwatch_app.commands._alerts_silence import silence
from ettwatch_app.commands._shared import DONE, SOME_REJECTED, Refused, ends_cleanly, format_option, seldom
from ettwatch_app.render import clean, count, stdout_console

if TYPE_CHECKING:
    from ettwatch_monitor.alerts import Alert
    from ettwatch_monitor.alerts.watch import Memory

DEFAULT_WEB: Final = "127.0.0.1:9467"
_LONGEST_SLEEP_S: Final = 5.0


@click.group()
def alerts() -> None:
    """Find what got worse in a fleet, and tell whoever it concerns."""


alerts.add_command(silence)


@alerts.command()
@alert_options("clickhouse", "rules", "state")
@click.option(
    "--web",
    envvar="ETTWATCH_WEB",
    metavar="HOST:PORT",
    default=DEFAULT_WEB,
    help=f"Where to answer /metrics, /healthz and /readyz, or `off`.  [default: {DEFAULT_WEB}; or $ETTWATCH_WEB]",
)
@ends_cleanly
def run(clickhouse: str | None, rules: Path | None, state: Path, web: str) -> None:
    """Watch a fleet, round after round, and tell the channels of the rules.

    One process for a folder of state. SIGTERM or Ctrl-C ends it. The files of rules and owners are read again when they
    change; one that is wrong is told in the log, and what held before goes on to hold.

    Exit codes: 0 stopped as asked; 2 nothing done.
    """
    from ettwatch_faust.probe import ProbeError, serve
    from ettwatch_faust.web import parse_address

    _log()
    seldom()
    access = access_to(clickhouse)
    stop = stop_by_signal()
    with watching(access, rules, state) as loop:

        def told_now(check: Callable[[int], str | None]) -> Callable[[], str | None]:
            return lambda: check(now_us())

        probe: Any = nullcontext()
        try:
            if parse_address(web) is not None:
                probe = serve(web, loop.figures.registry, told_now(loop.healthy), told_now(loop.ready))
        except (ValueError, ProbeError) as error:
            raise Refused(str(error)) from None
        with probe:
            while not stop.is_set():
                due = loop.step(now_us())
                stop.wait(min(max((due - now_us()) / 1e6, 0.05), _LONGEST_SLEEP_S))


@alerts.command()
@alert_options("clickhouse", "rules", "state")
@click.option("--now", "at", metavar="TIME", help="Look as of this time (RFC 3339, or microseconds).  [default: now]")
@format_option("table", "json")
@ends_cleanly
def once(clickhouse: str | None, rules: Path | None, state: Path, at: str | None, form: str) -> None:
    """Do one round, tell the channels of the rules, show what fires, and exit.

    Exit codes: 0 nothing fires; 1 something fires; 2 nothing done.
    """
    from ettwatch_schemas.durations import parse_instant

    try:
        now = now_us() if at is None else parse_instant(at)
    except ValueError as error:
        raise Refused(f"--now: {error}") from None
    with watching(access_to(clickhouse), rules, state) as loop:
        loop.step(now)
        if loop.error is not None or loop.report is None:
            raise Refused(loop.error or "no round was done")
        firing = [alert for alert in loop.report.alerts if alert.firing]
        if form == "json":
            for alert in firing:
                click.echo(json.dumps(_plain(alert), ensure_ascii=False))
        else:
            report = loop.report
            click.echo(f"{len(report.looks)} tests, {len(report.waiting)} streams wait for more samples")
            _show(firing)
    raise SystemExit(SOME_REJECTED if firing else DONE)


@alerts.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@ends_cleanly
def check(file: Path) -> None:
    """Check a FILE of rules, and say what it means.

    Exit codes: 0 it is right; 2 it is wrong, or cannot be read.
    """
    rules = rules_of(file)
    detect = rules.detect
    watched = len([name for name in detect.weights if name not in detect.off])
    click.echo(f"{file}: right")
    click.echo(
        f"  {count(watched, 'metric')} in the scopes {', '.join(rules.scopes)}, every {rules.every_s:g} s, "
        f"in {detect.zone}"
    )
    windows = count(len(rules.windows), "time of maintenance", "times of maintenance")
    click.echo(f"  {count(len(rules.thresholds), 'plain threshold')}, {windows}")
    names = ", ".join(f"{channel.name} ({channel.kind})" for channel in rules.delivery.channels) or "none"
    click.echo(f"  channels: {names}")


@alerts.command("list")
@alert_options("state")
@click.option("--all", "past", is_flag=True, help="Also what is over.")
@format_option("table", "json")
@ends_cleanly
def list_alerts(state: Path, past: bool, form: str) -> None:
    """Show what fires, as the last round found it.

    Exit codes: 0 done; 2 nothing done.
    """
    with remembered(state) as memory:
        told = _told(memory)
    chosen = [alert for alert in told if past or alert.firing]
    if form == "json":
        for alert in chosen:
            click.echo(json.dumps(_plain(alert), ensure_ascii=False))
    else:
        _show(chosen)


@alerts.command()
@click.argument("key")
@alert_options("state")
@click.option("--sql", "queries", is_flag=True, help="Only the queries that show it.")
@ends_cleanly
def explain(key: str, state: Path, queries: bool) -> None:
    """Show all of the alert KEY: what moved, from what to what, since when, what explains it, and queries that show it.

    Exit codes: 0 done; 2 there is no such alert.
    """
    with remembered(state) as memory:
        found = [alert for alert in _told(memory) if alert.key == key]
    if not found:
        raise Refused(f"there is no alert {clean(key, 200)!r}; `ettwatch alerts list --all` shows the keys")
    alert = found[-1]
    if not queries:
        click.echo(f"{alert.title}\n{alert.status}, {alert.severity}\n\n{alert.body}\n")
    for title, query in alert.sql:
        click.echo(f"-- {title}\n{query};\n")


@alerts.command()
@click.argument("key")
@alert_options("state")
@ends_cleanly
def accept(key: str, state: Path) -> None:
    """Take the level of the alert KEY for the usual one from now on; the next round ends the alert.

    Exit codes: 0 done; 2 no such alert fires.
    """
    with remembered(state) as memory:
        if key not in {str(one.key) for one in memory.load()[0].all_open()}:
            raise Refused(f"no alert {clean(key, 200)!r} fires; `ettwatch alerts list` shows the keys")
        memory.accept(key, now_us())
    click.echo(f"{key}: accepted; the next round ends it")


@alerts.command()
@alert_options("state")
@format_option("table", "json")
@ends_cleanly
def audit(state: Path, form: str) -> None:
    """Show what planned maintenance left out, the newest time first.

    Exit codes: 0 done; 2 nothing done.
    """
    from ettwatch_monitor.alerts.watch.words import instant

    with remembered(state) as memory:
        rows = memory.audit()
    for row in rows:
        if form == "json":
            click.echo(json.dumps(row._asdict(), ensure_ascii=False))
            continue
        click.echo(f"{instant(row.start)} to {instant(row.end)}  {clean(row.scope, 80)}  {clean(row.reason, 200)}")
        click.echo(
            f"  left out: {row.starts} starts, {row.attempts} attempts, {row.failures} failures, "
            f"{row.gpu_hours:,.0f} GPU-hours"
        )
    if not rows and form == "table":
        click.echo("nothing was left out")


def _told(memory: "Memory") -> "list[Alert]":
    """Return everything that is remembered as alerts, the oldest first."""
    from ettwatch_monitor.alerts.watch import alert_of

    book, parts = memory.load()
    return [
        alert_of(one, one.ended or one.found, parts.get((str(one.key), one.found), ()))
        for one in sorted(book.incidents, key=lambda one: (one.found, one.key))
    ]


def _plain(alert: "Alert") -> Mapping[str, object]:
    from dataclasses import asdict

    return asdict(alert)


def _show(told: "list[Alert]") -> None:
    from ettwatch_monitor.alerts.watch.words import instant

    if not told:
        click.echo("nothing fires")
        return
    console = stdout_console()
    for alert in told:
        console.print(
            f"{alert.status:<9}{alert.severity:<9}since {instant(alert.starts_at)}  {clean(alert.key, 200)}",
            markup=False,
        )
        console.print(f"  {clean(alert.title, 400)}", markup=False)


def _log() -> None:
    from ettwatch_faust.logs import configure

    try:
        configure(os.environ.get("ETTWATCH_LOG_FORMAT"), os.environ.get("ETTWATCH_LOG_LEVEL") or "info")
    except ValueError as error:
        raise Refused(str(error)) from None
