"""`ettwatch replay`: files of events to one summary for each job."""

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.text import Text

from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import (
    NOTHING_DONE,
    SOME_REJECTED,
    Refused,
    definition_option,
    ends_cleanly,
    format_option,
    seldom,
)
from ettwatch_app.goodput import from_json
from ettwatch_app.goodput import table as goodput_table
from ettwatch_app.render import clean, jobs_table, segments_table, show, stdout_console, write_advice
from ettwatch_app.replay import Options, Outcome, parse_duration, parse_instant, replay_files
from ettwatch_core import Rules
from ettwatch_schemas import JobSummary, Segment


class _Typed(click.ParamType):
    """A parameter read by a function that raises ValueError with what is wrong."""

    def __init__(self, name: str, read: Callable[[str], int | None]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if isinstance(value, int):
            return value
        try:
            return self._read(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _parse_lateness(text: str) -> int | None:
    return None if text.strip().lower() == "none" else parse_duration(text)


DURATION = _Typed("duration", parse_duration)
LATENESS = _Typed("duration", _parse_lateness)
INSTANT = _Typed("time", parse_instant)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@format_option("json", "table")
@click.option(
    "--now",
    type=INSTANT,
    metavar="TS",
    help="The clock: microseconds since the Unix epoch or RFC 3339 with a zone.  [default: each job's newest event]",
)
@click.option(
    "--lateness",
    type=LATENESS,
    metavar="DUR",
    help="Refuse events further than this behind the newest of their job; none: no event is too late.  [default: none]",
)
@click.option(
    "--hang-after",
    type=DURATION,
    metavar="DUR",
    default="300s",
    show_default=True,
    help="A gap without new data that is longer than this is a hang.",
)
@click.option("--segments", is_flag=True, help="Add the timeline of each job.")
@definition_option
@click.pass_context
@ends_cleanly
def replay(
    ctx: click.Context,
    files: tuple[str, ...],
    form: str,
    now: int | None,
    lateness: int | None,
    hang_after: int,
    segments: bool,
    definition: str,
) -> None:
    """Turn files of events into one summary for each job.

    FILE holds an event, or an array of events, in each line of JSON; it may be packed with gzip or zstd. `-` reads
    standard input. The order of events does not matter. What is wrong goes to standard error as FILE:LINE: reason,
    and is skipped.

    Durations: 6h, 90m, 300s, 1h30m, or a number of seconds.

    Exit codes: 0 done; 1 done, some input rejected; 2 nothing done.
    """
    if definition == "goodput" and (segments or lateness is not None):
        raise click.UsageError("--definition goodput goes with neither --segments nor --lateness")
    with Bar() as bar, _rare_collections():
        options = Options(
            rules=Rules(lateness=lateness, hang_after=hang_after),
            now=now,
            segments=segments,
            definition=definition,
            meter=bar,
        )
        try:
            outcome = replay_files(files, options)
        except OSError as error:
            raise Refused(
                f"cannot write a temporary file: {error.strerror or error}; {write_advice(error)} with TMPDIR"
            ) from error
    for text in outcome.problems.texts():
        click.echo(text, err=True)
    if not outcome.accepted:
        click.echo("nothing done: there is no good event in the input", err=True)
        ctx.exit(NOTHING_DONE)
    if form == "json":
        _write_json(outcome)
    elif definition == "goodput":
        show(stdout_console(), goodput_table(from_json(line) for line in outcome.results))
    else:
        _print_tables(outcome, segments)
    if outcome.problems.rejected or outcome.problems.broken_files:
        ctx.exit(SOME_REJECTED)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let the cycle collector run seldom: millions of small tuples are made here and none of them is in a cycle.

    A tenth of the time of a large replay goes into looking through them.
    """
    before = gc.get_threshold()
    seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _write_json(outcome: Outcome) -> None:
    out = click.get_binary_stream("stdout")
    for line in outcome.results:
        out.write(line + b"\n")
    out.flush()


def _print_tables(outcome: Outcome, segments: bool) -> None:
    console = stdout_console()
    loaded = [json.loads(line) for line in outcome.results]
    timelines = [job.pop("segments", []) for job in loaded]
    summaries = [JobSummary.model_validate(job) for job in loaded]
    show(console, jobs_table(summaries, console.width))
    if segments:
        for summary, timeline in zip(summaries, timelines, strict=True):
            parts = (Segment(summary.job, **part) for part in timeline)
            show(console, "", Text(clean(summary.job, 80), style="bold"), segments_table(parts, summary.t0))
