"""Sends a feed to Kafka, as fast as it goes or at a rate, in a thread."""

import math
import threading
import time
from collections.abc import Iterable
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from kafka.partitioner.default import murmur2

from support.pipeline_feed import Feed, Origin, Record
from support.pipeline_programs import ProgramError, until

__all__ = ["Feeder"]

_FLUSH_S: Final = 300
_LINGER_MS: Final = 5


class Feeder:
    """One producer, which rides out brokers that go away.

    At each of its stops it waits for `go_on()`: what is done there is done in the middle of the feed, however slow
    whoever does it is.

    Attributes:
        refused: Where each bad event or record was sent, and the record.
        began: When the first record was sent (monotonic seconds).
    """

    def __init__(
        self, bootstrap: str, topic: str, feed: Feed, seconds: float | None = None, stops: Iterable[float] = ()
    ) -> None:
        """Make it.

        Args:
            bootstrap: Addresses of the brokers.
            topic: Where it sends.
            feed: What it sends.
            seconds: How long it takes to send all, without the stops; None: as fast as it goes.
            stops: Shares of the feed.
        """
        self.refused: dict[Origin, Record] = {}
        self.began = 0.0
        self._topic = topic
        self._feed = feed
        self._rate = None if seconds is None else len(feed.records) / seconds
        self._stops = {math.ceil(share * len(feed.records)) for share in stops}
        self._further = threading.Semaphore(0)
        self._stood_s = 0.0
        self._sent = 0
        self._problems: list[str] = []
        self._halt = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": "murmur2_random",  # as kafka-python and aiokafka choose
                "enable.idempotence": True,
                "linger.ms": _LINGER_MS,
                "message.max.bytes": 8_000_000,
                "delivery.timeout.ms": _FLUSH_S * 1_000,
                "log_level": 2,
            }
        )
        self._partitions = len(self._producer.list_topics(topic, timeout=_FLUSH_S).topics[topic].partitions)
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def start(self) -> Self:
        """Begin to send."""
        self.began = time.monotonic()
        self._thread.start()
        return self

    @property
    def share(self) -> float:
        """How much of the feed was sent, from 0 to 1."""
        return self._sent / max(1, len(self._feed.records))

    def reach(self, share: float, seconds: float = 600) -> None:
        """Wait until a share of the feed was sent."""
        until(f"{share:.0%} of the feed was sent", lambda: self.share >= share or self._raise(), seconds, 0.01)

    def go_on(self) -> None:
        """Let it pass one more stop."""
        self._further.release()

    def finish(self, seconds: float = 600) -> Self:
        """Wait until everything is acknowledged. Raises ProgramError where something is not."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise ProgramError(f"the feed was not sent within {seconds:.0f} s")
        self._raise()
        return self

    def close(self) -> None:
        """Send no more."""
        self._halt.set()
        if self._thread.ident is not None:
            self._thread.join(_FLUSH_S)

    def _run(self) -> None:
        try:
            for number, record in enumerate(self._feed.records):
                if self._halt.is_set():
                    return
                if number in self._stops:
                    self._stand()
                if self._rate is not None:
                    while (early := self.began + self._stood_s + number / self._rate - time.monotonic()) > 0:
                        self._producer.poll(min(early, 0.01))
                self._send(record)
                self._sent = number + 1
            if left := self._producer.flush(_FLUSH_S):
                self._problems.append(f"{left} records were not acknowledged within {_FLUSH_S} s")
        except KafkaException as error:
            self._problems.append(str(error))

    def _stand(self) -> None:
        began = time.monotonic()
        while not self._further.acquire(timeout=0.05) and not self._halt.is_set():
            self._producer.poll(0)
        self._stood_s += time.monotonic() - began

    def _partition(self, record: Record) -> int:
        if record.bad is None or not record.bad.astray:
            return -1  # where the key belongs
        home: int = (murmur2(record.key) & 0x7FFFFFFF) % self._partitions
        return (home + 1) % self._partitions

    def _send(self, record: Record) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    self._partition(record),
                    on_delivery=lambda error, message: self._acknowledged(error, message, record),
                )
            except BufferError:
                self._producer.poll(0.05)
            else:
                self._producer.poll(0)
                return

    def _acknowledged(self, error: KafkaError | None, message: Message, record: Record) -> None:
        if error is not None:
            self._problems.append(f"a record of {record.key!r} was not taken: {error}")
        elif record.bad is not None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.refused[Origin(partition, offset, record.bad.index)] = record

    def _raise(self) -> bool:
        if self._problems:
            raise ProgramError(f"{len(self._problems)} problems with sending, first: {self._problems[0]}")
        return False
