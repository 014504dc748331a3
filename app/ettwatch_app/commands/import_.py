"""`ettwatch import`: logs and traces of other tools to events."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from ettwatch_app.commands._importing import Run
from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import NOTHING_DONE, SOME_REJECTED, Refused, ends_cleanly
from ettwatch_sources import KIND_NAMES, MappingError, Options, parse_mapping


def _zone(_: click.Context, parameter: click.Parameter, text: str | None) -> ZoneInfo | None:
    if text is None:
        return None
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise click.BadParameter(
            f"{text!r} is no time zone; give one like Europe/Berlin, America/Los_Angeles or UTC", param=parameter
        ) from None


def _mapping(_: click.Context, parameter: click.Parameter, path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    import yaml

    try:
        told = yaml.safe_load(Path(path).read_text("utf-8"))
        parse_mapping(told)
    except OSError as error:
        raise click.BadParameter(f"cannot read {path}: {error.strerror}", param=parameter) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is no YAML: {error}", param=parameter) from None
    except MappingError as error:
        raise click.BadParameter(f"{path} is wrong:\n{error}", param=parameter) from None
    assert isinstance(told, dict)
    return told


class _Kind(click.Choice[str]):
    """A kind of log; what is followed and not imported is told so."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in ("kubernetes", "ray"):
            self.fail(f"{value} is followed, not imported: `ettwatch watch {value}`", param, ctx)
        return super().convert(value, param, ctx)


@click.command(name="import")
@click.argument("kind", type=_Kind(["auto", *KIND_NAMES]), metavar="KIND")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--out", metavar="DIR", help="The spool folder that events go to; - writes them to standard output.")
@click.option("--job", help="Name of the job.  [default: what the file says, else the file's own name]")
@click.option("--attempt", type=click.IntRange(min=0), default=0, help="Number of the first attempt.")
@click.option("--restarts", is_flag=True, help="With --job: the files are attempts, one after the other, as given.")
@click.option("--team", help="Team whose jobs they are.")
@click.option("--model", help="Model that is trained.")
@click.option("--cluster", help="Cluster they ran on.")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs that an attempt holds.")
@click.option("--batch", type=click.IntRange(min=1), help="Samples that one step consumes, of all ranks together.")
@click.option("--zone", callback=_zone, metavar="ZONE", help="Zone of times without one.  [default: UTC]")
@click.option("--mapping", callback=_mapping, metavar="FILE", help="How rows become events, for the kind mapped.")
@click.option("--again", is_flag=True, help="Read also what was imported before.")
@click.option("--report", "report_to", metavar="FILE", help="Write what came of each file, as JSON lines.")
@click.pass_context
@ends_cleanly
def import_(
    ctx: click.Context,
    kind: str,
    files: tuple[str, ...],
    out: str | None,
    job: str | None,
    attempt: int,
    restarts: bool,
    team: str | None,
    model: str | None,
    cluster: str | None,
    gpus: int | None,
    batch: int | None,
    zone: ZoneInfo | None,
    mapping: dict[str, Any] | None,
    again: bool,
    report_to: str | None,
) -> None:
    """Turn logs and traces of other tools into events.

    KIND says what the files are; `auto` tells it by how each of them begins. FILE may be a folder: every file in it is
    read. Files may be packed with gzip or zstd. Events go to the spool folder, which `ettwatch up` follows. What a
    file could not tell is said in the labels of its jobs, in --report and at the end. What was read before is not read
    again, so that a run that was stopped goes on where it was.

    Exit codes: 0 done; 1 done, some input refused; 2 nothing done.
    """
    if restarts and job is None:
        raise click.UsageError("--restarts needs --job")
    if kind == "mapped" and mapping is None:
        raise click.UsageError("the kind mapped needs --mapping FILE")
    options = Options(job, attempt, team, model, cluster, gpus, zone, batch, mapping)
    settings = json.dumps([kind, *(str(value) for value in (job, attempt, team, model, cluster, gpus, batch, zone))])
    run = Run(kind, options, restarts, settings + json.dumps(mapping, sort_keys=True, default=str), again)
    stopped = False
    with _report_file(report_to) as reports, Bar() as bar:
        try:
            run.go(files, out, reports, bar)
        except KeyboardInterrupt:
            stopped = True
    run.say()
    if stopped:
        if out != "-":
            click.echo("the same command goes on where it was", err=True)
        raise KeyboardInterrupt
    if not run.events and not run.known:
        click.echo("nothing done: no file gave an event", err=True)
        ctx.exit(NOTHING_DONE)
    if run.refused_files or run.refused_lines:
        ctx.exit(SOME_REJECTED)


@contextmanager
def _report_file(name: str | None) -> Iterator[IO[str] | None]:
    if name is None:
        yield None
        return
    try:
        with open(name, "w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
    except OSError as error:
        raise Refused(f"cannot write {name}: {error.strerror}; give another --report") from None
