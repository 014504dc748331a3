"""`ettwatch rebuild`: every derived table anew from the raw events."""

from pathlib import Path

import click

from ettwatch_app.commands._folder import opened
from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import SOME_REJECTED, Refused, data_option, ends_cleanly
from ettwatch_app.datafolder import locate
from ettwatch_app.render import count
from ettwatch_core import Rules


@click.command()
@data_option
@click.pass_context
@ends_cleanly
def rebuild(ctx: click.Context, data: Path | None) -> None:
    """Make every derived table anew from the events that are stored.

    Readers see the old tables until the new ones are complete. `ettwatch up` may go on meanwhile.

    Exit codes: 0 done; 1 done, some events could not be used; 2 nothing done.
    """
    import ettwatch_clickhouse as sink

    folder = locate(data)
    with opened(folder, "ettwatch rebuild") as store, Bar() as bar:
        bar.begin("rebuilding", None)
        try:
            report = sink.rebuild(store, Rules(), progress=bar.set)
        except sink.StoreError as error:
            raise Refused(f"{error}; the tables are as they were before") from None
    if not report.events:
        raise Refused(f"there are no events in {folder.root}; nothing to rebuild from")
    click.echo(f"{count(report.jobs, 'job')} made anew from {count(report.events, 'event')}")
    if report.kept:
        click.echo(f"{count(report.kept, 'job')} left as before: some of their events have expired")
    if report.rejected:
        click.echo(f"{count(report.rejected, 'event')} could not be used", err=True)
        ctx.exit(SOME_REJECTED)
