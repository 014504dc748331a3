"""`ettwatch windows`: rolling windows over the fleet, from what the workers publish on Kafka."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ettwatch_app.commands._service import serve_and_run, service_options
from ettwatch_app.commands._shared import Refused, ends_cleanly, seldom

if TYPE_CHECKING:
    from ettwatch_core.ownership import Owners
    from ettwatch_faust.windows.settings import WindowsSettings

_Command = Callable[..., Any]
_OWN: Final = Path(".ettwatch/owners.yaml")


def _options(command: _Command) -> _Command:
    from ettwatch_faust.windows.settings import WINDOWS_SETTINGS

    return service_options(command, WINDOWS_SETTINGS, "topics")


@click.command()
@_options
@ends_cleanly
def windows(**told: Any) -> None:
    """Sum up the fleet over rolling windows, from what the workers publish on Kafka.

    Any number of these processes share the partitions. Stop one with SIGTERM: it writes its state and hands its
    partitions over.

    Exit codes: 0 stopped as asked; 1 stopped by itself (a state that cannot be read, a fault); 2 nothing done (a
    setting, an ownership file, brokers that are not reached, topics that are missing).
    """
    from ettwatch_faust import BrokersError, SettingError
    from ettwatch_faust.logs import configure
    from ettwatch_faust.windows.settings import WindowsSettings

    try:
        configure(os.environ.get("ETTWATCH_LOG_FORMAT"), os.environ.get("ETTWATCH_LOG_LEVEL") or "info")
        settings = WindowsSettings.read(os.environ, told)
        owners, look = _owners(settings)
        _check(settings)
    except (SettingError, BrokersError, ValueError) as error:
        raise Refused(str(error)) from None
    from ettwatch_faust.windows.app import make_windows_app

    seldom()
    serve_and_run(make_windows_app(settings, owners, look))


def _owners(settings: "WindowsSettings") -> tuple["Owners", Callable[[int], "Owners | None"]]:
    """Return the owners, and what sees that they changed. Raises SettingError, OwnersError."""
    import logging
    import time

    from ettwatch_app.owners import OwnersWatch
    from ettwatch_faust import SettingError

    watch = OwnersWatch(_OWN, {} if settings.owners is None else {"ETTWATCH_OWNERS": settings.owners})
    log = logging.getLogger(__name__)

    def look(now_us: int) -> "Owners | None":
        change = watch.look(now_us)
        if change is None:
            return None
        if change.problem is not None:
            log.warning("%s; the owners before go on to count", change.problem, extra={"event": "bad_owners"})
        return change.owners

    first = watch.look(time.time_ns() // 1_000)
    if first is None or first.owners is None:
        raise SettingError("no owners" if first is None else str(first.problem))
    return first.owners, look


def _check(settings: "WindowsSettings") -> None:
    """Look whether it can begin. Raises SettingError, BrokersError."""
    from ettwatch_faust import names, plan
    from ettwatch_faust.precheck import precheck

    called = names(settings.topics.prefix)
    wanted = {called.jobs, called.attempts, called.segments, called.parts, called.windows, called.windows_state}
    precheck(settings.access, [spec for spec in plan(settings.topics) if spec.name in wanted])
