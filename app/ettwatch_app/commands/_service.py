"""What the commands share that run an app on Kafka: their options, and how they serve, run and end."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ettwatch_app.commands._shared import DONE, SOME_REJECTED, Refused
from ettwatch_app.commands._stopping import until_asked

if TYPE_CHECKING:
    from ettwatch_faust.app import WorkerApp
    from ettwatch_faust.settings import Setting
    from ettwatch_faust.windows.app import WindowsApp

__all__ = ["serve_and_run", "service_options"]

_Command = Callable[..., Any]


def service_options(command: _Command, settings: "Sequence[Setting]", partitions_of: str) -> _Command:
    """Add the options of the settings, and those that say where the topics are.

    Args:
        command: The command.
        settings: Those that only it has.
        partitions_of: Of which topics the partitions are asked for, in its help.
    """
    for setting in reversed(settings):
        usual = f"${setting.variable}" + (f", else {setting.default}" if setting.default else "")
        command = click.option(setting.option, help=f"{setting.meaning}  [default: {usual}]")(command)
    command = click.option(
        "--partitions",
        type=int,
        help=f"Partitions of the {partitions_of}.  [default: $ETTWATCH_PARTITIONS, else 32]",
    )(command)
    command = click.option(
        "--prefix", help="What the names of the topics begin with.  [default: $ETTWATCH_TOPIC_PREFIX, else ett]"
    )(command)
    return click.option("--bootstrap", metavar="HOST:PORT,...", help="The brokers.  [default: $ETTWATCH_KAFKA]")(
        command
    )


def serve_and_run(app: "WorkerApp | WindowsApp") -> NoReturn:
    """Run an app until it is asked to end, with its probe beside it; exit with its code. Raises Refused."""
    from ettwatch_faust.probe import ProbeError, serve
    from ettwatch_faust.web import parse_address

    probe: Any = contextlib.nullcontext()
    if parse_address(app.settings.web) is not None:
        try:
            probe = serve(app.settings.web, app.metrics.registry, app.healthy, app.ready)
        except ProbeError as error:
            raise Refused(str(error)) from None
    with probe:
        asyncio.run(until_asked(app.run))
    sys.exit(DONE if app.stopped_by is None else SOME_REJECTED)
