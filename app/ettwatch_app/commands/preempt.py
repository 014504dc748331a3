"""`ettwatch preempt`: whose GPUs to take so that the least is wasted. It takes none itself."""

import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from ettwatch_app.commands._folder import opened
from ettwatch_app.commands._shared import (
    NOTHING_DONE,
    SOME_REJECTED,
    Refused,
    data_option,
    ends_cleanly,
    format_option,
)
from ettwatch_app.datafolder import locate
from ettwatch_app.render import show, stdout_console
from ettwatch_schemas.durations import parse_duration

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store
    from ettwatch_monitor.preempt import Running

_MOST_GPUS: Final = 10_000_000
_PATIENCE_S: Final = 60

T = TypeVar("T")


@click.command()
@click.option("--gpus", type=click.IntRange(1, _MOST_GPUS), required=True, help="How many GPUs have to be free.")
@data_option
@click.option("--clickhouse", metavar="URL", help="The ClickHouse server, instead of the data folder.")
@click.option("--cluster", help="Only jobs on this cluster.")
@click.option("--team", help="Only jobs of this team.")
@click.option("--model", help="Only jobs of this model.")
@click.option("--exclude", multiple=True, metavar="JOB", help="Never this job; * and ? stand for any text.")
@click.option("--exclude-team", multiple=True, metavar="TEAM", help="Never jobs of this team.")
@click.option("--wait", default="30m", show_default=True, metavar="DUR", help="How long checkpoints may be waited for.")
@click.option("--stale", default="10m", show_default=True, metavar="DUR", help="Of how old a state a job still counts.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many jobs to show.")
@format_option("text", "json")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.pass_context
@ends_cleanly
def preempt(
    ctx: click.Context,
    gpus: int,
    data: Path | None,
    clickhouse: str | None,
    cluster: str | None,
    team: str | None,
    model: str | None,
    exclude: tuple[str, ...],
    exclude_team: tuple[str, ...],
    wait: str,
    stale: str,
    limit: int,
    form: str,
    as_json: bool,
) -> None:
    """Say which running jobs to preempt for so many GPUs, and what that wastes. Nothing is preempted.

    A job wastes its GPUs times the work that no durable checkpoint holds, and the time that it needs to recover. The
    state is read from the data folder (through `ettwatch up` where one lives), or from a ClickHouse server.

    Exit codes: 0 done; 1 not enough GPUs can be freed; 2 nothing done.
    """
    from ettwatch_app.render.preemption import plan_parts
    from ettwatch_monitor.preempt import plain_plan, rank, read_live
    from ettwatch_monitor.queries import Scope

    if clickhouse is not None and data is not None:
        raise click.UsageError("give --clickhouse or --data, not both")
    patience_s, stale_s = _seconds("--wait", wait), _seconds("--stale", stale)
    with ExitStack() as stack:
        store = _store(stack, clickhouse, data)
        live = _asked(lambda: read_live(store, time.time_ns() // 1_000, Scope(team, model, cluster), stale_s))

    def spared(job: "Running") -> bool:
        return job.team in exclude_team or any(fnmatchcase(job.job, pattern) for pattern in exclude)

    if not live.jobs and not live.left_out:
        click.echo("nothing done: no job runs; `ettwatch top` shows what is known", err=True)
        ctx.exit(NOTHING_DONE)
    plan = rank(live.jobs, gpus, time.time_ns() // 1_000, keep=spared, patience_s=patience_s)
    if as_json or form == "json":
        click.echo(json.dumps(plain_plan(plan, live), ensure_ascii=False))
    else:
        console = stdout_console()
        show(console, *plan_parts(plan, live, limit, console.width))
    if not plan.enough:
        ctx.exit(SOME_REJECTED)


def _store(stack: ExitStack, url: str | None, data: Path | None) -> "Store":
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError

    if url is None:
        return _asked(lambda: stack.enter_context(opened(locate(data), "ettwatch preempt")))
    try:
        store: Store = _asked(lambda: ClickHouseAccess.read(os.environ, url).connect(timeout_s=_PATIENCE_S))
    except ClickHouseSettingError as error:
        raise Refused(str(error)) from None
    stack.callback(store.close)
    return store


def _asked(question: Callable[[], T]) -> T:
    """Return the answer. Raises Refused where the database gives none."""
    import ettwatch_clickhouse as sink

    try:
        return question()
    except sink.StoreError as error:
        raise Refused(str(error)) from None


def _seconds(option: str, text: str) -> float:
    try:
        return parse_duration(text) / 1_000_000
    except ValueError as error:
        raise Refused(f"{option}: {error}") from None
