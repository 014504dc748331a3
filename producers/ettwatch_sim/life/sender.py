"""Sends messages to Kafka, and keeps no more in memory than the brokers are behind by."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from ettwatch_sim.life.batches import Message

_MOST_WAITING: Final = 5_000
"""Messages that may be on their way: kafka-python itself would keep any number."""


class Sender:
    """A producer of kafka-python.

    What it raises are the errors of kafka-python.

    Args:
        client: Where the brokers are and how to log in, as the settings of any client of kafka-python.
        topic: The topic of events.
        seconds: To wait for an answer.
    """

    def __init__(self, client: Mapping[str, Any], topic: str, seconds: float) -> None:
        from kafka import KafkaProducer

        wait = int(seconds * 1000)
        self._topic = topic
        self._seconds = seconds
        self._waiting: deque[Any] = deque()
        self._producer = KafkaProducer(
            **client,
            acks="all",
            linger_ms=20,
            allow_auto_create_topics=False,
            bootstrap_timeout_ms=wait,
            request_timeout_ms=wait,
            max_block_ms=wait,
            delivery_timeout_ms=3 * wait,
        )

    def put(self, message: Message) -> None:
        """Send a message; waits where too many are on their way."""
        key = message.job.encode()
        self._waiting.append(self._producer.send(self._topic, key=key, value=message.value))
        while len(self._waiting) > _MOST_WAITING:
            self._settle()

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        self._producer.flush(3 * self._seconds)
        while self._waiting:
            self._settle()

    def close(self) -> None:
        """End it; what is not acknowledged is lost."""
        self._producer.close(self._seconds)

    def _settle(self) -> None:
        self._waiting.popleft().get(3 * self._seconds)
