"""Clients of the Kafka brokers that never hang, and say in one line what is wrong."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ettwatch.access import Access, BrokersError

__all__ = ["BROKER_VARIABLES", "Access", "BrokersError", "admin", "connecting"]

BROKER_VARIABLES: Final[Mapping[str, str]] = {
    "ETTWATCH_KAFKA": "the Kafka brokers, HOST:PORT with commas between them",
    "ETTWATCH_KAFKA_SECURITY": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
    "ETTWATCH_KAFKA_CA": "file with the certificates that sign those of the brokers",
    "ETTWATCH_KAFKA_MECHANISM": "how to log in: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
    "ETTWATCH_KAFKA_USER": "user to log in as",
    "ETTWATCH_KAFKA_PASSWORD": "password of that user",
    "ETTWATCH_KAFKA_PASSWORD_FILE": "file with the password, instead of it",
}
"""Every variable that says how the brokers are reached."""


class _Listener(logging.Handler):
    """Keeps what kafka-python says while it connects: its exception tells only that it gave up."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said += record.getMessage() + "\n"


@contextlib.contextmanager
def admin(access: Access, seconds: float = 10) -> Iterator[Any]:
    """A KafkaAdminClient of kafka-python, each call of which ends within `seconds`.

    Raises BrokersError where they are not reached, or stop answering.
    """
    from kafka.admin import KafkaAdminClient

    wait = int(seconds * 1000)
    settings = {**access.client(), "bootstrap_timeout_ms": wait, "request_timeout_ms": wait}
    with connecting(access, lambda: KafkaAdminClient(**settings), seconds) as client:
        yield client


@contextlib.contextmanager
def connecting(access: Access, make: Callable[[], Any], seconds: float = 10) -> Iterator[Any]:
    """A client of kafka-python, open in this block: what it raises there becomes a BrokersError, and it logs nothing.

    Args:
        access: How it reaches the brokers.
        make: Makes it.
        seconds: For which its closing is waited for.
    """
    from kafka.errors import KafkaError

    listener = _Listener()
    logger = logging.getLogger("kafka")
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    client = None
    try:
        client = make()
        yield client
    except (KafkaError, OSError) as error:
        if client is not None and isinstance(error, OSError):
            raise  # of the block itself: kafka-python brings those of its connections into a form of its own
        raise BrokersError(_why(access, listener.said, error, connected=client is not None)) from None
    finally:
        if client is not None:
            # On a lost connection closing may wait for an answer.
            closing = threading.Thread(target=_close, args=(client,), daemon=True)
            closing.start()
            closing.join(seconds)
        logger.removeHandler(listener)
        logger.propagate = propagated


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close()


def _why(access: Access, said: str, error: Exception, *, connected: bool) -> str:
    if not connected:
        return access.why_unusable(said)
    where = ", ".join(access.brokers)
    if "Timeout" in type(error).__name__ or "Connection lost" in said:
        return f"the Kafka brokers at {where} stopped answering; try again, and look at their logs"
    return f"the Kafka brokers at {where} refused: {error}"
