"""What the commands of `ettwatch alerts` share: options, rules, memory, outbox, and all that a round needs."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ettwatch_app.commands._shared import Command, Refused, owners_for
from ettwatch_app.datafolder import locate

if TYPE_CHECKING:
    from ettwatch_app.clickhouse import ClickHouseAccess
    from ettwatch_core.ownership import Owners
    from ettwatch_monitor.alerts.deliver import Delivery, Outbox
    from ettwatch_monitor.alerts.watch import Loop, Memory, Rules

_MEMORY: Final = "episodes.sqlite"
_OUTBOX: Final = "outbox.sqlite"
_PATIENCE_S: Final = 120
DEFAULT_STATE: Final = "ettwatch-alerts"


def alert_options(*names: str) -> Callable[[Command], Command]:
    """Add the options that several commands of `ettwatch alerts` share."""
    known = {
        "clickhouse": click.option(
            "--clickhouse",
            metavar="URL",
            help="The database, http[s]://user@host:8123/ettwatch.  [default: $ETTWATCH_CLICKHOUSE]",
        ),
        "rules": click.option(
            "--rules",
            type=click.Path(path_type=Path, dir_okay=False),
            envvar="ETTWATCH_ALERT_RULES",
            metavar="FILE",
            help="The file of rules; without one the usual rules hold, and nobody is told.  "
            "[default: $ETTWATCH_ALERT_RULES]",
        ),
        "state": click.option(
            "--state",
            type=click.Path(path_type=Path, file_okay=False),
            envvar="ETTWATCH_ALERT_STATE",
            default=DEFAULT_STATE,
            metavar="DIR",
            help="The folder of what is remembered.  [default: $ETTWATCH_ALERT_STATE, else ./ettwatch-alerts]",
        ),
    }

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = known[name](command)
        return command

    return add


def now_us() -> int:
    """Return the time, in microseconds."""
    return time.time_ns() // 1000


def access_to(url: str | None) -> "ClickHouseAccess":
    """Return how ClickHouse is reached. Raises Refused."""
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError

    try:
        return ClickHouseAccess.read(os.environ, url)
    except ClickHouseSettingError as error:
        raise Refused(str(error)) from None


def rules_of(file: Path | None) -> "Rules":
    """Read a file of rules; without one, the usual rules. Raises Refused."""
    from ettwatch_monitor.alerts.watch import Rules, RulesError, load_rules

    if file is None:
        return Rules()
    try:
        return load_rules(file)
    except RulesError as error:
        raise Refused(f"the file of rules is wrong:\n{error}") from None
    except OSError as error:
        raise Refused(f"cannot read the rules in {file}: {error.strerror or error}") from None


@contextmanager
def remembered(state: Path) -> "Iterator[Memory]":
    """Open what is remembered in a folder. Raises Refused."""
    from ettwatch_monitor.alerts.watch import Memory, StateError

    if not (state / _MEMORY).exists():
        raise Refused(f"nothing is remembered in {state}; name the folder of `ettwatch alerts run` with --state")
    try:
        with Memory(state / _MEMORY) as memory:
            yield memory
    except StateError as error:
        raise Refused(str(error)) from None


@contextmanager
def outbox_of(state: Path) -> "Iterator[Outbox]":
    """Open the outbox of a folder, also while a process delivers from it. Raises Refused."""
    import sqlite3

    from ettwatch_monitor.alerts.deliver import Outbox, OutboxError

    file = state / _OUTBOX
    if not file.exists():
        raise Refused(f"there is no outbox in {state}; name the folder of `ettwatch alerts run` with --state")
    try:
        with Outbox(file) as outbox:
            yield outbox
    except OutboxError as error:
        raise Refused(str(error)) from None
    except sqlite3.Error as error:
        raise Refused(f"cannot use the outbox {file}: {error}; try again") from None


@contextmanager
def watching(access: "ClickHouseAccess", file: Path | None, state: Path) -> "Iterator[Loop]":
    """Open all that a round needs. Raises Refused."""
    from ettwatch_monitor.alerts.deliver import ChannelError, Delivery, Outbox, OutboxError, make_channels
    from ettwatch_monitor.alerts.watch import Loop, Memory, StateError, Watcher

    rules, owners = rules_of(file), owners_for(locate(None).owners)
    with ExitStack() as stack:
        try:
            memory = stack.enter_context(Memory(state / _MEMORY))
            outbox = Outbox(state / _OUTBOX)
            stack.callback(outbox.close)
            channels = make_channels(rules.delivery.channels, access.connect)
            delivery = Delivery(outbox, channels, rules.delivery.silences, now=now_us())
            stack.callback(delivery.close)
            watcher = Watcher(rules, owners, memory)
        except (StateError, OutboxError, ChannelError) as error:
            raise Refused(str(error)) from None
        refresh = _Refresh(file, rules, owners, delivery, access)
        loop = Loop(
            watcher,
            lambda: access.connect(timeout_s=_PATIENCE_S),
            delivery,
            lambda: [known.alert for known in outbox.firing()],
            rules,
            refresh,
        )
        stack.callback(loop.close)
        yield loop


class _Refresh:
    """Reads the files of rules and owners again where they changed."""

    def __init__(
        self, file: Path | None, rules: "Rules", owners: "Owners", delivery: "Delivery", access: "ClickHouseAccess"
    ) -> None:
        self._file = file
        self._rules = rules
        self._owners = owners
        self._delivery = delivery
        self._access = access
        self._wrong: str | None = None

    def __call__(self) -> "tuple[Rules, Owners] | None":
        from ettwatch_monitor.alerts.deliver import ChannelError, make_channels

        try:
            rules, owners = rules_of(self._file), owners_for(locate(None).owners)
            if (rules, owners) == (self._rules, self._owners):
                return None
            if rules.delivery != self._rules.delivery:
                channels = make_channels(rules.delivery.channels, self._access.connect)
                self._delivery.reconfigure(channels, rules.delivery.silences, now_us())
        except (Refused, ChannelError) as error:
            self._complain(error.message if isinstance(error, Refused) else str(error))
            return None
        self._rules, self._owners, self._wrong = rules, owners, None
        return rules, owners

    def _complain(self, text: str) -> None:
        if text != self._wrong:
            logging.getLogger(__name__).warning("%s; what held before goes on to hold", text)
        self._wrong = text
