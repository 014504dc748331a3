"""The command `ettwatch run`."""

import math
import os
import signal
import sys
from typing import Any

import click

from ettwatch.hang import Patience
from ettwatch.identity import Given
from ettwatch.launcher import Launcher, Plan
from ettwatch.supervise import Care


def _labels(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    labels = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} is not name=value")
        labels[name] = text
    return labels or None


def _signals(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> frozenset[int]:
    numbers = set()
    for value in values:
        name = value.upper() if value.upper().startswith("SIG") else f"SIG{value.upper()}"
        if name not in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP"):
            raise click.BadParameter(f"{value!r} is none of TERM, USR1, USR2, HUP")
        numbers.add(int(signal.Signals[name]))
    return frozenset(numbers)


class _Seconds(click.FloatRange):
    """A range that takes numbers only: `nan` is neither below nor above anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return seconds


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--job", help="The job. [default: ETTWATCH_JOB, Slurm, or a new name]")
@click.option("--team", help="The team whose job it is.")
@click.option("--model", help="The model that is trained.")
@click.option("--cluster", help="The cluster that it runs on.")
@click.option("--gpus", type=click.IntRange(0, 2**31 - 1), help="How many GPUs the job holds.")
@click.option("--label", "labels", multiple=True, callback=_labels, metavar="NAME=VALUE", help="A free label.")
@click.option("--attempt", type=click.IntRange(0, 2**31 - 1), help="Number of the first attempt. [default: the next]")
@click.option("--max-restarts", type=click.IntRange(0), default=0, show_default=True, help="Restarts after failures.")
@click.option(
    "--backoff",
    type=_Seconds(0, 300),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait before the first restart; doubled for each further one, up to 300.",
)
@click.option(
    "--preempt-signal",
    "preempt_signals",
    multiple=True,
    default=("TERM",),
    show_default=True,
    callback=_signals,
    metavar="NAME",
    help="Signal by which the scheduler preempts (TERM, USR1, USR2, HUP).",
)
@click.option(
    "--grace",
    type=_Seconds(0, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long processes that are asked to end may take.",
)
@click.option(
    "--kill-after",
    type=_Seconds(0, 86_400),
    metavar="SECONDS",
    help="Kill the command so long after a signal that ends it. [default: never]",
)
@click.option(
    "--hang-after",
    type=_Seconds(1, 86_400),
    metavar="SECONDS",
    help="It hangs if its position stands still for so long. [default: never]",
)
@click.option(
    "--start-within",
    type=_Seconds(1, 86_400),
    metavar="SECONDS",
    help="It hangs if there is no step within this of its start. [default: never]",
)
@click.option(
    "--on-hang",
    type=click.Choice(["tell", "kill"]),
    default="tell",
    show_default=True,
    help="What to do then: say so, or end the command too, which is a failure and may be restarted.",
)
@click.option(
    "--stderr",
    type=click.Choice(["watch", "pass"]),
    default="watch",
    show_default=True,
    help="Whether to look into the command's errors for why it failed.",
)
@click.option("--auto", is_flag=True, help="Instrument PyTorch in the command, whose code stays as it is.")
@click.option("--spool", type=click.Path(file_okay=False), help="Folder for event files. [default: ETTWATCH_SPOOL]")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
def run(
    job: str | None,
    team: str | None,
    model: str | None,
    cluster: str | None,
    gpus: int | None,
    labels: dict[str, str] | None,
    attempt: int | None,
    max_restarts: int,
    backoff: float,
    preempt_signals: frozenset[int],
    grace: float,
    kill_after: float | None,
    hang_after: float | None,
    start_within: float | None,
    on_hang: str,
    stderr: str,
    auto: bool,
    spool: str | None,
    command: tuple[str, ...],
) -> None:
    """Run CMD and record how each attempt of it starts and ends.

    Signals are passed on to CMD. The exit code is that of CMD, or 128 + n if signal n ended it.
    """
    given = Given(job or None, team, model, cluster, gpus, labels, attempt)
    patience = Patience(hang_after, start_within)
    care = Care(grace, kill_after, patience, kill_hung=on_hang == "kill", watch_stderr=stderr == "watch")
    plan = Plan(command, given, spool, max_restarts, backoff, preempt_signals, care, auto)
    sys.exit(Launcher(plan, os.environ, _say).run())


def _say(text: str) -> None:
    click.echo(f"ettwatch run: {text}", err=True)
