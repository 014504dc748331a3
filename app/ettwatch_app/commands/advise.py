"""`ettwatch advise`: what a fleet could get back, and what would be if some numbers were others."""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ettwatch_app.commands._folder import opened
from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import (
    NOTHING_DONE,
    SOME_REJECTED,
    Refused,
    data_option,
    ends_cleanly,
    format_option,
    opened_input,
    owners_for,
    seldom,
)
from ettwatch_app.datafolder import locate
from ettwatch_app.render import advice_lines, clean, what_if_lines
from ettwatch_schemas.durations import parse_duration

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store
    from ettwatch_core.ownership import Owners
    from ettwatch_monitor.advice import About, Change
    from ettwatch_schemas import Event

_WEEK: Final = 7 * 24 * 3_600_000_000
_SHOWN: Final = 20


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1)
@data_option
@click.option("--clickhouse", metavar="URL", help="The ClickHouse server, instead of files or the data folder.")
@click.option("--last", default="7d", show_default=True, metavar="DUR", help="Without FILE: how far to look back.")
@click.option("--team", help="Only jobs of this team.")
@click.option("--model", help="Only jobs of this model.")
@click.option("--cluster", help="Only jobs on this cluster.")
@click.option("--job", metavar="NAME", help="Only this job, all of its life; others say what is usual.")
@click.option("--stage", metavar="NAME", help="Only what gives time of this stage back, such as pt2_compilation.")
@click.option("--owner", metavar="NAME", help="Only what this owner can do.")
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="CHANGE",
    help='Try a change, such as "pt2_compilation x 0.3 team=ads".',
)
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="How many entries to show.")
@format_option("text", "json")
@click.pass_context
@ends_cleanly
def advise(
    ctx: click.Context,
    files: tuple[str, ...],
    data: Path | None,
    clickhouse: str | None,
    last: str,
    team: str | None,
    model: str | None,
    cluster: str | None,
    job: str | None,
    stage: str | None,
    owner: str | None,
    what_if: tuple[str, ...],
    limit: int,
    form: str,
) -> None:
    """Say which remedy gives back how many GPU-hours, to whom, and who can do it.

    Jobs are read from event files (FILE, as `ettwatch replay` takes them), else from a ClickHouse server, else from the
    data folder. Each remedy is tried by laying the jobs out anew and charging their time by the same rules.

    With --what-if nothing is advised: the changes are tried together. A change is STAGE x FACTOR, save_interval = DUR
    or best, save_blocking x SHARE, detection = DUR, or remedy = NAME; then team=, model=, cluster=,
    attempts=first or later.

    Exit codes: 0 done; 1 done, some input rejected; 2 nothing done.
    """
    from ettwatch_monitor.advice import About, AdviceError, checked, parse_change

    seldom()
    if what_if and (job, stage, owner) != (None, None, None):
        raise click.UsageError("--job, --stage and --owner go without --what-if; write team= or model= into the change")
    if job is not None and (team, model, cluster) != (None, None, None):
        raise click.UsageError("--job is one job; leave --team, --model and --cluster out")
    if files and (clickhouse is not None or data is not None):
        raise click.UsageError("give FILE, --clickhouse or --data, not several of them")
    scope = {"team": team, "model": model, "cluster": cluster}
    folder = locate(data)
    owners = owners_for(folder.owners)
    try:
        changes = tuple(change for text in what_if for change in parse_change(text))
        about = checked(About(job, stage, owner))
        with Bar() as bar:
            if files:
                told, rejected = _of_files(files, scope, owners, changes, about, bar)
            else:
                told, rejected = _of_store(clickhouse, folder, last, scope, owners, what_if, about, bar), 0
    except AdviceError as error:
        raise Refused(str(error)) from None
    if told is None:
        click.echo("nothing done: no job that was read has begun an attempt", err=True)
        ctx.exit(NOTHING_DONE)
    if form == "json":
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        for line in what_if_lines(told) if what_if else advice_lines(told, limit):
            click.echo(line)
    if rejected:
        ctx.exit(SOME_REJECTED)


