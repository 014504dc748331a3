"""Which record comes next in a partition, by asking the brokers past Faust's machinery."""

import contextlib
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

__all__ = ["Finder"]

_WAIT_S: Final = 5.0


class Finder:
    """A consumer without a group, connected when it is needed first. For one task at a time.

    Args:
        settings: Of an AIOKafkaConsumer: addresses and login.
        topic: Where it looks.
        wait_s: How long it waits for a record.
    """

    def __init__(self, settings: dict[str, Any], topic: str, wait_s: float = _WAIT_S) -> None:
        self._settings = settings
        self._topic = topic
        self._wait_s = wait_s
        self._consumer: AIOKafkaConsumer | None = None

    async def first(self, partition: int, offset: int) -> int | None:
        """Return the offset of the first record from `offset` on; None if none comes, or the brokers do not tell."""
        place = TopicPartition(self._topic, partition)
        try:
            consumer = await self._started()
            consumer.assign([place])
            consumer.seek(place, offset)
            found = await consumer.getmany(place, timeout_ms=int(self._wait_s * 1000), max_records=1)
        except (KafkaError, OSError, TimeoutError):
            await self.close()
            return None
        records = found.get(place)
        return int(records[0].offset) if records else None

    async def _started(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._settings, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
            )
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
        return self._consumer

    async def close(self) -> None:
        """Let go of the connections."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                await consumer.stop()
