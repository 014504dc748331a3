"""How far consumers are behind, and what stands in a topic."""

import time
from collections.abc import Iterator, Sequence
from typing import Final, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

__all__ = ["Group", "read_topic", "sizes"]

_CALL_S: Final = 60
_READ_S: Final = 60


class Group:
    """A consumer group, seen from outside. A context manager."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str]) -> None:
        self.group = group
        self._consumer = _consumer(bootstrap, group)
        self._topics = topics

    def lag(self) -> dict[tuple[str, int], int]:
        """Return the records by topic and partition that it has not committed; where there are none, nothing."""
        wanted = _partitions(self._consumer, self._topics)
        behind = {}
        for place in self._consumer.committed(wanted, timeout=_CALL_S):
            low, high = _ends(self._consumer, place)
            left = high - (place.offset if place.offset >= 0 else low)
            if left > 0:
                behind[place.topic, place.partition] = left
        return behind

    def committed(self) -> int:
        """Return how many records it has committed."""
        wanted = _partitions(self._consumer, self._topics)
        return sum(max(0, place.offset) for place in self._consumer.committed(wanted, timeout=_CALL_S))

    def behind(self) -> int | None:
        """Return how many records it is behind; None while the brokers do not answer."""
        try:
            return sum(self.lag().values())
        except KafkaException:
            return None

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_topic(bootstrap: str, topic: str) -> Iterator[Message]:
    """Yield all records of a topic up to its present end, one partition after the other."""
    consumer = _consumer(bootstrap, f"read-{topic}")
    try:
        for place in _partitions(consumer, [topic]):
            low, high = _ends(consumer, place)
            if low >= high:
                continue
            place.offset = OFFSET_BEGINNING
            consumer.assign([place])
            end = time.monotonic() + _READ_S
            while consumer.position([place])[0].offset < high:
                messages = consumer.consume(1_000, 0.2)
                for message in messages:
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                yield from messages
                if messages:
                    end = time.monotonic() + _READ_S
                elif time.monotonic() > end:
                    raise TimeoutError(f"{topic}: partition {place.partition} is not read within {_READ_S} s")
            consumer.unassign()
    finally:
        consumer.close()


def sizes(bootstrap: str, topic: str) -> tuple[int, int]:
    """Return how many records stand in a topic, and the bytes of their keys and values."""
    records = size = 0
    for message in read_topic(bootstrap, topic):
        records += 1
        size += len(message.key() or b"") + len(message.value() or b"")
    return records, size


def _consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
    )


def _partitions(consumer: Consumer, topics: Sequence[str]) -> list[TopicPartition]:
    found = []
    for topic in topics:
        told = consumer.list_topics(topic, timeout=_CALL_S).topics[topic]
        if told.error is not None:
            raise KafkaException(told.error)
        found += [TopicPartition(topic, number) for number in sorted(told.partitions)]
    return found


def _ends(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    found = consumer.get_watermark_offsets(place, timeout=_CALL_S)
    if found is None:
        raise KafkaException(f"no answer within {_CALL_S} s")
    return found