def _of_store(
    url: str | None,
    folder: Any,
    last: str,
    scope: Mapping[str, str | None],
    owners: "Owners",
    what_if: tuple[str, ...],
    about: "About",
    bar: Bar,
) -> dict[str, Any] | None:
    import ettwatch_clickhouse as sink
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
    from ettwatch_monitor.advice import advice_of, what_if_of

    try:
        back = parse_duration(last)
    except ValueError as error:
        raise Refused(f"--last: {error}") from None
    until = time.time_ns() // 1_000
    bar.begin("laying out jobs", None)
    with ExitStack() as stack:
        try:
            if url is not None:
                store: Store = ClickHouseAccess.read(os.environ, url).connect()
                stack.callback(store.close)
            else:
                store = stack.enter_context(opened(folder, "ettwatch advise"))
            if what_if:
                body = {"changes": list(what_if), **{name: value for name, value in scope.items() if value}}
                told = what_if_of(store, until - back, until, body, go_on=lambda: bar.advance(1))
            else:
                told = advice_of(
                    store,
                    until - back,
                    until,
                    owners,
                    team=scope["team"],
                    model=scope["model"],
                    cluster=scope["cluster"],
                    about=about,
                    go_on=lambda: bar.advance(1),
                )
        except (sink.StoreError, ClickHouseSettingError) as error:
            raise Refused(str(error)) from None
    sample: Any = told["sample"]
    return told if sample["jobs"] else None


def _of_files(
    files: tuple[str, ...],
    scope: Mapping[str, str | None],
    owners: "Owners",
    changes: tuple["Change", ...],
    about: "About",
    bar: Bar,
) -> tuple[dict[str, Any] | None, int]:
    from ettwatch_monitor.advice import Fleet, NoJobError, Replays, advise, asked_of, plain_advice, plain_what_if

    jobs: defaultdict[str, dict[str, Event]] = defaultdict(dict)
    problems: list[str] = []
    bar.begin("reading events", None)
    for name in files:
        for event in _events(name, problems):
            jobs[event.job].setdefault(event.id, event)
            bar.advance(1)
    bar.begin("laying out jobs", None)
    for problem in problems[:_SHOWN]:
        click.echo(problem, err=True)
    if len(problems) > _SHOWN:
        click.echo(f"{len(problems) - _SHOWN:,} more problems", err=True)
    fleet = Fleet(go_on=lambda: bar.advance(1))
    for job, events in jobs.items():
        fleet.add(job, list(events.values()))
    fleet.cases = [
        case for case in fleet.cases if all(value in (None, getattr(case.life, name)) for name, value in scope.items())
    ]
    if not fleet.cases:
        return None, len(problems)
    cases = [case for case in fleet.cases if about.job in (None, case.life.job)]
    if not cases:
        raise NoJobError(f"there is no job {str(about.job)[:200]!r} that has begun an attempt")
    since = min(case.summary.t0 for case in cases)
    until = max(case.summary.t1 for case in cases)
    weeks = max(1, until - since) / _WEEK
    number = len(cases)
    events_read = sum(len(jobs[case.life.job]) for case in cases)
    head = {
        "window": {"from_us": since, "to_us": until},
        "sample": {"jobs": number, "of_jobs": number, "events": events_read, "share_pct": 100.0},
    }
    if changes:
        return {**head, **plain_what_if(Replays(fleet), changes, weeks)}, len(problems)
    asked = {"asked": {**scope, **asked_of(about)}}
    return {**head, **asked, **plain_advice(advise(fleet, owners, weeks, about=about))}, len(problems)


def _events(name: str, problems: list[str]) -> Iterator["Event"]:
    from ettwatch_app.replay.lines import batches
    from ettwatch_app.replay.unpack import DamagedInput, ForeignInput, unpacked
    from ettwatch_schemas import MAX_MESSAGE_BYTES, decode_message

    shown = "<stdin>" if name == "-" else clean(name, 200)

    def too_long(number: int) -> None:
        problems.append(f"{shown}:{number}: the line is longer than {MAX_MESSAGE_BYTES:,} bytes")

    try:
        with opened_input(name) as file:
            chunks = unpacked(getattr(file, "read1", None) or file.read, lambda _: None)
            for batch in batches(chunks, MAX_MESSAGE_BYTES, too_long):
                for number, line in enumerate(batch.lines, batch.first):
                    if line and not line.isspace():
                        events, errors = decode_message(line)
                        problems.extend(f"{shown}:{number}: {error}" for error in errors)
                        yield from events
    except OSError as error:
        problems.append(f"{shown}: cannot be read: {error.strerror or error}")
    except (ForeignInput, DamagedInput) as error:
        problems.append(f"{shown}: {error}")
