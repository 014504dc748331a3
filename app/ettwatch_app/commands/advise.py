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
from ettwatch_app.commands._shared import (
    NOTHING_DONE,
    SOME_REJECTED,
    Refused,
    data_option,
    ends_cleanly,
    format_option,
    owners_for,
    seldom,
)
from ettwatch_app.datafolder import locate
from ettwatch_app.render import clean
from ettwatch_schemas.durations import parse_duration

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store
    from ettwatch_core.ownership import Owners
    from ettwatch_monitor.advice import Change
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
    what_if: tuple[str, ...],
    limit: int,
    form: str,
) -> None:
    """Say which remedy gives back how many GPU-hours a week, to whom, and who can do it.

    Jobs are read from event files (FILE, as `ettwatch replay` takes them), else from a ClickHouse server, else from the
    data folder. Each remedy is tried by laying the jobs out anew and charging their time by the same rules.

    With --what-if nothing is advised: the changes are tried together. A change is STAGE x FACTOR, save_interval = DUR
    or best, save_blocking x SHARE, detection = DUR, or remedy = NAME; then team=, model=, cluster=,
    attempts=first or later.

    Exit codes: 0 done; 1 done, some input rejected; 2 nothing done.
    """
    from ettwatch_monitor.advice import AdviceError, parse_change

    seldom()
    if files and (clickhouse is not None or data is not None):
        raise click.UsageError("give FILE, --clickhouse or --data, not several of them")
    scope = {"team": team, "model": model, "cluster": cluster}
    folder = locate(data)
    owners = owners_for(folder.owners)
    try:
        changes = tuple(change for text in what_if for change in parse_change(text))
        if files:
            told, rejected = _of_files(files, scope, owners, changes)
        else:
            told, rejected = _of_store(clickhouse, folder, last, scope, owners, what_if), 0
    except AdviceError as error:
        raise Refused(str(error)) from None
    if told is None:
        click.echo("nothing done: no job that was read has begun an attempt", err=True)
        ctx.exit(NOTHING_DONE)
    if form == "json":
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        for line in _what_if_lines(told) if what_if else _advice_lines(told, limit):
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
) -> dict[str, Any] | None:
    import ettwatch_clickhouse as sink
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
    from ettwatch_monitor.advice import advice_of, what_if_of

    try:
        back = parse_duration(last)
    except ValueError as error:
        raise Refused(f"--last: {error}") from None
    until = time.time_ns() // 1_000
    with ExitStack() as stack:
        try:
            if url is not None:
                store: Store = ClickHouseAccess.read(os.environ, url).connect()
                stack.callback(store.close)
            else:
                store = stack.enter_context(opened(folder, "ettwatch advise"))
            if what_if:
                body = {"changes": list(what_if), **{name: value for name, value in scope.items() if value}}
                told = what_if_of(store, until - back, until, body)
            else:
                told = advice_of(
                    store,
                    until - back,
                    until,
                    owners,
                    team=scope["team"],
                    model=scope["model"],
                    cluster=scope["cluster"],
                )
        except (sink.StoreError, ClickHouseSettingError) as error:
            raise Refused(str(error)) from None
    sample: Any = told["sample"]
    return told if sample["jobs"] else None


def _of_files(
    files: tuple[str, ...], scope: Mapping[str, str | None], owners: "Owners", changes: tuple["Change", ...]
) -> tuple[dict[str, Any] | None, int]:
    from ettwatch_monitor.advice import Fleet, Replays, advise, plain_advice, plain_what_if

    jobs: defaultdict[str, dict[str, Event]] = defaultdict(dict)
    problems: list[str] = []
    for name in files:
        for event in _events(name, problems):
            jobs[event.job].setdefault(event.id, event)
    for problem in problems[:_SHOWN]:
        click.echo(problem, err=True)
    if len(problems) > _SHOWN:
        click.echo(f"{len(problems) - _SHOWN:,} more problems", err=True)
    fleet = Fleet()
    for job, events in jobs.items():
        fleet.add(job, list(events.values()))
    fleet.cases = [
        case for case in fleet.cases if all(value in (None, getattr(case.life, name)) for name, value in scope.items())
    ]
    if not fleet.cases:
        return None, len(problems)
    since = min(case.summary.t0 for case in fleet.cases)
    until = max(case.summary.t1 for case in fleet.cases)
    weeks = max(1, until - since) / _WEEK
    number = len(fleet.cases)
    events_read = sum(len(jobs[case.life.job]) for case in fleet.cases)
    head = {
        "window": {"from_us": since, "to_us": until},
        "sample": {"jobs": number, "of_jobs": number, "events": events_read, "share_pct": 100.0},
    }
    if changes:
        return {**head, **plain_what_if(Replays(fleet), changes, weeks)}, len(problems)
    return {**head, **plain_advice(advise(fleet, owners, weeks))}, len(problems)


