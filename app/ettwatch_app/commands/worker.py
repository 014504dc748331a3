"""`ettwatch worker`: fold the events of a fleet from Kafka, with as many other workers as one likes."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ettwatch_app.commands._service import serve_and_run, service_options
from ettwatch_app.commands._shared import Refused, ends_cleanly, seldom

if TYPE_CHECKING:
    from ettwatch_faust.settings import WorkerSettings

_Command = Callable[..., Any]


def _options(command: _Command) -> _Command:
    from ettwatch_faust.settings import WORKER_SETTINGS

    return service_options(command, WORKER_SETTINGS, "events topic")


@click.command()
@_options
@ends_cleanly
def worker(**told: Any) -> None:
    """Fold the events of a fleet from Kafka, and publish timelines.

    Any number of workers share the partitions of the events topic. Stop one with SIGTERM: it writes what it holds and
    hands its partitions over.

    Exit codes: 0 stopped as asked; 1 stopped by itself (the dead letter limit, a state that cannot be read, a fault);
    2 nothing done (a setting, brokers that are not reached, topics that are missing).
    """
    from ettwatch_faust import BrokersError, SettingError
    from ettwatch_faust.logs import configure
    from ettwatch_faust.settings import WorkerSettings

    try:
        configure(os.environ.get("ETTWATCH_LOG_FORMAT"), os.environ.get("ETTWATCH_LOG_LEVEL") or "info")
        settings = WorkerSettings.read(os.environ, told)
        _check(settings)
    except (SettingError, BrokersError, ValueError) as error:
        raise Refused(str(error)) from None
    from ettwatch_faust.app import make_app

    seldom()
    serve_and_run(make_app(settings))


def _check(settings: "WorkerSettings") -> None:
    """Look whether it can begin. Raises SettingError, BrokersError."""
    from ettwatch_faust import SettingError, names, plan
    from ettwatch_faust.precheck import precheck

    called = names(settings.topics.prefix)
    others = {called.parts, called.windows, called.windows_state, called.alerts}
    precheck(settings.access, [spec for spec in plan(settings.topics) if spec.name not in others])
    if settings.store == "rocksdb":
        try:
            settings.state_dir.mkdir(parents=True, exist_ok=True)
            (settings.state_dir / ".probe").touch()
            (settings.state_dir / ".probe").unlink()
        except OSError as error:
            raise SettingError(
                f"cannot write to the folder of the state, {settings.state_dir}: {error.strerror}; give another "
                "--state-dir"
            ) from None
