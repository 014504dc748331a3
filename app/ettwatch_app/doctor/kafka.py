"""Whether the Kafka brokers can be reached: a TCP connection, no more."""

import socket
from collections.abc import Iterator, Mapping

from ettwatch_app.doctor.finding import Finding

_PORT = 9092
_WAIT_S = 2.0


def check_kafka(env: Mapping[str, str]) -> Iterator[Finding]:
    """Try each broker of `ETTWATCH_KAFKA`, where that is set."""
    told = env.get("ETTWATCH_KAFKA", "").strip()
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
            yield Finding("kafka", "ok", f"{host}:{port} takes connections")


def _parts(broker: str) -> tuple[str, int | None]:
    host, colon, port = broker.rpartition(":")
    if not colon or broker.endswith("]"):
        return broker.strip("[]"), _PORT
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        return broker, None
    return host.strip("[]"), int(port)
