"""Whether the Kafka brokers can be reached, and whether the topics there are as they have to be."""

import socket
from collections.abc import Iterator, Mapping
from typing import Final

from ettwatch_app.doctor.finding import Finding, Level
from ettwatch_faust import Access, BrokersError, SettingError, TopicSettings, admin, check, look, plan

_PORT: Final = 9092
_WAIT_S: Final = 2.0
_ASK_S: Final = 3.0


def check_kafka(env: Mapping[str, str]) -> Iterator[Finding]:
    """Try each broker of `ETTWATCH_KAFKA`, where that is set; one that answers is asked for the topics."""
    told = env.get("ETTWATCH_KAFKA", "").strip()
    reached = False
    for broker in filter(None, (part.strip() for part in told.split(","))):
        host, port = _parts(broker)
        if port is None:
            yield Finding("kafka", "fail", f"ETTWATCH_KAFKA: {broker!r} is no broker", "write it as HOST:PORT")
            continue
        try:
            socket.create_connection((host, port), timeout=_WAIT_S).close()
        except OSError as error:
            yield Finding(
                "kafka",
                "fail",
                f"cannot reach {host}:{port}: {error.strerror or error}",
                "is the broker up, the name right, the port open?",
            )
        else:
            reached = True
            yield Finding("kafka", "ok", f"{host}:{port} takes connections")
    if reached:
        yield from _topics(env)


def _topics(env: Mapping[str, str]) -> Iterator[Finding]:
    try:
        access, wanted = Access.read(env), plan(TopicSettings.read(env))
        with admin(access, _ASK_S) as client:
            findings = check(look(client, wanted), wanted)
    except SettingError as error:
        yield Finding("kafka", "fail", str(error), "correct it, or unset it")
        return
    except BrokersError as error:
        # A trainer's login may write events, and need not see any topic.
        yield Finding("kafka", "warn", f"the topics cannot be looked at: {error}", "a host that only trains need not")
        return
    missing = [each.topic for each in findings if each.code == "missing"]
    if missing:
        names = missing[0] if len(missing) == 1 else f"{missing[0]} and {len(missing) - 1} more"
        yield Finding("kafka", "fail", f"topics are missing: {names}", "ettwatch topics create")
    for each in findings:
        if not each.ok and each.code != "missing":
            level: Level = "fail" if each.stops else "warn"
            yield Finding("kafka", level, f"topic {each.topic} has {each.found}, wanted: {each.wanted}", each.fix)
    well = sum(each.ok for each in findings)
    if well:
        yield Finding("kafka", "ok", f"{well} of {len(wanted)} topics are as they have to be")


def _parts(broker: str) -> tuple[str, int | None]:
    host, colon, port = broker.rpartition(":")
    if not colon or broker.endswith("]"):
        return broker.strip("[]"), _PORT
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        return broker, None
    return host.strip("[]"), int(port)
