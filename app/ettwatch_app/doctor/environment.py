"""The variables, the ownership file and the clock."""

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from ettwatch.settings import VARIABLES, read
from ettwatch_app.clickhouse import CLICKHOUSE_VARIABLES
from ettwatch_app.doctor.finding import Finding
from ettwatch_app.owners import find_owners
from ettwatch_app.sink.settings import SETTINGS as SINK_SETTINGS
from ettwatch_app.up.settings import SETTINGS, parse_interval, parse_lateness, parse_listen
from ettwatch_core.ownership import OwnersError
from ettwatch_faust import BROKER_VARIABLES, TOPIC_VARIABLES
from ettwatch_faust.logs import LOG_VARIABLES
from ettwatch_faust.settings import WORKER_SETTINGS
from ettwatch_schemas import COMPONENTS

OWN_VARIABLES = {
    "ETTWATCH_OWNERS": "the ownership file",
    **BROKER_VARIABLES,
    **TOPIC_VARIABLES,
    **CLICKHOUSE_VARIABLES,
    **LOG_VARIABLES,
    **{setting.variable: setting.meaning for setting in WORKER_SETTINGS},
    **{setting.variable: setting.meaning for setting in SINK_SETTINGS if setting.variable},
    "ETTWATCH_FAILPOINT": "where `up` kills itself, for tests",
}
_PARSERS = {
    "ETTWATCH_LISTEN": parse_listen,
    "ETTWATCH_INTERVAL": parse_interval,
    "ETTWATCH_LATENESS": parse_lateness,
}


def known_variables() -> set[str]:
    """The names of all variables that anything in ettwatch reads."""
    names = {variable.name for variable in VARIABLES} | set(OWN_VARIABLES)
    return names | {setting.variable for setting in SETTINGS if setting.variable}


def check_variables(env: Mapping[str, str]) -> Iterator[Finding]:
    """Look for ETTWATCH_* variables that nothing reads, and for values that cannot be."""
    known = known_variables()
    mine = sorted(name for name in env if name.upper().startswith("ETTWATCH_"))
    troubles = 0
    for name in mine:
        if name not in known:
            close = get_close_matches(name.upper(), sorted(known), 1)
            troubles += 1
            yield Finding(
                "environment",
                "warn",
                f"nothing reads the variable {name}",
                f"did you mean {close[0]}?" if close else "unset it",
            )
    for name, parse in _PARSERS.items():
        if env.get(name):
            try:
                parse(env[name])
            except ValueError as error:
                troubles += 1
                yield Finding("environment", "fail", f"{name}: {error}", "correct it, or unset it")
    for text in _refused_by_recorder(env):
        troubles += 1
        yield Finding("environment", "warn", text, "correct it, or unset it")
    if not troubles:
        set_ones = ", ".join(mine) if mine else "none is set"
        yield Finding("environment", "ok", f"ETTWATCH_ variables: {set_ones}")


def _refused_by_recorder(env: Mapping[str, str]) -> list[str]:
    """What the recorder would warn of on its logger when it reads these settings."""
    told: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage().removeprefix("ettwatch: "))

    logger = logging.getLogger("ettwatch")
    listener = Listener(logging.WARNING)
    before = logger.propagate
    logger.addHandler(listener)
    logger.propagate = False
    try:
        read(env)
    finally:
        logger.removeHandler(listener)
        logger.propagate = before
    return told


def check_owners(own: Path) -> Iterator[Finding]:
    """Read the ownership file as the report would."""
    try:
        owners = find_owners(own)
    except OwnersError as error:
        for line, reason in error.problems:
            yield Finding("owners", "fail", f"{error.source}:{line}: {reason}", "correct that line")
        return
    except OSError as error:
        yield Finding("owners", "fail", f"cannot read {error.filename}: {error.strerror}", "correct ETTWATCH_OWNERS")
        return
    for line, reason in owners.doubts:
        yield Finding("owners", "warn", f"{owners.source}:{line}: {reason}", "correct that line")
    orphans = [component for component in COMPONENTS if owners.of(component) is None]
    if orphans:
        yield Finding("owners", "warn", f"{owners.source}: nobody owns {', '.join(orphans)}", "name their teams there")
    else:
        yield Finding("owners", "ok", f"{owners.source}: {len(owners.rules)} rules, every component is owned")


def check_clock(now: datetime) -> Iterator[Finding]:
    """Events carry wall-clock times: a clock that was never set makes them useless."""
    text = now.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if now.year < 2020:
        yield Finding("clock", "fail", f"the clock says {text}", "set the clock (NTP); events carry its times")
    else:
        yield Finding("clock", "ok", f"the clock says {text}; compare it with your other hosts")
