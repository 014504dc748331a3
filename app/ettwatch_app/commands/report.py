"""`ettwatch report`: where the time of one job went, or of all of them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click

from ettwatch_app.commands._folder import opened, opened_at
from ettwatch_app.commands._shared import (
    Refused,
    clickhouse_option,
    data_option,
    definition_option,
    ends_cleanly,
    format_option,
    owners_for,
)
from ettwatch_app.datafolder import locate
from ettwatch_app.goodput import as_json, goodput, table
from ettwatch_app.render import FleetView, JobView, Order, clean, print_fleet, print_job, show, stdout_console
from ettwatch_core.ownership import Owners


@click.command()
@click.argument("job", required=False)
@data_option
@clickhouse_option
@format_option("table", "json")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Without JOB: how many jobs to list; 0 lists all.",
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(get_args(Order)),
    default="newest",
    show_default=True,
    help="Without JOB: which come first: the newest, most GPU-hours lost, lowest ETT, slowest start, most failures.",
)
@definition_option
@ends_cleanly
def report(
    job: str | None, data: Path | None, url: str | None, form: str, limit: int, order: Order, definition: str
) -> None:
    """Show where the time went: of one JOB, or of all jobs.

    It goes through `ettwatch up` where one lives, else it opens the data folder itself; with --clickhouse it asks a
    server.

    Exit codes: 0 done; 2 nothing done.
    """
    import ettwatch_clickhouse as sink
    from ettwatch_app.reading import near_names, read_fleet, read_job, read_points

    if definition == "goodput" and job is None:
        raise click.UsageError("--definition goodput needs the name of a JOB")
    folder = locate(data)
    owners = owners_for(folder.owners)
    with opened_at(url) if url is not None else opened(folder, "ettwatch report") as store:
        try:
            if job is None:
                view: JobView | FleetView | None = read_fleet(store, owners, limit or None, order)
            else:
                view = read_job(store, job, owners)
            points = read_points(store, job) if definition == "goodput" and job is not None else []
            near = near_names(store, job) if job is not None and view is None else []
        except sink.StoreError as error:
            raise Refused(str(error)) from None
    if definition == "goodput" and isinstance(view, JobView):
        found = goodput(view.summary, view.attempts, view.segments, points)
        if form == "json":
            click.echo(as_json(found))
        else:
            show(stdout_console(), table([found]))
    elif isinstance(view, FleetView):
        _fleet(view, form)
    elif isinstance(view, JobView):
        _job(view, form)
    else:
        where = "that ClickHouse" if url is not None else folder.root
        raise Refused(f"there is no job {clean(str(job), 80)!r} in {where}{_hint(near)}")


def _hint(near: list[str]) -> str:
    if not near:
        return "; `ettwatch report` without a name lists the jobs"
    return f"; did you mean {' or '.join(repr(clean(name, 80)) for name in near)}?"


def _job(view: JobView, form: str) -> None:
    if form == "table":
        print_job(view, stdout_console())
        return
    told = {
        "summary": view.summary.model_dump(mode="json"),
        "attempts": [attempt.model_dump(mode="json") for attempt in view.attempts],
        "segments": [
            {"attempt": s.attempt, "stage": s.stage, "start": s.start, "end": s.end, "gpus": s.gpus}
            for s in view.segments
        ],
        "owners": _owners(view.owners, view.summary.stages, view.summary.cluster, view.summary.model),
    }
    click.echo(json.dumps(told, ensure_ascii=False))


def _fleet(view: FleetView, form: str) -> None:
    if form == "table":
        print_fleet(view, stdout_console())
        return
    told = {
        "jobs": view.number,
        "ett_pct": view.ett_pct,
        "mean_ett_pct": view.mean_ett_pct,
        "nof": view.nof,
        "gpu_e2e_s": view.gpu_e2e_s,
        "gpu_stages_s": dict(view.gpu_stage_s),
        "owners": _owners(view.owners, view.gpu_stage_s),
        "listed": [job.model_dump(mode="json") for job in view.jobs],
    }
    click.echo(json.dumps(told, ensure_ascii=False))


def _owners(
    owners: Owners, stages: Mapping[str, float], cluster: str | None = None, model: str | None = None
) -> dict[str, object]:
    """The owner of each stage that took time."""
    found = {stage: owners.of(stage, cluster, model) for stage in stages}
    return {stage: None if owner is None else asdict(owner) for stage, owner in found.items()}