def _events(name: str, problems: list[str]) -> Iterator["Event"]:
    from ettwatch_app.replay.lines import batches
    from ettwatch_app.replay.unpack import DamagedInput, ForeignInput, unpacked
    from ettwatch_schemas import MAX_MESSAGE_BYTES, decode_message

    shown = "<stdin>" if name == "-" else clean(name, 200)

    def too_long(number: int) -> None:
        problems.append(f"{shown}:{number}: the line is longer than {MAX_MESSAGE_BYTES:,} bytes")

    try:
        with click.open_file(name, "rb") as file:
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


def _advice_lines(told: Mapping[str, Any], limit: int) -> Iterator[str]:
    sample, base, all_ = told["sample"], told["base"], told["all"]
    yield _sample(sample, told["weeks"])
    yield f"as it is        {_figures(base)}"
    yield f"all remedies    {_figures(all_)}"
    yield ""
    if not told["advice"]:
        yield "no remedy would give anything back"
    for number, entry in enumerate(told["advice"][:limit], 1):
        team, owner = clean(entry["team"] or "(no team)", 40), clean(entry["owner"] or "nobody named", 40)
        contact = f" ({clean(entry['contact'], 40)})" if entry["contact"] else ""
        yield f"{number}. {entry['gpu_h_week']:,.1f} GPU-h a week for {team}: {entry['title']}"
        yield f"   {entry['remedy']}; to be done by {owner}{contact}; confidence {entry['confidence']}: {entry['why']}"
        for line in entry["arithmetic"]:
            yield f"   = {clean(line, 300)}"
        yield f"   assumed: {'; '.join(entry['assumptions'])}"
    rest = len(told["advice"]) - limit
    if rest > 0:
        yield f"{rest:,} more; --limit shows them"


def _what_if_lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield _sample(told["sample"], told["weeks"])
    for change in told["changes"]:
        yield f"if  {clean(change, 200)}"
    yield f"as it is  {_figures(told['before'])}"
    yield f"then      {_figures(told['after'])}"
    yield (
        f"{told['saved_gpu_h_week']:,.1f} GPU-h a week come back, {told['saved_held_gpu_h_week']:,.1f} of them held; "
        f"{told['jobs_touched']:,} jobs are concerned"
    )
    for team, hours in sorted(told["by_team"].items(), key=lambda item: -item[1]):
        yield f"  {clean(team or '(no team)', 40)}  {hours:,.1f}"
    for note in told["notes"]:
        yield f"assumed: {note}"


def _sample(sample: Mapping[str, Any], weeks: float) -> str:
    part = "" if sample["share_pct"] >= 99.95 else f", {sample['share_pct']:.0f} % of the GPU time"
    return f"{sample['jobs']:,} of {sample['of_jobs']:,} jobs{part}, {weeks:.2f} weeks"


def _figures(figures: Mapping[str, Any]) -> str:
    def of(name: str, unit: str, divisor: float = 1.0) -> str:
        return "-" if figures[name] is None else f"{figures[name] / divisor:,.1f}{unit}"

    return (
        f"ETT {of('ett_pct', ' %')}  TTS {of('tts_p50_s', ' min', 60)}  TTR {of('ttr_mean_s', ' min', 60)}  "
        f"GPU-h {of('total_gpu_h', '')}, lost {of('lost_gpu_h', '')}"
    )
