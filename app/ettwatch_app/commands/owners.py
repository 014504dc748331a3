"""`ettwatch owners`: check the ownership file, show who owns what, and bring it into ClickHouse."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

from ettwatch_app.commands._shared import (
    NOTHING_DONE,
    SOME_REJECTED,
    Refused,
    data_option,
    ends_cleanly,
    format_option,
    owners_for,
)
from ettwatch_app.datafolder import locate
from ettwatch_app.owners import find_owners, load_owners
from ettwatch_app.render import clean, count, fitted, show, stdout_console, write_json
from ettwatch_core.nodes import Problem
from ettwatch_core.ownership import Owners, OwnersError, Rule
from ettwatch_schemas import COMPONENTS, EFFECTIVE, is_phase

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store

_COLUMNS: Final = ("stage", "cluster", "model", "system", "team", "contact", "line")
_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.group()
def owners() -> None:
    """Check the ownership file, show who owns what, and bring it into ClickHouse.

    The file is the one in $ETTWATCH_OWNERS, else owners.yaml in the data folder, else the built-in one.
    """


@owners.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--strict", is_flag=True, help="Doubts count as problems.")
@data_option
@format_option("text", "json")
@ends_cleanly
def check(file: Path | None, strict: bool, data: Path | None, form: str) -> None:
    """Read an ownership file; say what is wrong with it, with line numbers, and what to do.

    Exit codes: 0 it can be used (there may be doubts); 1 there are doubts, with --strict; 2 it cannot be used.
    """
    found: Owners | None = None
    problems: list[Problem] = []
    try:
        found = find_owners(locate(data).owners) if file is None else load_owners(file)
        source = found.source
    except OwnersError as error:
        source, problems = error.source, error.problems
    except OSError as error:
        raise Refused(f"cannot read {error.filename}: {error.strerror}; name the right file") from None
    doubts = [] if found is None else [*found.doubts, *_orphans(found)]
    if form == "json":
        told = {"source": source, "problems": _listed(problems), "doubts": _listed(doubts)}
        click.echo(json.dumps({"ok": found is not None, "rules": len(found.rules) if found else 0, **told}))
    else:
        for kind, each in (("wrong", problems), ("doubt", doubts)):
            for line, reason in each:
                click.echo(f"{clean(source, 400)}:{line}: {kind}: {clean(reason, 1_000)}")
        verdict = "cannot be used" if found is None else f"{count(len(found.rules), 'rule')}, can be used"
        click.echo(f"{clean(source, 400)}: {verdict}; {count(len(problems), 'problem')}, {count(len(doubts), 'doubt')}")
    if found is None:
        raise SystemExit(NOTHING_DONE)
    if strict and doubts:
        raise SystemExit(SOME_REJECTED)


@owners.command("show")
@click.argument("stage", required=False)
@click.option("--cluster", help="Of a job in this cluster.")
@click.option("--model", help="Of a job that trains this model.")
@click.option("--team", help="Only what this team owns.")
@data_option
@format_option("table", "json")
@ends_cleanly
def show_owners(
    stage: str | None, cluster: str | None, model: str | None, team: str | None, data: Path | None, form: str
) -> None:
    """Show who owns STAGE, and by which line of the file; without a STAGE, all rules.

    The longest prefix counts; of its rules the one for cluster and model, then for the cluster, then for the model.

    Exit codes: 0 done; 1 nobody owns it; 2 nothing done.
    """
    known = owners_for(locate(data).owners)
    if stage is None:
        if cluster is not None or model is not None:
            raise Refused("--cluster and --model need a STAGE; give one such as trainer_init.checkpoint_load")
        rules = list(known.rules)
    else:
        if stage != EFFECTIVE and not is_phase(stage):
            components = ", ".join((*COMPONENTS, EFFECTIVE))
            raise Refused(f"{clean(stage, 80)!r} is no stage; a stage is, or begins with, one of {components}")
        rule = known.rule(stage, cluster, model)
        rules = [] if rule is None else [rule]
    rules = [rule for rule in rules if team in (None, rule.owner.team)]
    rows = [_row(rule) for rule in rules]
    if form == "json":
        write_json(_COLUMNS, rows, sys.stdout)
    elif rows:
        console, said = stdout_console(), [i for i in range(len(_COLUMNS)) if any(row[i] is not None for row in rows)]
        cells = [[clean("" if row[i] is None else str(row[i]), 200) for i in said] for row in rows]
        table = fitted([_COLUMNS[i] for i in said], cells, {len(said) - 1}, console.width)
        show(console, *table, Text(f"from {clean(known.source, 400)}", style="dim"))
    else:
        click.echo(f"nobody; {clean(known.source, 400)} has no rule for it")
    if not rows:
        raise SystemExit(SOME_REJECTED)


@owners.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--clickhouse", "url", metavar="URL", help="A server instead of the data folder's ClickHouse.")
@data_option
@ends_cleanly
def push(file: Path | None, url: str | None, data: Path | None) -> None:
    """Have the view `owners` in ClickHouse show the rules of the file.

    They are replaced as a whole. `ettwatch up` does this by itself, also when the file changes.

    Exit codes: 0 done; 2 nothing done.
    """
    import ettwatch_clickhouse as sink
    from ettwatch_app.ownertable import push_owners

    folder = locate(data)
    try:
        known = owners_for(folder.owners) if file is None else load_owners(file)
    except OwnersError as error:
        raise Refused(f"the ownership file is wrong:\n{error}") from None
    except OSError as error:
        raise Refused(f"cannot read {error.filename}: {error.strerror}; name the right file") from None
    try:
        with _store(url, data) as store:
            new = push_owners(store, known, time.time_ns() // 1_000)
    except sink.StoreError as error:
        raise Refused(str(error)) from None
    what = count(len(known.rules), "rule")
    click.echo(f"{what} of {clean(known.source, 400)}: {'now in ClickHouse' if new else 'were in ClickHouse already'}")


@contextlib.contextmanager
def _store(url: str | None, data: Path | None) -> Iterator["Store"]:
    """The ClickHouse to write into. Raises Refused."""
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
    from ettwatch_app.commands._folder import opened
    from ettwatch_clickhouse.schema import check_schema

    if url is None:
        with opened(locate(data), "ettwatch owners push") as store:
            yield store
        return
    try:
        access = ClickHouseAccess.read(os.environ, url)
    except ClickHouseSettingError as error:
        raise Refused(str(error)) from None
    with contextlib.closing(access.connect()) as store:
        check_schema(store)
        yield store


def _orphans(known: Owners) -> list[Problem]:
    orphans = [component for component in COMPONENTS if known.of(component) is None]
    return [Problem(1, f"nobody owns {', '.join(orphans)}; name their teams")] if orphans else []


def _listed(problems: list[Problem]) -> list[dict[str, object]]:
    return [{"line": line, "reason": reason} for line, reason in problems]


def _row(rule: Rule) -> tuple[object, ...]:
    owner = rule.owner
    return (rule.stage, rule.cluster, rule.model, owner.system, owner.team, owner.contact, rule.line)
