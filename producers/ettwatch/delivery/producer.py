"""A producer of kafka-python that is made late, waits for every acknowledgement, and never for longer than told."""

import atexit
import os
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from ettwatch.access import Access
from ettwatch.delivery.guard import importing
from ettwatch.delivery.quiet import hush
from ettwatch.delivery.record import Record, Undelivered
from ettwatch.settings import Brokers

KNOCK_S: Final = 3.0
"""Longest time, in seconds, in which one address must take a connection."""
CONNECT_S: Final = 6.0
ACKNOWLEDGE_S: Final = 15.0
"""Longest time, in seconds, until the brokers acknowledge; the client gives up a little before."""
MAX_REQUEST_BYTES: Final = 9 * 1024 * 1024


_disowned: list[Any] = []
"""Producers of the parent of this process: kept, because their end would reach for the parent's connections."""


def _nothing() -> None:
    """Stand for what is not registered."""


class Producer:
    """Sends to one topic. Every method may raise Undelivered; the constructor connects, and BrokersError too."""

    def __init__(self, brokers: Brokers) -> None:
        self._access = Access.read(brokers.env)
        self._topic = brokers.topic
        self._knock()
        with importing():
            import encodings.idna  # noqa: F401 - what asking for an address would import

            from kafka import KafkaProducer, errors
            from kafka.net.compat import KafkaNetClient
        self._errors = errors
        said = hush()
        said.clear()
        clients: list[Any] = []

        def client(**settings: Any) -> Any:
            clients.append(KafkaNetClient(**settings))
            return clients[0]

        try:
            self._producer = KafkaProducer(
                **self._access.client(),
                client_id=f"ettwatch-{os.getpid()}",
                acks="all",
                enable_idempotence=True,
                compression_type="gzip",
                allow_auto_create_topics=False,
                max_request_size=MAX_REQUEST_BYTES,
                bootstrap_timeout_ms=int(CONNECT_S * 1000),
                max_block_ms=int(CONNECT_S * 1000),
                request_timeout_ms=int(ACKNOWLEDGE_S * 600),
                delivery_timeout_ms=int(ACKNOWLEDGE_S * 900),
                reconnect_backoff_max_ms=2000,
                metrics_enabled=False,
                kafka_client=client,
            )
        except (errors.KafkaError, OSError, ValueError, RuntimeError, AssertionError) as error:
            for each in clients:
                with suppress(Exception):
                    each.close()
            raise Undelivered(self._access.why_unusable("\n".join([*said, str(error)]))) from None
        hush()
        # It would close itself before the recorder's last events are sent: what is registered last is called first.
        atexit.unregister(getattr(self._producer, "_cleanup", _nothing))

    def _knock(self) -> None:
        """See whether any address takes connections, before anything large is imported and made for it."""
        why = ""
        for host, port in self._access.hosts():
            try:
                socket.create_connection((host, port), KNOCK_S).close()
                return
            except socket.gaierror:
                why = why or "DNS"
            except (OSError, ssl.SSLError) as error:
                why = why or ("ECONNREFUSED" if isinstance(error, ConnectionRefusedError) else "timeout")
        raise Undelivered(self._access.why_unusable(why))

    def send(self, records: Sequence[Record]) -> list[bool]:
        """Send records and wait until they are acknowledged, in order; tell of each whether it was not too large.

        Raises Undelivered if any of the others was not acknowledged; those before it may have been.
        """
        deadline = monotonic() + ACKNOWLEDGE_S
        too_large = (self._errors.MessageSizeTooLargeError, self._errors.RecordListTooLargeError)
        futures: list[Any] = []
        taken = []
        try:
            for record in records:
                try:
                    futures.append(self._producer.send(self._topic, key=record.key, value=record.value))
                except too_large:
                    futures.append(None)
            for future in futures:
                try:
                    if future is not None:
                        future.get(max(deadline - monotonic(), 0.01))
                    taken.append(future is not None)
                except too_large:
                    taken.append(False)
        except self._errors.UnknownTopicOrPartitionError:
            raise Undelivered(f"the topic {self._topic} is not there; make it by ettwatch topics create") from None
        except self._errors.TopicAuthorizationFailedError:
            raise Undelivered(f"the brokers let nobody of this name write to {self._topic}; give the right") from None
        except (self._errors.KafkaError, OSError) as error:
            raise Undelivered(
                f"the brokers did not acknowledge in time ({type(error).__name__}); "
                f"are they well, and is the topic {self._topic} there?"
            ) from None
        return taken

    def disown(self) -> None:
        """Make sure that a forked child does not close what is its parent's, nor wait for threads it does not have."""
        with suppress(Exception):
            self._producer._closed = True
        _disowned.append(self._producer)

    def close(self) -> None:
        """Let go of the brokers, within about a second."""
        with suppress(Exception):
            self._producer.close(timeout=1)
