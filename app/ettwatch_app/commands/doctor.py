"""`ettwatch doctor`: what is installed, reachable and misconfigured."""

import json
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from ettwatch_app.commands._shared import NOTHING_DONE, data_option, ends_cleanly, format_option
from ettwatch_app.render import clean, count, show, stdout_console

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command()
@data_option
@format_option("table", "json")
@click.pass_context
@ends_cleanly
def doctor(ctx: click.Context, data: Path | None, form: str) -> None:
    """Say what is installed, reachable and misconfigured, and what to do about it.

    Exit codes: 0 nothing fails (there may be warnings); 2 something fails.
    """
    from ettwatch_app.doctor import examine

    findings = list(examine(data))
    fails = sum(finding.level == "fail" for finding in findings)
    warnings = sum(finding.level == "warn" for finding in findings)
    if form == "json":
        click.echo(json.dumps({"ok": not fails, "findings": [finding.as_dict() for finding in findings]}))
    else:
        console = stdout_console()
        table = Table.grid(padding=(0, 2, 0, 0))
        for finding in findings:
            what = Text(clean(finding.what, 1_000))
            if finding.do:
                what.append(f"\n-> {clean(finding.do, 1_000)}", style="bold" if finding.level != "ok" else "dim")
            table.add_row(Text(finding.level, style=_STYLES[finding.level]), finding.area, what)
        show(console, table, Text(f"{count(fails, 'failure')}, {count(warnings, 'warning')}"))
    if fails:
        ctx.exit(NOTHING_DONE)
