"""`ettwatch export`: timelines for other tools."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from ettwatch_app.commands._folder import opened
from ettwatch_app.commands._shared import (
    NOTHING_DONE,
    SOME_REJECTED,
    Refused,
    data_option,
    ends_cleanly,
    opened_input,
    owners_for,
)
from ettwatch_app.datafolder import locate
from ettwatch_app.replay.lines import batches
from ettwatch_app.replay.unpack import DamagedInput, ForeignInput, unpacked
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import MAX_MESSAGE_BYTES, AttemptSummary, Event, JobSummary, Segment, decode_message
from ettwatch_sources.export import BATCH_TYPE, event_of, job_event, parts_of, rejected, request_of, span_count

if TYPE_CHECKING:
    from ettwatch_sources.export.post import Poster

_BATCH: Final = 200
_MOST_SPANS: Final = 5_000
Command = Callable[..., Any]


class _Job(NamedTuple):
    """A job and its timeline."""

    summary: JobSummary
    attempts: list[AttemptSummary]
    segments: list[Segment]


def _common(command: Command) -> Command:
    for option in (
        click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be repeated."),
        click.option("--endpoint", metavar="URL", help="Where to post to.  [default: standard output, JSON lines]"),
        click.option("--job", "jobs", multiple=True, metavar="NAME", help="Only this job; may be repeated."),
        data_option,
        click.argument("files", metavar="[FILE]...", nargs=-1),
    ):
        command = option(command)
    return command


@click.group()
def export() -> None:
    """Hand timelines to other tools: OpenTelemetry spans, CloudEvents.

    FILE holds events, as for `ettwatch replay`; without one, the jobs of the data folder are exported.

    Exit codes: 0 done; 1 done, some refused; 2 nothing done.
    """


@export.command()
@_common
@click.option(
    "--encoding",
    type=click.Choice(["json", "protobuf"]),
    default="json",
    show_default=True,
    help="How spans are written; protobuf needs the extra otlp and an endpoint.",
)
@click.pass_context
@ends_cleanly
def otlp(
    ctx: click.Context,
    files: tuple[str, ...],
    data: Path | None,
    jobs: tuple[str, ...],
    endpoint: str | None,
    headers: tuple[str, ...],
    encoding: str,
) -> None:
    """Export jobs as OpenTelemetry traces (OTLP over HTTP): a trace a job, a span an attempt and a segment."""
    url = (
        endpoint
        if endpoint is None or endpoint.rstrip("/").endswith("/v1/traces")
        else f"{endpoint.rstrip('/')}/v1/traces"
    )
    if encoding == "protobuf":
        if url is None:
            raise click.UsageError("--encoding protobuf needs an --endpoint: standard output takes JSON lines")
        from ettwatch_sources.export import protobuf

        out = _Out(url, protobuf.PROTOBUF_TYPE, headers)

        def send(request: dict[str, Any]) -> tuple[int, str]:
            return protobuf.rejected(out.send(protobuf.encode_request(request)))

    else:
        out = _Out(url, "application/json", headers)

        def send(request: dict[str, Any]) -> tuple[int, str]:
            return rejected(out.put(request))

    spans = lost = 0
    for job in _jobs(files, data, jobs, out):
        for request in parts_of(request_of(*job), _MOST_SPANS):
            number, why = send(request)
            spans += span_count(request)
            lost += number
            if number:
                click.echo(f"{job.summary.job}: {number} spans were rejected: {why}", err=True)
    _end(ctx, out, f"{_some(spans, 'span')} of {_some(out.jobs, 'job')}", lost)


@export.command()
@_common
@click.option(
    "--what", type=click.Choice(["jobs", "events"]), default="jobs", show_default=True, help="What to export."
)
@click.pass_context
@ends_cleanly
def cloudevents(
    ctx: click.Context,
    files: tuple[str, ...],
    data: Path | None,
    jobs: tuple[str, ...],
    endpoint: str | None,
    headers: tuple[str, ...],
    what: str,
) -> None:
    """Export jobs, or the events themselves, as CloudEvents 1.0 (JSON, in batches over HTTP)."""
    out = _Out(endpoint, BATCH_TYPE, headers)
    if what == "events" and not files:
        raise Refused(
            "the events themselves are exported from files; name them. "
            "What `ettwatch up` has taken in is in the table events: `ettwatch sql`"
        )
    held: list[dict[str, Any]] = []
    number = 0
    source: Iterator[dict[str, Any]]
    if what == "events":
        source = (event_of(event) for event in _events(files, out) if not jobs or event.job in jobs)
    else:
        source = (job_event(job.summary) for job in _jobs(files, data, jobs, out))
    for one in source:
        number += 1
        if endpoint is None:
            out.put(one)
            continue
        held.append(one)
        if len(held) >= _BATCH:
            out.put(held)
            held = []
    if held:
        out.put(held)
    _end(ctx, out, _some(number, "CloudEvent"), 0, done=number)


class _Out:
    """Where it goes, and what went wrong on the way there."""

    def __init__(self, url: str | None, content_type: str, headers: tuple[str, ...]) -> None:
        told: dict[str, str] = {}
        for header in headers:
            name, equals, value = header.partition("=")
            if not equals or not name.strip():
                raise Refused("a --header is NAME=VALUE")
            told[name.strip()] = value.strip()
        if url is not None and not url.startswith(("http://", "https://")):
            raise Refused(f"{url!r} is no address; give one like http://127.0.0.1:4318")
        self._poster: Poster | None = None
        if url is not None:
            from ettwatch_sources.export import post

            self._poster = post.Poster(url, content_type, told)
        self.jobs = self.bad = 0

    def put(self, value: Any) -> dict[str, Any]:
        """Hand on a value."""
        if self._poster is None:
            click.echo(json.dumps(value, ensure_ascii=False))
            return {}
        with _refusing():
            return self._poster.post(value)

    def send(self, message: bytes) -> bytes:
        """Post a message as it is."""
        assert self._poster is not None, "only with an endpoint"
        with _refusing():
            return self._poster.send(message)


@contextmanager
def _refusing() -> Iterator[None]:
    from ettwatch_sources.export.post import PostError

    try:
        yield
    except PostError as error:
        raise Refused(str(error)) from None


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _end(ctx: click.Context, out: _Out, told: str, rejected: int, done: int | None = None) -> None:
    click.echo(told, err=True)
    if not (out.jobs if done is None else done):
        ctx.exit(NOTHING_DONE)
    if rejected or out.bad:
        ctx.exit(SOME_REJECTED)


def _jobs(files: tuple[str, ...], data: Path | None, jobs: tuple[str, ...], out: _Out) -> Iterator[_Job]:
    if files:
        rules = Rules(lateness=None)
        states: dict[str, JobState] = {}
        for event in _events(files, out):
            if not jobs or event.job in jobs:
                apply(states.setdefault(event.job, JobState(event.job)), event, rules)
        for state in states.values():
            shot = snapshot(state, rules, keep=False)
            out.jobs += 1
            yield _Job(shot.summary, shot.attempts, shot.segments)
        return
    from ettwatch_app.reading import read_job, read_summaries
    from ettwatch_clickhouse import StoreError

    folder = locate(data)
    owners = owners_for(folder.owners)
    with opened(folder, "ettwatch export") as store:
        try:
            for summary in read_summaries(store):
                if jobs and summary.job not in jobs:
                    continue
                view = read_job(store, summary.job, owners)
                if view is not None:
                    out.jobs += 1
                    yield _Job(view.summary, list(view.attempts), list(view.segments))
        except StoreError as error:
            raise Refused(str(error)) from None


def _events(files: tuple[str, ...], out: _Out) -> Iterator[Event]:
    """The good events of files; the others are told."""
    for name in files:
        try:
            with opened_input(name) as file:
                number = 0
                chunks = unpacked(getattr(file, "read1", None) or file.read, lambda size: None)
                for batch in batches(chunks, MAX_MESSAGE_BYTES, lambda line: None):
                    for number, line in enumerate(batch.lines, batch.first):
                        if not line.strip():
                            continue
                        events, errors = decode_message(line)
                        for error in errors:
                            out.bad += 1
                            if out.bad <= 20:
                                click.echo(f"{name}:{number}: {error}", err=True)
                        yield from events
        except (DamagedInput, ForeignInput) as error:
            out.bad += 1
            click.echo(f"{name}: {error}", err=True)
        except OSError as error:
            out.bad += 1
            click.echo(f"{name}: cannot be read: {error.strerror or error}", err=True)
